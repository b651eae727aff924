"""Model configs in the database."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import enfold
from enfold.engine.turns import Answerer, ask
from enfold.errors import ConfigError, ContextOverflowError, NotFoundError
from enfold.llm.calls import Connection
from enfold.testing import ScriptedGateway
from tests.engine.conftest import Bench
from tests.llm.servers.loopback import Loopback, ScriptedAnswer


async def test_a_new_database_knows_the_shipped_and_current_models(bench: Bench) -> None:
    configs = {config.id: config for config in await bench.engine.models.all()}
    assert configs["openai:gpt-4o"].max_input == 111_616
    assert configs["google:gemini-2.5-pro"].threshold == 0.98
    assert configs["openai:gpt-5"].source == "default"
    assert sum(config.source == "library" for config in configs.values()) > 50


async def test_an_unknown_model_gets_the_conservative_default(bench: Bench) -> None:
    config = await bench.engine.models.get("acme:unheard-of")
    assert (config.max_input, config.max_output) == (128_000, 4_096)
    assert config.source == "default"


async def test_an_edit_is_stored_and_marked(bench: Bench, tmp_path: Path) -> None:
    await bench.engine.models.edit("openai:gpt-4o", max_input=50_000)
    async with enfold.open(f"sqlite:///{tmp_path / 'chats.db'}") as again:
        config = await again.models.get("openai:gpt-4o")
    assert (config.max_input, config.max_output, config.source) == (50_000, 16_384, "manual")


async def test_a_first_look_at_a_model_leaves_limits_that_a_person_sets_meanwhile(
    bench: Bench,
) -> None:
    models = bench.engine.models
    for number in range(20):
        name = f"acme:new-{number}"
        await asyncio.gather(models.edit(name, max_input=50_000), models.get(name))
        assert (await models.get(name)).max_input == 50_000


async def test_reset_returns_to_what_is_detected(bench: Bench) -> None:
    await bench.engine.models.edit("openai:gpt-4o", max_input=50_000)
    assert (await bench.engine.models.reset("openai:gpt-4o")).max_input == 111_616


@pytest.mark.parametrize(
    ("values", "words"),
    [({"max_input": 0}, "max_input"), ({"threshold": 2}, "threshold"), ({"colour": 1}, "colour")],
)
async def test_values_that_make_no_sense_are_refused(
    bench: Bench, values: dict[str, float], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        await bench.engine.models.edit("openai:gpt-4o", **values)
    assert (await bench.engine.models.get("openai:gpt-4o")).max_input == 111_616


async def test_a_deleted_config_is_detected_again_when_it_is_asked_for(bench: Bench) -> None:
    await bench.engine.models.edit("openai:gpt-4o", max_input=50_000)
    await bench.engine.models.delete("openai:gpt-4o")
    assert (await bench.engine.models.get("openai:gpt-4o")).max_input == 111_616
    with pytest.raises(NotFoundError, match="acme:x"):
        await bench.engine.models.delete("acme:x")


async def test_limits_of_the_provider_do_not_replace_limits_set_by_a_person(bench: Bench) -> None:
    models = bench.engine.models
    learnt = await models.learn("google:gemini-2.5-pro", 500_000, 50_000)
    assert (learnt.max_input, learnt.max_output) == (450_000, 50_000)
    assert (learnt.threshold, learnt.source) == (0.98, "api")
    assert await models.get("google:gemini-2.5-pro") == learnt
    new = await models.learn("compatible:tiny", 2_048)
    assert (new.max_input + new.max_output, new.source) == (2_048, "api")
    await models.edit("compatible:tiny", max_input=1_000)
    assert (await models.learn("compatible:tiny", 9_000)).max_input == 1_000


async def test_limits_of_a_new_model_are_asked_for_at_its_first_use(bench: Bench) -> None:
    listed = {"data": [{"id": "mine", "context_length": 32_768, "max_completion_tokens": 2_768}]}
    async with Loopback(ScriptedAnswer.of(listed), ScriptedAnswer.of({}, 500)) as server:
        for name, model in (("own", "mine"), ("other", "unlisted")):
            fields = {"provider": "compatible", "model": model, "base_url": server.url}
            await bench.engine.profiles.save(name, fields)
        session = await bench.engine.session("first", profile="own")
        await session.append("Hello")
        assert (await session.status()).context_limit == 30_000 * 0.95
        config = await bench.engine.models.get("compatible:mine")
        assert (config.max_input, config.max_output, config.source) == (30_000, 2_768, "api")
        await session.status()
        assert len(server.requests) == 1
        # A server that does not answer leaves the conservative default.
        session = await bench.engine.session("second", profile="other")
        assert (await session.status()).context_limit == 128_000 * 0.95


async def test_a_window_that_an_overflow_names_in_a_chat_is_stored(bench: Bench) -> None:
    gateway = ScriptedGateway(ContextOverflowError("too long", window=9_000))
    answerer = Answerer(gateway, Connection("openai", "new-model"))
    session = await bench.engine.session("chat", model="openai:new-model")
    with pytest.raises(ContextOverflowError):
        await ask(session, "Hello", answerer, lambda _: None)
    config = await bench.engine.models.get("openai:new-model")
    assert (config.max_input + config.max_output, config.source) == (9_000, "api")
