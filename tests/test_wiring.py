"""Settings become objects."""

from __future__ import annotations

from pathlib import Path

import pytest

import enfold
from enfold.errors import ConfigError
from enfold.settings import Settings
from enfold.strategies.fallback import WithFallback
from enfold.strategies.native import Native
from enfold.strategies.truncation import Truncation
from enfold.wiring import local_summarizer, make_strategy


def test_the_strategy_is_the_one_that_is_named() -> None:
    assert make_strategy(Settings(), local_summarizer()).id == "native"
    with pytest.raises(ConfigError, match="'magic'"):
        make_strategy(Settings(strategy="magic"), local_summarizer())


def test_native_stands_by_for_every_other_strategy() -> None:
    native = make_strategy(Settings(), local_summarizer())
    assert isinstance(native, Native)
    other = make_strategy(Settings(strategy="truncation"), local_summarizer())
    assert isinstance(other, WithFallback)
    assert isinstance(other.first, Truncation)
    assert isinstance(other.second, Native)


def test_style_and_prompt_are_natives_unless_its_config_says_otherwise() -> None:
    configs = {"native": {"style": "code"}}
    settings = Settings(style="concise", prompt="Mine.", strategy_config=configs)
    native = make_strategy(settings, local_summarizer())
    assert isinstance(native, Native)
    assert (native.config.style, native.config.prompt) == ("code", "Mine.")


STORED = {"strategy": "database", "strategy_config": "database", "prompt": "default"}


def test_what_a_call_asks_for_must_be_right() -> None:
    broken = {"truncation": {"lines": 1}}
    settings = Settings(strategy="truncation", strategy_config=broken)
    with pytest.raises(ConfigError, match="config of truncation: lines: unknown field"):
        make_strategy(settings, local_summarizer())
    with pytest.raises(ConfigError, match="placeholders"):
        make_strategy(Settings(prompt="{nonsense}"), local_summarizer())


def test_what_was_stored_and_is_broken_gives_way_to_defaults_with_a_note() -> None:
    broken = {"truncation": {"lines": 1}}
    settings = Settings(strategy="truncation", strategy_config=broken, sources=STORED)
    made = make_strategy(settings, local_summarizer(), notes=("before",))
    assert isinstance(made, WithFallback)
    assert made.id == "truncation"
    assert made.notes[0] == "before"
    assert "lines: unknown field" in made.notes[1]
    gone = make_strategy(Settings(strategy="gone", sources=STORED), local_summarizer())
    assert isinstance(gone, WithFallback)
    assert gone.id == "native"
    assert "no strategy 'gone'" in gone.notes[0]


async def test_settings_of_the_surroundings_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text("keep_first = 2\nthreshold = 0.6\n")
    monkeypatch.setenv("ENFOLD_CONFIG", str(file))
    monkeypatch.setenv("ENFOLD_THRESHOLD", "0.7")
    async with enfold.open(f"sqlite:///{tmp_path / 'a.db'}") as engine:
        settings = await engine.settings()
        assert (settings.keep_first, settings.threshold) == (2, 0.6)
        assert settings.sources["threshold"] == "config file"
        await engine.set("threshold", 0.8)
        assert (await engine.settings()).sources["threshold"] == "database"


async def test_a_bad_setting_of_the_surroundings_is_named_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ENFOLD_THRESHOLD", "lots")
    with pytest.raises(ConfigError, match="environment: threshold"):
        async with enfold.open(f"sqlite:///{tmp_path / 'a.db'}"):
            pass


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


async def test_without_an_address_the_database_is_in_the_users_folder(own_home: Path) -> None:
    async with enfold.open() as engine:
        await (await engine.session("chat")).append("Hello")
    assert [file.name for file in _files(own_home)] == ["enfold.db"]
