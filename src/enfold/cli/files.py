"""Input files and their options, and files written as a whole or not at all."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from os import urandom
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter

from enfold.cli.screen import put_bytes
from enfold.errors import ConfigError, InputError, file_errors
from enfold.jsontext import dumps, loads, to_json
from enfold.tokens import NAMES
from enfold.transcripts import Transcript, read
from enfold.wire import AUTO, DIALECTS

Dialect: TypeAlias = Annotated[
    str,
    Parameter(help=f"The messages' wire format: {AUTO}, {', '.join(DIALECTS)}.", metavar="NAME"),
]
Tokenizer: TypeAlias = Annotated[
    str,
    Parameter(
        help=f"The tokenizer: {', '.join(NAMES)}. Those of Claude need the extra enfold[claude]; "
        "chars4 is an estimate, a quarter of the characters.",
        metavar="NAME",
    ),
]


STANDARD_INPUT = "-"


class _BufferedInput(io.BytesIO):
    """Standard input in memory, because it can be read only once. Errors use its name."""

    name = "standard input"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file, or all of standard input. It can be read several times."""

    name: str
    """Shown in errors and progress."""
    buffer: bytes | None = None

    def transcripts(self, *, dialect: str) -> Iterator[Transcript]:
        """Yield its conversations."""
        origin = Path(self.name) if self.buffer is None else _BufferedInput(self.buffer)
        yield from read(origin, dialect=dialect)

    def data(self) -> bytes:
        """Return its bytes."""
        if self.buffer is not None:
            return self.buffer
        with file_errors("read", self.name):
            return Path(self.name).read_bytes()

    def text(self) -> str:
        """Return its bytes as UTF-8 text."""
        data = self.data()
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            wrong = f"byte {data[error.start]:#04x} at offset {error.start:,}"
            raise InputError(f"not UTF-8: {wrong}", place=self.name) from None

    def value(self) -> Any:
        """Return its bytes as one JSON value."""
        try:
            return loads(self.data())
        except InputError as error:
            raise type(error)(error.reason, place=f"{self.name} {error.place}".strip()) from None


def open_input(file: str) -> InputFile:
    """Return the file of that name; `-` is standard input."""
    if file != STANDARD_INPUT:
        return InputFile(file)
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("no input; name a file or pipe one in", place=_BufferedInput.name)
    with file_errors("read", _BufferedInput.name):
        return InputFile(_BufferedInput.name, sys.stdin.buffer.read())


def put_value(value: object, out: Path | None) -> None:
    """Write a result as a line of JSON to the file or to standard output."""
    put_data(dumps(to_json(value)) + b"\n", out)


def put_data(data: bytes, out: Path | None) -> None:
    """Write bytes to the file or to standard output."""
    if out is None:
        put_bytes(data)
    else:
        save((out, data))


def save(*files: tuple[Path, bytes]) -> None:
    """Write the files; if one cannot be written, none is changed.

    Each goes to a temporary file in the same folder first, and is renamed when all are complete.
    """
    staged: dict[Path, Path] = {}
    try:
        for place, data in files:
            with file_errors("written", str(place)):
                target = place.resolve()
                if target in staged.values():
                    raise ConfigError(f"{place}: two results cannot go into one file")
                _write(target, data, staged)
        for temporary, target in staged.items():
            with file_errors("written", str(target)):
                temporary.replace(target)
    finally:
        for temporary in staged:
            temporary.unlink(missing_ok=True)


def _write(target: Path, data: bytes, staged: dict[Path, Path]) -> None:
    if target.exists() and not target.is_file():
        # A device or a pipe is written to, not replaced by a file. A folder raises an error.
        target.write_bytes(data)
        return
    temporary = target.with_name(f".enfold-{urandom(8).hex()}")
    staged[temporary] = target
    temporary.write_bytes(data)
    if target.exists():
        shutil.copymode(target, temporary)
