"""Transactions in threads: whole or not at all, even if callers stop waiting."""

from __future__ import annotations

import asyncio
import threading

import pytest

from enfold.errors import StoreError
from enfold.records import SessionRecord
from enfold.store import Database, Store, catalog, open_store


class Gate:
    """A place in a transaction where a test can hold it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def wait(self) -> None:
        self.reached.set()
        assert self.open.wait(30)

    async def until_reached(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, 30)


def put_through(db: Database, gate: Gate, *keys: str) -> None:
    """Write settings, held up after each."""
    for key in keys:
        catalog.put_setting(db, "global", key, value=1)
        gate.wait()


async def test_a_cancelled_write_that_has_begun_is_written_whole(store: Store, url: str) -> None:
    gate = Gate()
    task = asyncio.create_task(store.write(put_through, gate, "a", "b"))
    await gate.until_reached()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.open.set()
    await store.write(catalog.put_setting, "global", "c", 1)
    await store.close()
    async with await open_store(url) as again:
        assert set(await again.read(catalog.settings, "global")) == {"a", "b", "c"}


async def test_a_cancelled_write_that_has_not_begun_is_not_written(store: Store) -> None:
    """Every thread that may write is busy when it is cancelled."""
    busy = [Gate() for _ in range(1 if store.engine == "sqlite" else 8)]
    blockers = [
        asyncio.create_task(store.write(put_through, gate, f"key {number}"))
        for number, gate in enumerate(busy)
    ]
    for gate in busy:
        await gate.until_reached()
    waiting = asyncio.create_task(store.write(catalog.put_setting, "global", "never", 1))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    for gate in busy:
        gate.open.set()
    await asyncio.gather(*blockers)
    assert len(await store.read(catalog.settings, "global")) == len(busy)


async def test_closing_waits_for_what_runs(url: str, store: Store) -> None:
    gate = Gate()
    task = asyncio.create_task(store.write(put_through, gate, "a"))
    await gate.until_reached()
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0.05)
    assert not closing.done()
    gate.open.set()
    await closing
    await task
    with pytest.raises(StoreError, match="closed"):
        await store.read(catalog.settings, "global")
    with pytest.raises(StoreError, match="closed"):
        await store.write(catalog.put_setting, "global", "b", 1)
    await store.close()


async def test_a_failed_transaction_leaves_the_connection_fit(store: Store) -> None:
    for _ in range(20):
        with pytest.raises(StoreError):
            await store.write(Database.run_statements, ["CREATE nonsense"])
        with pytest.raises(StoreError):
            await store.read(Database.run_statements, ["SELECT nonsense"])
    await store.write(catalog.put_setting, "global", "a", 1)
    assert await store.read(catalog.settings, "global") == {"a": 1}


async def test_reading_cannot_write(store: Store, session: SessionRecord) -> None:
    with pytest.raises(StoreError):
        await store.read(catalog.put_setting, "global", "a", 1)
    assert await store.read(catalog.settings, "global") == {}


async def test_a_read_is_of_one_moment(store: Store) -> None:
    gate = Gate()

    def read_twice(db: Database) -> tuple[object, object]:
        first = catalog.settings(db, "global")
        gate.wait()
        return first, catalog.settings(db, "global")

    task = asyncio.create_task(store.read(read_twice))
    await gate.until_reached()
    await store.write(catalog.put_setting, "global", "a", 1)
    gate.open.set()
    assert await task == ({}, {})
    assert await store.read(catalog.settings, "global") == {"a": 1}


async def test_reads_do_not_wait_for_a_write(store: Store) -> None:
    gate = Gate()
    task = asyncio.create_task(store.write(put_through, gate, "a"))
    await gate.until_reached()
    assert await store.read(catalog.settings, "global") == {}
    gate.open.set()
    await task
