"""Pins: a person keeps a message in the view, or releases one that stands."""

from __future__ import annotations

import pytest

import enfold
from enfold.errors import NotFoundError


async def test_a_pinned_message_is_listed_until_it_is_unpinned() -> None:
    async with enfold.open("sqlite:///:memory:") as engine:
        session = await engine.session("s")
        first, second = await session.append("The port is 4711.", "And now?")
        await session.pin(first)
        (pinned,) = await session.pins()
        assert (pinned.message, pinned.why, pinned.position) == (first, "pinned", 1)
        assert pinned.text == "The port is 4711."
        await session.unpin(first)
        assert await session.pins() == ()
        await session.pin(second)
        assert [each.message for each in await session.pins()] == [second]


async def test_a_system_message_stands_until_it_is_released() -> None:
    async with enfold.open("sqlite:///:memory:") as engine:
        session = await engine.session("s")
        (rule, _) = await session.append(
            {"role": "system", "content": "Answer in French."}, "Bonjour"
        )
        assert [(each.message, each.why) for each in await session.pins()] == [(rule, "system")]
        await session.unpin(rule)
        assert await session.pins() == ()
        await session.pin(rule)
        assert [(each.message, each.why) for each in await session.pins()] == [(rule, "pinned")]


async def test_a_message_of_another_branch_cannot_be_pinned() -> None:
    async with enfold.open("sqlite:///:memory:") as engine:
        session = await engine.session("s")
        first, second = await session.append("One.", "Two.")
        await session.append("Another two.", after=first)
        with pytest.raises(NotFoundError, match=second):
            await session.pin(second)
