"""Install the coding agents that `make test-agents` runs into .cache/agents.

Their exact versions are in tests/agents/package.json. Without npm, or if the registry cannot be
reached, nothing is installed and the tests are skipped: the reason is in .cache/agents/missing.txt.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".cache" / "agents"
WANTED = ROOT / "tests" / "agents" / "package.json"
MISSING = FOLDER / "missing.txt"
SECONDS = 600
"""The time for the installation; it takes half a minute."""


def main() -> None:
    """Install the agents, unless they are there."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    installed = FOLDER / "package.json"
    wanted = WANTED.read_text("utf-8")
    if installed.exists() and installed.read_text("utf-8") == wanted and not MISSING.exists():
        return
    reason = install(wanted, installed)
    if reason is None:
        MISSING.unlink(missing_ok=True)
        return
    installed.unlink(missing_ok=True)
    MISSING.write_text(reason, "utf-8")
    sys.stderr.write(f"{reason}; the tests of agents are skipped\n")


def install(wanted: str, installed: Path) -> str | None:
    """Run npm; return the reason if something is missing."""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    installed.write_text(wanted, "utf-8")
    command = [
        npm,
        "install",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--loglevel=error",
    ]
    try:
        done = subprocess.run(
            command, cwd=FOLDER, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"npm install did not end within {SECONDS} s"
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        return f"npm install failed: {lines[0][:200]}"
    return None


if __name__ == "__main__":
    main()
