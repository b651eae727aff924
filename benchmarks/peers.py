"""Peers: other libraries that do the same work, each in its own environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("ENFOLD_BENCH", Path.home() / ".cache" / "enfold-bench" / "venvs"))
SCRIPTS = Path(__file__).parent / "peer_scripts"
INSTALLING = 900
"""Time limit of an installation in seconds."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A library to compare with."""

    name: str
    requirements: tuple[str, ...]
    script: str
    """The file in `peer_scripts` that does the work and prints one JSON object."""
    pythons: tuple[str, ...] = ()
    """Names of the interpreters that it supports. None: the current one."""

    def run(self, *arguments: str, timeout: float = 900) -> dict[str, Any] | str:
        """Return the figures of the script, or the reason why there are none."""
        python = self.environment()
        if isinstance(python, str):
            return python
        return run_script([str(python), str(SCRIPTS / self.script), *arguments], timeout)

    def environment(self, *, installs: bool = True) -> Path | str:
        """Return the interpreter that has it, or the reason why there is none."""
        folder = FOLDER / self.name
        python = folder / "bin" / "python"
        ready = folder / "ready.txt"
        wanted = "\n".join(self.requirements)
        if ready.exists() and ready.read_text() == wanted:
            return python
        if not installs:
            return "is not installed; a whole run installs it"
        base = next(filter(_runs, self.pythons or (sys.executable,)), None)
        if base is None:
            return f"needs {' or '.join(self.pythons)}, which is not installed"
        print(f"installing {self.name} …", file=sys.stderr)
        create = [base, "-m", "venv", "--clear", str(folder)]
        install = [str(python), "-m", "pip", "install", "--quiet", *self.requirements]
        try:
            for command in (create, install):
                subprocess.run(command, check=True, capture_output=True, timeout=INSTALLING)
        except subprocess.TimeoutExpired:
            return f"could not be installed within {INSTALLING} s"
        except subprocess.CalledProcessError as error:
            return f"could not be installed: {_last_line(error.stderr)}"
        except OSError as error:
            return f"could not be installed: {error}"
        ready.write_text(wanted)
        return python


def _runs(python: str) -> bool:
    """Return True if an interpreter runs. A name on PATH may belong to a shim without one."""
    path = shutil.which(python)
    if path is None:
        return False
    done = subprocess.run([path, "-c", "import venv"], capture_output=True, check=False)
    return done.returncode == 0


def run_script(command: list[str], timeout: float) -> dict[str, Any] | str:
    """Return the JSON object that a command prints, or the reason why there is none."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout, check=True)
    except subprocess.TimeoutExpired:
        return f"over {timeout:g} s"
    except subprocess.CalledProcessError as error:
        return f"failed: {_last_line(error.stderr)}"
    except OSError as error:
        return f"failed: {error}"
    try:
        measured: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return f"failed: it printed no JSON but {_last_line(done.stdout)}"
    return measured


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines() or ["it said nothing"]
    return lines[-1][:160]


HEADROOM = Peer("headroom", ("headroom-ai[proxy]==0.42.*",), "headroom_work.py")
LANGCHAIN = Peer(
    "langchain", ("langchain>=1.4,<2", "langgraph>=1.2,<2", "langmem==0.0.30"), "langchain_work.py"
)
LANGGRAPH = Peer(
    "langgraph", ("langgraph>=1.2,<2", "langgraph-checkpoint-sqlite>=3,<4"), "langgraph_work.py"
)
LITELLM = Peer("litellm", ("litellm[proxy]==1.106.*",), "litellm_work.py")
LLAMA_INDEX = Peer("llamaindex", ("llama-index-core>=0.14,<0.15",), "llamaindex_work.py")
OPENAI_AGENTS = Peer("oaagents", ("openai-agents==0.24.*",), "openai_agents_work.py")
OPENHANDS = Peer(
    "openhands",
    ("openhands-sdk==1.58.*",),
    "openhands_work.py",
    pythons=("python3.12", "python3.13"),
)

PEERS = (HEADROOM, LANGCHAIN, LANGGRAPH, LITELLM, LLAMA_INDEX, OPENAI_AGENTS, OPENHANDS)

HEADROOM_DEDUP = Peer("headroom", HEADROOM.requirements, "headroom_dedup.py")
"""Replaces repeats of earlier tool results by references."""
