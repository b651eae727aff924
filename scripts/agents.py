"""Install the coding agents and libraries that `make test-agents` runs into .cache/agents.

Their exact versions are in tests/agents: package.json for npm, and a file of requirements for each
environment of Python that they need, because they need other versions than enfold. What cannot be
installed is skipped by the tests: the reason is in .cache/agents, in a file of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".cache" / "agents"
WANTED = ROOT / "tests" / "agents"
ENVIRONMENTS = ("libraries", "aider")
"""Folders of environments; the requirements of each are in tests/agents/NAME.txt."""
SECONDS = 600
"""The time for one installation; most take about a minute, aider some more."""


def main() -> None:
    """Install what is not there."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    _install("npm", FOLDER / "package.json", WANTED / "package.json")
    for name in ENVIRONMENTS:
        _install(name, FOLDER / name / "installed.txt", WANTED / f"{name}.txt")


def _install(name: str, installed: Path, requirements: Path) -> None:
    """Install with npm or into an environment, unless these versions are there."""
    missing, wanted = FOLDER / f"missing-{name}.txt", requirements.read_text("utf-8")
    if installed.exists() and installed.read_text("utf-8") == wanted and not missing.exists():
        return
    installed.parent.mkdir(exist_ok=True)
    missing.write_text("its installation has not ended", "utf-8")
    installed.write_text(wanted, "utf-8")
    reason = _run_npm() if name == "npm" else _run_pip(installed)
    if reason is None:
        missing.unlink(missing_ok=True)
        return
    installed.unlink(missing_ok=True)
    missing.write_text(reason, "utf-8")
    sys.stderr.write(f"{reason}; the tests that need it are skipped\n")


def _run_npm() -> str | None:
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
    return _run([npm, "install", *quiet])


def _run_pip(requirements: Path) -> str | None:
    folder = requirements.parent
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    quiet = ("--quiet", "--quiet", "--disable-pip-version-check")
    return _run([python, "-m", "pip", "install", *quiet, "-r", str(requirements)])


def _run(command: Sequence[str]) -> str | None:
    """Run a command; return the reason if it fails."""
    name = " ".join((Path(command[0]).name, *command[1:4]))
    try:
        done = subprocess.run(
            command, cwd=FOLDER, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{name} did not end within {SECONDS} s"
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        return f"{name} failed: {lines[-1][:200]}"
    return None


if __name__ == "__main__":
    main()
