"""The local runner looks now and then, does several batches at once, and survives its store."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from enfold.queue import LocalRunner
from enfold.queue.shared import OutboxWork, WorkHandler
from enfold.store import open_store, outbox
from tests.queue.conftest import KIND, Doer, emptied, session


async def test_the_runner_finds_work_without_a_notice(tmp_path: Path) -> None:
    async with await open_store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        doer, runner = Doer(), LocalRunner(idle=0.01)
        runner.start(OutboxWork(store, {KIND: WorkHandler(doer)}))
        await store.write(outbox.enqueue, await session(store), ["one"], KIND)
        await emptied(store)
        await runner.stop()
        assert doer.messages == ["one"]


async def test_a_slow_session_does_not_delay_another(tmp_path: Path) -> None:
    async with await open_store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        at_once = asyncio.Barrier(2)

        async def meet(_: object) -> None:
            await asyncio.wait_for(at_once.wait(), 30)

        for name in ("one", "two"):
            await store.write(outbox.enqueue, await session(store, name), ["m"], KIND)
        runner = LocalRunner()
        runner.start(OutboxWork(store, {KIND: WorkHandler(meet, batch=1, at_once=2)}))
        await emptied(store)
        await runner.stop()


async def test_a_store_that_is_away_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with await open_store(f"sqlite:///{path}") as store:
        await store.write(outbox.enqueue, await session(store), ["one"], KIND)
        with sqlite3.connect(path) as file:
            file.execute("ALTER TABLE flush_outbox RENAME TO gone")
        doer, runner = Doer(), LocalRunner(idle=0.01)
        runner.start(OutboxWork(store, {KIND: WorkHandler(doer)}))
        await asyncio.sleep(0.05)
        with sqlite3.connect(path) as file:
            file.execute("ALTER TABLE gone RENAME TO flush_outbox")
        await emptied(store)
        await runner.stop()
        assert doer.messages == ["one"]
