"""A server as a process of its own, on a free port of this machine."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.cli.processes import environment
from tests.forked_programs import ForkedProgram, start


@dataclass
class Process:
    """A server that runs."""

    started: ForkedProgram
    stderr: IO[str]
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
    """A server over the database, once it answers; on a free port unless one is given."""
    port = () if "--port" in arguments else ("--port", "0")
    db = f"sqlite:///{url}" if isinstance(url, Path) else url
    reader, writer = os.pipe()
    with Path(os.devnull).open("r+b") as nothing, os.fdopen(writer, "wb"):
        started = start(
            ["serve", *port, "--db", db, *arguments],
            (nothing.fileno(), nothing.fileno(), writer),
            environment(**variables),
        )
    process = Process(started, os.fdopen(reader))
    try:
        _await_address(process)
        yield process
    finally:
        if started.poll() is None:
            started.kill()
        process.wait()
        process.stderr.close()


def _await_address(process: Process) -> None:
    for line in process.stderr:
        process.stderr_lines.append(line)
        found = re.search(r"serves on (http://\S+)", line)
        if found:
            process.address = found[1]
            process.reader = threading.Thread(target=_drain, args=(process,), daemon=True)
            process.reader.start()
            return
    raise AssertionError("the server ended: " + "".join(process.stderr_lines))


def _drain(process: Process) -> None:
    process.stderr_lines += process.stderr
