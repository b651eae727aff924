"""Runs the blocks of one page in their order: one folder, one shell, one program's memory.

A Python block runs here, where the network is forbidden; a shell block in a process of its own,
which is forbidden it too. What a block with a title holds becomes a file of that name. A server
that a block starts goes on until the page ends. Where pages name an address (port 8787, a
PostgreSQL server), one of this run stands in its place.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
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
from tests.docs.pages import Block
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
"""What a page's shell knows: a server is started beside it, and what was exported stays."""

GUARD = '''
"""Forbids the network to every process that a page starts."""
import sys

def _guard(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        if arguments[1][0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"a page reached for the network: {arguments[1][0]}")

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
"""What is there when a page begins: pages speak of `conversation.json` without making one."""


class Runner:
    """One page's folder, shell and memory."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._side = folder / "side"
        self.folder = folder / "page"
        for each in (self._side / "bin", self.folder):
            each.mkdir(parents=True)
        for name, value in FILES.items():
            (self.folder / name).write_text(json.dumps(value) + "\n", encoding="utf-8")
        for name, module in (("enfold", "enfold.cli"), ("enfold-mcp", "enfold.adapters.mcp")):
            self._program(name, f'exec "{sys.executable}" -m {module} "$@"')
        self._program("python", f'exec "{sys.executable}" "$@"')
        (self._side / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
        self._ports = {"8787": str(_free_port()), "8788": str(_free_port())}
        self._variables = {
            **variables,
            "PATH": f"{self._side / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": f"{self._side}:{ROOT / 'src'}",
            "SIDE": str(self._side),
            "PORT": self._ports["8787"],
            "COLUMNS": "100",
        }
        self._memory = ModuleType("a_page")
        sys.modules["a_page"] = self._memory  # where annotations of its classes are looked up
        self._is_plain = True
        """Nothing was exported: a command's environment is the one here."""
        self.output = ""
        """What the last block said."""

    def _program(self, name: str, command: str) -> None:
        path = self._side / "bin" / name
        path.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, block: Block) -> None:
        """Do what the block's language asks for; an assertion says what went wrong."""
        if block.title is not None:
            (self.folder / block.title).write_text(block.text, encoding="utf-8")
        RUNS[block.language](self, block)

    def stop(self) -> None:
        """End the servers that the page started."""
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
        said = io.StringIO()
        code = compile(self.substituted(block.text), block.place, "exec")
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(said):
            exec(code, self._memory.__dict__)
        self.output = said.getvalue()

    def _shell(self, block: Block) -> None:
        """In a real shell; what is nothing but commands of enfold's, here, without its start-up."""
        self._is_plain &= "export " not in block.text
        commands = _plain_commands(block.text)
        if commands and self._is_plain:
            self._commands(block, commands)
        else:
            self._script(block)

    def _commands(self, block: Block, commands: list[list[str]]) -> None:
        said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            codes = [cli.run(command[1:]) for command in commands]
        buffer = said.detach()
        assert isinstance(buffer, io.BytesIO)
        self.output = buffer.getvalue().decode()
        assert not any(codes), f"{block.place} ended with {codes}:\n{self.output}"

    def _script(self, block: Block) -> None:
        script = f"{PREAMBLE}trap 'export -p >\"$SIDE/exported\"' EXIT\n{block.text}"
        output = self._side / "output"
        with output.open("wb") as file:
            # A file, not a pipe: a server that goes on would keep a pipe open.
            done = subprocess.run(
                ["bash", "-c", self.substituted(script)],
                cwd=self.folder,
                env=self._variables | {"HOME": os.environ["HOME"]},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=300,
                check=False,
            )
        self.output = output.read_text(encoding="utf-8")
        assert done.returncode == 0, f"{block.place} ended with {done.returncode}:\n{self.output}"

    def _output(self, block: Block) -> None:
        wanted = re.escape(_trimmed(self.substituted(block.text))).replace("…", "(?s:.*?)")
        assert re.fullmatch(wanted, _trimmed(self.output)), (
            f"{block.place} should say:\n{block.text}\nand what it says is:\n{self.output}"
        )


def _plain_commands(text: str) -> list[list[str]]:
    """The commands of a block, if they are all enfold's and ask nothing of a shell; else none."""
    lines = [line.partition(" #")[0] for line in text.replace("\\\n", " ").splitlines()]
    is_plain = not re.search(r"[|<>&;$`*#]|enfold (?:serve|chat)\b", "\n".join(lines))
    if not is_plain or not all(line.startswith("enfold ") for line in lines if line):
        return []
    return [shlex.split(line) for line in lines if line]


def _trimmed(text: str) -> str:
    """Without the blanks that nobody sees."""
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
    import_module("yaml").safe_load(block.text)  # comes with the site's builder


RUNS: Mapping[str, Callable[[Runner, Block], None]] = {
    "python": Runner._python,
    "sh": Runner._shell,
    "bash": Runner._shell,
    "text": Runner._output,
    "json": _json,
    "toml": _toml,
    "yaml": _yaml,
}
"""Language -> what is done with a block of it."""
