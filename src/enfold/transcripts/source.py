"""Sources: the JSON records of a file.

A file is one JSON value, an array whose items are its records, or JSON Lines. Only JSON Lines can
be read without holding the whole file. UTF-8 is expected; a UTF-16 file with a byte order mark is
translated, because some shells write nothing else.
"""

from __future__ import annotations

import codecs
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, TypeVar

from enfold.errors import InputError, file_errors
from enfold.jsontext import items, loads
from enfold.wire.fields import as_object

Origin: TypeAlias = bytes | str | os.PathLike[str] | IO[bytes]
"""Content as bytes, a path, or a stream opened for reading bytes."""

Layout: TypeAlias = Literal["value", "array", "lines"]

Value = TypeVar("Value")

_CHUNK = 1 << 20
_KNOWN_STARTS = {
    b"PK\x03\x04": "a zip archive; unpack it and give a file from it",
    b"\x1f\x8b": "compressed with gzip; unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it first",
    b"SQLite format 3": "an SQLite database, not a file of conversations",
}

_LONGEST_START = max(map(len, _KNOWN_STARTS))
"""Bytes that are needed to recognise a start; a pipe may give fewer at a time."""


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON value of a file, still as bytes."""

    text: bytes
    file: str = ""
    """The file's name as it was given; empty if there is none."""
    at: str = ""
    """The place in the file: `line 12`, or `[3]` in an array."""
    line: int = 1
    is_ended: bool = True
    """False for a last line without a line end, which may be incomplete."""

    @property
    def place(self) -> str:
        """The file and the place in it, for errors: `chats.jsonl line 12`."""
        return f"{self.file} {self.at}".strip()

    def value(self) -> Any:
        """Return the record's JSON value."""
        try:
            return loads(self.text, first_line=self.line)
        except InputError as error:
            raise _in_file(error, self.file, self.at) from None


@dataclass(frozen=True, slots=True)
class TranscriptSource:
    """The records of a file, which can be read once."""

    file: str
    layout: Layout
    records: Iterator[Record]

    def parsed(self, parse: Callable[[Any], Value]) -> Iterator[Value]:
        """Yield what `parse` makes of each record's value; its errors name the record."""
        for record in self.records:
            value = record.value()
            with located(record.place):
                parsed = parse(value)
            yield parsed


@contextmanager
def opened(origin: Origin) -> Iterator[TranscriptSource]:
    """Yield the source of bytes, a path or a stream; a stream stays open."""
    match origin:
        case bytes():
            yield split("", [origin])
        case str() | os.PathLike():
            file = os.fspath(origin)
            with file_errors("read", file):
                stream = Path(file).open("rb")  # noqa: SIM115 - closed by the next line
            with stream:
                yield split(file, _chunks(file, stream))
        case _:
            given = getattr(origin, "name", "")
            file = given if isinstance(given, str) else ""
            yield split(file, _chunks(file, origin))


@contextmanager
def located(place: str) -> Iterator[None]:
    """Add the place in the file to errors raised inside."""
    try:
        yield
    except InputError as error:
        places = (part for part in (place, error.place) if part)
        raise type(error)(error.reason, place=": ".join(places)) from None


@contextmanager
def within(field: str) -> Iterator[None]:
    """Add the field to errors raised inside."""
    try:
        yield
    except InputError as error:
        raise error.at(field) from None


def split(file: str, chunks: Iterable[bytes]) -> TranscriptSource:
    """Return the records of a file that is read in chunks."""
    lines = _lines(_utf8(file, chunks))
    filled = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    number, first = next(filled, (1, b""))
    start = first.lstrip()[:1]
    if not start:
        raise InputError("the file is empty", place=file)
    if start not in b"[{":
        found = start.decode("utf-8", "backslashreplace")
        raise InputError(f"neither JSON nor JSON Lines: it begins with {found!r}", place=file)
    if not _is_complete(first):
        return _whole(file, b"".join(chain([first], lines)), number)
    second = next(filled, None)
    if second is None:
        return _whole(file, first, number)
    records = (
        Record(line.rstrip(), file, f"line {number}", number, line.endswith(b"\n"))
        for number, line in chain([(number, first), second], filled)
    )
    return TranscriptSource(file, "lines", records)


def _whole(file: str, text: bytes, line: int) -> TranscriptSource:
    if not _is_array(text):
        return TranscriptSource(file, "value", iter([Record(text, file, line=line)]))

    def records() -> Iterator[Record]:
        try:
            for index, item in enumerate(items(text, first_line=line)):
                yield Record(item, file, f"[{index}]")
        except InputError as error:
            raise _in_file(error, file) from None

    return TranscriptSource(file, "array", records())


def _is_complete(line: bytes) -> bool:
    """Return True if the first line is a complete JSON value, so that each line is a value.

    The items of an array are split, not parsed: some exports are one line of gigabytes.
    """
    try:
        if _is_array(line):
            next(items(line), None)
        else:
            loads(line)
    except InputError:
        return False
    return True


def _is_array(text: bytes) -> bool:
    return text[:_CHUNK].lstrip().startswith(b"[")


def _chunks(file: str, stream: IO[bytes]) -> Iterator[bytes]:
    with file_errors("read", file):
        while chunk := stream.read(_CHUNK):
            yield chunk


def _utf8(file: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Return the chunks as valid UTF-8 without a byte order mark."""
    remaining = iter(chunks)
    first = b""
    while len(first) < _LONGEST_START and (chunk := next(remaining, b"")):
        first += chunk
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _from_utf16(file, chain([first], remaining))
    for start, words in _KNOWN_STARTS.items():
        if first.startswith(start):
            raise InputError(words, place=file)
    if b"\0" in first:
        raise InputError("a binary file, neither JSON nor JSON Lines", place=file)
    return _checked(file, chain([first.removeprefix(codecs.BOM_UTF8)], remaining))


def _from_utf16(file: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-16")()
    try:
        for chunk in chunks:
            yield decoder.decode(chunk).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeDecodeError as error:
        raise InputError(f"not valid UTF-16: {error.reason}", place=file) from None


def _checked(file: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks with their encoding checked; the last character may be incomplete."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, offset = 1, 0
    for chunk in chunks:
        carried = len(decoder.getstate()[0])
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            wrong = error.object[error.start]
            line += error.object.count(b"\n", 0, error.start)
            raise InputError(
                f"not UTF-8: byte {wrong:#04x} at offset {offset - carried + error.start:,}",
                place=f"{file} line {line}".strip(),
            ) from None
        line += chunk.count(b"\n")
        offset += len(chunk)
        yield chunk


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines with their ends. Pieces are joined once, so a line of gigabytes is no slower."""
    pieces: list[bytes] = []
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            yield b"".join((*pieces, line, b"\n"))
            pieces = []
        if rest:
            pieces.append(rest)
    if pieces:
        yield b"".join(pieces)


def _in_file(error: InputError, file: str, at: str = "") -> InputError:
    """Return a JSON error with its place in the file, else with the place of the record."""
    return type(error)(error.reason, place=f"{file} {error.place or at}".strip())


class Log:
    """The events of a log, read once, and counts of those that are no messages."""

    def __init__(self, source: TranscriptSource) -> None:
        self._records = source.records
        self._skipped: Counter[str] = Counter()
        self._truncated = ""

    def __iter__(self) -> Iterator[tuple[Record, dict[str, Any]]]:
        """Yield every event with its record; an incomplete last line is left out."""
        for record in self._records:
            try:
                value = record.value()
            except InputError:
                if record.is_ended:
                    raise
                self._truncated = record.at
                return
            with located(record.place):
                event = as_object(value)
            yield record, event

    def skip(self, kind: str) -> None:
        """Count an event that is no message."""
        self._skipped[kind] += 1

    @property
    def notes(self) -> dict[str, Any]:
        """`skipped`: number of events of each kind; `truncated`: place of an incomplete line."""
        notes = {"skipped": dict(self._skipped), "truncated": self._truncated}
        return {name: note for name, note in notes.items() if note}
