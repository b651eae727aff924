"""The sample: there at once in a new store, and never in anybody's way."""

from __future__ import annotations

from enfold.engine import Engine
from enfold.server.app import SAMPLE, give_sample


async def test_a_new_store_begins_with_a_long_conversation(engine: Engine) -> None:
    assert await give_sample(engine)
    status = await (await engine.find(SAMPLE)).status()
    assert status.messages > 300
    assert status.compressible_message_count > 100


async def test_it_is_given_once(engine: Engine) -> None:
    assert await give_sample(engine)
    assert not await give_sample(engine)
    assert len(await engine.sessions()) == 1


async def test_whoever_deletes_it_is_rid_of_it(engine: Engine) -> None:
    await give_sample(engine)
    await (await engine.find(SAMPLE)).delete()
    assert not await give_sample(engine)
    assert not await engine.sessions()


async def test_whoever_has_conversations_gets_none(engine: Engine) -> None:
    await engine.session("mine")
    assert not await give_sample(engine)
    assert [each.id for each in await engine.sessions()] == ["mine"]
