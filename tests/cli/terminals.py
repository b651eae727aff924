"""A program on a pseudo-terminal, with a user who reads the screen before typing on."""

from __future__ import annotations

import os
import re
import select
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.cli.processes import environment
from tests.forked_programs import ForkedProgram, start

_PATIENCE = 60.0
"""Seconds; how long a busy machine may take, not how long it should."""


@dataclass
class Terminal:
    """Both ends of the terminal: its output and its input."""

    process: ForkedProgram
    ours: int
    shown: bytes = b""

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.ours, keys)

    def wait_for(self, words: str, *, after: int = 0) -> int:
        """Read until the words were shown; the place after them."""
        deadline = time.monotonic() + _PATIENCE
        wanted = words.encode()
        while wanted not in self.shown[after:]:
            left = deadline - time.monotonic()
            if left < 0 or not self._read(left):
                raise AssertionError(f"{words!r} never came; last: {self._last()!r}")
        return self.shown.index(wanted, after) + len(wanted)

    def wait(self) -> int:
        """Read to the program's end; its exit code."""
        deadline = time.monotonic() + _PATIENCE
        while (left := deadline - time.monotonic()) > 0 and self._read(left):
            pass
        return self.process.wait(timeout=max(1.0, left))

    def _last(self) -> str:
        """Return the latest output without control sequences."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\s+", " ", self.shown.decode())[-500:]

    def _read(self, seconds: float) -> bool:
        if not select.select([self.ours], [], [], seconds)[0]:
            return False
        try:
            chunk = os.read(self.ours, 1 << 16)
        except OSError:  # Linux raises it when the other end is closed
            return False
        self.shown += chunk
        return bool(chunk)


@contextmanager
def terminal(*arguments: str, columns: int = 100, **variables: str) -> Iterator[Terminal]:
    """The command line on a terminal of its own."""
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    given = environment(TERM="xterm-256color", **variables)
    process = start(arguments, (theirs, theirs, theirs), given, new_session=True)
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
