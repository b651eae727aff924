"""Places in the tree: ancestors are found in a few steps, and the right ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.samples import numbered

from enfold.errors import NotFoundError
from enfold.records import SessionRecord
from enfold.store import Database, Store, tree
from enfold.store import tree as nodes
from enfold.store.tree import TOP, jump_depth


async def test_the_tip_is_the_current_one_or_the_named(
    store: Store, session: SessionRecord
) -> None:
    assert await store.read(nodes.tip_node, session.key, None) == TOP
    line = await store.write(tree.append, session.key, numbered(5))
    assert (await store.read(nodes.tip_node, session.key, None)).key == line[-1].key
    named = await store.read(nodes.tip_node, session.key, line[2].id)
    assert (named.key, named.id, named.depth) == (line[2].key, line[2].id, 3)
    assert named.path_tokens == line[2].path_tokens
    with pytest.raises(NotFoundError, match="nowhere"):
        await store.read(nodes.tip_node, session.key, "nowhere")


async def test_keys_by_id(store: Store, session: SessionRecord) -> None:
    line = await store.write(tree.append, session.key, numbered(5))
    wanted = [line[3].id, line[1].id]
    assert await store.read(nodes.keys_of, session.key, wanted) == {
        line[1].id: line[1].key,
        line[3].id: line[3].key,
    }
    assert await store.read(nodes.keys_of, session.key, []) == {}
    with pytest.raises(NotFoundError, match="nowhere"):
        await store.read(nodes.keys_of, session.key, [*wanted, "nowhere"])


async def test_every_ancestor_by_its_depth(store: Store, session: SessionRecord) -> None:
    line = await store.write(tree.append, session.key, numbered(70))
    bottom = await store.read(nodes.tip_node, session.key, None)
    for depth in (0, 1, 2, 31, 62, 63, 64, 69, 70, 99):
        found = await store.read(nodes.ancestor, bottom, depth)
        assert found.key == (line[min(depth, 70) - 1].key if depth else 0)


async def test_a_long_line_knows_its_ancestors(store: Store, session: SessionRecord) -> None:
    line = await store.write(tree.append, session.key, numbered(300))
    branch = await store.write(tree.append, session.key, numbered(50, "other"), line[149].id)

    def ancestors(db: Database) -> None:
        keys = [message.key for message in (*line, *branch)]
        assert nodes.on_path(db, line[-1].key, keys) == {message.key for message in line}
        above = {message.key for message in (*line[:150], *branch)}
        assert nodes.on_path(db, branch[-1].key, keys) == above
        for message in (line[0], line[6], line[149]):
            assert nodes.on_path(db, message.key, keys) == {m.key for m in line[: message.depth]}

    await store.read(ancestors)
    for depth in (1, 7, 150, 299):
        above = await store.read(
            tree.page, session.key, line[-1].id, before=line[depth].id, limit=1
        )
        assert above == (line[depth - 1],)


async def test_jumps_are_where_they_should_be(store: Store, session: SessionRecord) -> None:
    """Also when every message is appended on its own, and on a branch. Else walks grow long."""
    line = await store.write(tree.append, session.key, numbered(40))
    for message in numbered(30, "more"):
        await store.write(tree.append, session.key, [message])
    await store.write(tree.append, session.key, numbered(9, "branch"), line[20].id)

    def depths(db: Database) -> list[tuple[int, int]]:
        query = (
            "SELECT m.depth, coalesce(j.depth, 0) AS jump FROM chat_messages AS m "
            f"LEFT JOIN chat_messages AS j ON j.seq = m.jump WHERE m.session = {session.key}"
        )
        return [(row["depth"], row["jump"]) for row in db._cursor().execute(query).fetchall()]

    found = await store.read(depths)
    assert len(found) == 79
    assert all(jump == jump_depth(depth) for depth, jump in found)


@given(st.integers(1, 10**9))
def test_a_jump_follows_from_the_parents(depth: int) -> None:
    """A jump leads to the parent, or to the jump of the parent's jump."""
    assert 0 <= jump_depth(depth) < depth
    parent = depth - 1
    assert jump_depth(depth) in {parent, jump_depth(jump_depth(parent))}


@given(st.integers(1, 10**9), st.data())
def test_every_ancestor_is_near(depth: int, data: st.DataObject) -> None:
    target = data.draw(st.integers(0, depth - 1))
    steps, at = 0, depth
    while at > target:
        at = jump_depth(at) if jump_depth(at) >= target else at - 1
        steps += 1
    assert at == target
    assert steps <= 3 * depth.bit_length()
