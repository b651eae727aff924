"""A compression before it is due, in the background: once, in any process, at no risk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import enfold
from enfold.engine import Engine, Session
from enfold.engine.engine import compress_queued
from enfold.records import OutboxEntry
from enfold.store import outbox
from enfold.testing import ScriptedSummarizer
from tests.engine.conftest import MODEL, WINDOW, talk


@pytest.fixture
async def engine(url: str, summarizer: ScriptedSummarizer) -> AsyncIterator[Engine]:
    async with enfold.open(url, summarizers={"scripted": summarizer}) as opened:
        await opened.models.edit(MODEL, max_input=WINDOW, max_output=20_000, retention_tokens=300)
        await opened.set("summarizer", "scripted")
        await opened.set("max_tokens", 5_000)
        await opened.set("early_mark", 0.3)
        yield opened


async def spoken(engine: Engine) -> Session:
    """A session with something to summarize, at the end of its branch."""
    session = await engine.session("chat", model=MODEL)
    await talk(session, 20)
    (last,) = await session.history(limit=1)
    return session.at(last.id)


async def emptied(engine: Engine) -> None:
    async with asyncio.timeout(30):
        while (await engine.queue.state()).waiting:  # noqa: ASYNC110 - a table
            await asyncio.sleep(0.02)


def entry(session: Session, requested_at: int, attempts: int = 1) -> OutboxEntry:
    assert session.tip is not None
    return OutboxEntry("e", session.key, session.tip, outbox.COMPRESSION, attempts, requested_at)


async def test_repeated_requests_compress_once(engine: Engine) -> None:
    session = await spoken(engine)
    for _ in range(3):
        assert (await session.prepare(wait=False)).decision.action != "keep"
    await emptied(engine)
    (summary,) = await session.summaries()
    assert summary.parent == session.tip


async def test_a_summary_made_since_will_do_as_well(engine: Engine) -> None:
    session = await spoken(engine)
    done = await session.compress()
    assert done.compressed
    (made,) = await session.summaries()
    session = await engine.find("chat")
    await talk(session, 20, start=20)
    (last,) = await session.history(limit=1)
    await compress_queued(engine, [entry(session.at(last.id), made.created_at)])
    assert len(await session.summaries()) == 1
    await compress_queued(engine, [entry(session.at(last.id), made.created_at + 1)])
    assert len(await session.summaries()) == 2


async def test_a_failure_is_tried_again_and_then_given_up(
    engine: Engine, summarizer: ScriptedSummarizer
) -> None:
    session = await spoken(engine)
    summarizer.script("")
    with pytest.raises(enfold.CompressionError):
        await compress_queued(engine, [entry(session, 0)])
    await compress_queued(engine, [entry(session, 0, attempts=3)])
    assert await session.summaries() == ()
    assert (await session.status()).blocked is None
