"""The journal of a folder of results: which files are finished, from what and into what.

It is a file in that folder to which a line is added whenever a file is finished. A line that was
cut off, because the run was killed, says nothing. Only one run at a time writes into a folder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from enfold.errors import ConfigError, InputError
from enfold.jsontext import dumps, loads

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
