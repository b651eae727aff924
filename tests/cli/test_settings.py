"""`enfold settings`: listed with where they come from, set and unset; a wrong one is explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from enfold.settings import fields
from tests.cli.conftest import Enfold


def _value(value: object, level: str) -> dict[str, object]:
    return {"value": value, "level": level, "source": level, "note": ""}


def test_all_settings_are_listed_with_their_source(
    stored: Enfold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENFOLD_THRESHOLD", "0.7")
    listed = stored("settings", "--json").json
    assert list(listed) == list(fields())
    assert listed["threshold"] == _value(0.7, "environment")
    assert listed["auto_compress"] == _value(True, "default")
    rows = {line.split()[0]: line.split()[1:] for line in stored("settings").text.splitlines()[2:]}
    assert list(rows) == list(fields())
    assert rows["threshold"] == ["0.7", "environment"]
    assert rows["auto_compress"] == ["true", "default"]
    assert rows["max_tokens"] == ["unset", "default"]


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("threshold", "0.5", 0.5),
        ("auto_compress", "off", False),
        ("keep_first", "2", 2),
        ("style", "code", "code"),
        ("prompt", "Write it short, please.", "Write it short, please."),
        ("model", "anthropic:claude-3-haiku-20240307", "anthropic:claude-3-haiku-20240307"),
        ("autoCondenseContextPercent", "80", 0.8),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_setting_holds_until_it_is_unset(
    name: str, typed: str, value: object, stored: Enfold
) -> None:
    canonical = "threshold" if name == "autoCondenseContextPercent" else name
    default = stored("settings", "--json").json[canonical]
    changed = stored("settings", "set", name, typed)
    assert [line.split()[0] for line in changed.text.splitlines()[2:]] == [canonical]
    assert stored("settings", "list", "--json").json[canonical] == _value(value, "database")
    assert stored("settings", "unset", name, "--json").json[canonical] == default


@pytest.mark.parametrize(
    ("name", "typed", "words"),
    [
        ("threshold", "3", ["threshold = 3", "0.05 to 1"]),
        ("threshold", "high", ["threshold = 'high'", "0.05 to 1"]),
        ("threshold", "nan", ["threshold = 'nan'", "0.05 to 1"]),
        ("threshold", "true", ["threshold = True", "0.05 to 1"]),
        ("timeout", "inf", ["timeout = 'inf'", "0.001 or more"]),
        ("keep_first", "1.5", ["keep_first = 1.5", "a whole number"]),
        ("keep_first", "1e400", ["keep_first", "a whole number"]),
        ("keep_first", "-1", ["keep_first = -1", "0 or more"]),
        ("auto_compress", "maybe", ["auto_compress = 'maybe'", "true or false"]),
        ("style", "loud", ["style = 'loud'", "concise"]),
        ("model", "gpt-4o", ["model = 'gpt-4o'", "provider:model"]),
        ("colour", "red", ["no setting 'colour'", "threshold"]),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else None,
)
def test_a_wrong_value_is_explained_and_not_kept(
    name: str, typed: str, words: list[str], stored: Enfold
) -> None:
    before = stored("settings", "--json").out
    stored("settings", "set", name, typed).refused(*words)
    assert stored("settings", "--json").out == before


def test_a_setting_that_is_none_cannot_be_unset(stored: Enfold) -> None:
    stored("settings", "unset", "colour").refused("no setting 'colour'")


def test_a_wrong_setting_from_outside_says_where_it_is(
    stored: Enfold, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ENFOLD_THRESHOLD", "3")
    assert stored("settings").code == 0
    (line,) = caplog.messages
    assert line.startswith("environment: threshold = '3'")


def test_a_name_of_another_system_says_what_became_of_it(stored: Enfold) -> None:
    outcome = stored("settings", "set", "autoCondenseContextPercent", "80")
    assert "autoCondenseContextPercent became threshold" in outcome.stderr_text
    stored("settings", "set", "autoCondenseContextPercent", "abc").refused("expected 0.05 to 1")


def test_a_name_of_another_system_in_a_file_is_named_with_its_value(
    stored: Enfold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "other.toml"
    file.write_text("autoCondenseContextPercent = 60\n[nativeConfig]\nstyle = 'code'\n")
    monkeypatch.setenv("ENFOLD_CONFIG", str(file))
    listed = stored("settings").text
    note = "config file: autoCondenseContextPercent became threshold, as a share"
    assert any(note in line and "0.6" in line for line in listed.splitlines())
    assert "nativeConfig became the config of native" in listed
    shown = json.loads(stored("settings", "set", "threshold", "0.7", "--json").out)
    assert (shown["threshold"]["source"], shown["threshold"]["note"]) == ("database", "")
