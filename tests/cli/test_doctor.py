"""`enfold doctor`: it finds problems, tells how to fix them, and then ends with 1."""

from __future__ import annotations

import json
import os
import socket
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest

from enfold.cli import doctor
from enfold.llm.providers import PROVIDERS
from enfold.wrap.agents import AGENTS
from tests.cli.conftest import Enfold
from tests.docs.upstream import upstream
from tests.server.processes import serve


@pytest.fixture(autouse=True)
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH without agents, no keys, and a port that is free; returns the folder on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for provider in PROVIDERS.values():
        for name in provider.key_variables:
            monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as free:
        monkeypatch.setattr(doctor, "DEFAULT_PORT", free.getsockname()[1])
    return folder


def _checks(outcome: Any, area: str) -> dict[str, Any]:
    checks = json.loads(outcome.out)["checks"]
    return {check["name"]: check for check in checks if check["area"] == area}


def _install(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def test_a_sound_setup_is_code_0_and_lists_everything(
    stored: Enfold, empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(empty_machine, "claude", "echo '2.1.0 (Claude Code)'")
    (empty_machine / "config.toml").write_text("autoCondenseContextPercent = 80")
    monkeypatch.setenv("ENFOLD_CONFIG", str(empty_machine / "config.toml"))
    outcome = stored("doctor", "--json")
    assert outcome.code == 0
    assert outcome.json["ok"] is True
    settings = _checks(outcome, "settings")["levels"]["detail"]
    assert "autoCondenseContextPercent became threshold" in settings
    agents = _checks(outcome, "agent")
    assert list(agents) == list(AGENTS)
    assert agents["claude"]["state"] == "ok"
    assert agents["claude"]["detail"].startswith("2.1.0 at ")
    assert agents["codex"]["state"] == "note"
    assert agents["codex"]["remedy"] == AGENTS["codex"].install
    assert _checks(outcome, "store")["database"]["state"] == "ok"
    assert list(_checks(outcome, "extra")) == list(doctor.EXTRAS)
    (port,) = _checks(outcome, "port").values()
    assert port["detail"] == "free"
    text = stored("doctor").text
    assert "agent claude" in text
    assert f"optional: {AGENTS['codex'].install}" in text


def test_extras_are_those_of_the_package() -> None:
    listed = set(metadata("enfold").get_all("Provides-Extra") or ())
    assert set(doctor.EXTRAS) <= listed
    assert listed - set(doctor.EXTRAS) <= {"all", "dev", "docs", "run", "test"}


def test_an_extra_that_is_not_installed_is_a_note(
    stored: Enfold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "EXTRAS", {"ui": ("no_such_module", "the web UI")})
    outcome = stored("doctor", "--json")
    assert outcome.code == 0
    ui = _checks(outcome, "extra")["ui"]
    assert (ui["state"], ui["remedy"]) == ("note", "pip install 'enfold[ui]'")


def test_a_broken_store_is_named_without_its_password(enfold: Enfold) -> None:
    outcome = enfold("doctor", "--json", "--db", "postgresql://me:secret@127.0.0.1:1/none")
    assert outcome.code == 1
    assert b"secret" not in outcome.out + outcome.err
    database = _checks(outcome, "store")["database"]
    assert database["state"] == "broken"
    assert database["remedy"]


def test_a_wrong_setting_is_named(stored: Enfold, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENFOLD_THRESHOLD", "many")
    outcome = stored("doctor", "--json")
    assert outcome.code == 1
    assert "threshold" in _checks(outcome, "settings")["levels"]["detail"].lower()
    monkeypatch.setenv("ENFOLD_THRESHOLD", "")
    monkeypatch.setenv("ENFOLD_STRATEGY_CONFIG", '{"native": {"nonsense": 1}}')
    outcome = stored("doctor", "--json")
    assert outcome.code == 1
    assert "native.nonsense: unknown" in _checks(outcome, "settings")["levels"]["detail"]


def test_a_profile_without_its_key_is_broken(stored: Enfold) -> None:
    stored("profiles", "add", "work", "--provider", "openai", "--model", "gpt-4o")
    outcome = stored("doctor", "--json")
    assert outcome.code == 1
    work = _checks(outcome, "profile")["work"]
    assert work["state"] == "broken"
    assert "OPENAI_API_KEY" in work["detail"]
    text = stored("doctor").text
    assert "BROKEN  profile work" in text
    assert "fix: " in text


def test_call_asks_each_model_once(stored: Enfold) -> None:
    add = ("profiles", "add", "here", "--provider", "compatible", "--model", "m", "--base-url")
    with upstream() as address:
        stored(*add, f"{address}/v1")
        assert "not called" in _checks(stored("doctor", "--json"), "profile")["here"]["detail"]
        called = stored("doctor", "--call", "--json")
        assert called.code == 0
        assert "answered in" in _checks(called, "profile")["here"]["detail"]
    failed = stored("doctor", "--call", "--json")
    assert failed.code == 1
    assert _checks(failed, "profile")["here"]["state"] == "broken"


def test_a_port_of_another_program_is_noted(
    stored: Enfold, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(doctor, "DEFAULT_PORT", taken.getsockname()[1])
        monkeypatch.setattr("enfold.wrap.local_server._ANSWER_SECONDS", 0.2)
        outcome = stored("doctor", "--json")
    assert outcome.code == 0
    (port,) = _checks(outcome, "port").values()
    assert "another program" in port["detail"]
    assert "--port" in port["remedy"]


def test_the_server_of_this_store_is_recognised(
    stored: Enfold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(tmp_path / "chats.db", "--no-ui") as process:
        monkeypatch.setattr(doctor, "DEFAULT_PORT", int(process.address.rpartition(":")[2]))
        (port,) = _checks(stored("doctor", "--json"), "port").values()
        assert port["detail"] == "enfold serves this store there"
        other = stored("doctor", "--json", "--db", f"sqlite:///{tmp_path / 'other.db'}")
        (port,) = _checks(other, "port").values()
        assert port["detail"] == "an enfold server with another store listens there"
        process.stop()


@pytest.mark.parametrize("text", ["exit 3", "echo none"])
def test_an_agent_that_does_not_run_is_broken(
    stored: Enfold, empty_machine: Path, text: str
) -> None:
    _install(empty_machine, "codex", text)
    outcome = stored("doctor", "--json")
    assert outcome.code == 1
    codex = _checks(outcome, "agent")["codex"]
    assert codex["state"] == "broken"
    assert AGENTS["codex"].install in codex["remedy"]
    assert os.fspath(empty_machine) in codex["detail"]
