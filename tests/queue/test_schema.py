"""procrastinate's tables are created once, even by rivals, and brought up to date."""

from __future__ import annotations

import asyncio

from enfold.queue.shared import create_tables
from enfold.store import catalog, open_store
from tests.databases import Server

STEP = "03.03.00_01_pre_priority_lock_fetch_job.sql"
"""One that can be taken twice."""


async def test_several_lay_them_at_once(server: Server) -> None:
    url = server.new_database()
    stores = [await open_store(url) for _ in range(3)]
    try:
        await asyncio.gather(*(store.write(create_tables) for store in stores for _ in range(2)))
        steps = (await stores[0].read(catalog.settings, "queue"))["procrastinate"]
        assert STEP in steps
        assert steps == sorted(steps)
        server.execute(url, "SELECT count(*) FROM procrastinate_jobs")
    finally:
        for store in stores:
            await store.close()


async def test_a_step_that_is_missing_is_taken(server: Server) -> None:
    url = server.new_database()
    async with await open_store(url) as store:
        await store.write(create_tables)
        steps = (await store.read(catalog.settings, "queue"))["procrastinate"]
        fewer = [step for step in steps if step != STEP]
        await store.write(catalog.put_setting, "queue", "procrastinate", fewer)
        server.execute(url, "DROP FUNCTION procrastinate_fetch_job_v2(varchar[], bigint)")
        await store.write(create_tables)
        server.execute(url, "DROP FUNCTION procrastinate_fetch_job_v2(varchar[], bigint)")
        assert (await store.read(catalog.settings, "queue"))["procrastinate"] == steps


async def test_tables_of_other_programs_stay_unchanged(server: Server) -> None:
    url = server.new_database()
    async with await open_store(url) as store:
        server.execute(url, "CREATE TABLE procrastinate_jobs (theirs integer)")
        await store.write(create_tables)
        assert await store.read(catalog.settings, "queue") == {}
