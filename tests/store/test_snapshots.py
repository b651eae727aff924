"""Snapshots: which one applies, who may record one, and what undoing leaves behind."""

from __future__ import annotations

import pytest
from tests.store.samples import drafts, numbered

from enfold.errors import ConflictError, InputError, IntegrityError, NotFoundError
from enfold.records import (
    EditDraft,
    KeptRange,
    SessionRecord,
    SnapshotDraft,
    StoredMessage,
    SummaryPlace,
    UsageEvent,
)
from enfold.store import Database, Store, catalog, outbox, sessions, snapshots, tree
from enfold.store.snapshots import SnapshotExtras


@pytest.fixture
async def line(store: Store, session: SessionRecord) -> tuple[StoredMessage, ...]:
    return await store.write(tree.append, session.key, numbered(12))


def summary(cutoff: StoredMessage, parent: StoredMessage, text: str = "so far") -> SnapshotDraft:
    content = {
        "summaryText": text,
        "messageRange": {"firstMessageId": "m", "lastMessageId": cutoff.id},
    }
    return SnapshotDraft(
        content,
        cutoff=cutoff.id,
        parent=parent.id,
        manifest=(SummaryPlace(),),
        token_count=3,
        tokenizer="characters",
        strategy="native",
        author="somebody",
    )


async def test_everything_comes_back(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    draft = summary(line[5], line[-1], "zero \x00, half \ud83d, é")
    stored = await store.write(snapshots.record, session.key, draft, expected=None)
    assert stored.id == draft.id
    assert stored.content == draft.content
    assert stored.text == "zero \x00, half \ud83d, é"
    assert (stored.cutoff, stored.cutoff_depth) == (line[5].id, 6)
    assert (stored.parent, stored.parent_depth) == (line[-1].id, 12)
    assert stored.manifest == (SummaryPlace(),)
    assert (stored.token_count, stored.tokenizer) == (3, "characters")
    assert (stored.strategy, stored.author, stored.previous) == ("native", "somebody", None)
    assert not stored.undone
    assert await store.read(snapshots.get, session.key, draft.id) == stored
    assert await store.read(snapshots.applicable, session.key) == stored


async def test_the_deepest_cutoff_applies_then_the_newest(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    deep = summary(line[7], line[9])
    shallow = summary(line[3], line[11])
    newer = summary(line[7], line[9])
    for draft in (deep, shallow):
        await store.write(snapshots.record, session.key, draft)
    assert await _applies(store, session) == deep.id
    await store.write(snapshots.record, session.key, newer)
    assert await _applies(store, session) == newer.id
    assert await _applies(store, session, line[10]) == newer.id
    assert await _applies(store, session, line[8]) is None
    await store.write(snapshots.undo, session.key, newer.id)
    assert await _applies(store, session) == deep.id
    await store.write(snapshots.undo, session.key, deep.id)
    assert await _applies(store, session) == shallow.id
    assert await _applies(store, session, line[10]) is None
    everything = await store.read(snapshots.of_kind, session.key)
    assert [each.id for each in everything] == [newer.id, shallow.id, deep.id]
    assert [each.undone for each in everything] == [True, False, True]


async def test_a_branch_keeps_to_its_own(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    ours = summary(line[3], line[9])
    await store.write(snapshots.record, session.key, ours)
    branch = await store.write(tree.append, session.key, drafts("x", "y"), line[7].id)
    assert await _applies(store, session, branch[-1]) is None
    assert await _applies(store, session, branch[-1], share_across_branches=True) == ours.id
    theirs = summary(line[5], branch[0])
    await store.write(snapshots.record, session.key, theirs)
    assert await _applies(store, session, branch[-1]) == theirs.id
    assert await _applies(store, session, line[-1]) == ours.id
    assert await _applies(store, session, line[-1], share_across_branches=True) == theirs.id
    early = await store.write(tree.append, session.key, drafts("z"), line[2].id)
    assert await _applies(store, session, early[0], share_across_branches=True) is None


async def test_many_of_other_branches_are_passed_over(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    ours = summary(line[1], line[2])
    await store.write(snapshots.record, session.key, ours)
    branch = await store.write(tree.append, session.key, numbered(9, "other"), line[2].id)
    for message in branch * 9:
        await store.write(snapshots.record, session.key, summary(message, branch[-1]))
    assert await _applies(store, session, line[-1]) == ours.id


@pytest.mark.parametrize("lost", ["is gone", "is elsewhere"])
async def test_a_lost_cutoff_falls_back(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...], lost: str
) -> None:
    first = summary(line[3], line[9])
    second = summary(line[7], line[9])
    elsewhere = await store.write(tree.append, session.key, drafts("x"), line[6].id)
    for draft in (first, second):
        await store.write(snapshots.record, session.key, draft)

    def lose(db: Database, draft: SnapshotDraft) -> None:
        key = 0 if lost == "is gone" else elsewhere[0].key
        db.run_statements(
            [f"UPDATE session_snapshots SET message_cutoff = {key} WHERE id = '{draft.id}'"]
        )

    assert await _applies(store, session, line[-1]) == second.id
    await store.write(lose, second)
    assert await _applies(store, session, line[-1]) == first.id
    await store.write(lose, first)
    assert await _applies(store, session, line[-1]) is None


async def test_a_snapshot_can_be_excluded(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    first, second = summary(line[3], line[9]), summary(line[7], line[9])
    for draft in (first, second):
        await store.write(snapshots.record, session.key, draft)
    left = await store.read(snapshots.applicable, session.key, without=[second.id])
    assert left is not None
    assert left.id == first.id


async def test_the_second_of_two_is_refused(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    extras = SnapshotExtras(
        edits=[EditDraft(line[0].id, b"{}", 1, "characters")],
        flush=[line[0].id],
        usage=[UsageEvent("summary")],
    )
    first = summary(line[3], line[9])
    await store.write(snapshots.record, session.key, first, expected=None)
    late = summary(line[3], line[9])
    with pytest.raises(ConflictError):
        await store.write(snapshots.record, session.key, late, extras, expected=None)
    with pytest.raises(NotFoundError):
        await store.read(snapshots.get, session.key, late.id)
    assert await store.read(outbox.waiting) == 0
    assert not await store.read(catalog.usage_of_session, session.key)
    assert not await store.read(snapshots.all_edits, session.key)
    await store.write(snapshots.record, session.key, late, extras, expected=first.id)
    assert await _applies(store, session) == late.id
    await store.write(snapshots.undo, session.key, late.id)
    with pytest.raises(ConflictError):
        await store.write(
            snapshots.record, session.key, summary(line[5], line[9]), expected=late.id
        )


async def test_another_one_is_looked_for_on_the_branch_of_the_work(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    first, late = (summary(line[3], line[9]) for _ in range(2))
    await store.write(snapshots.record, session.key, first, expected=None)
    (tip,) = await store.write(tree.append, session.key, drafts("other"), parent=line[1].id)
    with pytest.raises(ConflictError):  # the session is on another branch by now
        await store.write(snapshots.record, session.key, late, expected=None)
    await store.write(snapshots.record, session.key, late, expected=None, tip=tip.id)


async def test_extras_of_a_snapshot_are_written_with_it(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    edit = EditDraft(
        line[2].id, b'{"cut": "\\u0000"}', 4, "characters", estimate=2, ledger={"was": ["x", 1]}
    )
    draft = summary(line[5], line[-1])
    event = UsageEvent("summary", "work", "openai:gpt-5", 100, 20, 30, 0.25)
    extras = SnapshotExtras(edits=[edit], flush=[line[0].id, line[1].id], usage=[event])
    await store.write(snapshots.record, session.key, draft, extras)
    stored = (await store.read(snapshots.edits_by_id, session.key, [edit.id]))[edit.id]
    assert (stored.message, stored.depth, stored.role) == (line[2].id, 3, line[2].role)
    assert (stored.snapshot, stored.dialect) == (draft.id, line[2].dialect)
    assert (stored.body, stored.ledger) == (edit.body, {"was": ["x", 1]})
    assert (stored.tokens, stored.tokenizer, stored.estimate) == (4, "characters", 2)
    assert await store.read(outbox.waiting, session.key) == 2
    (total,) = await store.read(catalog.usage_of_session, session.key)
    assert (total.model, total.cost) == ("openai:gpt-5", 0.25)


async def test_a_damaged_edit_is_noticed(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    edit = EditDraft(line[2].id, b"{}", 1, "characters")
    draft = summary(line[5], line[-1])
    await store.write(snapshots.record, session.key, draft, SnapshotExtras(edits=[edit]))
    await store.write(
        Database.run_statements, ["UPDATE message_edits SET digest = 'another digest'"]
    )
    with pytest.raises(IntegrityError, match=line[2].id):
        await store.read(snapshots.edits_by_id, session.key, [edit.id])


@pytest.mark.parametrize(
    ("cutoff", "parent", "error"),
    [
        (None, 3, InputError),
        (3, None, InputError),
        (9, 3, InputError),
    ],
)
async def test_a_summary_must_fit_the_tree(
    store: Store,
    session: SessionRecord,
    line: tuple[StoredMessage, ...],
    cutoff: int | None,
    parent: int | None,
    error: type[Exception],
) -> None:
    draft = SnapshotDraft(
        {"summaryText": "x"},
        cutoff=None if cutoff is None else line[cutoff].id,
        parent=None if parent is None else line[parent].id,
    )
    with pytest.raises(error):
        await store.write(snapshots.record, session.key, draft)


async def test_unknown_messages_are_refused(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    strange = SnapshotDraft({"summaryText": "x"}, cutoff="nowhere", parent=line[0].id)
    with pytest.raises(NotFoundError, match="nowhere"):
        await store.write(snapshots.record, session.key, strange)
    edit = EditDraft("nowhere", b"{}", 1, "characters")
    with pytest.raises(NotFoundError, match="nowhere"):
        await store.write(
            snapshots.record, session.key, summary(line[0], line[1]), SnapshotExtras(edits=[edit])
        )
    assert not await store.read(snapshots.of_kind, session.key)


async def test_titles_and_memories_stand_apart(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    title = SnapshotDraft({"title": "Tea"}, kind="title")
    memory = SnapshotDraft({"facts": ["likes tea"]}, kind="memory", parent=line[3].id)
    for draft in (title, memory):
        await store.write(snapshots.record, session.key, draft)
    assert await _applies(store, session) is None
    assert [each.id for each in await store.read(snapshots.of_kind, session.key, "title")] == [
        title.id
    ]
    (kept,) = await store.read(snapshots.of_kind, session.key, "memory")
    assert (kept.content, kept.parent_depth, kept.text) == ({"facts": ["likes tea"]}, 4, None)
    assert await store.read(snapshots.of_kind, session.key) == ()


async def test_undoing_is_a_record(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    draft = summary(line[3], line[9])
    await store.write(snapshots.record, session.key, draft)
    assert await store.read(snapshots.last_undo, session.key) is None
    undone = await store.write(snapshots.undo, session.key, draft.id)
    assert undone.undone
    assert undone.text == "so far"
    assert (await store.write(snapshots.undo, session.key, draft.id)).undone
    more = await store.write(tree.append, session.key, drafts("more"))
    record = await store.read(snapshots.last_undo, session.key)
    assert record is not None
    assert (record.snapshot, record.message, record.depth) == (draft.id, line[-1].id, 12)
    assert await store.read(snapshots.last_undo, session.key, line[5].id) is None
    branch = await store.write(tree.append, session.key, drafts("x"), more[-1].id)
    assert await store.read(snapshots.last_undo, session.key, branch[0].id) == record
    with pytest.raises(NotFoundError):
        await store.write(snapshots.undo, session.key, "nowhere")


async def test_erasing_takes_the_text_of_one(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    doomed, kept = summary(line[5], line[9], "a secret"), summary(line[3], line[9], "tea")
    for draft in (doomed, kept):
        await store.write(snapshots.record, session.key, draft)
    erased = await store.write(snapshots.erase, session.key, doomed.id)
    assert (erased.text, erased.undone) == (None, True)
    assert erased.content["messageRange"]["lastMessageId"] == line[5].id
    assert "secret" not in str(erased.content)
    assert await _applies(store, session) == kept.id
    assert (await store.read(snapshots.get, session.key, kept.id)).text == "tea"


async def test_a_bare_text_is_read_as_a_summary(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    draft = summary(line[3], line[9])
    await store.write(snapshots.record, session.key, draft)
    await store.write(
        Database.run_statements, ["UPDATE session_snapshots SET content_json = '\"so far\"'"]
    )
    stored = await store.read(snapshots.get, session.key, draft.id)
    assert stored.content == {"summaryText": "so far"}
    assert stored.text == "so far"


async def test_a_snapshot_is_of_its_session(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    other = await store.write(sessions.get_or_create, "ours", "another")
    await store.write(tree.append, other.key, numbered(12))
    draft = SnapshotDraft(
        {"summaryText": "x"}, cutoff=line[1].id, parent=line[2].id, manifest=(KeptRange("a", "b"),)
    )
    await store.write(snapshots.record, session.key, draft)
    assert await _applies(store, other) is None
    with pytest.raises(NotFoundError):
        await store.read(snapshots.get, other.key, draft.id)


async def _applies(
    store: Store,
    session: SessionRecord,
    tip: StoredMessage | None = None,
    *,
    share_across_branches: bool = False,
) -> str | None:
    found = await store.read(
        snapshots.applicable,
        session.key,
        tip.id if tip else None,
        share_across_branches=share_across_branches,
    )
    return found.id if found else None
