"""Layout: which files are meant, and where the results of each go.

A folder is mirrored: what lies deeper in it lies as deep in the folder of results. One folder is
mirrored as it is, several each under its own name. A file that is named goes under its name alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from enfold.errors import ConfigError, InputError
from enfold.jsontext import dumps, loads

SUFFIXES = frozenset({".json", ".jsonl", ".ndjson"})
"""What is read of a folder. A file that is named is read whatever it is called."""
LEDGER = ".ledger"
"""What a ledger's name ends with, after the whole name of its file."""


@dataclass(frozen=True, slots=True)
class BulkFile:
    """One file of many."""

    source: Path
    target: Path
    ledger: Path
    """Beside the target where it is written, beside the source where it is read; or elsewhere."""


@dataclass(slots=True)
class FoundFiles:
    """What the files and folders that were named hold."""

    files: list[tuple[Path, Path]] = field(default_factory=list)
    """Each with its place in the folder of results."""
    others: int = 0
    """Files in folders that are left alone because of their names."""


def find_files(given: Sequence[Path], *, without: Iterable[Path] = ()) -> FoundFiles:
    """All files that are meant, each once; folders `without` are passed over."""
    found = FoundFiles()
    apart = {_real(path) for path in without}
    walk = _FolderWalk(found, set(apart))
    for path in given:
        if path.is_dir() and _real(path) in apart:
            raise ConfigError(f"{path} is read; results go into another folder, or one inside it")
        if not path.is_dir():
            walk.take(path, Path(path.name))
            continue
        below = Path(path.resolve().name) if len(given) > 1 else Path()
        walk.folder(path, below)
    return found


def condense_paths(found: FoundFiles, out: Path, ledgers: Path | None) -> list[BulkFile]:
    """Where the condensed files and their ledgers are written."""
    places = [
        BulkFile(source, out / below, _ledger((ledgers or out) / below))
        for source, below in found.files
    ]
    _check_apart(places, [place.source for place in places], with_ledgers=True)
    return places


def restore_paths(found: FoundFiles, out: Path, ledgers: Path | None) -> list[BulkFile]:
    """Where the restored files are written, and where their ledgers are."""
    places = [
        BulkFile(source, out / below, _ledger(source if ledgers is None else ledgers / below))
        for source, below in found.files
    ]
    read = [path for place in places for path in (place.source, place.ledger)]
    _check_apart(places, read, with_ledgers=False)
    return places


class _FolderWalk:
    """Files below folders, by name; links are followed, but no folder or file is met twice."""

    def __init__(self, found: FoundFiles, passed_over: set[str]) -> None:
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


def _check_apart(places: Sequence[BulkFile], read: Iterable[Path], *, with_ledgers: bool) -> None:
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


def _written(places: Sequence[BulkFile], *, ledgers: bool) -> Iterator[tuple[Path, Path]]:
    """Every file that will be written, after the one that it comes from."""
    for place in places:
        yield place.source, place.target
        if ledgers:
            yield place.source, place.ledger


NAME = ".enfold-journal.jsonl"

_CHUNK = 1 << 20


class Journal:
    """What is finished. Made by `open_journal`."""

    def __init__(self, folder: Path, stream: IO[bytes]) -> None:
        self._folder = folder
        self._stream = stream
        self._lines = dict(_read(stream))

    def finished(self, files: Sequence[Path], key: str) -> Mapping[str, Any] | None:
        """What was noted of a target, and its ledger, if they were made and are as they were made.

        Made from what the key is a digest of, and into these files.
        """
        names = [str(file.absolute()) for file in files]
        line = self._lines.get(names[0])
        if line is None or line.get("key") != key:
            return None
        written: Mapping[str, str] = line["written"]
        if written.keys() != set(names) or any(
            digest(self._folder / name) != known for name, known in written.items()
        ):
            return None
        noted: Mapping[str, Any] = line["noted"]
        return noted

    def finish(
        self, target: Path, key: str, written: Iterable[tuple[Path, str]], noted: Mapping[str, Any]
    ) -> None:
        """Note that a target is finished, with all that was written and its digests."""
        name = str(target.absolute())
        line = {
            "target": name,
            "key": key,
            "written": {str(path.absolute()): found for path, found in written},
            "noted": noted,
        }
        self._lines[name] = line
        self._stream.write(dumps(line) + b"\n")
        self._stream.flush()


@contextmanager
def open_journal(folder: Path) -> Iterator[Journal]:
    """The journal of a folder, which is made if need be; `ConfigError` if another run has it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stream = (folder / NAME).open("a+b")
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot be written: {reason}", place=str(folder)) from None
    with stream:
        _take(stream, folder)
        yield Journal(folder, stream)


def digest(path: Path) -> str | None:
    """Of a file's bytes. None if it cannot be read."""
    found = blake2b(digest_size=16)
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                found.update(chunk)
    except OSError:
        return None
    return found.hexdigest()


def _read(stream: IO[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    stream.seek(0)
    for text in stream:
        if not text.endswith(b"\n"):
            stream.write(b"\n")  # so that the next line is one of its own
            return
        try:
            line = loads(text)
            yield line["target"], line
        except (InputError, KeyError, TypeError):
            continue


def _take(stream: IO[bytes], folder: Path) -> None:
    """Be the only run in the folder; the lock goes with the process, however that ends."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(f"{folder}: another run writes into this folder; wait for it") from None
    except OSError:
        return  # a file system without locks
