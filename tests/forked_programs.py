"""`enfold` as a process of its own, forked from one that has loaded the modules.

A new interpreter spends one to four seconds of processor time on imports before it does anything.
One loaded process for each test process is enough: it imports modules, has toktok read its usual
vocabulary, which takes most of a second, and forks for every program that a test starts. It calls
no other function of these modules. The fork gets the streams, arguments, variables and folder of
the program, and runs `python -m enfold.cli` as a new interpreter would.
The loaded process ends with the test process, even if that is killed, and its forks end with it.

This file is also the program of the loaded process.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

MODULES = (
    "aiofiles.tempfile",
    "anyio._backends._asyncio",
    "enfold.cli.chat",
    "enfold.cli.serve",
    "enfold.llm.gateway",
    "enfold.server.api.app",
    "enfold.server.serve",
    "enfold.ui",
    "enfold.wiring",
    "genai_prices.data",
    "keyring.core",
    "nicegui.elements.dark_mode",
    "nicegui.elements.drawer",
    "nicegui.elements.header",
    "nicegui.elements.keyboard",
    "nicegui.elements.link",
    "nicegui.elements.textarea",
    "nicegui.elements.tooltip",
    "nicegui.elements.upload",
    "nicegui.functions.html",
    "nicegui.functions.style",
    "nicegui.ui_run_with",
    "openai.resources",
    "platformdirs.unix",
    "pydantic_ai.direct",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai_compatible",
    "pygments.styles.default",
    "pygments.styles.gh_dark",
    "rich.markdown",
    "splintr",
    "toktok",
    "uvicorn.lifespan.off",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "uvloop",
    "websockets.server",
)
"""All that the programs load later; those of them that are not installed are left out."""
_AT_START = ("PYTHON", "LC_", "LANG")
"""How variables begin that an interpreter reads when it starts."""
_READ_LATER = frozenset({"PYTHON_KEYRING_BACKEND"})
"""Variables of libraries whose names begin like that; a fork reads them as any program does."""
_NUMBER = struct.Struct("i")
_SIGNAL_AT_PARENTS_END = 1
"""The option of `prctl` in Linux; other systems have none."""


class ForkedProgram:
    """A program that runs or has run, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self.pid = self._number()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code; None while the program runs."""
        if self.returncode is None and select.select([self._line], [], [], 0)[0]:
            self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the program's end; return its exit code, negative for a signal."""
        if self.returncode is None and not select.select([self._line], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("enfold", timeout or 0)
        return self._end() if self.returncode is None else self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the program unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the program unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def _end(self) -> int:
        self.returncode = os.waitstatus_to_exitcode(self._number())
        self._line.close()
        return self.returncode

    def _number(self) -> int:
        return int(_NUMBER.unpack(_received(self._line, _NUMBER.size))[0])


def start(
    arguments: Sequence[str],
    streams: tuple[int, int, int],
    variables: Mapping[str, str],
    *,
    new_session: bool = False,
) -> ForkedProgram:
    """Start `enfold` with arguments, standard streams and variables.

    A new interpreter runs it if a variable would change the interpreter.
    """
    loaded = _loaded_process(os.getpid())
    new_interpreter = _of_interpreter(variables) != _of_interpreter(_variables())
    options = {"new_session": new_session, "new_interpreter": new_interpreter}
    return _ask(loaded, arguments, streams, variables, **options)


def shell_command() -> tuple[str, int]:
    """Return a shell's command in place of `enfold`, and the number of a file that it inherits."""
    number = _loaded_process(os.getpid()).fileno()
    return f'exec "{sys.executable}" -I -S "{__file__}" ask {number} "$@"', number


def _ask(
    loaded: socket.socket,
    arguments: Sequence[str],
    streams: tuple[int, int, int],
    variables: Mapping[str, str],
    **options: bool,
) -> ForkedProgram:
    request = {
        "arguments": list(arguments),
        "variables": dict(variables),
        "folder": str(Path.cwd()),
        **options,
    }
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(loaded, [b"+"], [theirs.fileno(), *streams])
    body = json.dumps(request).encode()
    ours.sendall(_NUMBER.pack(len(body)) + body)
    return ForkedProgram(ours)


def _of_interpreter(variables: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in variables.items()
        if name.startswith(_AT_START) and name not in _READ_LATER
    }


@cache
def _variables() -> Mapping[str, str]:
    """Return the variables of the loaded process: no settings, no home of a test."""
    root = Path(__file__).resolve().parent.parent
    kept = {name: os.environ[name] for name in os.environ if not name.startswith("ENFOLD_")}
    return {**kept, "PYTHONPATH": str(root / "src")}


@cache
def _loaded_process(_: int) -> socket.socket:
    """Start the loaded process of a test process."""
    ours, theirs = socket.socketpair()
    with theirs:
        number = theirs.fileno()
        loaded = subprocess.Popen(
            [sys.executable, __file__, str(number)],
            stdin=subprocess.DEVNULL,
            env=_variables(),
            pass_fds=[number],
            start_new_session=True,
        )
    atexit.register(loaded.wait)
    atexit.register(ours.close)
    return ours


def _received(line: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = line.recv(size - len(received))
        if not chunk:
            raise EOFError("the loaded process has ended")
        received += chunk
    return received


def _fork_on_request(asking: socket.socket) -> socket.socket:
    """Fork for every request; return in the forks only, with the line to its sender."""
    lines: dict[int, socket.socket] = {}
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    test_process = [os.pidfd_open(os.getppid())] if hasattr(os, "pidfd_open") else []
    while True:
        ready = select.select([asking.fileno(), wake, *test_process], [], [])[0]
        if set(test_process) & set(ready):
            os._exit(0)
        if wake in ready:
            os.read(wake, 4096)
            _report_ends(lines)
        if asking.fileno() not in ready:
            continue
        message, numbers, *_ = socket.recv_fds(asking, 1, 4)
        if not message:
            os._exit(0)
        line = socket.socket(fileno=numbers[0])
        pid = os.fork()
        if pid == 0:
            _enter_fork(numbers[1:])
            for number in (wake, woken, asking.detach(), *test_process):
                os.close(number)
            for other in lines.values():
                other.close()
            return line
        for number in numbers[1:]:
            os.close(number)
        lines[pid] = line
        _tell(line, pid)


def _enter_fork(streams: Sequence[int]) -> None:
    """Take the streams and the usual signals; let this process end with the loaded one."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SIGNAL_AT_PARENTS_END, signal.SIGKILL)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for place, number in enumerate(streams):
        os.dup2(number, place)
        os.close(number)


def _report_ends(lines: dict[int, socket.socket]) -> None:
    while lines:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with lines.pop(pid) as line:
            _tell(line, status)


def _tell(line: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):  # the sender was killed
        line.sendall(_NUMBER.pack(number))


def _become(line: socket.socket) -> None:
    """Make this process one that was started with the arguments and variables of a request."""
    (size,) = _NUMBER.unpack(_received(line, _NUMBER.size))
    request: dict[str, Any] = json.loads(_received(line, size))
    line.close()
    if request.get("new_session"):
        os.setsid()
    if request.get("new_interpreter"):
        os.chdir(request["folder"])
        command = [sys.executable, "-m", "enfold.cli", *request["arguments"]]
        os.execve(sys.executable, command, request["variables"])
    os.environ.clear()
    os.environ.update(request["variables"])
    paths = os.environ["PYTHONPATH"].split(os.pathsep)
    sys.path[:0] = [path for path in paths if path not in sys.path]
    with suppress(ImportError):
        import_module("sitecustomize")
    os.chdir(request["folder"])
    time.tzset()
    sys.argv = ["enfold", *request["arguments"]]
    through = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = io.TextIOWrapper(os.fdopen(0, "rb"), "utf-8")
    output, errors = os.fdopen(1, "wb", 0 if through else -1), os.fdopen(2, "wb", 0)
    sys.stdout = io.TextIOWrapper(
        output, "utf-8", line_buffering=os.isatty(1), write_through=through
    )
    sys.stderr = io.TextIOWrapper(
        errors, "utf-8", "backslashreplace", line_buffering=True, write_through=True
    )


def _run_for_shell(loaded: socket.socket, arguments: Sequence[str]) -> int:
    """Have a program run with the streams of this process, and pass signals on to it."""
    program = _ask(loaded, arguments, (0, 1, 2), os.environ)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda sent, _: program.send_signal(sent))
    code = program.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__" and sys.argv[1] == "ask":
    sys.exit(_run_for_shell(socket.socket(fileno=int(sys.argv[2])), sys.argv[3:]))

if __name__ == "__main__":
    sys.path.pop(0)  # this file's folder, which `python -m` would not have
    for module in MODULES:
        with suppress(ImportError):
            import_module(module)
    with suppress(ImportError):
        # No thread is left by this: a fork counts with all cores as any process does.
        import_module("toktok")._encoding("o200k_base")
    gc.freeze()
    _become(_fork_on_request(socket.socket(fileno=int(sys.argv[1]))))
    runpy.run_module("enfold.cli", run_name="__main__", alter_sys=True)
