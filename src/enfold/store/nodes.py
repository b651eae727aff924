"""Places in the tree: where a message is, and what is above it.

Every message knows its parent and one ancestor further up, its `jump`. How far up depends on the
message's depth alone (`jump_depth`), in such a way that any ancestor is reached in a number of
steps that grows with the logarithm of the depth, and that a new message's jump follows from its
parent's: it is the parent, or the parent's jump's jump. Whether a message is on a path, and which
message is at a depth, therefore costs about the same in a conversation of a hundred or a million
messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from enfold.errors import NotFoundError
from enfold.jsontext import dump_text
from enfold.store.database import Database, Row
from enfold.store.records import SessionKey


@dataclass(frozen=True, slots=True)
class Node:
    """A message's place in the tree. The root that all first messages share has the key 0."""

    key: int = 0
    id: str | None = None
    depth: int = 0
    jump: int = 0
    path_tokens: int = 0


ABOVE_ALL = Node()
"""What all first messages follow."""


def jump_depth(depth: int) -> int:
    """The depth of the ancestor that a message of this depth knows besides its parent.

    Write the depth as a sum of numbers of the form 2^k − 1, greatest first; leave out the last.
    """
    rest = depth
    term = 0
    while rest:
        term = (1 << (rest + 1).bit_length() - 1) - 1
        rest -= term
    return depth - term


def tip(db: Database, session: SessionKey, named: str | None) -> Node:
    """The place of a branch's last message; of the current branch's if none is named."""
    if named is not None:
        return require(db, session, named)
    row = db.row("tip_node", session=session)
    return _as_node(row) if row else ABOVE_ALL


def require(db: Database, session: SessionKey, id: str) -> Node:
    """The place of a message that must be there."""
    row = db.row("node_by_id", session=session, id=id)
    if row is None:
        raise missing(id)
    return _as_node(row)


def by_key(db: Database, key: int) -> Node:
    """The place of the message with that key; 0 is above all."""
    row = db.row("node", key=key) if key else None
    return _as_node(row) if row else ABOVE_ALL


def ancestor(db: Database, bottom: Node, depth: int) -> Node:
    """The place at a depth on the path to another."""
    if depth >= bottom.depth:
        return bottom
    row = db.row("ancestor_at", tip=bottom.key, depth=depth) if depth else None
    return _as_node(row) if row else ABOVE_ALL


def on_path(db: Database, tip: int, keys: Iterable[int]) -> set[int]:
    """Those of the messages that are on the path from the root to the tip."""
    rows = db.rows("on_path", tip=tip, keys=dump_text(sorted(set(keys))))
    return {row["target"] for row in rows}


def keys_of(db: Database, session: SessionKey, ids: Sequence[str]) -> dict[str, int]:
    """The keys of messages that must be there, by id."""
    if not ids:
        return {}
    rows = db.rows("keys_by_id", session=session, ids=dump_text(list(ids)))
    keys = {row["id"]: row["key"] for row in rows}
    for id in ids:
        if id not in keys:
            raise missing(id)
    return keys


def missing(id: str) -> NotFoundError:
    """What to raise for a message that is not there."""
    return NotFoundError(f"there is no message {id!r} in this session")


def _as_node(row: Row) -> Node:
    return Node(**{**dict(row), "jump": row["jump"] or 0})
