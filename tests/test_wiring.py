"""Settings become objects."""

from __future__ import annotations

from pathlib import Path

import pytest

import enfold
from enfold.errors import ConfigError
from enfold.settings import Settings
from enfold.wiring import local_summarizer, make_strategy


def test_the_strategy_is_the_one_that_is_named() -> None:
    assert make_strategy(Settings(), local_summarizer()).id == "native"
    with pytest.raises(ConfigError, match="'magic'"):
        make_strategy(Settings(strategy="magic"), local_summarizer())


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
