"""Build the wheel and the source archive, and check them in fresh environments.

`python -m scripts.release` writes both to `dist` and installs them, without extras, for every
supported Python that runs on this machine. Each environment prints its version, runs the demo,
starts the server and prints the settings of a wrapped agent. The weight of the installation is
printed at the end. Publishing is a step of its own: see CONTRIBUTING.md.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from scripts.setup import NEWEST_TRIED, OLDEST, Interpreter, probe

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
STARTING = 60
"""Seconds within which the server must be ready."""
BUILD = "build>=1.2,<2"
"""The tool that makes wheels and source archives."""


@dataclass(frozen=True)
class Environment:
    """A fresh environment in a folder, whose home is empty."""

    folder: Path
    version: str

    def run(self, *command: str, program: str = "enfold") -> str:
        """Run a program of the environment and return what it prints; a failure ends the script."""
        done = subprocess.run(
            [self.program(program), *command],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(
                f"{program} {' '.join(command)} failed with Python {self.version}:\n"
                f"{done.stdout}{done.stderr}"
            )
        return done.stdout

    def program(self, name: str) -> str:
        """Return the path of an installed program."""
        return str(self.folder / "bin" / name)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables: a home of its own, and no settings of this machine."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("ENFOLD_")}
        return {**kept, "HOME": str(self.folder), "ENFOLD_DB": f"sqlite:///{self.folder}/s.db"}


def supported() -> list[Interpreter]:
    """Return the interpreters on PATH that enfold supports and that run, one for each version."""
    versions = range(OLDEST[1], NEWEST_TRIED[1] + 1)
    found = [probe(f"python3.{minor}") for minor in versions]
    running = {python.version: python for python in found if python is not None}
    here = probe(sys.executable)
    if here is not None:
        running.setdefault(here.version, here)
    return [running[version] for version in sorted(running)]


def make_environment(python: Interpreter, folder: Path) -> Environment:
    """Create an environment with pip."""
    subprocess.run([python.path, "-m", "venv", "--clear", str(folder)], check=True)
    return Environment(folder, ".".join(map(str, python.version)))


def build(python: Interpreter, folder: Path) -> tuple[Path, Path]:
    """Return the new wheel and the new source archive."""
    shutil.rmtree(DIST, ignore_errors=True)
    environment = make_environment(python, folder)
    environment.run("-m", "pip", "install", "--quiet", BUILD, program="python")
    environment.run("-m", "build", "--outdir", str(DIST), str(ROOT), program="python")
    (wheel,), (archive,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, archive


def check(environment: Environment, package: Path, version: str) -> None:
    """Install a package without extras, and use what a minimal installation has."""
    constraints = str(ROOT / "constraints.txt")
    pip = ("-m", "pip", "install", "--quiet", "--constraint", constraints, str(package))
    environment.run(*pip, program="python")
    printed = environment.run("--version").strip()
    if printed != f"enfold {version}":
        sys.exit(f"Python {environment.version}: {printed!r}, expected 'enfold {version}'")
    environment.run("demo")
    for agent in ("claude", "codex"):
        environment.run("wrap", "--print", agent)
    serve(environment)


def serve(environment: Environment) -> None:
    """Start the server without pages, and stop it when it is ready."""
    command = [environment.program("enfold"), "serve", "--no-ui", "--port", "18787"]
    server = subprocess.Popen(
        command,
        cwd=environment.folder,
        env=environment.variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + STARTING
        while not is_ready("http://127.0.0.1:18787/readyz"):
            if server.poll() is not None or time.monotonic() > until:
                sys.exit(f"the server did not start with Python {environment.version}")
            time.sleep(0.1)
    finally:
        server.terminate()
        server.wait(timeout=STARTING)


def is_ready(address: str) -> bool:
    """Return True if a server answers there."""
    try:
        urlopen(address, timeout=5).close()  # noqa: S310 - an address of this machine
    except OSError:  # an answer with another status than success included
        return False
    return True


def weigh(environment: Environment) -> Iterator[str]:
    """Yield the number of packages of an environment and the size of what enfold added to it."""
    listed = json.loads(environment.run("-m", "pip", "list", "--format=json", program="python"))
    packages = [each["name"] for each in listed if each["name"] not in {"pip", "setuptools"}]
    (site,) = (environment.folder / "lib").glob("python*/site-packages")
    sizes = {
        each.name: sum(file.stat().st_size for file in each.rglob("*") if file.is_file())
        for each in site.iterdir()
        if each.is_dir() and not each.name.startswith(("pip", "setuptools"))
    }
    megabytes = sum(sizes.values()) / 1e6
    yield f"{len(packages)} packages, {megabytes:.0f} MB installed; the largest:"
    for name, size in sorted(sizes.items(), key=lambda item: -item[1])[:5]:
        yield f"  {name}: {size / 1e6:.0f} MB"


def main() -> None:
    """Build, check and weigh."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pythons = supported()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, archive = build(pythons[-1], folder / "build")
        for python in pythons:
            environment = make_environment(python, folder / f"wheel-{python.version[1]}")
            check(environment, wheel, project["version"])
            print(f"{wheel.name} works with Python {environment.version}", flush=True)
        environment = make_environment(pythons[-1], folder / "archive")
        check(environment, archive, project["version"])
        print(f"{archive.name} works with Python {environment.version}", flush=True)
        print("\n".join(weigh(environment)))


if __name__ == "__main__":
    main()
