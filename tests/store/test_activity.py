"""Activity since a moment: compressions in force, usage and failures day by day."""

from __future__ import annotations

from typing import Any

from tests.store.samples import numbered

from enfold.records import SessionRecord, Snapshot, SnapshotDraft, UsageEvent
from enfold.store import Store, catalog, sessions, snapshots, tree
from enfold.store import catalog as activity

DAY = 86_400_000


async def compress(
    store: Store, session: SessionRecord, before: int, after: int, *, cutoff: int = 0, **more: Any
) -> Snapshot:
    line = await store.read(tree.path, session.key)
    current = more.pop("expected", None)
    draft = SnapshotDraft(
        content={
            "summaryText": 'The \\"originalTokenCount\\":9 of \\u0000 and "newTokenCount":8',
            "originalTokenCount": before,
            "newTokenCount": after,
        },
        cutoff=line[cutoff].id,
        parent=line[-1].id,
        token_count=3,
        tokenizer="characters",
        strategy="native",
        author="local",
        previous=current,
        **more,
    )
    return await store.write(snapshots.record, session.key, draft, expected=current)


async def test_compressions_that_hold(store: Store, session: SessionRecord) -> None:
    await store.write(tree.append, session.key, numbered(6))
    first = await compress(store, session, 100, 40)
    await store.write(catalog.add_usage, [UsageEvent("reply", session=session.key)])
    found = await store.read(activity.compressions, "ours")
    assert [(each.tokens_before, each.tokens_after, each.replies) for each in found] == [
        (100, 40, 1)
    ]
    assert (found[0].strategy, found[0].author) == ("native", "local")
    again = await compress(store, session, 100, 50, expected=first.id)
    assert len(await store.read(activity.compressions, "ours")) == 1  # only worded anew
    later = await compress(store, session, 90, 30, cutoff=2, expected=again.id)
    assert len(await store.read(activity.compressions, "ours")) == 2
    await store.write(snapshots.undo, session.key, later.id)
    assert len(await store.read(activity.compressions, "ours")) == 1
    assert await store.read(activity.compressions, "theirs") == []
    future = found[0].created_at + DAY
    assert await store.read(activity.compressions, "ours", since=future) == []


async def test_a_summary_whose_words_were_deleted_is_passed_over(
    store: Store, session: SessionRecord
) -> None:
    await store.write(tree.append, session.key, numbered(3))
    snapshot = await compress(store, session, 100, 40)
    await store.write(snapshots.erase, session.key, snapshot.id)
    assert await store.read(activity.compressions, "ours") == []


async def test_usage_day_by_day(store: Store, session: SessionRecord) -> None:
    events = [
        UsageEvent("reply", None, "a:b", 100, 40, 5, 0.5, session=session.key, created_at=DAY),
        UsageEvent(
            "reply", None, "a:b", 50, None, 5, None, session=session.key, created_at=DAY + 9
        ),
        UsageEvent("summary", None, "a:b", 10, session=session.key, created_at=2 * DAY),
        UsageEvent("reply", None, "c:d", 7, namespace="ours", created_at=2 * DAY),
    ]
    await store.write(catalog.add_usage, events)
    found = await store.read(activity.usage_by_day, "ours")
    assert [(each.day, each.kind, each.model, each.calls) for each in found] == [
        (1, "reply", "a:b", 2),
        (2, "reply", "c:d", 1),
        (2, "summary", "a:b", 1),
    ]
    first = found[0]
    assert (first.input_tokens, first.cached_tokens, first.output_tokens) == (150, 40, 10)
    assert (first.cost, first.unknown_costs) == (0.5, 1)
    assert len(await store.read(activity.usage_by_day, "ours", since=2 * DAY)) == 2
    assert await store.read(activity.usage_by_day, "theirs") == []


async def test_failures_are_counted_and_go_with_their_session(
    store: Store, session: SessionRecord
) -> None:
    for automatic in (True, False, True):
        await store.write(activity.add_failure, session.key, "summary_failed", automatic=automatic)
    (found,) = await store.read(activity.failures_by_day, "ours")
    assert (found.code, found.failures, found.automatic) == ("summary_failed", 3, 2)
    assert await store.read(activity.failures_by_day, "theirs") == []
    await store.write(sessions.delete, session.key)
    assert await store.read(activity.failures_by_day, "ours") == []
    await store.write(activity.add_failure, session.key, "summary_failed", automatic=True)
    assert await store.read(activity.failures_by_day, "ours") == []
