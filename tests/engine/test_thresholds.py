"""The threshold in force: how many tokens, and who says so."""

from __future__ import annotations

from typing import Any

import pytest

from enfold.budget import Load, Policy, Threshold, decide
from enfold.engine import Engine
from enfold.engine.state import EffectiveThreshold, read_effective
from tests.engine.conftest import Bench, talk

MODEL = "test:small"


@pytest.fixture
def engine(bench: Bench) -> Engine:
    return bench.engine


async def effective(engine: Engine, session: str | None = None) -> EffectiveThreshold:
    key = None if session is None else (await engine.find(session)).key
    return await engine.store.read(read_effective, engine.static_settings, key)


async def test_the_default_in_tokens_of_the_model_in_use(engine: Engine) -> None:
    await engine.set("model", "openai:gpt-4o")
    found = await effective(engine)
    assert (found.model, found.max_input) == ("openai:gpt-4o", 111_616)
    assert (found.limit, found.tokens) == (106_036, 100_734)
    assert (found.setting, found.source, found.share) == ("threshold", "default", 0.95)
    assert found.is_automatic


async def test_a_model_without_configuration_uses_the_default_threshold(engine: Engine) -> None:
    await engine.set("model", "nobody:knows")
    assert (await effective(engine)).max_input == 128_000


@pytest.mark.parametrize(
    ("settings", "setting", "share"),
    [
        ({"threshold": 0.5}, "threshold", 0.5),
        ({"trigger_ratio": 0.75}, "trigger_ratio", 0.75),
        ({"max_tokens": 1_000}, "max_tokens", None),
    ],
)
async def test_the_effective_threshold_names_its_setting_and_source(
    engine: Engine, settings: dict[str, Any], setting: str, share: float | None
) -> None:
    for name, value in settings.items():
        await engine.set(name, value)
    found = await effective(engine)
    assert (found.setting, found.source, found.share) == (setting, "database", share)


async def test_a_session_wins_over_a_profile_and_that_over_a_model(engine: Engine) -> None:
    await engine.models.edit(MODEL, max_input=10_000, threshold=0.9)
    await engine.set("model", MODEL)
    await engine.set("threshold", 0.5)
    session = await engine.session("s")
    assert (await effective(engine, "s")).source == "model"
    await engine.profiles.save("p", {"provider": "openai", "model": "gpt-4o", "threshold": 80})
    await engine.session("s", profile="p", model=MODEL)
    found = await effective(engine, "s")
    assert (found.source, found.share, found.tokens) == ("profile", 0.8, 7_600)
    await session.configure(threshold=0.6)
    assert (await effective(engine, "s")).source == "session"


async def test_a_models_own_threshold_beats_the_one_for_all_models(engine: Engine) -> None:
    await engine.set("threshold", 0.5)
    await engine.set("model", "openai:gpt-4o")
    found = await effective(engine)
    assert (found.source, found.share) == ("database", 0.5)
    await engine.models.edit("openai:gpt-4o", max_output=16_000)
    assert (await effective(engine)).source == "database"
    await engine.models.edit("openai:gpt-4o", threshold=0.95)
    session = await engine.session("s")
    found, status = await effective(engine, "s"), await session.status()
    assert (found.source, found.share) == ("model", 0.95)
    assert (status.threshold_source, status.threshold_token_count) == ("model", found.tokens)
    await engine.models.reset("openai:gpt-4o")
    assert (await effective(engine)).source == "database"
    await engine.set("model", "google:gemini-2.5-pro")
    found = await effective(engine)
    assert (found.source, found.share) == ("model", 0.98)


async def test_settings_of_a_profile_beat_the_model(engine: Engine) -> None:
    await engine.models.edit("openai:small", threshold=0.9)
    fields = {"provider": "openai", "model": "small", "settings": {"threshold": 0.7}}
    await engine.profiles.save("p", fields)
    await engine.session("s", profile="p")
    found = await effective(engine, "s")
    assert (found.source, found.share) == ("profile", 0.7)


async def test_retention_is_resolved_like_the_threshold(engine: Engine) -> None:
    session = await engine.session("s", model="openai:gpt-4o")
    await talk(session, 20)

    async def kept(**call: Any) -> int:
        return (await session.status(**call)).retention_token_budget

    assert await kept() == int(106_036 * 0.2)
    await engine.set("retention_tokens", 3_000)
    assert await kept() == 3_000
    await engine.models.edit("openai:gpt-4o", max_output=16_000)
    assert await kept() == 3_000
    await engine.models.edit("openai:gpt-4o", retention_tokens=1_000)
    assert await kept() == 1_000
    await session.configure(retention_tokens=700)
    assert await kept() == 700
    assert await kept(retention_tokens=60) == 60
    tokens = (await session.status()).decision.tokens
    assert await kept(recent_ratio=0.5) == tokens // 2


async def test_the_threshold_shown_is_where_a_compression_is_due(engine: Engine) -> None:
    for model in await engine.models.all():
        await engine.set("model", model.id)
        found = await effective(engine)
        due = decide(Load(found.tokens + 1), model.limits, Policy(Threshold(found.share or 0, "")))
        kept = decide(Load(found.tokens), model.limits, Policy(Threshold(found.share or 0, "")))
        assert (kept.action, due.action) == ("should", "must"), model.id
        assert found.is_window_guard is (due.reason == "window")


async def test_turned_off(engine: Engine) -> None:
    await engine.set("auto_compress", value=False)
    assert not (await effective(engine)).is_automatic


@pytest.mark.parametrize("low", [{"threshold": 0.3}, {"max_tokens": 1_100}], ids=str)
async def test_a_low_threshold_is_met_and_not_only_the_limit(
    bench: Bench, low: dict[str, Any]
) -> None:
    await bench.engine.models.edit(MODEL, retention_tokens=1_500)
    session = await bench.session()
    await session.configure(**low)
    await talk(session, 22)
    prepared = await session.prepare("And now?")
    assert bench.names()[-1] == "compression.finished"
    assert prepared.decision.tokens <= 0.75 * prepared.decision.threshold_tokens
