"""The command line as a process of its own: in pipes, and on a terminal."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.cli.outcomes import Outcome

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
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=environment(**variables),
        timeout=100,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def run_on_terminal(
    *arguments: str | Path, columns: int = 100, typed: bytes = b"", **variables: str
) -> tuple[int, str]:
    """Run it where all its streams are a terminal; its exit code, and what the terminal got."""
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    started = subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(TERM="xterm", **variables),
    )
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
