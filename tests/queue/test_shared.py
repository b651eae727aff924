"""Jobs of many processes: ids alone, one at a time for a session, and none is held by the dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from enfold.queue.shared import OutboxWork, SharedRunner, WorkHandler
from enfold.store import Store, open_store, outbox
from tests.databases import Server
from tests.queue.conftest import KIND, Doer, emptied, session


@pytest.fixture
def address(server: Server) -> str:
    return server.emptied_database()


@pytest.fixture
async def store(address: str) -> AsyncIterator[Store]:
    async with await open_store(address) as opened:
        yield opened


async def put(store: Store, runner: SharedRunner, name: str, *messages: str) -> None:
    await store.write(outbox.enqueue, await session(store, name), messages, KIND)
    runner.wake()


def jobs(server: Server, address: str) -> list[dict[str, object]]:
    import psycopg
    from psycopg.rows import dict_row

    with psycopg.connect(address, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM procrastinate_jobs").fetchall()


async def test_a_job_holds_ids_alone_and_is_gone_when_it_is_done(
    server: Server, store: Store, address: str
) -> None:
    doer, runner = Doer(), SharedRunner(store, address)
    doer.may_go_on.clear()
    runner.start(OutboxWork(store, {KIND: WorkHandler(doer)}))
    await put(store, runner, "a private name", "message")
    await asyncio.wait_for(doer.began.wait(), 30)
    (job,) = jobs(server, address)
    chat = await session(store, "a private name")
    assert (job["args"], job["status"]) == ({"kind": KIND, "session": chat}, "doing")
    assert job["lock"] == job["queueing_lock"] == f"{KIND}:{chat}"
    doer.may_go_on.set()
    await emptied(store)
    await runner.stop()
    assert jobs(server, address) == []


async def test_stopping_lets_a_job_finish(store: Store, address: str) -> None:
    doer, runner = Doer(), SharedRunner(store, address)
    doer.may_go_on.clear()
    runner.start(OutboxWork(store, {KIND: WorkHandler(doer)}))
    await put(store, runner, "chat", "one")
    await asyncio.wait_for(doer.began.wait(), 30)
    stopping = asyncio.create_task(runner.stop())
    await asyncio.sleep(0.05)
    assert not stopping.done()
    doer.may_go_on.set()
    await asyncio.wait_for(stopping, 30)
    assert doer.messages == ["one"]


async def test_the_job_of_a_dead_worker_blocks_no_other(
    server: Server, store: Store, address: str
) -> None:
    runner = SharedRunner(store, address, sweep=0.2, stalled=0.6)
    runner.start(OutboxWork(store, {KIND: WorkHandler(Doer())}))
    await put(store, runner, "first", "so that the tables are there")
    await emptied(store)
    await runner.stop()
    lock = f"{KIND}:{await session(store, 'chat')}"
    server.execute(
        address,
        "WITH dead AS (INSERT INTO procrastinate_workers (last_heartbeat)"
        " VALUES (now() - interval '1 hour') RETURNING id)"
        " INSERT INTO procrastinate_jobs (queue_name, task_name, lock, status, worker_id)"
        f" SELECT 'enfold', 'enfold', '{lock}', 'doing', id FROM dead",
    )
    doer, again = Doer(), SharedRunner(store, address, sweep=0.2, stalled=30)
    again.start(OutboxWork(store, {KIND: WorkHandler(doer)}))
    await put(store, again, "chat", "one")
    await emptied(store)
    await again.stop()
    assert doer.messages == ["one"]
    # A check just before the end may have added one more job, which waits for the next process.
    assert [job for job in jobs(server, address) if job["status"] == "doing"] == []


async def test_a_database_that_restarts_is_waited_for(
    server: Server, store: Store, address: str
) -> None:
    doer, runner = Doer(), SharedRunner(store, address)
    runner.start(OutboxWork(store, {KIND: WorkHandler(doer)}))
    await put(store, runner, "chat", "before")
    await emptied(store)
    server.stop()
    try:
        async with asyncio.timeout(30):
            while runner.status == "ok":
                runner.wake()
                await asyncio.sleep(0.02)
        assert runner.status == "store_unavailable"
    finally:
        server.start()
    await put(store, runner, "chat", "after")
    await emptied(store)
    assert runner.status == "ok"
    await runner.stop()
    assert doer.messages == ["before", "after"]


async def test_work_of_a_kind_that_only_newer_processes_know_is_left_to_them(
    server: Server, store: Store, address: str
) -> None:
    old, new = SharedRunner(store, address), SharedRunner(store, address)
    doer = Doer()
    old.start(OutboxWork(store, {"other": WorkHandler(Doer())}))
    await put(store, old, "chat", "one")
    new.start(OutboxWork(store, {KIND: WorkHandler(doer)}))
    async with asyncio.timeout(60):
        while not doer.done:
            new.wake()
            await asyncio.sleep(0.05)
    await old.stop()
    await new.stop()
    assert doer.messages == ["one"]
