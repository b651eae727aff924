"""Events of one process reach the others that share its database, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

import enfold
from enfold.engine import Engine
from enfold.engine.relay import CHANNEL
from enfold.errors import SummaryError
from enfold.events import CompressionFailed, Event, Events
from enfold.store import open_store
from enfold.testing import ScriptedSummarizer
from tests.databases import Server
from tests.engine.conftest import MODEL, WINDOW, talk


@pytest.fixture
def address(server: Server) -> str:
    return server.emptied_database()


@pytest.fixture
async def here(address: str, summarizer: ScriptedSummarizer) -> AsyncIterator[Engine]:
    async with enfold.open(address, summarizers={"scripted": summarizer}) as opened:
        await opened.models.edit(MODEL, max_input=WINDOW, max_output=20_000, retention_tokens=300)
        await opened.set("summarizer", "scripted")
        yield opened


class EventListener:
    """Keeps what it hears."""

    def __init__(self, events: Events, namespace: str | None = None) -> None:
        self.received: asyncio.Queue[Event] = asyncio.Queue()
        events.subscribe(self.received.put_nowait, namespace=namespace, elsewhere=True)

    async def until(self, name: str) -> list[Event]:
        """All up to the first of that name."""
        events: list[Event] = []
        async with asyncio.timeout(30):
            while not events or events[-1].name != name:
                events.append(await self.received.get())
        return events


async def connected(engine: Engine, other: Engine) -> None:
    """Wait until what happens in the one is heard in the other."""
    listener = EventListener(other.events, "for the test")
    async with asyncio.timeout(30):
        while listener.received.empty():
            engine.events.within("for the test").emit(_failed("hello"))
            await asyncio.sleep(0.05)


def _failed(reason: str) -> CompressionFailed:
    return CompressionFailed("chat", "code", reason, retryable=True, automatic=True)


async def test_another_process_receives_the_events_of_a_compression(
    here: Engine, address: str
) -> None:
    async with enfold.open(address) as there:
        await connected(here, there)
        local_events: list[Event] = []
        there.events.subscribe(local_events.append)
        ours, other = EventListener(there.events, ""), EventListener(there.events, "else")
        mine = EventListener(here.events, "")
        session = await here.session("chat", model=MODEL)
        await talk(session, 20)
        done = await session.compress()
        assert done.compressed
        received = await ours.until("compression.finished")
        assert received == await mine.until("compression.finished")
        assert mine.received.empty()  # its own notices come back to it, and are not told twice
        assert (local_events, other.received.empty()) == ([], True)


async def test_a_failure_with_a_long_reason_arrives_cut(
    here: Engine, address: str, summarizer: ScriptedSummarizer
) -> None:
    async with enfold.open(address) as there:
        await connected(here, there)
        listener = EventListener(there.events, "")
        summarizer.script(SummaryError("because " * 5_000))
        session = await here.session("chat", model=MODEL)
        await talk(session, 20)
        with pytest.raises(enfold.CompressionError):
            await session.compress()
        *_, failed = await listener.until("compression.failed")
        assert isinstance(failed, CompressionFailed)
        assert 100 < len(failed.reason) <= 1_000


async def test_after_a_restart_of_the_database_they_hear_each_other_again(
    here: Engine, address: str, server: Server
) -> None:
    async with enfold.open(address) as there:
        await connected(here, there)
        server.stop()
        server.start()
        await connected(here, there)


async def test_emitted_events_are_sent_before_closing(address: str) -> None:
    async with (
        await open_store(address) as store,
        aclosing(store.listen(CHANNEL)) as notices,
    ):
        assert await anext(notices) == ""
        async with enfold.open(address) as engine:
            engine.events.emit(_failed("last words"))
        assert "last words" in await asyncio.wait_for(anext(notices), 30)
