"""Peers: other libraries that do the same work, each in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("ENFOLD_BENCH", Path.home() / ".cache" / "enfold-bench" / "venvs"))
SCRIPTS = Path(__file__).parent / "peer_scripts"


@dataclass(frozen=True, slots=True)
class Peer:
    """A library to compare with."""

    name: str
    requirements: tuple[str, ...]
    script: str
    """The file in `peer_scripts` that does the work and prints one JSON object."""

    def run(self, *arguments: str, timeout: float = 900) -> dict[str, Any] | str:
        """What the script measured, or why it could not."""
        python = self._environment()
        if isinstance(python, str):
            return python
        command = [str(python), str(SCRIPTS / self.script), *arguments]
        try:
            done = subprocess.run(command, capture_output=True, timeout=timeout, check=True)
        except subprocess.TimeoutExpired:
            return f"gave no answer within {timeout:g} s"
        except subprocess.CalledProcessError as error:
            return f"failed: {error.stderr.decode(errors='replace').strip().splitlines()[-1]}"
        measured: dict[str, Any] = json.loads(done.stdout)
        return measured

    def _environment(self) -> Path | str:
        folder = FOLDER / self.name
        python = folder / "bin" / "python"
        ready = folder / "ready.txt"
        wanted = "\n".join(self.requirements)
        if ready.exists() and ready.read_text() == wanted:
            return python
        print(f"installing {self.name} …", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *self.requirements]
        try:
            subprocess.run(install, check=True, capture_output=True, timeout=900)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return "could not be installed"
        ready.write_text(wanted)
        return python


LANGGRAPH = Peer(
    "langgraph", ("langgraph>=1.2,<2", "langgraph-checkpoint-sqlite>=3,<4"), "langgraph_turn.py"
)

HEADROOM = Peer("headroom", ("headroom-ai==0.42.*",), "headroom_dedup.py")
"""Removes from tool results what earlier ones said; pointers in its place."""
