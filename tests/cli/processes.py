"""The command line as a process of its own: in pipes, and on a terminal."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO

from tests.cli.outcomes import Outcome
from tests.forked_programs import start

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (sys.executable, "-m", "enfold.cli")
TERMINAL = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}
"""What programs ask the environment about a terminal."""


def environment(**more: str) -> Mapping[str, str]:
    """That of this process, with the source that is being tested, and a terminal of its own."""
    ours = {name: value for name, value in os.environ.items() if name not in TERMINAL}
    # No test looks for model servers on the usual ports of this machine.
    return {**ours, "PYTHONPATH": str(ROOT / "src"), "ENFOLD_LOCAL_SERVERS": "", **more}


def run_in_pipes(*arguments: str | Path, stdin: bytes = b"", **variables: str) -> Outcome:
    """Run it to its end."""
    pipes = os.pipe(), os.pipe(), os.pipe()
    theirs = pipes[0][0], pipes[1][1], pipes[2][1]
    with (
        os.fdopen(pipes[0][1], "wb", 0) as entering,
        os.fdopen(pipes[1][0], "rb") as output,
        os.fdopen(pipes[2][0], "rb") as errors,
        ThreadPoolExecutor(3) as threads,
    ):
        started = start([*map(str, arguments)], theirs, environment(**variables))
        for number in theirs:
            os.close(number)
        threads.submit(_write, entering, stdin)
        texts = threads.submit(output.read), threads.submit(errors.read)
        try:
            code = started.wait(timeout=100)
        finally:
            started.kill()
        return Outcome(code, *(each.result() for each in texts))


def _write(entering: IO[bytes], content: bytes) -> None:
    with entering, suppress(BrokenPipeError):  # a program need not read all of it
        while content:
            content = content[entering.write(content) :]


def run_on_terminal(
    *arguments: str | Path, columns: int = 100, typed: bytes = b"", **variables: str
) -> tuple[int, str]:
    """Run it where all its streams are a terminal; its exit code, and what the terminal got."""
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    given = environment(TERM="xterm", **variables)
    started = start([*map(str, arguments)], (theirs, theirs, theirs), given)
    os.close(theirs)
    os.write(ours, typed)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    os.close(ours)
    return started.wait(timeout=100), shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux raises it when the other end is closed
        return b""
