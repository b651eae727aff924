"""Leases: one holder at a time, and none for ever."""

from __future__ import annotations

import asyncio

from enfold.records import SessionRecord
from enfold.store import Database, Store, outbox, sessions


async def test_a_lease_has_one_holder_at_a_time(store: Store) -> None:
    lease = await store.write(outbox.acquire, "work", "me", seconds=60)
    assert lease is not None
    assert (lease.name, lease.holder) == ("work", "me")
    assert await store.write(outbox.acquire, "work", "you", seconds=60) is None
    assert await store.write(outbox.acquire, "work", "me", seconds=60) is None
    assert await store.write(outbox.acquire, "other work", "you", seconds=60)
    await store.write(outbox.release, "work", "you")
    assert await store.write(outbox.acquire, "work", "you", seconds=60) is None
    await store.write(outbox.release, "work", "me")
    assert await store.write(outbox.acquire, "work", "you", seconds=60)


async def test_a_lease_runs_out(store: Store) -> None:
    await store.write(outbox.acquire, "work", "dead", seconds=0)
    assert await store.write(outbox.renew, "work", "dead", seconds=60) is None
    assert await store.write(outbox.acquire, "work", "me", seconds=60)
    await store.write(outbox.release, "work", "dead")
    assert await store.write(outbox.acquire, "work", "you", seconds=60) is None


async def test_a_lease_can_be_kept(store: Store) -> None:
    lease = await store.write(outbox.acquire, "work", "me", seconds=60)
    kept = await store.write(outbox.renew, "work", "me", seconds=600)
    assert lease is not None
    assert kept is not None
    assert kept.expires_at > lease.expires_at
    assert await store.write(outbox.renew, "work", "you", seconds=600) is None


async def test_one_of_many_rivals_gets_the_lease(store: Store) -> None:
    got = await asyncio.gather(
        *(store.write(outbox.acquire, "work", f"{n}", seconds=60) for n in range(12))
    )
    assert len([lease for lease in got if lease]) == 1


async def test_a_lease_ends_with_its_session(store: Store, session: SessionRecord) -> None:
    await store.write(outbox.acquire, "work", "me", seconds=60, session=session.key)
    await store.write(sessions.delete, session.key)
    assert await store.write(outbox.acquire, "work", "you", seconds=60)


async def test_a_dead_holder_does_not_outlive_its_time_when_the_clock_is_set_back(
    store: Store, session: SessionRecord
) -> None:
    hour = 3_600_000
    await store.write(outbox.acquire, "work", "dead", seconds=0.05)
    await store.write(outbox.enqueue, session.key, ["a message"])
    await store.write(outbox.claim, "dead", seconds=0.05)
    # The clock is set back by an hour: every time that was stored lies an hour ahead.
    for table, column in (("leases", "expires_at"), ("flush_outbox", "due_at")):
        change = f"UPDATE {table} SET {column} = {column} + {hour}"
        await store.write(Database.run_statements, [change])
    assert await store.write(outbox.acquire, "work", "me", seconds=0.05) is None
    assert await store.read(outbox.due) == [(outbox.MEMORY, session.key)]
    assert await store.write(outbox.claim, "me") == []
    assert await _times(store) < await store.read(Database.now) + outbox.LONGEST_DELAY * 1_000 + 1
    await asyncio.sleep(0.06)
    assert await store.write(outbox.acquire, "work", "me", seconds=60)


async def _times(store: Store) -> int:
    def latest(db: Database) -> int:
        row = db._cursor().execute("SELECT max(due_at) AS latest FROM flush_outbox").fetchone()
        return int(row["latest"])

    return await store.read(latest)
