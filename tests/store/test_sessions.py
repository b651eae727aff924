"""Sessions: one for a name, listed by last use, deleted with all that is theirs."""

from __future__ import annotations

import asyncio

import pytest
from tests.store.samples import numbered

from enfold.errors import InputError, NotFoundError
from enfold.records import (
    EditDraft,
    Exchange,
    ResponseItem,
    SearchScope,
    SessionKey,
    SessionRecord,
    SessionUpdate,
    SnapshotDraft,
    StoredResponse,
    SummaryPlace,
    UsageEvent,
)
from enfold.store import (
    Database,
    Store,
    catalog,
    outbox,
    responses,
    search,
    sessions,
    snapshots,
    tree,
)
from enfold.store import outbox as leases
from enfold.store import responses as exchanges

TABLES = (
    "sessions",
    "chat_messages",
    "branch_tips",
    "session_snapshots",
    "snapshot_undos",
    "message_edits",
    "usage_events",
    "flush_outbox",
    "leases",
    "message_texts",
    "exchanges",
    "responses",
    "response_items",
    "recalls",
    "summary_parts",
)


async def test_a_name_has_one_session(store: Store) -> None:
    made = await store.write(sessions.get_or_create, "ours", "chat", SessionUpdate(title="Trip"))
    again = await store.write(sessions.get_or_create, "ours", "chat", SessionUpdate(title="Other"))
    elsewhere = await store.write(sessions.get_or_create, "theirs", "chat")
    assert again == made
    assert made.title == "Trip"
    assert elsewhere.key != made.key
    assert await store.read(sessions.find, "ours", "chat") == made
    assert await store.read(sessions.find, "ours", "chat2") is None


async def test_a_new_session_is_empty(session: SessionRecord) -> None:
    assert (session.tip, session.depth, session.tokens) == (None, 0, 0)
    assert session.settings == {}
    assert session.blocked is None
    assert session.created_at == session.updated_at > 1_600_000_000_000


async def test_changes_leave_the_rest(store: Store, session: SessionRecord) -> None:
    all_new = SessionUpdate(
        title="Tea\x00time", profile="work", model="openai:gpt-5", settings={"threshold": 0.5}
    )
    first = await store.write(sessions.update, session.key, all_new)
    assert first.title == "Tea\ufffdtime"
    assert (first.profile, first.model) == ("work", "openai:gpt-5")
    second = await store.write(
        sessions.update, session.key, SessionUpdate(blocked={"why": "no key"})
    )
    assert (second.title, second.settings) == (first.title, {"threshold": 0.5})
    assert second.blocked == {"why": "no key"}
    cleared = await store.write(
        sessions.update, session.key, SessionUpdate(blocked={}, profile="", settings={})
    )
    assert (cleared.blocked, cleared.profile, cleared.settings) == (None, None, {})
    assert cleared.model == "openai:gpt-5"


async def test_pages_go_from_the_last_used_on(store: Store) -> None:
    made = [await store.write(sessions.get_or_create, "ours", f"chat {n}") for n in range(5)]
    await store.write(sessions.get_or_create, "theirs", "chat")
    await asyncio.sleep(0.002)  # times are in milliseconds: the append must have a later one
    await store.write(tree.append, made[1].key, numbered(1))
    listed: list[SessionRecord] = []
    while page := await store.read(
        sessions.page, "ours", limit=2, after=listed[-1] if listed else None
    ):
        assert len(page) <= 2
        listed += page
    assert listed[0].id == "chat 1"
    assert sorted(each.id for each in listed) == [f"chat {n}" for n in range(5)]
    times = [(each.updated_at, each.key) for each in listed]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("id", ["", "a\x00b", "half \ud800", "long" * 100], ids=repr)
async def test_a_name_that_cannot_be_kept_is_refused(store: Store, id: str) -> None:
    with pytest.raises(InputError):
        await store.write(sessions.get_or_create, "ours", id)


async def test_a_session_that_is_not_there(store: Store) -> None:
    gone = SessionKey(99)
    for refused in (
        store.read(sessions.get, gone),
        store.write(sessions.update, gone, SessionUpdate(title="x")),
        store.write(sessions.delete, gone),
        store.write(tree.append, gone, numbered(1)),
    ):
        with pytest.raises(NotFoundError, match="99"):
            await refused


async def test_deleting_takes_all_of_a_session_and_nothing_else(store: Store) -> None:
    kept = await store.write(sessions.get_or_create, "ours", "kept")
    await _fill(store, kept)
    before = await store.read(_row_counts)
    doomed = await store.write(sessions.get_or_create, "ours", "doomed")
    await _fill(store, doomed)
    assert all(count > before[table] for table, count in (await store.read(_row_counts)).items())

    await store.write(sessions.delete, doomed.key)

    assert await store.read(_row_counts) == before
    assert await store.read(sessions.find, "ours", "doomed") is None
    found = await store.read(search.search, "message", SearchScope(namespace="ours"), limit=100)
    assert {hit.session_id for hit in found} == {"kept"}
    assert len(found) == 4
    again = await store.write(sessions.get_or_create, "ours", "doomed")
    assert again.key != doomed.key
    assert not await store.read(search.search, "message", SearchScope(session=again.key))


async def _fill(store: Store, session: SessionRecord) -> None:
    """Something of a session in every table."""
    first, *_, last = await store.write(tree.append, session.key, numbered(4))
    edit = EditDraft(first.id, b"{}", 1, "characters")
    draft = SnapshotDraft(
        {"summaryText": "s"}, cutoff=first.id, parent=last.id, manifest=(SummaryPlace(),)
    )
    extras = snapshots.SnapshotExtras(edits=[edit], flush=[first.id], usage=[UsageEvent("summary")])
    snapshot = await store.write(snapshots.record, session.key, draft, extras)
    await store.write(snapshots.undo, session.key, snapshot.id)
    await store.write(
        leases.acquire, f"compress {session.id}", "me", seconds=60, session=session.key
    )
    exchange = Exchange(snapshot.id, last.id, "hash", "openai", b"{}")
    await store.write(exchanges.put_exchange, session.key, exchange)
    await store.write(catalog.add_recall, session.key, "Where is the key?")
    await store.write(snapshots.keep_part, session.key, "a part", {"text": "One."})
    response = StoredResponse(session.key, "r", last.id, snapshot.id, (ResponseItem("i", b"{}"),))
    await store.write(responses.put, response)
    assert await store.read(outbox.waiting, session.key) == 1
    assert await store.read(catalog.usage_of_session, session.key)


def _row_counts(db: Database) -> dict[str, int]:
    """Return the number of rows of each table; no query does this."""
    tables = (*TABLES, "message_words") if db.engine == "postgresql" else TABLES
    return {
        table: db._cursor().execute(f"SELECT count(*) AS n FROM {table}").fetchone()["n"]
        for table in tables
    }


async def test_namespaces_are_listed_with_the_number_of_their_sessions(store: Store) -> None:
    for namespace, number in (("", 1), ("a", 3), ("b", 1), ("c", 2)):
        for index in range(number):
            await store.write(sessions.get_or_create, namespace, f"chat {index}")
    assert await store.read(sessions.namespaces) == [("a", 3), ("b", 1), ("c", 2)]
    assert await store.read(sessions.namespaces, limit=2) == [("a", 3), ("b", 1)]
    assert await store.read(sessions.namespaces, after="b") == [("c", 2)]
    assert [await store.read(sessions.count, name) for name in ("", "a", "none")] == [1, 3, 0]
