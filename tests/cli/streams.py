"""Standard streams of a test's making: of another encoding, as a terminal, or full."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal


class Stream(io.TextIOWrapper):
    """Text that can be looked at as bytes; perhaps a terminal."""

    buffer: io.BytesIO

    def __init__(self, encoding: str = "utf-8", *, terminal: bool = False, text: str = "") -> None:
        super().__init__(io.BytesIO(text.encode(encoding)), encoding)
        self._terminal = terminal

    def isatty(self) -> bool:
        """Return True if the stream poses as a terminal."""
        return self._terminal

    @property
    def written(self) -> bytes:
        """All that came."""
        self.flush()
        return self.buffer.getvalue()


class Full(Stream):
    """A stream whose disk has no room left."""

    def write(self, _text: str) -> int:
        """Nothing is taken."""
        raise OSError(28, "No space left on device")


@contextmanager
def standing_in(name: Literal["stdin", "stdout", "stderr"], stream: Stream) -> Iterator[Stream]:
    """The stream in the place of that of the process, while this lasts."""
    before = getattr(sys, name)
    setattr(sys, name, stream)
    try:
        yield stream
    finally:
        setattr(sys, name, before)
