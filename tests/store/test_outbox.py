"""The outbox: delivered at least once, by one worker at a time, even if workers die."""

from __future__ import annotations

import asyncio

from tests.store.samples import numbered

from enfold.records import OutboxEntry, SessionRecord
from enfold.store import Store, outbox, sessions, tree


async def fill(store: Store, session: SessionRecord, count: int = 5) -> list[str]:
    stored = await store.write(tree.append, session.key, numbered(count))
    ids = [message.id for message in stored]
    await store.write(outbox.enqueue, session.key, ids)
    return ids


async def test_entries_are_claimed_oldest_first(store: Store, session: SessionRecord) -> None:
    ids = await fill(store, session)
    first = await store.write(outbox.claim, "me", limit=2)
    second = await store.write(outbox.claim, "you", limit=9)
    assert [entry.message for entry in first + second] == ids
    assert {(entry.session, entry.kind, entry.attempts) for entry in first} == {
        (session.key, "memory", 1)
    }
    assert await store.write(outbox.claim, "she") == []
    assert await store.read(outbox.waiting) == 5


async def test_finished_entries_are_not_claimed_again(store: Store, session: SessionRecord) -> None:
    ids = await fill(store, session)
    claimed = await store.write(outbox.claim, "me", seconds=0)
    await store.write(outbox.done, [entry.id for entry in claimed[:3]])
    assert await store.read(outbox.waiting, session.key) == 2
    again = await store.write(outbox.claim, "you")
    assert [entry.message for entry in again] == ids[3:]
    await store.write(outbox.enqueue, session.key, ids)
    assert await store.read(outbox.waiting, session.key) == 2
    await store.write(outbox.done, [])


async def test_a_claim_that_ran_out_is_taken_over(store: Store, session: SessionRecord) -> None:
    await fill(store, session, 1)
    (dead,) = await store.write(outbox.claim, "dead", seconds=0)
    (taken,) = await store.write(outbox.claim, "alive")
    assert (taken.id, taken.message, taken.attempts) == (dead.id, dead.message, 2)
    assert not await store.write(outbox.failed, dead.id, "dead", error="late", retry_in=0)
    await store.write(outbox.done, [dead.id])
    assert await store.read(outbox.waiting) == 0


async def test_a_failure_waits_before_the_next_attempt(
    store: Store, session: SessionRecord
) -> None:
    await fill(store, session, 2)
    one, two = await store.write(outbox.claim, "me")
    assert await store.write(outbox.failed, one.id, "me", error="no\x00 network", retry_in=3_600)
    assert await store.write(outbox.failed, two.id, "me", error="no network", retry_in=0)
    assert [entry.id for entry in await store.write(outbox.claim, "me")] == [two.id]


async def test_a_message_goes_out_once_for_a_kind(store: Store, session: SessionRecord) -> None:
    ids = await fill(store, session, 2)
    await store.write(outbox.enqueue, session.key, ids)
    await store.write(outbox.enqueue, session.key, ids, "facts")
    await store.write(outbox.enqueue, session.key, [])
    memory = await store.write(outbox.claim, "me")
    facts = await store.write(outbox.claim, "me", kind="facts")
    assert [(entry.message, entry.kind) for entry in memory] == [(id, "memory") for id in ids]
    assert [(entry.message, entry.kind) for entry in facts] == [(id, "facts") for id in ids]
    assert len({entry.id for entry in (*memory, *facts)}) == 4


async def test_workers_do_not_get_the_same(store: Store, session: SessionRecord) -> None:
    await fill(store, session, 60)
    claims: list[list[OutboxEntry]] = await asyncio.gather(
        *(store.write(outbox.claim, f"worker {n}", limit=10) for n in range(8))
    )
    got = [entry.id for claim in claims for entry in claim]
    assert len(got) == len(set(got))
    while more := await store.write(outbox.claim, "last"):
        got += [entry.id for entry in more]
    assert len(set(got)) == len(got) == 60


async def test_a_deleted_sessions_entries_are_gone(store: Store, session: SessionRecord) -> None:
    await fill(store, session)
    other = await store.write(sessions.get_or_create, "ours", "other")
    await fill(store, other, 1)
    await store.write(sessions.delete, session.key)
    assert [entry.session for entry in await store.write(outbox.claim, "me")] == [other.key]
