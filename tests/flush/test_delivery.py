"""Summarized messages reach long-term memory, in the background and at least once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import enfold
from enfold.engine import Engine
from enfold.flush import Delivery
from enfold.store import open_store, outbox
from enfold.testing import ScriptedSummarizer
from tests.engine.conftest import MODEL, WINDOW, talk


class Sink:
    """Remembers what it was given; fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.delivered: list[Delivery] = []
        self.failures = failures
        self.arrived = asyncio.Event()

    async def __call__(self, deliveries: Sequence[Delivery]) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("the memory is away")
        self.delivered.extend(deliveries)
        self.arrived.set()


async def fill(engine: Engine) -> tuple[enfold.Message, ...]:
    """A compressed session; the messages that its summary covers."""
    await engine.models.edit(MODEL, max_input=WINDOW, max_output=20_000, retention_tokens=300)
    await engine.set("summarizer", "scripted")
    session = await engine.session("chat", model=MODEL)
    await talk(session, 40)
    done = await session.compress()
    return (await session.messages())[: done.messages]


async def test_summarized_messages_are_delivered_once_in_order(url: str) -> None:
    sink = Sink()
    summarizers = {"scripted": ScriptedSummarizer()}
    async with enfold.open(url, sink=sink, summarizers=summarizers) as engine:
        summarized = await fill(engine)
        await asyncio.wait_for(sink.arrived.wait(), 30)
    assert (
        len(sink.delivered) == len(summarized) == len({delivery.id for delivery in sink.delivered})
    )
    depths = [delivery.message.depth for delivery in sink.delivered]
    assert depths == sorted(depths)


async def test_closing_delivers_what_is_due(url: str) -> None:
    sink = Sink()
    summarizers = {"scripted": ScriptedSummarizer()}
    async with enfold.open(url, sink=sink, summarizers=summarizers) as engine:
        summarized = await fill(engine)
    assert len(sink.delivered) == len(summarized)


async def test_a_failed_compression_delivers_nothing(url: str) -> None:
    sink = Sink()
    broken = ScriptedSummarizer("")
    async with enfold.open(url, sink=sink, summarizers={"scripted": broken}) as engine:
        try:
            await fill(engine)
        except enfold.CompressionError:
            pass
        else:
            raise AssertionError("an empty summary must fail")
    assert sink.delivered == []


async def test_refused_deliveries_stay_for_the_next_process(url: str) -> None:
    away = Sink(failures=1_000)
    summarizers = {"scripted": ScriptedSummarizer()}
    async with enfold.open(url, sink=away, summarizers=summarizers) as engine:
        summarized = await fill(engine)
    assert away.delivered == []
    async with await open_store(url) as store:
        assert await store.read(outbox.waiting) == len(summarized)
    back = Sink()
    async with enfold.open(url, sink=back) as engine:
        await asyncio.wait_for(back.arrived.wait(), 30)
    assert len({delivery.id for delivery in back.delivered}) == len(summarized)
    async with await open_store(url) as store:
        assert await store.read(outbox.waiting) == 0
