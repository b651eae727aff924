"""Runs the blocks of one page in order, in one folder, one shell and one Python namespace.

A Python block runs in this process, a shell block in another one; both without a network. A block
with a title becomes a file of that name. A server that a block starts runs until the page ends.
Addresses on pages (port 8787, a PostgreSQL server) are replaced by those of this run.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

from enfold import cli
from enfold.wrap.agents import AGENTS
from tests.docs.pages import Block
from tests.forked_programs import shell_command
from tests.source import ROOT

PREAMBLE = """
set -euo pipefail
enfold() {
  if [ "$1" != serve ]; then command enfold "$@"; return; fi
  case " $* " in *" --port "*) ;; *) set -- "$@" --port "$PORT" ;; esac
  command enfold "$@" >>"$SIDE/server.log" 2>&1 &
  echo $! >>"$SIDE/servers"
  port=$(echo "$*" | sed 's/.*--port //; s/ .*//')
  for _ in $(seq 900); do
    curl -fs "http://127.0.0.1:$port/readyz" >"$SIDE/ready" 2>&1 && return
    sleep 0.1
  done
  cat "$SIDE/server.log"; return 1
}
[ ! -f "$SIDE/exported" ] || . "$SIDE/exported"
"""
"""The start of every shell block: servers run in the background, exported variables stay."""

GUARD = '''
"""Forbids the network to every process that a page starts."""
import sys

def _guard(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        if arguments[1][0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"a page connected to the network: {arguments[1][0]}")

sys.addaudithook(_guard)
'''

CHAT = [
    {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n}: " + "error E-4031 again " * 9}
    for n in range(40)
]
FILES: Mapping[str, object] = {
    "conversation.json": CHAT,
    "session.jsonl": {"id": "chat", "messages": CHAT},
}
"""Files that exist when a page starts; pages use them without creating them."""


class Runner:
    """The folder, shell and namespace of one page."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._side = folder / "side"
        self.folder = folder / "page"
        for each in (self._side / "bin", self.folder):
            each.mkdir(parents=True)
        for name, value in FILES.items():
            (self.folder / name).write_text(json.dumps(value) + "\n", encoding="utf-8")
        command, self._inherited = shell_command()
        self._program("enfold", command)
        self._program("enfold-mcp", f'exec "{sys.executable}" -m enfold.adapters.mcp "$@"')
        self._program("python", f'exec "{sys.executable}" "$@"')
        for agent in AGENTS:
            self._program(agent, "true")  # pages are not about what the agents do
        (self._side / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
        self._ports = {"8787": str(_free_port()), "8788": str(_free_port())}
        self._variables = {
            **variables,
            "PATH": f"{self._side / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": f"{self._side}:{ROOT / 'src'}",
            "SIDE": str(self._side),
            "PORT": self._ports["8787"],
            "COLUMNS": "100",
            # A page shows output and errors in the order in which they are written.
            "PYTHONUNBUFFERED": "1",
        }
        self._memory = ModuleType("a_page")
        sys.modules["a_page"] = self._memory  # annotations of its classes are resolved there
        self._is_plain = True
        """True if no block exported a variable, so that commands can run in this process."""
        self.output = ""
        """The output of the last block."""

    def _program(self, name: str, command: str) -> None:
        path = self._side / "bin" / name
        path.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, block: Block) -> None:
        """Run the block according to its language; an assertion reports a failure."""
        if block.title is not None:
            (self.folder / block.title).write_text(block.text, encoding="utf-8")
        RUNS[block.language](self, block)

    def stop(self) -> None:
        """Stop the servers that the page started."""
        servers = self._side / "servers"
        for line in servers.read_text().split() if servers.exists() else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line), signal.SIGTERM)
        del sys.modules["a_page"]

    def substituted(self, text: str) -> str:
        for written, port in self._ports.items():
            text = text.replace(written, port)
        address = self._variables.get("POSTGRESQL")
        return text.replace("postgresql://enfold@localhost/enfold", address) if address else text

    def _python(self, block: Block) -> None:
        output = io.StringIO()
        code = compile(self.substituted(block.text), block.place, "exec")
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(output):
            exec(code, self._memory.__dict__)
        self.output = output.getvalue()

    def _shell(self, block: Block) -> None:
        """Run in a shell; blocks with only enfold commands run in this process, which is faster."""
        self._is_plain &= "export " not in block.text
        commands = _plain_commands(block.text)
        if commands and self._is_plain:
            self._commands(block, commands)
        else:
            self._script(block)

    def _commands(self, block: Block, commands: list[list[str]]) -> None:
        output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(output),
        ):
            codes = [cli.run(command[1:]) for command in commands]
        buffer = output.detach()
        assert isinstance(buffer, io.BytesIO)
        self.output = buffer.getvalue().decode()
        assert not any(codes), f"{block.place} exited with {codes}:\n{self.output}"

    def _script(self, block: Block) -> None:
        script = f"{PREAMBLE}trap 'export -p >\"$SIDE/exported\"' EXIT\n{block.text}"
        output = self._side / "output"
        with output.open("wb") as file:
            # A file, not a pipe: a running server would keep a pipe open.
            done = subprocess.run(
                ["bash", "-c", self.substituted(script)],
                cwd=self.folder,
                env=self._variables | {"HOME": os.environ["HOME"]},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                pass_fds=[self._inherited],
                timeout=300,
                check=False,
            )
        self.output = output.read_text(encoding="utf-8")
        assert done.returncode == 0, f"{block.place} exited with {done.returncode}:\n{self.output}"

    def _output(self, block: Block) -> None:
        wanted = re.escape(_trimmed(self.substituted(block.text))).replace("…", "(?s:.*?)")
        assert re.fullmatch(wanted, _trimmed(self.output)), (
            f"{block.place} should print:\n{block.text}\nand it prints:\n{self.output}"
        )


def _plain_commands(text: str) -> list[list[str]]:
    """Return the commands of a block if all are plain enfold commands; else none."""
    lines = [line.partition(" #")[0] for line in text.replace("\\\n", " ").splitlines()]
    is_plain = not re.search(r"[|<>&;$`*#]|enfold (?:serve|chat|wrap)\b", "\n".join(lines))
    if not is_plain or not all(line.startswith("enfold ") for line in lines if line):
        return []
    return [shlex.split(line) for line in lines if line]


def _trimmed(text: str) -> str:
    """Return the text without trailing blanks."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _json(_: Runner, block: Block) -> None:
    json.loads(block.text)


def _toml(_: Runner, block: Block) -> None:
    tomllib.loads(block.text)


def _yaml(_: Runner, block: Block) -> None:
    import_module("yaml").safe_load(block.text)  # a dependency of the site's builder


def _javascript(runner: Runner, block: Block) -> None:
    """Check the syntax, where Node.js is installed."""
    node = shutil.which("node")
    if node is not None:
        file = runner.folder / "page.mjs"
        file.write_text(block.text, encoding="utf-8")
        subprocess.run([node, "--check", file], check=True, timeout=60)


RUNS: Mapping[str, Callable[[Runner, Block], None]] = {
    "python": Runner._python,
    "sh": Runner._shell,
    "bash": Runner._shell,
    "text": Runner._output,
    "js": _javascript,
    "json": _json,
    "toml": _toml,
    "yaml": _yaml,
}
"""The check for blocks of each language."""
