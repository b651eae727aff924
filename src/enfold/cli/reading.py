"""Reading: what a command was given, a file or standard input."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from enfold.errors import InputError
from enfold.jsontext import loads
from enfold.transcripts import Transcript, read

STANDARD_INPUT = "-"


class _Held(io.BytesIO):
    """Standard input, held because it can be read only once; errors call it by this name."""

    name = "standard input"


@dataclass(frozen=True, slots=True)
class Input:
    """A file, or all of standard input. It can be read more than once."""

    name: str
    """For errors and progress."""
    held: bytes | None = None

    def transcripts(self, *, dialect: str) -> Iterator[Transcript]:
        """Its conversations, one after the other."""
        origin = Path(self.name) if self.held is None else _Held(self.held)
        yield from read(origin, dialect=dialect)

    def data(self) -> bytes:
        """Its bytes."""
        if self.held is not None:
            return self.held
        try:
            return Path(self.name).read_bytes()
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(f"cannot be read: {reason}", place=self.name) from None

    def text(self) -> str:
        """Its bytes as text, every one of them."""
        data = self.data()
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            wrong = f"byte {data[error.start]:#04x} at offset {error.start:,}"
            raise InputError(f"not UTF-8: {wrong}", place=self.name) from None

    def value(self) -> Any:
        """Its bytes as one JSON value."""
        try:
            return loads(self.data())
        except InputError as error:
            raise type(error)(error.reason, place=f"{self.name} {error.place}".strip()) from None


def open_input(file: str) -> Input:
    """The file of that name; `-` is standard input."""
    if file != STANDARD_INPUT:
        return Input(file)
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("nothing comes in; name a file, or pipe one in", place=_Held.name)
    try:
        return Input(_Held.name, sys.stdin.buffer.read())
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot be read: {reason}", place=_Held.name) from None
