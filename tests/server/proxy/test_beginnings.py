"""Settings of new conversations."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from enfold.engine import Engine
from enfold.engine.recognition import (
    ClientHistory,
    ProxiedConversations,
    RecognisedHistory,
    Sender,
)
from enfold.errors import InputError
from enfold.wiring import open_engine

MODEL = "openai:gpt-4.1-mini"


class NewConversations:
    """Recognises conversations that begin."""

    def __init__(self, engine: Engine) -> None:
        self._conversations = ProxiedConversations(engine)

    async def recognise(self, model: str) -> RecognisedHistory:
        """Return what applies to a new conversation with the model."""
        return await self._conversations.recognise("", None, ClientHistory((), ()), Sender(model))


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'beginnings.db'}"


async def test_the_settings_are_read_once_for_many_conversations(database: str) -> None:
    async with open_engine(database) as engine:
        await engine.models.get(MODEL)
        conversations = NewConversations(engine)
        found = [await conversations.recognise(MODEL) for _ in range(100)]
        # It is read again after every write, and an engine that was just opened still writes.
        assert len({id(recognised) for recognised in found}) < 10
        assert found[0].session is None
        assert found[0].model is not None


async def test_changes_of_this_process_hold_at_once(database: str) -> None:
    async with open_engine(database) as engine:
        conversations = NewConversations(engine)
        for window in (20_000, 30_000):
            await engine.models.edit(MODEL, max_input=window)
            recognised = await conversations.recognise(MODEL)
            assert recognised.model is not None
            assert recognised.model.max_input == window


async def test_changes_of_another_process_hold_soon(database: str) -> None:
    async with open_engine(database) as engine, open_engine(database) as other:
        await engine.models.edit(MODEL, max_input=20_000)
        conversations = NewConversations(engine)
        await conversations.recognise(MODEL)
        await other.models.edit(MODEL, max_input=30_000)
        await asyncio.sleep(1.0)
        recognised = await conversations.recognise(MODEL)
        assert recognised.model is not None
        assert recognised.model.max_input == 30_000


async def test_each_model_has_its_settings(database: str) -> None:
    async with open_engine(database) as engine:
        await engine.models.edit(MODEL, max_input=20_000)
        await engine.models.edit("openai:gpt-4o", max_input=50_000)
        conversations = NewConversations(engine)
        found = [(await conversations.recognise(id)).model for id in (MODEL, "openai:gpt-4o")]
        assert [model and model.max_input for model in found] == [20_000, 50_000]


async def test_simultaneous_new_conversations_share_one_read(database: str) -> None:
    async with open_engine(database) as engine:
        conversations = NewConversations(engine)
        first, *others = [asyncio.create_task(conversations.recognise(MODEL)) for _ in range(20)]
        await asyncio.sleep(0)
        first.cancel()
        found = await asyncio.gather(*others)
        assert len({id(recognised) for recognised in found}) == 1
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_a_reading_that_failed_is_not_kept(database: str) -> None:
    async with open_engine(database) as engine:
        conversations = NewConversations(engine)
        for _ in range(2):
            with pytest.raises(InputError):
                await conversations.recognise("no colon \ud800")
        assert (await conversations.recognise(MODEL)).session is None
