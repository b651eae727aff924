"""The sample: there at once in a new store, and never in anybody's way."""

from __future__ import annotations

from enfold.engine import Engine
from enfold.messages import ToolCall
from enfold.sample import SESSION as SAMPLE
from enfold.sample import SESSIONS
from enfold.server.app import give_sample


async def test_a_new_store_begins_with_a_long_conversation(engine: Engine) -> None:
    assert await give_sample(engine)
    status = await (await engine.find(SAMPLE)).status()
    assert status.messages > 300
    assert status.compressible_message_count > 100
    assert 0.8 < status.utilization < 1
    assert status.decision.action != "must"


async def test_both_look_like_life(engine: Engine) -> None:
    """Different messages over days, with tools, a branch, two languages and a correction."""
    assert await give_sample(engine)
    for name in SESSIONS:
        session = await engine.find(name)
        messages = await session.messages()
        assert len({str(message) for message in messages}) == len(messages)
        days = {message.at.date() for message in messages if message.at is not None}
        assert len(days) > 1
        assert any(isinstance(part, ToolCall) for each in messages for part in each.parts)
        assert len(await session.branches()) == 2
        assert (await session.compress()).compressed
    festival = await engine.find(SESSIONS[0])
    assert "E-4031" in str(await festival.recall("What was the error of the power board?"))
    assert "19 June" in str(await festival.recall("To which date did the festival move?"))
    assert await festival.search("Schlafplätze")


async def test_the_sample_is_given_once(engine: Engine) -> None:
    assert await give_sample(engine)
    assert not await give_sample(engine)
    assert [each.id for each in await engine.sessions()] == list(SESSIONS)


async def test_a_deleted_sample_does_not_return(engine: Engine) -> None:
    await give_sample(engine)
    for session in SESSIONS:
        await (await engine.find(session)).delete()
    assert not await give_sample(engine)
    assert not await engine.sessions()


async def test_existing_conversations_prevent_the_sample(engine: Engine) -> None:
    await engine.session("mine")
    assert not await give_sample(engine)
    assert [each.id for each in await engine.sessions()] == ["mine"]
