"""Files: the input files of a bulk run, their output paths, and the journal of finished files.

Subfolders are kept in the results. With several input folders, each becomes a subfolder with its
name. A file that is named directly goes to the top of the results.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from os.path import realpath  # unlike Path.resolve, it leaves a circular link as it is
from pathlib import Path
from typing import IO, Any

from enfold.errors import ConfigError, InputError, file_errors
from enfold.jsontext import dumps, loads

SUFFIXES = frozenset({".json", ".jsonl", ".ndjson"})
"""Suffixes of files read from a folder. A file that is named directly is always read."""
LEDGER = ".ledger"
"""Added to a file's name for its ledger."""


@dataclass(frozen=True, slots=True)
class BulkFile:
    """The paths of one file: input, result and ledger."""

    source: Path
    target: Path
    ledger: Path
    """Next to the target when condensing, to the source when restoring, or in a given folder."""


@dataclass(slots=True)
class FoundFiles:
    """The input files of a run."""

    files: list[tuple[Path, Path]] = field(default_factory=list)
    """Each with its path below the results folder."""
    others: int = 0
    """Number of files ignored because of their suffix."""


def find_files(given: Sequence[Path], *, without: Iterable[Path] = ()) -> FoundFiles:
    """Return all input files, each once; folders in `without` are skipped."""
    found = FoundFiles()
    apart = {realpath(path) for path in without}
    walk = _FolderWalk(found, set(apart))
    for path in given:
        if path.is_dir() and realpath(path) in apart:
            raise ConfigError(f"{path} is an input; name another folder, or one inside it")
        if not path.is_dir():
            walk.take(path, Path(path.name))
            continue
        below = Path(path.resolve().name) if len(given) > 1 else Path()
        walk.folder(path, below)
    return found


def condense_paths(found: FoundFiles, out: Path, ledgers: Path | None) -> list[BulkFile]:
    """Return the paths for condensing: results and ledgers are written."""
    places = [
        BulkFile(source, out / below, _ledger((ledgers or out) / below))
        for source, below in found.files
    ]
    _check_apart(places, [place.source for place in places], with_ledgers=True)
    return places


def restore_paths(found: FoundFiles, out: Path, ledgers: Path | None) -> list[BulkFile]:
    """Return the paths for restoring: results are written, ledgers are read."""
    places = [
        BulkFile(source, out / below, _ledger(source if ledgers is None else ledgers / below))
        for source, below in found.files
    ]
    read = [path for place in places for path in (place.source, place.ledger)]
    _check_apart(places, read, with_ledgers=False)
    return places


class _FolderWalk:
    """Walks folders by name; follows links, but visits no file or folder twice."""

    def __init__(self, found: FoundFiles, skipped: set[str]) -> None:
        self._found = found
        self._visited = skipped

    def folder(self, folder: Path, below: Path) -> None:
        if self._is_visited(folder):
            return
        try:
            inside = sorted(folder.iterdir())
        except OSError:
            self._found.files.append((folder, below))  # reading it raises the error
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
        if not self._is_visited(path):
            self._found.files.append((path, below))

    def _is_visited(self, path: Path) -> bool:
        real = realpath(path)
        visited = real in self._visited
        self._visited.add(real)
        return visited


def _ledger(path: Path) -> Path:
    return path.with_name(path.name + LEDGER)


def _check_apart(places: Sequence[BulkFile], read: Iterable[Path], *, with_ledgers: bool) -> None:
    """Raise `ConfigError` if two results share a file, or a result would replace an input."""
    is_read = set(map(realpath, read))
    taken: dict[str, Path] = {}
    written = [
        (place.source, path)
        for place in places
        for path in ((place.target, place.ledger) if with_ledgers else (place.target,))
    ]
    for source, path in written:
        real = realpath(path)
        if real in is_read:
            raise ConfigError(f"{path} is an input; name another folder for the results")
        if real in taken:
            raise ConfigError(
                f"{taken[real]} and {source} would both be written to {path}; do one after the "
                "other, each into a folder of its own"
            )
        taken[real] = source


NAME = ".enfold-journal.jsonl"

_CHUNK = 1 << 20


class Journal:
    """The record of finished files. Made by `open_journal`."""

    def __init__(self, folder: Path, stream: IO[bytes]) -> None:
        self._folder = folder
        self._stream = stream
        self._lines = dict(_read(stream))

    def finished(self, files: Sequence[Path], key: str) -> Mapping[str, Any] | None:
        """Return the recorded totals if the files exist unchanged and were made with this key.

        The key is a digest of the input and the options.
        """
        names = [str(file.absolute()) for file in files]
        line = self._lines.get(names[0])
        if line is None or line.get("key") != key:
            return None
        written: Mapping[str, str] = line["written"]
        if written.keys() != set(names) or any(
            digest(self._folder / name) != expected for name, expected in written.items()
        ):
            return None
        noted: Mapping[str, Any] = line["noted"]
        return noted

    def finish(
        self, target: Path, key: str, written: Iterable[tuple[Path, str]], noted: Mapping[str, Any]
    ) -> None:
        """Record a finished target with the digests of the written files."""
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
    """Open or create the journal of a folder; raise `ConfigError` if another run uses it."""
    with file_errors("written", str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        stream = (folder / NAME).open("a+b")
    with stream:
        _take(stream, folder)
        yield Journal(folder, stream)


def digest(path: Path) -> str | None:
    """Return the digest of a file's bytes. None if it cannot be read."""
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
    """Lock the folder for this run; the lock ends with the process."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(f"{folder}: another run writes into this folder; wait for it") from None
    except OSError:
        return  # a file system without locks
