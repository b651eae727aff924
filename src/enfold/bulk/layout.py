"""Layout: which files are meant, and where the results of each go.

A folder is mirrored: what lies deeper in it lies as deep in the folder of results. One folder is
mirrored as it is, several each under its own name. A file that is named goes under its name alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from enfold.errors import ConfigError

SUFFIXES = frozenset({".json", ".jsonl", ".ndjson"})
"""What is read of a folder. A file that is named is read whatever it is called."""
LEDGER = ".ledger"
"""What a ledger's name ends with, after the whole name of its file."""


@dataclass(frozen=True, slots=True)
class Place:
    """One file of many."""

    source: Path
    target: Path
    ledger: Path
    """Beside the target where it is written, beside the source where it is read; or elsewhere."""


@dataclass(slots=True)
class Found:
    """What the files and folders that were named hold."""

    files: list[tuple[Path, Path]] = field(default_factory=list)
    """Each with its place in the folder of results."""
    others: int = 0
    """Files in folders that are left alone because of their names."""


def find(given: Sequence[Path], *, without: Iterable[Path] = ()) -> Found:
    """All files that are meant, each once; folders `without` are passed over."""
    found = Found()
    apart = {_real(path) for path in without}
    walk = _Walk(found, set(apart))
    for path in given:
        if path.is_dir() and _real(path) in apart:
            raise ConfigError(f"{path} is read; results go into another folder, or one inside it")
        if not path.is_dir():
            walk.take(path, Path(path.name))
            continue
        below = Path(path.resolve().name) if len(given) > 1 else Path()
        walk.folder(path, below)
    return found


def condensing(found: Found, out: Path, ledgers: Path | None) -> list[Place]:
    """Where the condensed files and their ledgers are written."""
    places = [
        Place(source, out / below, _ledger((ledgers or out) / below))
        for source, below in found.files
    ]
    _check_apart(places, [place.source for place in places], with_ledgers=True)
    return places


def restoring(found: Found, out: Path, ledgers: Path | None) -> list[Place]:
    """Where the restored files are written, and where their ledgers are."""
    places = [
        Place(source, out / below, _ledger(source if ledgers is None else ledgers / below))
        for source, below in found.files
    ]
    read = [path for place in places for path in (place.source, place.ledger)]
    _check_apart(places, read, with_ledgers=False)
    return places


class _Walk:
    """Files below folders, by name; links are followed, but no folder or file is met twice."""

    def __init__(self, found: Found, passed_over: set[str]) -> None:
        self._found = found
        self._seen = passed_over

    def folder(self, folder: Path, below: Path) -> None:
        if self._is_seen(folder):
            return
        try:
            inside = sorted(folder.iterdir())
        except OSError:
            self._found.files.append((folder, below))  # whoever reads it will say why
            return
        for path in inside:
            if path.name.startswith("."):
                continue
            if path.is_dir():
                self.folder(path, below / path.name)
            elif path.suffix.lower() in SUFFIXES:
                self.take(path, below / path.name)
            elif path.suffix != LEDGER:
                self._found.others += 1

    def take(self, path: Path, below: Path) -> None:
        if not self._is_seen(path):
            self._found.files.append((path, below))

    def _is_seen(self, path: Path) -> bool:
        real = _real(path)
        known = real in self._seen
        self._seen.add(real)
        return known


def _real(path: Path) -> str:
    """Where a path leads; one that leads in a circle stays as it is."""
    return os.path.realpath(path)


def _ledger(path: Path) -> Path:
    return path.with_name(path.name + LEDGER)


def _check_apart(places: Sequence[Place], read: Iterable[Path], *, with_ledgers: bool) -> None:
    """No two results in one file, and none in the place of what is read."""
    is_read = set(map(_real, read))
    taken: dict[str, Path] = {}
    for source, path in _written(places, ledgers=with_ledgers):
        real = _real(path)
        if real in is_read:
            raise ConfigError(f"{path} is read; results go into another folder")
        if real in taken:
            raise ConfigError(
                f"{taken[real]} and {source} would both be written to {path}; do one after the "
                "other, each into a folder of its own"
            )
        taken[real] = source


def _written(places: Sequence[Place], *, ledgers: bool) -> Iterator[tuple[Path, Path]]:
    """Every file that will be written, after the one that it comes from."""
    for place in places:
        yield place.source, place.target
        if ledgers:
            yield place.source, place.ledger
