"""The files around a release agree with each other, and benchmarks leave out what does not run."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from scripts.release import supported
from scripts.setup import NEWEST_TRIED, OLDEST

from tests.source import ROOT

yaml = pytest.importorskip("yaml")
peers: Any = pytest.importorskip("benchmarks.peers")

SUPPORTED = [f"3.{minor}" for minor in range(OLDEST[1], NEWEST_TRIED[1] + 1)]


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_every_file_names_the_same_versions_of_python() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    jobs = yaml.safe_load(read(".github/workflows/checks.yml"))["jobs"]
    assert project["requires-python"] == f">={SUPPORTED[0]}"
    assert classified == jobs["checks"]["strategy"]["matrix"]["python"] == SUPPORTED
    (released,) = (
        step["with"]["python-version"].split()
        for step in jobs["release"]["steps"]
        if "python-version" in step.get("with", {})
    )
    assert released == SUPPORTED


def test_the_hosted_checks_are_those_of_the_project() -> None:
    jobs = yaml.safe_load(read(".github/workflows/checks.yml"))["jobs"]
    commands = {name: [s["run"] for s in job["steps"] if "run" in s] for name, job in jobs.items()}
    assert commands == {"checks": [".ci/run"], "release": ["make release"]}


def test_the_version_is_described_in_the_changelog() -> None:
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    plugin = json.loads(read("plugins/claude-code/.claude-plugin/plugin.json"))
    assert plugin["version"] == version
    assert f"the newest version is {version}." in read("VERSIONING.md")
    sections = re.findall(
        r"^## \[(.+)\](?: - (\d{4}-\d\d-\d\d))?$", read("CHANGELOG.md"), re.MULTILINE
    )
    released = [(name, date) for name, date in sections if name != "Unreleased"]
    assert released[0][0] == version
    assert all(date for _, date in released), "each version has its date"


def test_an_interpreter_that_does_not_run_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\necho 'python3.12: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(peers, "FOLDER", tmp_path / "environments")
    peer = peers.Peer("none", ("none",), "none.py", pythons=("python3.12", "python3.13"))
    assert peer.environment() == "needs python3.12 or python3.13, which is not installed"
    assert all(python.version != (3, 12) for python in supported()[1:])


def test_a_script_that_fails_is_a_reason_and_no_crash(tmp_path: Path) -> None:
    for text, reason in (("echo hello", "printed no JSON"), ("echo why >&2; exit 3", "why")):
        script = tmp_path / "script"
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
        assert reason in str(peers.run_script([str(script)], 20))
    assert "failed" in str(peers.run_script([str(tmp_path / "missing")], 20))
