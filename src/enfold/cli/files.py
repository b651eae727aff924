"""Reading: what a command was given, a file or standard input."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

from enfold.cli.screen import put_bytes
from enfold.errors import ConfigError, InputError
from enfold.jsontext import dumps, loads
from enfold.transcripts import Transcript, read

STANDARD_INPUT = "-"


class _BufferedInput(io.BytesIO):
    """Standard input, held because it can be read only once; errors call it by this name."""

    name = "standard input"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file, or all of standard input. It can be read more than once."""

    name: str
    """For errors and progress."""
    held: bytes | None = None

    def transcripts(self, *, dialect: str) -> Iterator[Transcript]:
        """Its conversations, one after the other."""
        origin = Path(self.name) if self.held is None else _BufferedInput(self.held)
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


def open_input(file: str) -> InputFile:
    """The file of that name; `-` is standard input."""
    if file != STANDARD_INPUT:
        return InputFile(file)
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("nothing comes in; name a file, or pipe one in", place=_BufferedInput.name)
    try:
        return InputFile(_BufferedInput.name, sys.stdin.buffer.read())
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot be read: {reason}", place=_BufferedInput.name) from None


def put_value(value: object, out: Path | None) -> None:
    """A line of JSON, into the file or on standard output."""
    put_data(dumps(value) + b"\n", out)


def put_data(data: bytes, out: Path | None) -> None:
    """These bytes, into the file or on standard output."""
    if out is None:
        put_bytes(data)
    else:
        save((out, data))


def save(*files: tuple[Path, bytes]) -> None:
    """Write the files; if one cannot be written, none is changed.

    Each is written beside its place and moved there when all are complete.
    """
    staged: dict[Path, Path] = {}
    try:
        for place, data in files:
            with _named(place):
                target = place.resolve()
                if target in staged.values():
                    raise ConfigError(f"{place}: two results cannot go into one file")
                _write(target, data, staged)
        for temporary, target in staged.items():
            with _named(target):
                temporary.replace(target)
    finally:
        for temporary in staged:
            temporary.unlink(missing_ok=True)


def _write(target: Path, data: bytes, staged: dict[Path, Path]) -> None:
    if target.exists() and not target.is_file():
        # A device or a pipe is written to; a file in its place would be another thing. A folder
        # is the error that it should be.
        target.write_bytes(data)
        return
    temporary = target.with_name(f".enfold-{token_hex(8)}")
    staged[temporary] = target
    temporary.write_bytes(data)
    if target.exists():
        shutil.copymode(target, temporary)


@contextmanager
def _named(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot be written: {reason}", place=str(place)) from None
