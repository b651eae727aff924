"""Which value of a setting is in force."""

from pathlib import Path
from typing import Any

import pytest

from enfold import settings
from enfold.errors import ConfigError
from enfold.jsontext import loads_or_text
from enfold.retention import Retention
from enfold.settings import ServerSettings, Settings, resolve, retention_policy, server_settings


def test_without_anything_set_the_defaults_hold() -> None:
    resolved = resolve([])
    assert resolved.model_dump() == Settings().model_dump()
    assert resolved.strategy == "native"
    assert set(resolved.sources.values()) == {"default"}


def test_the_strongest_level_that_sets_a_value_wins_and_is_named() -> None:
    resolved = resolve(
        [
            ("call", {"threshold": None}),
            ("session", {"threshold": 0.8}),
            ("database", {"threshold": 0.7, "keep_first": 2}),
        ]
    )
    assert (resolved.threshold, resolved.keep_first) == (0.8, 2)
    assert resolved.sources["threshold"] == "session"
    assert resolved.sources["keep_first"] == "database"


def test_every_setting_is_described_once_for_every_reader() -> None:
    fields = settings.fields()
    assert set(fields) == set(Settings.model_fields) - {"sources"}
    for field in fields.values():
        assert field.title
        assert field.help.endswith(".")
        assert field.group in settings.GROUPS
        assert field.allowed
        assert bool(field.unset) == (field.default is None)
        assert field.kind != "choice" or field.choices or field.name == "summarizer"


def test_settings_are_found_by_their_words() -> None:
    found = [field.name for field in settings.fields().values() if field.matches("SHARE limit")]
    assert found == ["threshold", "words_share"]


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("auto_compress", "off", False),
        ("auto_compress", "TRUE", True),
        ("threshold", "0.9", 0.9),
        ("threshold", 95, 0.95),
        ("threshold", "5", 0.05),
        ("threshold", 1, 1),
        ("keep_first", "3", 3),
        ("model", "openai:gpt-5", "openai:gpt-5"),
        ("style", "code", "code"),
        ("threshold", None, None),
    ],
)
def test_text_is_read_as_the_type_of_the_setting(name: str, given: object, value: object) -> None:
    assert settings.check(name, given) == (name, value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("threshold", 3, "0.05 to 1"),
        ("threshold", "1.5", "5 to 100 is read as a percentage"),
        ("threshold", 101, "0.05 to 1"),
        ("threshold", True, "0.05 to 1"),
        ("keep_first", 1.5, "whole number"),
        ("keep_first", -1, "0 or more"),
        ("audit_days", 10**11, "a whole number, 1 to 36500"),
        ("auto_compress", "maybe", "true or false"),
        ("model", "gpt-4o", "provider:model"),
        ("style", "baroque", "default, code, concise, detailed"),
        ("prompt", "", "a text"),
        ("treshold", 1, "no setting 'treshold'"),
    ],
)
def test_a_bad_value_is_refused_by_name_with_what_is_allowed(
    name: str, value: object, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        settings.check(name, value)
    assert name in str(caught.value)
    assert words in str(caught.value)


def test_the_level_of_a_bad_value_is_named() -> None:
    with pytest.raises(ConfigError, match="config file: threshold"):
        resolve([("config file", {"threshold": 3})])


def test_names_of_other_systems_are_understood() -> None:
    given = {
        "COMPRESSION_TRIGGER_RATIO": "0.75",
        "RECENT_MESSAGES_RATIO": "0.2",
        "autoCondenseContext": False,
        "autoCondenseContextPercent": 80,
    }
    resolved = resolve([("database", given)])
    assert resolved.trigger_ratio == 0.75
    assert resolved.recent_ratio == 0.2
    assert resolved.auto_compress is False
    assert resolved.threshold == 0.8


@pytest.mark.parametrize("name", ["on_failure", "proxy.on_failure", "proxy_on_failure"])
def test_on_failure_is_one_setting_for_every_interface(name: str) -> None:
    assert resolve([("database", {name: "pass"})]).on_failure == "pass"
    variable = {f"ENFOLD_{name.upper()}": "truncate"} if "." not in name else {}
    found = settings.from_environment(variable)
    assert resolve([("environment", found)]).on_failure == ("truncate" if variable else "block")


def test_the_environment_is_read_by_name() -> None:
    environment = {"ENFOLD_KEEP_FIRST": "1", "RECENT_MESSAGES_RATIO": "0.3", "PATH": "/bin"}
    found = settings.from_environment(environment)
    assert found == {"keep_first": "1", "RECENT_MESSAGES_RATIO": "0.3"}
    assert resolve([("environment", found)]).keep_first == 1


def test_a_config_file_is_toml(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("threshold = 0.5\nstyle = 'concise'\n")
    assert settings.from_file(file) == {"threshold": 0.5, "style": "concise"}


def test_a_config_file_that_is_broken_or_missing_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("threshold = = 1")
    for file in (broken, tmp_path / "none.toml"):
        with pytest.raises(ConfigError, match=str(file.name)):
            settings.from_file(file)


def test_no_config_file_in_the_users_folder_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENFOLD_CONFIG", raising=False)
    assert settings.from_file() == {}


def test_the_database_is_the_one_named_or_a_file_of_the_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert settings.database_url().startswith("sqlite:///")
    monkeypatch.setenv("ENFOLD_DB", "postgresql://somewhere/else")
    assert settings.database_url() == "postgresql://somewhere/else"


def test_values_on_a_command_line_are_json_or_text() -> None:
    assert loads_or_text("0.9") == 0.9
    assert loads_or_text("null") is None
    assert loads_or_text("openai:gpt-5") == "openai:gpt-5"


def test_retention_follows_the_settings_then_the_model() -> None:
    assert retention_policy(Settings(), 1_500) == Retention("tokens", 1_500)
    assert retention_policy(Settings(retention_tokens=0), 1_500) == Retention("tokens", 0)
    assert retention_policy(Settings(recent_ratio=0.2), 1_500) == Retention("ratio", 0.2)
    levels: list[tuple[str, dict[str, Any]]] = [
        ("session", {"recent_ratio": 0.3}),
        ("database", {"retention_tokens": 3_000}),
    ]
    assert retention_policy(resolve(levels), 1_500, model=500) == Retention("ratio", 0.3)
    assert retention_policy(resolve(levels[1:]), 1_500, model=500) == Retention("tokens", 500)
    assert retention_policy(resolve(levels[1:]), 1_500) == Retention("tokens", 3_000)


def test_configs_are_looked_for_strategy_by_strategy() -> None:
    resolved = resolve(
        [
            ("session", {"strategy_config": {"smart": {"passes": []}}}),
            (
                "database",
                {
                    "strategy": "truncation",
                    "strategy_config": {"smart": {}, "truncation": {"headAndTail": True}},
                },
            ),
            ("environment", {"strategy_config": '{"native": {"style": "code"}}'}),
        ]
    )
    assert resolved.strategy_config == {
        "smart": {"passes": []},
        "truncation": {"headAndTail": True},
        "native": {"style": "code"},
    }
    assert resolved.sources["strategy_config"] == "database"
    assert resolve([("call", {"strategy_config": {"smart": {}}})]).sources["strategy_config"] == (
        "default"
    )


@pytest.mark.parametrize("value", [{"preserveRecentCount": 3}, [], "{", "3"], ids=str)
def test_configs_are_by_strategy(value: object) -> None:
    with pytest.raises(ConfigError, match="strategy_config"):
        settings.check("strategy_config", value)


def test_a_variable_that_is_no_setting_is_read_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert settings.variable("SOME_KEY") is None
    monkeypatch.setenv("SOME_KEY", "open sesame")
    assert settings.variable("SOME_KEY") == "open sesame"


def test_a_server_takes_its_words_from_the_environment() -> None:
    assert server_settings({}) == ServerSettings()
    given = {
        "ENFOLD_TOKEN": "secret",
        "ENFOLD_HOSTS": "Chat.Example, ,other.example",
        "ENFOLD_BODY_LIMIT": "1000",
        "ENFOLD_RATE_LIMIT": "60",
    }
    assert server_settings(given) == ServerSettings(
        token="secret", hosts=("chat.example", "other.example"), body_limit=1_000, rate_limit=60
    )


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_a_limit_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="ENFOLD_RATE_LIMIT"):
        server_settings({"ENFOLD_RATE_LIMIT": value})
