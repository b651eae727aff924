"""A server as a process of its own, on a free port of this machine."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.processes import PROGRAM, environment


@dataclass
class Process:
    """A server that runs."""

    started: subprocess.Popen[str]
    address: str = ""
    stderr_lines: list[str] = field(default_factory=list)
    """Its lines on standard error."""
    reader: threading.Thread | None = None

    def stop(self, sent: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to stop; its exit code."""
        self.started.send_signal(sent)
        return self.wait()

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        code = self.started.wait(timeout=60)
        if self.reader is not None:
            self.reader.join(timeout=10)
        return code


@contextmanager
def serve(url: str | Path, *arguments: str, **variables: str) -> Iterator[Process]:
    """A server over the database, once it answers."""
    db = f"sqlite:///{url}" if isinstance(url, Path) else url
    started = subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0", "--db", db, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )
    process = Process(started)
    try:
        _await_address(process)
        yield process
    finally:
        if started.poll() is None:
            started.kill()
        process.wait()
        if started.stderr is not None:
            started.stderr.close()


def _await_address(process: Process) -> None:
    assert process.started.stderr is not None
    for line in process.started.stderr:
        process.stderr_lines.append(line)
        found = re.search(r"serves on (http://\S+)", line)
        if found:
            process.address = found[1]
            process.reader = threading.Thread(target=_drain, args=(process,), daemon=True)
            process.reader.start()
            return
    raise AssertionError("the server ended: " + "".join(process.stderr_lines))


def _drain(process: Process) -> None:
    assert process.started.stderr is not None
    process.stderr_lines += process.started.stderr
