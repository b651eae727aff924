"""Reading: the conversations of a file that a command was given, or of standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from enfold.errors import InputError
from enfold.transcripts import Transcript, read

STANDARD_INPUT = "-"


def read_transcripts(file: str, *, dialect: str = "auto") -> Iterator[Transcript]:
    """The file's conversations, `-` for standard input; an error names the file."""
    if file != STANDARD_INPUT:
        yield from read(Path(file), dialect=dialect)
        return
    yield from read(_standard_input(), dialect=dialect)


def read_text(file: str) -> str:
    """The file as one text."""
    data = read_bytes(file)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8: byte {data[error.start]:#04x} at offset {error.start:,}", place=file
        ) from None


def read_bytes(file: str) -> bytes:
    """The file as it is."""
    if file == STANDARD_INPUT:
        return _standard_input()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), place=file) from None


def _standard_input() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("nothing comes in; name a file, or pipe one in", place="standard input")
    return sys.stdin.buffer.read()
