"""Parts: the results of one file while they come in, so that nothing half-done is ever seen.

They are gathered in a hidden file beside their place, three lines for each conversation: the
result, its ledger, and what to report of it. When all are there the files are made from it and
moved to their places. A part that a killed run left behind is gone on with if it was made from the
same input in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import IO

from enfold.bulk.layout import Place
from enfold.bulk.work import Piece, Tally
from enfold.errors import InputError

_LINES = 3
"""For each conversation."""


class Part:
    """The results of one file so far."""

    def __init__(self, place: Place, key: str) -> None:
        """Go on with what is there, if it belongs to the key."""
        self._place = place
        self.tally = Tally()
        self._path = place.target.with_name(f".enfold-part-{place.target.name}")
        with _named(place.target):
            place.target.parent.mkdir(parents=True, exist_ok=True)
            if place.target.is_dir():
                raise IsADirectoryError(21, "Is a directory")
            with self._path.open("a+b") as stream:
                self._go_on(stream, key.encode() + b"\n")

    def _go_on(self, stream: IO[bytes], header: bytes) -> None:
        """Read what is there, and cut off what is not whole."""
        stream.seek(0)
        at = len(header)
        if stream.readline() == header:
            while lines := _complete(islice(stream, _LINES)):
                at += sum(map(len, lines))
                self.tally = self.tally.plus(Tally.read(lines[-1]))
        else:
            stream.truncate(0)
            stream.write(header)
        stream.truncate(at)

    def add(self, piece: Piece) -> None:
        """The result of the next conversation."""
        self.tally = self.tally.plus(piece.tally)
        lines = (piece.result, piece.ledger, piece.tally.write())
        with _named(self._place.target), self._path.open("ab") as stream:
            stream.write(b"".join(line + b"\n" for line in lines))

    def discard(self) -> None:
        """Throw it away: the next run could not use it."""
        self._path.unlink(missing_ok=True)

    def finish(self, *, is_array: bool, with_ledger: bool) -> list[tuple[Path, str]]:
        """Make the files; their paths and digests.

        The ledger comes first: what is condensed could not be restored without it.
        """
        files = [(self._place.target, 0, is_array)]
        if with_ledger:
            files.insert(0, (self._place.ledger, 1, False))
        written = [
            (path, self._write(path, which, is_array=joined)) for path, which, joined in files
        ]
        self.discard()
        return written

    def _write(self, path: Path, which: int, *, is_array: bool) -> str:
        """One line of each conversation, as lines or as one array, moved to its place."""
        found = blake2b(digest_size=16)
        temporary = path.with_name(f".enfold-new-{path.name}")
        with _named(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("rb") as gathered, temporary.open("wb") as stream:
                lines = islice(gathered, 1 + which, None, _LINES)
                for data in _array(lines) if is_array else lines:
                    found.update(data)
                    stream.write(data)
            temporary.replace(path)
        return found.hexdigest()


def _complete(lines: Iterator[bytes]) -> list[bytes]:
    """The lines of one conversation; none if the last was cut off."""
    found = list(lines)
    return found if len(found) == _LINES and found[-1].endswith(b"\n") else []


def _array(lines: Iterator[bytes]) -> Iterator[bytes]:
    yield b"["
    for index, line in enumerate(lines):
        yield (b"," if index else b"") + line.rstrip(b"\n")
    yield b"]\n"


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot be written: {reason}", place=str(path)) from None
