"""Views: the manifest's entries in place, then what came after the cutoff."""

from __future__ import annotations

import pytest
from tests.store.samples import drafts, numbered

from enfold.errors import IntegrityError
from enfold.records import (
    Edit,
    EditDraft,
    EditReference,
    KeptRange,
    SessionRecord,
    SnapshotDraft,
    StoredMessage,
    SummaryPlace,
)
from enfold.store import Database, Store, snapshots, tree
from enfold.store import sessions as sessions_of
from enfold.store import snapshots as views
from enfold.store.snapshots import SnapshotExtras


@pytest.fixture
async def line(store: Store, session: SessionRecord) -> tuple[StoredMessage, ...]:
    return await store.write(tree.append, session.key, numbered(20))


async def test_without_a_snapshot_all_is_shown(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    view = await store.read(views.view, session.key)
    assert (view.snapshot, view.shown, view.after) == (None, (), line)
    assert (view.tip, view.depth) == (line[-1].id, 20)
    assert view.session.tip == line[-1].id


async def test_an_earlier_view_is_extended_on_its_own_branch_only(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    earlier = await store.read(views.view, session.key)
    for parent, after in ((line[-1], line), (line[9], line[:10])):
        (new,) = await store.write(
            tree.append, session.key, drafts(f"after {parent.id}"), parent=parent.id
        )
        found = await store.read(views.view, session.key, new.id, earlier=earlier)
        assert found.after == (*after, new)


async def test_the_view_of_another_session_is_not_extended(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    earlier = await store.read(views.view, session.key)
    other = await store.write(sessions_of.get_or_create, "ours", "another session")
    same = await store.write(tree.append, other.key, numbered(20))
    assert [row.id for row in same] == [row.id for row in line]
    found = await store.read(views.view, other.key, earlier=earlier)
    assert [row.session for row in found.after] == [other.key] * 20


async def test_an_empty_session_has_an_empty_view(store: Store, session: SessionRecord) -> None:
    view = await store.read(views.view, session.key)
    assert (view.tip, view.depth, view.shown, view.after) == (None, 0, (), ())


async def test_the_manifest_says_what_is_shown(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    edits = [EditDraft(line[at].id, b"{}", 1, "characters") for at in (9, 11)]
    draft = SnapshotDraft(
        {"summaryText": "so far", "summaries": [{"summaryText": "more"}]},
        cutoff=line[14].id,
        parent=line[16].id,
        manifest=(
            KeptRange(line[0].id, line[0].id),
            SummaryPlace(),
            KeptRange(line[6].id, line[8].id),
            EditReference(edits[0].id),
            KeptRange(line[10].id, line[10].id),
            EditReference(edits[1].id),
            SummaryPlace(0),
            KeptRange(line[13].id, line[14].id),
        ),
    )
    await store.write(snapshots.record, session.key, draft, SnapshotExtras(edits=edits))
    view = await store.read(views.view, session.key)
    assert view.snapshot is not None
    assert view.snapshot.id == draft.id
    assert view.after == line[15:]
    first, summary, *kept, edit, between, other, second, last, cutoff = view.shown
    assert (first, between, last, cutoff) == (line[0], line[10], line[13], line[14])
    assert tuple(kept) == line[6:9]
    assert (summary, second) == (SummaryPlace(), SummaryPlace(0))
    assert isinstance(edit, Edit)
    assert isinstance(other, Edit)
    assert (edit.message, other.message) == (line[9].id, line[11].id)


async def test_a_later_snapshot_may_show_an_earlier_ones_edits(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    edit = EditDraft(line[1].id, b"{}", 1, "characters")
    first = SnapshotDraft(
        {"summaryText": None},
        cutoff=line[1].id,
        parent=line[3].id,
        manifest=(EditReference(edit.id),),
    )
    second = SnapshotDraft(
        {"summaryText": "x"},
        cutoff=line[5].id,
        parent=line[9].id,
        manifest=(EditReference(edit.id), SummaryPlace()),
        previous=first.id,
    )
    await store.write(snapshots.record, session.key, first, SnapshotExtras(edits=[edit]))
    await store.write(snapshots.record, session.key, second)
    view = await store.read(views.view, session.key)
    assert view.snapshot is not None
    assert view.snapshot.previous == first.id
    assert [type(entry) for entry in view.shown] == [Edit, SummaryPlace]


async def test_a_branch_has_its_own_view(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    draft = SnapshotDraft(
        {"summaryText": "x"}, cutoff=line[3].id, parent=line[9].id, manifest=(SummaryPlace(),)
    )
    await store.write(snapshots.record, session.key, draft)
    branch = await store.write(tree.append, session.key, drafts("x"), line[4].id)
    of_branch = await store.read(views.view, session.key, branch[0].id)
    assert (of_branch.snapshot, of_branch.after) == (None, (*line[:5], *branch))
    shared = await store.read(views.view, session.key, branch[0].id, share_across_branches=True)
    assert shared.snapshot is not None
    assert (shared.shown, shared.after) == ((SummaryPlace(),), (line[4], *branch))


async def test_at_the_cutoff_nothing_comes_after(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...]
) -> None:
    draft = SnapshotDraft(
        {"summaryText": "x"}, cutoff=line[9].id, parent=line[9].id, manifest=(SummaryPlace(),)
    )
    await store.write(snapshots.record, session.key, draft)
    view = await store.read(views.view, session.key, line[9].id)
    assert (view.shown, view.after) == ((SummaryPlace(),), ())


@pytest.mark.parametrize("what", ["message", "edit"])
async def test_a_missing_entry_of_a_manifest_is_an_error(
    store: Store, session: SessionRecord, line: tuple[StoredMessage, ...], what: str
) -> None:
    edit = EditDraft(line[1].id, b"{}", 1, "characters")
    entry = KeptRange("nowhere", line[0].id) if what == "message" else EditReference(edit.id)
    draft = SnapshotDraft(
        {"summaryText": "x"}, cutoff=line[3].id, parent=line[9].id, manifest=(entry,)
    )
    await store.write(snapshots.record, session.key, draft, SnapshotExtras(edits=[edit]))
    await store.write(Database.run_statements, ["DELETE FROM message_edits"])
    with pytest.raises(IntegrityError, match=draft.id):
        await store.read(views.view, session.key)
