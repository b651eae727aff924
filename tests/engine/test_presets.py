"""Presets in the database: saved, applied, and what happens when one is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

import enfold
from enfold.errors import ConfigError, NotFoundError
from enfold.store import catalog
from enfold.strategies.presets import BUILT_IN, Preset
from tests.engine.conftest import Bench, talk
from tests.engine.test_edited_sessions import work

MINE = Preset("mine", "For me.", "truncation", {"preserveRecentCount": 3})


async def test_presets_are_saved_listed_replaced_and_deleted(bench: Bench) -> None:
    presets = bench.engine.presets
    await presets.save(MINE)
    assert [preset.name for preset in await presets.all()] == [*BUILT_IN, "mine"]
    assert await presets.get("mine") == MINE
    with pytest.raises(ConfigError, match="already"):
        await presets.save(MINE)
    other = Preset("mine", "Better.", "native", {})
    assert await presets.save(other, replace=True) == await presets.get("mine") == other
    await presets.delete("mine")
    with pytest.raises(NotFoundError, match="no preset 'mine'; available: speed, quality"):
        await presets.get("mine")
    with pytest.raises(NotFoundError):
        await presets.delete("mine")


async def test_names_of_the_built_in_ones_are_taken(bench: Bench) -> None:
    with pytest.raises(ConfigError, match="built in"):
        await bench.engine.presets.save(Preset("speed", "", "native"))
    with pytest.raises(ConfigError, match="built in"):
        await bench.engine.presets.delete("speed")


async def test_a_preset_that_cannot_be_used_is_not_saved(bench: Bench) -> None:
    with pytest.raises(ConfigError, match=r"config\.lines: unknown field"):
        await bench.engine.presets.save(Preset("mine", "", "truncation", {"lines": 1}))


async def test_saved_presets_are_there_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    async with enfold.open(url) as engine:
        await engine.presets.save(MINE)
    async with enfold.open(url) as engine:
        assert await engine.presets.get("mine") == MINE


async def test_applied_it_sets_strategy_and_config_and_both_can_be_changed(bench: Bench) -> None:
    engine = bench.engine
    await engine.set("strategy_config", {"native": {"style": "code"}})
    await engine.presets.save(MINE)
    await engine.presets.apply("mine")
    settings = await engine.settings()
    assert settings.strategy == "truncation"
    assert settings.strategy_config == {
        "native": {"style": "code"},
        "truncation": {"preserveRecentCount": 3},
    }
    await engine.set("strategy_config", {"truncation": {"preserveRecentCount": 5}})
    assert (await engine.presets.get("mine")) == MINE
    session = await bench.session()
    await work(session, 4)
    assert (await session.compress()).strategy == "truncation"


async def test_applied_to_one_session_it_leaves_the_others_alone(bench: Bench) -> None:
    one, other = await bench.session("one"), await bench.session("other")
    await one.configure(keep_first=1)
    await bench.engine.presets.apply("speed", one)
    for session in (one, other):
        await work(session, 4)
    assert (await one.compress()).strategy == "smart"
    assert (await other.compress()).strategy == "native"


async def test_a_preset_can_be_named_at_every_level(bench: Bench) -> None:
    session = await bench.session()
    await work(session, 6)
    assert (await session.preview(preset="speed")).messages > 0
    assert (await session.compress(preset="speed")).strategy == "smart"
    await session.undo()
    await bench.engine.set("preset", "speed")
    assert (await bench.engine.settings()).strategy == "smart"
    assert (await session.compress()).strategy == "smart"
    await session.undo()
    await bench.engine.presets.save(MINE)
    await session.configure(preset="mine")
    assert (await session.compress()).strategy == "truncation"


async def test_a_setting_wins_over_the_preset_of_its_level(bench: Bench) -> None:
    session = await bench.session()
    await work(session, 6)
    await bench.engine.presets.save(MINE)
    usual = await session.preview(preset="mine")
    config = {"truncation": {"preserveRecentCount": 0}}
    wide = await session.preview(preset="mine", strategy_config=config)
    assert wide.messages > usual.messages
    assert (await session.compress(preset="mine", strategy="native")).strategy == "native"


async def test_a_preset_that_a_call_names_must_be_there(bench: Bench) -> None:
    session = await bench.session()
    with pytest.raises(NotFoundError, match="no preset 'fast'"):
        await session.compress(preset="fast")
    with pytest.raises(NotFoundError, match="no preset 'fast'"):
        await bench.engine.set("preset", "fast")
    with pytest.raises(NotFoundError, match="no preset 'fast'"):
        await session.configure(preset="fast")


async def test_a_deleted_preset_is_skipped_and_reported(bench: Bench) -> None:
    session = await bench.session()
    await bench.engine.presets.save(MINE)
    await session.configure(preset="mine")
    await bench.engine.presets.delete("mine")
    await talk(session, 20)
    done = await session.compress()
    assert done.strategy == "native"
    assert any("the preset of the session" in warning for warning in done.warnings)


async def test_a_saved_preset_that_no_longer_fits_says_why(bench: Bench) -> None:
    old = {**MINE.as_json(), "config": {"lines": 1}}
    await bench.engine.store.write(catalog.put_setting, "presets", "old", old)
    found = {preset.name: preset for preset in await bench.engine.presets.all()}
    assert "config.lines: unknown field" in found["old"].fault
    with pytest.raises(ConfigError):
        await bench.engine.presets.apply("old")


async def test_settings_that_name_strategies_are_checked_when_they_are_set(bench: Bench) -> None:
    session = await bench.session()
    for change in (bench.engine.set("strategy", "magic"), session.configure(strategy="magic")):
        with pytest.raises(ConfigError, match="no strategy 'magic'"):
            await change
    wrong = {"smart": {"passes": [{"id": "a"}]}}
    for change in (
        bench.engine.set("strategy_config", wrong),
        session.configure(strategy_config=wrong),
    ):
        with pytest.raises(ConfigError, match=r"strategy_config\.smart\.passes\[0\]\.name"):
            await change
    with pytest.raises(ConfigError, match="configs by strategy"):
        await bench.engine.set("strategy_config", {"preserveRecentCount": 3})


async def test_a_bad_config_of_a_call_is_an_error(bench: Bench) -> None:
    session = await bench.session()
    await work(session, 4)
    with pytest.raises(ConfigError, match="config of truncation: lines"):
        await session.compress(strategy="truncation", strategy_config={"truncation": {"lines": 1}})
    with pytest.raises(ConfigError, match="'magic'"):
        await session.compress(strategy="magic")
