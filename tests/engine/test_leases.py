"""Leases: one compression of a session at a time; the lease of a dead process expires."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from enfold.engine.compression import session_lease
from enfold.errors import SummaryError
from enfold.records import SessionRecord
from enfold.store import Store, open_store, outbox, sessions


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with await open_store(url) as opened:
        yield opened


@pytest.fixture
async def session(store: Store) -> SessionRecord:
    return await store.write(sessions.get_or_create, "", "chat")


async def test_the_second_waits_for_the_first(store: Store, session: SessionRecord) -> None:
    done: list[str] = []

    async def work(name: str) -> None:
        async with session_lease(store, session, 30):
            done.append(f"{name} begins")
            await asyncio.sleep(0.05)
            done.append(f"{name} ends")

    await asyncio.gather(*(work(name) for name in ("one", "two", "three")))
    names = [line.split()[0] for line in done]
    assert names[0::2] == names[1::2]
    assert len(done) == 6


async def test_a_live_holder_renews_its_lease(store: Store, session: SessionRecord) -> None:
    async with session_lease(store, session, 30, seconds=6):
        # A renewal comes after a third of the time, so a slow moment does not end the lease.
        await asyncio.sleep(6.5)
        with pytest.raises(SummaryError, match="session 'chat' is already being compressed"):
            async with session_lease(store, session, 0.1):
                raise AssertionError("two at once")


async def test_the_lease_of_a_dead_process_runs_out(store: Store, session: SessionRecord) -> None:
    name = f"compress:{session.key}"
    assert await store.write(outbox.acquire, name, "dead", seconds=0.5, session=session.key)
    async with asyncio.timeout(30), session_lease(store, session, 30):
        pass


async def test_a_lease_is_released_when_the_work_fails(
    store: Store, session: SessionRecord
) -> None:
    with pytest.raises(LookupError):
        async with session_lease(store, session, 30):
            raise LookupError
    async with session_lease(store, session, 0):
        pass
