"""The tree of messages: appending, recognising a history that comes again, walking branches.

A message's id is its identity, a hash of what it says and of the message before it. So writing
the same message at the same place again finds it there, and a known id means that everything
before it is known too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

from enfold.errors import IntegrityError, NotFoundError
from enfold.identity import chain, digest
from enfold.jsontext import dump_text
from enfold.records import (
    CURRENT_TIP,
    ROOT,
    AppendPlace,
    Branch,
    MessageDraft,
    Recognition,
    SessionKey,
    StoredMessage,
)
from enfold.store import index, sessions
from enfold.store.database import Database, Row
from enfold.text.words import storable


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


def tip_node(db: Database, session: SessionKey, named: str | None) -> Node:
    """The place of a branch's last message; of the current branch's if none is named."""
    if named is not None:
        return require(db, session, named)
    row = db.row("tip_node", session=session)
    return _as_node(row) if row else ABOVE_ALL


def require(db: Database, session: SessionKey, id: str) -> Node:
    """The place of a message that must be there."""
    row = db.row("node_by_id", session=session, id=id)
    if row is None:
        raise message_not_found(id)
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
            raise message_not_found(id)
    return keys


def message_not_found(id: str) -> NotFoundError:
    """What to raise for a message that is not there."""
    return NotFoundError(f"there is no message {id!r} in this session")


def _as_node(row: Row) -> Node:
    return Node(**{**dict(row), "jump": row["jump"] or 0})


_WRITTEN = tuple(field.name for field in fields(StoredMessage) if field.name != "parent")
"""What of a message is written as it is; its parent goes by key."""


def append(
    db: Database,
    session: SessionKey,
    drafts: Sequence[MessageDraft],
    parent: str | AppendPlace = CURRENT_TIP,
    *,
    forward_only: bool = False,
) -> tuple[StoredMessage, ...]:
    """Write messages one after the other and move the tip to the last.

    Messages that are there already are recognised, not written again. After any message but the
    tip this makes a branch. Appends at the current tip, from however many processes, make one line.
    With `forward_only` what came late does not take the tip back: it stays where it is if the last
    message leads to it. So records of a growing history may be made in any order.
    """
    tip = sessions.lock(db, session)
    if not drafts:
        return ()
    above = _place(db, session, parent, tip)
    ids = chain((draft.content_hash for draft in drafts), above.id)
    known, bottom = _known_prefix(
        ids, lambda id: db.row("known_in_session", id=id, session=session)
    )
    there: tuple[StoredMessage, ...] = ()
    if bottom is not None:
        there = line(db, bottom["key"], above.depth)
        above = by_key(db, bottom["key"])
    messages = there + _write(db, session, above, ids[known:], drafts[known:])
    last = messages[-1].key
    is_behind = tip is not None and forward_only and bool(on_path(db, tip, [last]))
    if last != tip and not is_behind:
        db.change("move_tip", key=session, tip=last, now=db.now())
    return messages


def recognise(
    db: Database,
    ids: Sequence[str],
    *,
    session: SessionKey | None = None,
    namespace: str = "",
) -> Recognition:
    """Return the part of a history, given by identities, that the store has from its start on.

    Searches one session, or all sessions of a namespace. The number of queries grows with the
    logarithm of the number of new messages.
    """

    def find(id: str) -> Row | None:
        if session is not None:
            return db.row("known_in_session", id=id, session=session)
        return db.row("known_in_namespace", id=id, namespace=namespace)

    known, bottom = _known_prefix(ids, find)
    if bottom is None:
        return Recognition(0)
    return Recognition(known, bottom["session"], ids[known - 1])


def path(
    db: Database, session: SessionKey, tip: str | None = None, *, above_depth: int = 0
) -> tuple[StoredMessage, ...]:
    """The messages of a branch, root first, that are deeper than `above_depth`."""
    bottom = tip_node(db, session, tip)
    return line(db, bottom.key, above_depth) if bottom.depth > above_depth else ()


def page(
    db: Database,
    session: SessionKey,
    tip: str | None = None,
    *,
    before: str | None = None,
    after: str | None = None,
    limit: int = 50,
) -> tuple[StoredMessage, ...]:
    """Some messages of a branch, root first: the last ones, or those before or after another."""
    bottom = tip_node(db, session, tip)
    if before is not None:
        stop = require(db, session, before)
        bottom = ancestor(db, stop, stop.depth - 1)
    if after is not None:
        start = require(db, session, after)
        if ancestor(db, bottom, start.depth).key != start.key:
            raise NotFoundError(f"message {after} is not on the branch that ends at {bottom.id}")
        bottom = ancestor(db, bottom, min(start.depth + limit, bottom.depth))
        return line(db, bottom.key, start.depth) if bottom.depth > start.depth else ()
    return line(db, bottom.key, max(0, bottom.depth - limit)) if bottom.depth else ()


def between(
    db: Database, session: SessionKey, tip: str | None, first: int, last: int
) -> tuple[StoredMessage, ...]:
    """The messages of a branch from one place to another, both included; the first is 1."""
    bottom = ancestor(db, tip_node(db, session, tip), last)
    return line(db, bottom.key, max(0, first - 1)) if bottom.depth >= max(1, first) else ()


def get(db: Database, session: SessionKey, id: str) -> StoredMessage:
    """One message."""
    row = db.row("message_by_id", session=session, id=id)
    if row is None:
        raise message_not_found(id)
    return _message(row)


def on_branch(db: Database, session: SessionKey, id: str, tip: str | None = None) -> StoredMessage:
    """One message of the branch that ends at the tip; without one, that the session is on."""
    message = get(db, session, id)
    if not on_path(db, tip_node(db, session, tip).key, [message.key]):
        raise message_not_found(id)
    return message


def at_position(
    db: Database, session: SessionKey, position: int, tip: str | None = None
) -> StoredMessage:
    """The message at that place of the branch; the first is 1."""
    bottom = tip_node(db, session, tip)
    if not 1 <= position <= bottom.depth:
        raise NotFoundError(f"there is no message {position}; this branch has {bottom.depth:,}")
    place = ancestor(db, bottom, position)
    return line(db, place.key, position - 1)[0]


def children(db: Database, session: SessionKey, id: str | None) -> tuple[StoredMessage, ...]:
    """The messages that follow one, oldest first; the first messages of all branches for None."""
    if id is None:
        rows = db.rows("roots", session=session)
    else:
        rows = db.rows("children", session=session, id=id)
    return tuple(_message(row) for row in rows)


def branches(db: Database, session: SessionKey) -> tuple[Branch, ...]:
    """Return every branch of the session, by the time of its tip, oldest first."""
    tip = sessions.get(db, session).tip
    rows = db.rows("branches", session=session)
    return tuple(Branch(**row, current=row["tip"] == tip) for row in rows)


def written_after(
    db: Database, session: SessionKey, key: int = 0, *, limit: int = 1_000
) -> tuple[StoredMessage, ...]:
    """A session's messages of all branches in the order they were written, after one with a key.

    A parent always comes before its children, so this is the order to export in.
    """
    rows = db.rows("messages_after_key", session=session, key=key, limit=limit)
    return tuple(_message(row) for row in rows)


def set_tip(db: Database, session: SessionKey, id: str | None) -> None:
    """Put the session on the branch that ends at a message, or before the first for None."""
    sessions.lock(db, session)
    key = require(db, session, id).key if id is not None else None
    db.change("move_tip", key=session, tip=key, now=db.now())


def step_back(db: Database, session: SessionKey) -> StoredMessage | None:
    """Put the session before the last message of its branch, which is given; None if it is empty.

    The message stays where it is, on a branch of its own.
    """
    sessions.lock(db, session)
    for last in page(db, session, limit=1):
        set_tip(db, session, last.parent)
        return last
    return None


def set_reported_usage(
    db: Database,
    session: SessionKey,
    id: str,
    *,
    input_tokens: int | None,
    output_tokens: int | None,
) -> None:
    """Keep what the provider reported for a message, for monitoring."""
    changed = db.change(
        "set_reported_usage",
        session=session,
        id=id,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
    )
    if not changed:
        raise message_not_found(id)


def line(db: Database, bottom: int, above_depth: int) -> tuple[StoredMessage, ...]:
    """The messages from one upwards that are deeper than `above_depth`, root first."""
    return _in_order(db.rows("line", bottom=bottom, above=above_depth))


def segments(
    db: Database, session: SessionKey, ends: Sequence[tuple[str, str]]
) -> list[tuple[StoredMessage, ...]]:
    """Stretches of the tree, each from one message to another below it, root first."""
    found: list[list[Row]] = [[] for _ in ends]
    for row in db.rows("segments", session=session, segments=dump_text(list(ends))):
        values = dict(row)
        found[values.pop("place")].append(values)
    return [_in_order(rows) for rows in found]


def _place(db: Database, session: SessionKey, parent: str | AppendPlace, tip: int | None) -> Node:
    if parent is ROOT or (parent is CURRENT_TIP and tip is None):
        return ABOVE_ALL
    if isinstance(parent, str):
        return require(db, session, parent)
    return by_key(db, tip or 0)


def _write(
    db: Database,
    session: SessionKey,
    above: Node,
    ids: Sequence[str],
    drafts: Sequence[MessageDraft],
) -> tuple[StoredMessage, ...]:
    """Write new messages after one."""
    if not drafts:
        return ()
    keys = [row["seq"] for row in db.rows("new_message_keys", count=len(drafts))]
    now = db.now()
    made = {above.key: above}
    messages, rows = [], []
    parent = above
    for key, id, draft in zip(keys, ids, drafts, strict=True):
        tokens = parent.path_tokens + draft.tokens
        node = Node(key, id, parent.depth + 1, _jump_after(db, parent, made), tokens)
        message = _as_stored(session, parent, node, draft, now)
        place = {"parent_key": parent.key or None, "jump": node.jump or None}
        rows.append({field: getattr(message, field) for field in _WRITTEN} | place)
        messages.append(message)
        made[key] = parent = node
    db.change_many("insert_message", rows)
    db.change("drop_branch_tip", session=session, message=above.key)
    db.change("add_branch_tip", session=session, message=parent.key)
    index.add(db, session, [(key, d.search_text) for key, d in zip(keys, drafts, strict=True)])
    return tuple(messages)


def _jump_after(db: Database, parent: Node, made: dict[int, Node]) -> int:
    """The key of the jump of a message after `parent`."""
    if jump_depth(parent.depth + 1) == parent.depth:
        return parent.key
    middle = made.get(parent.jump) or by_key(db, parent.jump)
    return middle.jump


def _as_stored(
    session: SessionKey, parent: Node, node: Node, draft: MessageDraft, now: int
) -> StoredMessage:
    """The message as it will be read."""
    return StoredMessage(
        key=node.key,
        session=session,
        id=node.id or "",
        parent=parent.id,
        depth=node.depth,
        role=draft.role,
        dialect=draft.dialect,
        body=draft.body,
        content_hash=draft.content_hash,
        digest=digest(draft.body),
        tokens=draft.tokens,
        tokenizer=draft.tokenizer,
        estimate=draft.estimate,
        input_tokens=None,
        output_tokens=None,
        client_id=None if draft.client_id is None else storable(draft.client_id),
        name=None if draft.name is None else storable(draft.name),
        created_at=now if draft.created_at is None else draft.created_at,
        path_tokens=node.path_tokens,
        is_dated=draft.is_dated,
    )


def _known_prefix(ids: Sequence[str], find: Callable[[str], Row | None]) -> tuple[int, Row | None]:
    """How many of the ids are known, from the first on, and the row of the last known one.

    A known id means that all before it are known. What comes again usually ends in a few new
    messages, so the search goes back from the end in growing steps before it halves.
    """
    unknown, step = len(ids) + 1, 1
    known, found = len(ids), None
    while known > 0 and (found := find(ids[known - 1])) is None:
        unknown, known, step = known, max(0, known - step), step * 2
    while unknown - known > 1:
        middle = (known + unknown) // 2
        if row := find(ids[middle - 1]):
            known, found = middle, row
        else:
            unknown = middle
    return known, found


def _in_order(rows: Iterable[Row]) -> tuple[StoredMessage, ...]:
    return tuple(sorted((_message(row) for row in rows), key=lambda message: message.depth))


def _message(row: Row) -> StoredMessage:
    """The message, if its bytes are still those that were written."""
    message = StoredMessage(**row)
    if digest(message.body) != message.digest:
        raise IntegrityError(
            f"message {message.id} no longer matches its digest; restore the database from a backup"
        )
    return message
