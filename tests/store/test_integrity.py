"""Verifying a session: every hash again, and the message that does not fit is named."""

from __future__ import annotations

import pytest
from tests.store.samples import drafts, numbered, verify

from enfold.errors import IntegrityError
from enfold.records import EditDraft, SessionRecord, SnapshotDraft
from enfold.store import Database, Store, snapshots, tree


async def test_a_session_that_was_not_touched(store: Store, session: SessionRecord) -> None:
    assert await store.read(verify, session.key) == 0
    line = await store.write(tree.append, session.key, numbered(1_200))
    await store.write(tree.append, session.key, drafts("x"), line[4].id)
    assert await store.read(verify, session.key) == 1_201


@pytest.mark.parametrize(
    "damage",
    [
        "content = content_of_another",
        "content_hash = 'x'",
        "id = 'x'",
        "depth = 7",
        "parent = NULL",
    ],
)
async def test_every_damage_is_found(store: Store, session: SessionRecord, damage: str) -> None:
    line = await store.write(tree.append, session.key, numbered(9))
    change = damage.replace(
        "content_of_another", f"(SELECT content FROM chat_messages WHERE seq = {line[0].key})"
    )
    await store.write(
        Database.run_statements, [f"UPDATE chat_messages SET {change} WHERE seq = {line[4].key}"]
    )
    named = "message x" if damage.startswith("id") else line[4].id
    with pytest.raises(IntegrityError, match=named):
        await store.read(verify, session.key)


async def test_edits_are_verified_too(store: Store, session: SessionRecord) -> None:
    line = await store.write(tree.append, session.key, numbered(3))
    draft = SnapshotDraft({}, cutoff=line[0].id, parent=line[2].id)
    edit = EditDraft(line[0].id, b"{}", 1, "characters")
    await store.write(snapshots.record, session.key, draft, snapshots.SnapshotExtras(edits=[edit]))
    assert await store.read(verify, session.key) == 3
    await store.write(Database.run_statements, ["UPDATE message_edits SET digest = 'x'"])
    with pytest.raises(IntegrityError, match=edit.id):
        await store.read(verify, session.key)
