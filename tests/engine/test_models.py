"""Model configs in the database."""

from __future__ import annotations

from pathlib import Path

import pytest

import enfold
from enfold.errors import ConfigError, NotFoundError
from tests.engine.conftest import Bench


async def test_a_new_database_knows_the_shipped_and_current_models(bench: Bench) -> None:
    known = {config.id: config for config in await bench.engine.models.all()}
    assert known["openai:gpt-4o"].max_input == 111_616
    assert known["google:gemini-2.5-pro"].threshold == 0.98
    assert known["openai:gpt-5"].source == "default"
    assert sum(config.source == "library" for config in known.values()) > 50


async def test_a_model_nobody_knows_gets_the_conservative_default(bench: Bench) -> None:
    config = await bench.engine.models.get("acme:unheard-of")
    assert (config.max_input, config.max_output) == (128_000, 4_096)
    assert config.source == "default"


async def test_an_edit_is_stored_and_marked(bench: Bench, tmp_path: Path) -> None:
    await bench.engine.models.edit("openai:gpt-4o", max_input=50_000)
    async with enfold.open(f"sqlite:///{tmp_path / 'chats.db'}") as again:
        config = await again.models.get("openai:gpt-4o")
    assert (config.max_input, config.max_output, config.source) == (50_000, 16_384, "manual")


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


async def test_what_a_provider_says_is_stored_but_not_over_what_a_person_set(bench: Bench) -> None:
    models = bench.engine.models
    learnt = await models.learn("google:gemini-2.5-pro", 500_000, 50_000)
    assert (learnt.max_input, learnt.max_output) == (450_000, 50_000)
    assert (learnt.threshold, learnt.source) == (0.98, "api")
    assert await models.get("google:gemini-2.5-pro") == learnt
    new = await models.learn("compatible:tiny", 2_048)
    assert (new.max_input + new.max_output, new.source) == (2_048, "api")
    await models.edit("compatible:tiny", max_input=1_000)
    assert (await models.learn("compatible:tiny", 9_000)).max_input == 1_000
