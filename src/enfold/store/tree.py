"""The tree of messages: append, recognise a repeated history, walk branches.

A message's id is its identity, a hash of its content and of the message before it. So a message
that is appended again at the same place is found there, and if an id is stored, all messages
before it are stored too.

Besides its parent every message refers to one ancestor far above it, its jump. With jumps the
ancestor at any depth is found in a number of steps that grows with the logarithm of the depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeVar

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

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Node:
    """A message's place in the tree. The parent of all first messages has the key 0."""

    key: int = 0
    id: str | None = None
    depth: int = 0
    jump: int = 0
    path_tokens: int = 0


TOP = Node()
"""The parent of all first messages."""


def jump_depth(depth: int) -> int:
    """Return the depth of the jump of a message at this depth.

    Write the depth as a sum of numbers of the form 2^k − 1, greatest first; leave out the last.
    """
    rest = depth
    term = 0
    while rest:
        term = (1 << (rest + 1).bit_length() - 1) - 1
        rest -= term
    return depth - term


def tip_node(db: Database, session: SessionKey, named: str | None) -> Node:
    """Return the node of the named tip, or of the current branch's tip."""
    if named is not None:
        return require(db, session, named)
    row = db.row("tip_node", session=session)
    if row is None or row["tip"] is None:
        return TOP
    if row["key"] is None:
        raise missing("the last message of the current branch")
    return _as_node(row)


def require(db: Database, session: SessionKey, id: str) -> Node:
    """Return the node of a message; raise `NotFoundError` if there is none."""
    row = db.row("node_by_id", session=session, id=id)
    if row is None:
        raise message_not_found(id)
    return _as_node(row)


def by_key(db: Database, key: int) -> Node:
    """Return the node of the message with that key; `TOP` for 0."""
    if not key:
        return TOP
    row = db.row("node", key=key)
    if row is None:
        raise missing(f"the message with the key {key}")
    return _as_node(row)


def ancestor(db: Database, bottom: Node, depth: int) -> Node:
    """Return the node at a depth on the path to another node."""
    if depth >= bottom.depth:
        return bottom
    if depth <= 0:
        return TOP
    row = db.row("ancestor_at", tip=bottom.key, depth=depth)
    if row is None:
        raise missing(f"a message before {bottom.id}, at position {depth} or later,")
    return _as_node(row)


def on_path(db: Database, tip: int, keys: Iterable[int]) -> set[int]:
    """Return the keys that are on the path from the root to the tip."""
    rows = db.rows("on_path", tip=tip, keys=dump_text(sorted(set(keys))))
    return {row["target"] for row in rows}


def keys_of(db: Database, session: SessionKey, ids: Sequence[str]) -> dict[str, int]:
    """Return the keys of messages by id; raise `NotFoundError` if one is missing."""
    if not ids:
        return {}
    rows = db.rows("keys_by_id", session=session, ids=dump_text(list(ids)))
    return _require({row["id"]: row["key"] for row in rows}, ids)


def _require(found: dict[str, Found], ids: Sequence[str]) -> dict[str, Found]:
    """Return the rows by id; raise `NotFoundError` if an id is missing."""
    for id in ids:
        if id not in found:
            raise message_not_found(id)
    return found


def message_not_found(id: str) -> NotFoundError:
    """Return the error for a message that does not exist."""
    return NotFoundError(f"there is no message {id!r} in this session")


def missing(what: str) -> IntegrityError:
    """Return the error for a row that others refer to and that does not exist."""
    return IntegrityError(
        f"{what} is missing in the database; run `enfold verify`, and restore it from a backup"
    )


_OF_NODE = tuple(field.name for field in fields(Node))


def _as_node(row: Row) -> Node:
    return Node(**{**{name: row[name] for name in _OF_NODE}, "jump": row["jump"] or 0})


_COLUMNS = tuple(field.name for field in fields(StoredMessage))
_WRITTEN = tuple(name for name in _COLUMNS if name != "parent")
"""The fields of a message that are columns; its parent is stored by key."""
_SHORT_BODY = 4_000
"""Maximum bytes of a message that is cached after its check."""


class Appended(NamedTuple):
    """Messages that were appended, or recognised."""

    messages: tuple[StoredMessage, ...]
    recognised: int = 0
    """Number of those that were stored already."""
    moved_at: int | None = None
    """Time at which the tip moved to the last one; None if it did not."""


def append(
    db: Database,
    session: SessionKey,
    drafts: Sequence[MessageDraft],
    parent: str | AppendPlace = CURRENT_TIP,
    *,
    forward_only: bool = False,
) -> tuple[StoredMessage, ...]:
    """Append messages like `extend`; return them."""
    return extend(db, session, drafts, parent, forward_only=forward_only).messages


def extend(
    db: Database,
    session: SessionKey,
    drafts: Sequence[MessageDraft],
    parent: str | AppendPlace = CURRENT_TIP,
    *,
    forward_only: bool = False,
) -> Appended:
    """Append messages one after the other, move the tip to the last one, and return them.

    Messages that are stored already are recognised, not written again. Appending after another
    message than the tip makes a branch. Appends at the current tip form one line, also from several
    processes. With `forward_only` the messages are the history that a client sends: the tip stays
    if the last message is before it, so that requests may be recorded in any order, and replies get
    the usage that was reported when they passed.
    """
    tip = sessions.lock(db, session)
    if not drafts:
        return Appended(())
    if parent is ROOT or (parent is CURRENT_TIP and tip is None):
        above = TOP
    elif isinstance(parent, str):
        above = require(db, session, parent)
    else:
        above = by_key(db, tip or 0)
    ids = chain((draft.content_hash for draft in drafts), above.id)
    count, bottom = _stored_prefix(
        ids, lambda id: db.row("known_in_session", id=id, session=session)
    )
    existing: tuple[StoredMessage, ...] = ()
    if bottom is not None:
        existing = line(db, bottom["key"], above.depth)
        above = by_key(db, bottom["key"])
    messages = existing + _write(db, session, above, ids[count:], drafts[count:])
    last = messages[-1].key
    replies = [each.key for each in messages[count:] if each.role == "assistant"]
    if forward_only and replies:
        namespace = sessions.get(db, session).namespace
        keys = dump_text(replies)
        db.change("claim_reported_usage", session=session, namespace=namespace, keys=keys)
    is_behind = tip is not None and forward_only and bool(on_path(db, tip, [last]))
    if last == tip or is_behind:
        return Appended(messages, count)
    now = db.now()
    db.change("move_tip", key=session, tip=last, now=now)
    return Appended(messages, count, now)


def recognise(
    db: Database,
    ids: Sequence[str],
    *,
    session: SessionKey | None = None,
    namespace: str = "",
    likely: int = 0,
) -> Recognition:
    """Return the part of a history, given by identities, that the store has from its start on.

    Searches one session, or all sessions of a namespace. The number of queries grows with the
    logarithm of the number of new messages; it is two if `likely` is the number of stored ones.
    """

    def find(id: str) -> Row | None:
        if session is not None:
            return db.row("known_in_session", id=id, session=session)
        return db.row("known_in_namespace", id=id, namespace=namespace)

    count, bottom = _stored_prefix(ids, find, likely)
    if bottom is None:
        return Recognition(0)
    return Recognition(count, bottom["session"], ids[count - 1])


def path(
    db: Database, session: SessionKey, tip: str | None = None, *, above_depth: int = 0
) -> tuple[StoredMessage, ...]:
    """Return the messages of a branch that are deeper than `above_depth`, root first."""
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
    """Return messages of a branch, root first: the last ones, or those before or after another."""
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
    """Return the messages of a branch from one position to another, both included; 1 is first."""
    bottom = ancestor(db, tip_node(db, session, tip), last)
    return line(db, bottom.key, max(0, first - 1)) if bottom.depth >= max(1, first) else ()


def get(db: Database, session: SessionKey, id: str) -> StoredMessage:
    """Return the message with that id."""
    row = db.row("message_by_id", session=session, id=id)
    if row is None:
        raise message_not_found(id)
    return _message(row)


def get_all(db: Database, session: SessionKey, ids: Sequence[str]) -> dict[str, StoredMessage]:
    """Return the messages with these ids; raise `NotFoundError` if one is missing."""
    rows = db.rows("messages_by_id", session=session, ids=dump_text(list(ids)))
    return _require({message.id: message for message in map(_read_message, rows)}, ids)


def on_branch(db: Database, session: SessionKey, id: str, tip: str | None = None) -> StoredMessage:
    """Return a message of the branch that ends at the tip, by default the current branch."""
    message = get(db, session, id)
    if not on_path(db, tip_node(db, session, tip).key, [message.key]):
        raise message_not_found(id)
    return message


def at_position(
    db: Database, session: SessionKey, position: int, tip: str | None = None
) -> StoredMessage:
    """Return the message at that position of the branch; the first is 1."""
    bottom = tip_node(db, session, tip)
    if not 1 <= position <= bottom.depth:
        raise NotFoundError(f"there is no message {position}; this branch has {bottom.depth:,}")
    place = ancestor(db, bottom, position)
    return line(db, place.key, position - 1)[0]


def children(db: Database, session: SessionKey, id: str | None) -> tuple[StoredMessage, ...]:
    """Return the children of a message, oldest first; the first messages of branches for None."""
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


def set_tip(db: Database, session: SessionKey, id: str | None) -> None:
    """Make a message the session's tip; None makes the branch empty."""
    sessions.lock(db, session)
    key = require(db, session, id).key if id is not None else None
    db.change("move_tip", key=session, tip=key, now=db.now())


def step_back(db: Database, session: SessionKey) -> StoredMessage | None:
    """Move the tip to the message before it; return the old tip, or None for an empty branch.

    The old tip stays stored, as the end of another branch.
    """
    sessions.lock(db, session)
    for last in page(db, session, limit=1):
        set_tip(db, session, last.parent)
        return last
    return None


def line(db: Database, bottom: int, above_depth: int) -> tuple[StoredMessage, ...]:
    """Return the messages on the path to one that are deeper than `above_depth`, root first."""
    messages = _in_order(db.rows("line", bottom=bottom, above=above_depth))
    return _without_gap(messages, above_depth)


def segments(
    db: Database, session: SessionKey, ends: Sequence[tuple[str, str]]
) -> list[tuple[StoredMessage, ...]]:
    """Return ranges of the tree, each from one message to another below it, root first."""
    found: list[list[Row]] = [[] for _ in ends]
    tops = [0] * len(ends)
    for row in db.rows("segments", session=session, segments=dump_text(list(ends))):
        place = row["place"]
        tops[place] = row["above"]
        found[place].append(row)
    return [_without_gap(_in_order(rows), above) for rows, above in zip(found, tops, strict=True)]


def _write(
    db: Database,
    session: SessionKey,
    above: Node,
    ids: Sequence[str],
    drafts: Sequence[MessageDraft],
) -> tuple[StoredMessage, ...]:
    """Write new messages after a node; return them."""
    if not drafts:
        return ()
    keys = [row["seq"] for row in db.rows("new_message_keys", count=len(drafts))]
    now = db.now()
    made = {above.key: above}
    messages, rows = [], []
    parent = above
    for key, id, draft in zip(keys, ids, drafts, strict=True):
        depth, tokens = parent.depth + 1, parent.path_tokens + draft.tokens
        jump = parent.key
        if jump_depth(depth) != parent.depth:
            jump = (made.get(parent.jump) or by_key(db, parent.jump)).jump
        node = Node(key, id, depth, jump, tokens)
        message = _as_stored(session, parent, node, draft, now)
        place = {"parent_key": parent.key or None, "jump": node.jump or None}
        rows.append({field: getattr(message, field) for field in _WRITTEN} | place)
        messages.append(message)
        made[key] = parent = node
    db.change_many("insert_message", rows)
    db.change("drop_branch_tip", session=session, message=above.key)
    db.change("add_branch_tip", session=session, message=parent.key)
    index.add(
        db,
        session,
        [
            (key, draft.search_text, draft.search_terms, draft.search_parts)
            for key, draft in zip(keys, drafts, strict=True)
        ],
    )
    return tuple(messages)


def _as_stored(
    session: SessionKey, parent: Node, node: Node, draft: MessageDraft, now: int
) -> StoredMessage:
    """Return the message as it will be read."""
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
        digest=draft.digest or digest(draft.body),
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


def _stored_prefix(
    ids: Sequence[str], find: Callable[[str], Row | None], likely: int = 0
) -> tuple[int, Row | None]:
    """Return the number of stored ids, from the first on, and the row of the last stored one.

    If an id is stored, all before it are. A repeated history usually ends in a few new messages,
    so the search goes back from the end in growing steps before it halves.
    """
    missing, step = len(ids) + 1, 1
    if 0 < likely < len(ids) and (row := find(ids[likely - 1])) and not find(ids[likely]):
        return likely, row
    stored, found = len(ids), None
    while stored > 0 and (found := find(ids[stored - 1])) is None:
        missing, stored, step = stored, max(0, stored - step), step * 2
    while missing - stored > 1:
        middle = (stored + missing) // 2
        if row := find(ids[middle - 1]):
            stored, found = middle, row
        else:
            missing = middle
    return stored, found


def _in_order(rows: Sequence[Row]) -> tuple[StoredMessage, ...]:
    read = _message if len(rows) < _REMEMBERED else _read_message
    return tuple(sorted(map(read, rows), key=attrgetter("depth")))


def _without_gap(messages: tuple[StoredMessage, ...], above: int) -> tuple[StoredMessage, ...]:
    """Return the messages of a path below a depth; raise `IntegrityError` if one is missing.

    The path is read from its end by parents, so a missing message also hides those before it.
    """
    if messages and messages[0].depth != above + 1:
        raise missing(f"the message before {messages[0].id}, at position {messages[0].depth - 1},")
    return messages


def _message(row: Row) -> StoredMessage:
    """Return the message; raise `IntegrityError` if its bytes have changed."""
    if len(row["body"]) > _SHORT_BODY:
        return _read_message(row)
    return _checked(_of_message(row))


def _read_message(row: Row) -> StoredMessage:
    return _checked.__wrapped__(_of_message(row))


_of_message = itemgetter(*_COLUMNS)
_REMEMBERED = 2_048


# A view is read for every turn, and most of its messages are those of the turn before.
@lru_cache(maxsize=_REMEMBERED)
def _checked(values: tuple[Any, ...]) -> StoredMessage:
    message = StoredMessage(*values)
    if digest(message.body) != message.digest:
        raise IntegrityError(
            f"message {message.id} no longer matches its digest; restore the database from a backup"
        )
    return message
