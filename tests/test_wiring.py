"""Settings become objects."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import enfold
from enfold.errors import ConfigError
from enfold.settings import Settings
from enfold.store import catalog
from enfold.strategies.fallback import WithFallback
from enfold.strategies.native import Native
from enfold.strategies.truncation import Truncation
from enfold.testing import assistant, user
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


def test_style_and_prompt_go_to_native_unless_its_config_sets_them() -> None:
    configs = {"native": {"style": "code"}}
    settings = Settings(style="concise", prompt="Mine.", strategy_config=configs)
    native = make_strategy(settings, local_summarizer())
    assert isinstance(native, Native)
    assert (native.config.style, native.config.prompt) == ("code", "Mine.")


STORED = {"strategy": "database", "strategy_config": "database", "prompt": "default"}


def test_invalid_arguments_of_a_call_are_refused() -> None:
    broken = {"truncation": {"lines": 1}}
    settings = Settings(strategy="truncation", strategy_config=broken)
    with pytest.raises(ConfigError, match="config of truncation: lines: unknown field"):
        make_strategy(settings, local_summarizer())
    with pytest.raises(ConfigError, match="placeholders"):
        make_strategy(Settings(prompt="{nonsense}"), local_summarizer())


def test_broken_stored_settings_fall_back_to_defaults_with_a_note() -> None:
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


async def test_a_bad_setting_of_the_surroundings_is_one_line_and_the_default_holds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ENFOLD_THRESHOLD", "lots")
    async with enfold.open(f"sqlite:///{tmp_path / 'a.db'}") as engine:
        assert (await engine.settings()).threshold is None
    (line,) = caplog.messages
    assert line.startswith("environment: threshold = 'lots'")
    assert line.endswith("the value is ignored")
    monkeypatch.setenv("ENFOLD_THRESHOLD", "0.8")
    monkeypatch.setenv("ENFOLD_STRATEGY_CONFIG", '{"truncation": {"nonsense": 1}}')
    caplog.clear()
    async with enfold.open(f"sqlite:///{tmp_path / 'a.db'}") as engine:
        assert (await engine.settings()).threshold == 0.8
    (line,) = caplog.messages
    assert line.startswith("strategy_config.truncation.nonsense: unknown field")
    monkeypatch.setenv("ENFOLD_STRATEGY_CONFIG", "{}")
    monkeypatch.setenv("ENFOLD_STRATEGY", "magic")
    monkeypatch.setenv("ENFOLD_PROFILE_THRESHOLDS", '{"fast": 60, "slow": 500}')
    caplog.clear()
    async with enfold.open(f"sqlite:///{tmp_path / 'a.db'}") as engine:
        assert (await engine.settings()).profile_thresholds["fast"] == 60
    strategy, threshold = caplog.messages
    assert strategy.startswith("no strategy 'magic'")
    assert strategy.endswith("native is used instead")
    assert threshold.startswith("profile_thresholds.slow: 500 is neither")


OTHER_SYSTEM = """
provider = "truncation"
autoCondenseContext = true
autoCondenseContextPercent = 80
condensingApiConfigId = "local"
customCondensingPrompt = "Be brief."
profileThresholds = {fast = 60, slow = -1}
[truncationConfig]
preserveRecentCount = 7
[nativeConfig]
style = "concise"
"""


async def test_settings_of_another_system_are_read_from_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text(OTHER_SYSTEM)
    monkeypatch.setenv("ENFOLD_CONFIG", str(tmp_path / "config.toml"))
    async with enfold.open(f"sqlite:///{tmp_path / 'a.db'}") as engine:
        found = await engine.settings()
        assert (found.strategy, found.auto_compress, found.threshold) == ("truncation", True, 0.8)
        assert (found.summarizer, found.prompt) == ("local", "Be brief.")
        assert found.strategy_config == {
            "truncation": {"preserveRecentCount": 7},
            "native": {"style": "concise"},
        }
        for name, source, share in (("fast", "profile", 0.6), ("slow", "config file", 0.8)):
            await engine.profiles.save(name, {"provider": "openai", "model": "gpt-4o"})
            status = await (await engine.session(name, profile=name)).status()
            assert (status.threshold_source, status.decision.threshold.share) == (source, share)


async def test_a_stored_value_that_is_wrong_gives_way_and_is_in_the_report(tmp_path: Path) -> None:
    async with enfold.open(f"sqlite:///{tmp_path / 'a.db'}") as engine:
        for name, value in (("threshold", "lots"), ("summarizer", "a deleted profile")):
            await engine.store.write(catalog.put_setting, "global", name, value)
        session = await engine.session("chat")
        for number in range(30):
            await session.append(user(f"Question {number}"), assistant("An answer. " * 30))
        done = await session.compress(keep_messages=4)
        assert done.compressed
        assert any("threshold = 'lots'" in note for note in done.warnings)
        assert any("'a deleted profile' does not exist" in note for note in done.warnings)


async def test_a_stored_value_that_cannot_be_read_gives_way_too(tmp_path: Path) -> None:
    async with enfold.open(f"sqlite:///{tmp_path / 'a.db'}") as engine:
        await engine.set("style", "code")
        await engine.profiles.save("work", {"provider": "openai", "model": "gpt-4o"})
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute("UPDATE settings SET value = '{code' WHERE key = 'style'")
        db.execute("UPDATE profiles SET fields = '{'")
    db.close()
    async with enfold.open(f"sqlite:///{tmp_path / 'a.db'}") as engine:
        assert (await engine.settings()).style == "default"
        session = await engine.session("chat")
        for number in range(30):
            await session.append(user(f"Question {number}"), assistant("An answer. " * 30))
        done = await session.compress(keep_messages=4)
        assert any("style = '{code'" in note for note in done.warnings)
        (profile,) = await engine.profiles.all()
        assert "cannot be used" in profile.fault
        await engine.set("style", None)
        await engine.profiles.remove("work")


async def test_the_config_of_one_strategy_leaves_the_others(tmp_path: Path) -> None:
    async with enfold.open(f"sqlite:///{tmp_path / 'a.db'}") as engine:
        await engine.set("truncationConfig", {"preserveRecentCount": 7})
        await engine.set("nativeConfig", {"style": "concise"})
        found = (await engine.settings()).strategy_config
        assert found == {"truncation": {"preserveRecentCount": 7}, "native": {"style": "concise"}}
        await engine.set("truncationConfig", None)
        assert (await engine.settings()).strategy_config == {"native": {"style": "concise"}}
        with pytest.raises(ConfigError, match="unknown placeholders: foo"):
            await engine.set("customCondensingPrompt", "Tell {foo}")


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


async def test_without_an_address_the_database_is_in_the_users_folder(own_home: Path) -> None:
    async with enfold.open() as engine:
        await (await engine.session("chat")).append("Hello")
    assert [file.name for file in _files(own_home)] == ["enfold.db"]
