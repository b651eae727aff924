"""Snapshots: record a compression, find the one that applies, undo it, read a view.

A snapshot applies to a branch if the tip that it was made for is on the branch: a summary does not
apply to branches that it was not made for. With `share_across_branches` it is enough that the
cutoff is on the branch. Among the snapshots that apply, the one with the deepest cutoff is used,
then the newest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from enfold.errors import ConflictError, InputError, IntegrityError, NotFoundError
from enfold.identity import digest
from enfold.jsontext import dump_text, loads
from enfold.records import (
    Edit,
    EditDraft,
    EditReference,
    KeptRange,
    SessionKey,
    Snapshot,
    SnapshotDraft,
    SnapshotKind,
    SummaryPlace,
    Undo,
    UsageEvent,
    ViewRow,
    ViewRows,
    manifest_from_json,
    manifest_to_json,
)
from enfold.store import catalog, outbox, sessions, tree
from enfold.store.database import Database, Row

ADDED = "messagesAdded"
"""The field of a snapshot's content with the number of messages that its own summary took in."""
LONGEST_VIEW = 20_000
"""Messages that are read and summarized at once, if all of them cannot be sent."""
_FAR_FUTURE = 2**62
_FIRST_BATCH = 1
_BATCH = 32


class Expected(Enum):
    """An expectation of `record` other than a snapshot's id or None."""

    ANY = auto()


ANY = Expected.ANY
"""Any snapshot may apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotExtras:
    """Records that are written in the same transaction as a snapshot."""

    edits: Sequence[EditDraft] = ()
    flush: Sequence[str] = ()
    """The ids of messages to be handed to long-term memory."""
    usage: Sequence[UsageEvent] = ()


NO_EXTRAS = SnapshotExtras()


def record(
    db: Database,
    session: SessionKey,
    draft: SnapshotDraft,
    extras: SnapshotExtras = NO_EXTRAS,
    *,
    expected: str | Expected | None = ANY,
    tip: str | None = None,
    share_across_branches: bool = False,
) -> Snapshot:
    """Write a snapshot with its edits, flush entries and usage, all or nothing; return it.

    The kept parts of its summary are deleted.

    `expected` is the id of the snapshot that applied when the work began, None if none did. `tip`
    is the end of the branch that the work began on, by default the parent of the snapshot.
    Raises `ConflictError` if another one applies by now.
    """
    sessions.lock(db, session)
    if expected is not ANY:
        started_at = tip or draft.parent
        applies = applicable(db, session, started_at, share_across_branches=share_across_branches)
        if (applies.id if applies else None) != expected:
            raise ConflictError(
                "another compression of this branch was recorded first; read the view again"
            )
    _insert(db, session, draft)
    _insert_edits(db, session, draft.id, extras.edits)
    outbox.enqueue(db, session, extras.flush)
    catalog.add_usage(
        db, [replace(event, session=session, snapshot_id=draft.id) for event in extras.usage]
    )
    forget_parts(db, session)
    return get(db, session, draft.id)


def part(db: Database, session: SessionKey, id: str) -> Mapping[str, Any] | None:
    """Return a part of a summary that is not complete yet; None if it is not written."""
    row = db.row("summary_part", session=session, id=id)
    return None if row is None else loads(row["content"])


def keep_part(db: Database, session: SessionKey, id: str, content: Mapping[str, Any]) -> None:
    """Keep a part of a summary until a compression of the session is recorded."""
    db.change("insert_summary_part", session=session, id=id, content=dump_text(content))


def forget_parts(db: Database, session: SessionKey) -> None:
    """Delete the parts of summaries that are not complete."""
    db.change("delete_summary_parts", session=session)


def applicable(
    db: Database,
    session: SessionKey,
    tip: str | None = None,
    *,
    share_across_branches: bool = False,
    without: Collection[str] = (),
) -> Snapshot | None:
    """Return the snapshot that applies to the branch that ends at `tip`, or to the current branch.

    `without` has the ids of snapshots to ignore.
    """
    bottom = tree.tip_node(db, session, tip)
    return applicable_at(
        db, session, bottom, share_across_branches=share_across_branches, without=without
    )


def applicable_at(
    db: Database,
    session: SessionKey,
    bottom: tree.Node,
    *,
    share_across_branches: bool = False,
    without: Collection[str] = (),
) -> Snapshot | None:
    """Return the snapshot that applies to the branch that ends at a node."""
    before_depth, before_key, limit = _FAR_FUTURE, _FAR_FUTURE, _FIRST_BATCH
    # Best first: one candidate, which nearly always applies, then batches.
    while bottom.depth and (
        batch := db.rows(
            "candidates",
            session=session,
            depth=bottom.depth,
            before_depth=before_depth,
            before_key=before_key,
            limit=limit,
        )
    ):
        keys = [key for row in batch for key in (row["parent"], row["cutoff"])]
        there = tree.on_path(db, bottom.key, keys)
        for row in batch:
            is_parent_there = share_across_branches or row["parent"] in there
            if row["cutoff"] in there and is_parent_there:
                found = db.row("snapshot", key=row["key"])
                if found and found["id"] not in without:
                    return _snapshot(found)
        before_depth, before_key, limit = batch[-1]["cutoff_depth"], batch[-1]["key"], _BATCH
    return None


def get(db: Database, session: SessionKey, id: str) -> Snapshot:
    """Return the snapshot with that id."""
    row = db.row("snapshot_by_id", session=session, id=id)
    if row is None:
        raise NotFoundError(f"there is no snapshot {id!r} in this session")
    return _snapshot(row)


def wordings(db: Database, session: SessionKey, id: str) -> tuple[str, ...]:
    """Return the ids of a snapshot and of its earlier versions for the same messages."""
    found = get(db, session, id)
    ids = [found.id]
    while found.previous is not None:
        earlier = get(db, session, found.previous)
        is_same = (earlier.cutoff, earlier.message_range) == (found.cutoff, found.message_range)
        if not is_same or not added_messages(earlier):
            break
        ids.append(earlier.id)
        found = earlier
    return tuple(ids)


def added_messages(snapshot: Snapshot) -> int:
    """Return how many messages the snapshot's own summary took in, without earlier ones."""
    return int(snapshot.content.get(ADDED, snapshot.content.get("messagesIncluded", 0)))


def of_kind(
    db: Database, session: SessionKey, kind: SnapshotKind = "summary", *, limit: int = 1_000
) -> tuple[Snapshot, ...]:
    """Return a session's snapshots of a kind, newest first, undone ones included."""
    rows = db.rows("snapshots_of_kind", session=session, kind=kind, limit=limit)
    return tuple(_snapshot(row) for row in rows)


def edits_by_id(db: Database, session: SessionKey, ids: Sequence[str]) -> dict[str, Edit]:
    """Return edits by id."""
    rows = db.rows("edits_by_id", session=session, ids=dump_text(list(ids)))
    return {row["id"]: _edit(row) for row in rows}


def all_edits(db: Database, session: SessionKey) -> tuple[Edit, ...]:
    """Return all edits of a session, oldest first."""
    return tuple(_edit(row) for row in db.rows("edits_of_session", session=session))


def undo(db: Database, session: SessionKey, id: str) -> Snapshot:
    """Record that a snapshot is undone at the current tip; no error if it already was."""
    tip = sessions.lock(db, session)
    snapshot = get(db, session, id)
    if not snapshot.undone:
        place = {"message": tip, "depth": sessions.get(db, session).depth}
        db.change("insert_undo", session=session, snapshot=snapshot.key, now=db.now(), **place)
    forget_parts(db, session)  # they may quote the same messages
    return get(db, session, id)


def undo_versions(db: Database, session: SessionKey, id: str) -> Snapshot:
    """Record that a snapshot is undone, with its earlier versions for the same messages."""
    for each in wordings(db, session, id):
        undo(db, session, each)
    return get(db, session, id)


def erase(db: Database, session: SessionKey, id: str) -> Snapshot:
    """Undo a snapshot with its earlier versions, and delete the texts. The records stay."""
    for each in wordings(db, session, id):
        snapshot = undo(db, session, each)
        kept = {
            key: snapshot.content[key] for key in ("messageRange", "tip") if key in snapshot.content
        }
        content = dump_text({"summaryText": None, **kept})
        manifest = manifest_to_json(snapshot.manifest)
        values = {"content_json": content, "manifest": manifest}
        hashed = digest_of(content, manifest)
        db.change("erase_snapshot_text", key=snapshot.key, digest=hashed, now=db.now(), **values)
    return get(db, session, id)


def last_undo(db: Database, session: SessionKey, tip: str | None = None) -> Undo | None:
    """Return the newest undo on the branch that ends at `tip`, or on the current one."""
    rows = db.rows("undos", session=session)
    if not rows:
        return None
    bottom = tree.tip_node(db, session, tip)
    there = tree.on_path(db, bottom.key, [row["key"] for row in rows if row["key"]])
    for row in rows:
        if row["key"] in there or row["key"] is None:
            return Undo(row["snapshot"], row["message"], row["depth"], row["created_at"])
    return None


def _insert(db: Database, session: SessionKey, draft: SnapshotDraft) -> None:
    cutoff = tree.require(db, session, draft.cutoff) if draft.cutoff else None
    parent = tree.require(db, session, draft.parent) if draft.parent else None
    if draft.kind == "summary":
        if cutoff is None or parent is None:
            raise InputError("a summary needs a cutoff and a parent message")
        if cutoff.key not in tree.on_path(db, parent.key, [cutoff.key]):
            raise InputError(f"the cutoff {cutoff.id} is not on the path to {parent.id}")
    content, manifest = dump_text(dict(draft.content)), manifest_to_json(draft.manifest)
    db.change(
        "insert_snapshot",
        session=session,
        id=draft.id,
        kind=draft.kind,
        content_json=content,
        cutoff=cutoff.key if cutoff else None,
        cutoff_id=cutoff.id if cutoff else None,
        cutoff_depth=cutoff.depth if cutoff else None,
        parent=parent.key if parent else None,
        parent_id=parent.id if parent else None,
        parent_depth=parent.depth if parent else None,
        token_count=draft.token_count,
        tokenizer=draft.tokenizer,
        previous_id=draft.previous,
        strategy=draft.strategy,
        author=draft.author,
        manifest=manifest,
        digest=digest_of(content, manifest),
        now=db.now(),
    )


def _insert_edits(
    db: Database, session: SessionKey, snapshot: str, drafts: Sequence[EditDraft]
) -> None:
    keys = tree.keys_of(db, session, [draft.message for draft in drafts])
    ledgers = [None if draft.ledger is None else dump_text(dict(draft.ledger)) for draft in drafts]
    db.change_many(
        "insert_edit",
        (
            {
                "session": session,
                "id": draft.id,
                "message": keys[draft.message],
                "snapshot": snapshot,
                "tokens": draft.tokens,
                "tokenizer": draft.tokenizer,
                "estimate": draft.estimate,
                "digest": digest_of(draft.body, ledger),
                "ledger": ledger,
                "body": draft.body,
            }
            for draft, ledger in zip(drafts, ledgers, strict=True)
        ),
    )


def digest_of(content: str | bytes, more: str | None) -> str:
    """Return the digest of a snapshot's content and manifest, or of an edit's body and ledger."""
    body = content.encode() if isinstance(content, str) else content
    return digest(body if more is None else body + b"\0" + more.encode())


def is_snapshot_unchanged(row: Row) -> bool:
    """Return False if content or manifest do not match the digest; earlier versions wrote none."""
    stored: str | None = row["digest"]
    return stored is None or stored == digest_of(row["content_json"], row["manifest"])


def is_edit_unchanged(row: Row) -> bool:
    """Return False if body or ledger do not match the digest; earlier versions left out ledgers."""
    stored: str | None = row["digest"]
    return stored == digest_of(row["body"], row["ledger"]) or stored == digest(row["body"])


def _snapshot(row: Row) -> Snapshot:
    values = dict(row)
    content: Any = loads(values["content"])
    # Other programs that share these tables write a bare text.
    values["content"] = {"summaryText": content} if isinstance(content, str) else content
    values["manifest"] = manifest_from_json(values["manifest"])
    values["undone"] = bool(values["undone"])
    return Snapshot(**values)


def _edit(row: Row) -> Edit:
    """Return the edit; raise `IntegrityError` if its bytes have changed."""
    ledger = row["ledger"]
    edit = Edit(**{**dict(row), "ledger": None if ledger is None else loads(ledger)})
    if not is_edit_unchanged(row):
        raise IntegrityError(
            f"the edit {edit.id} of message {edit.message} no longer matches its digest; "
            "restore the database from a backup"
        )
    return edit


def view(
    db: Database,
    session: SessionKey,
    tip: str | None = None,
    *,
    share_across_branches: bool = False,
    without: Collection[str] = (),
    max_tokens: int | None = None,
    earlier: ViewRows | None = None,
) -> ViewRows:
    """Return the rows of the view of the branch that ends at `tip`, or of the current branch.

    `without` has the ids of snapshots to ignore. Of a long view with more than `max_tokens`, only
    the newest messages are read. Rows that an `earlier` view has are not read again.
    """
    bottom = tree.tip_node(db, session, tip)
    snapshot = applicable_at(
        db, session, bottom, share_across_branches=share_across_branches, without=without
    )
    cutoff_depth = (snapshot.cutoff_depth or 0) if snapshot else 0
    above, skipped_tokens = cutoff_depth, 0
    if max_tokens is not None and bottom.depth - cutoff_depth > LONGEST_VIEW:
        tokens_before = tree.ancestor(db, bottom, cutoff_depth).path_tokens
        if bottom.path_tokens - tokens_before > max_tokens:
            above = bottom.depth - LONGEST_VIEW
            skipped_tokens = tree.ancestor(db, bottom, above).path_tokens - tokens_before
    found = ViewRows(
        session=sessions.get(db, session),
        tip=bottom.id,
        depth=bottom.depth,
        snapshot=snapshot,
        shown=(),
        after=(),
        skipped=above - cutoff_depth,
        skipped_tokens=skipped_tokens,
    )
    if earlier is not None and _is_same_start(found, earlier):
        newer = tree.line(db, bottom.key, earlier.depth) if bottom.depth > earlier.depth else ()
        if (newer[0].parent if newer else bottom.id) == earlier.tip:
            return replace(found, shown=earlier.shown, after=earlier.after + newer)
    return replace(
        found,
        shown=tuple(entries(db, snapshot)) if snapshot else (),
        after=tree.line(db, bottom.key, above) if bottom.depth > above else (),
    )


def _is_same_start(one: ViewRows, other: ViewRows) -> bool:
    """Return True if two views begin after the same cutoff, with the same summary.

    Messages, edits and manifests never change, and an id names one message of a session.
    """
    return (
        (one.session.key, one.session.created_at) == (other.session.key, other.session.created_at)
        and (one.snapshot and one.snapshot.id) == (other.snapshot and other.snapshot.id)
        and one.skipped == other.skipped == 0
    )


def oldest_part(
    db: Database,
    session: SessionKey,
    tip: str | None = None,
    *,
    share_across_branches: bool = False,
) -> str | None:
    """Return the last message of the oldest part of a long view; None if it is not long."""
    bottom = tree.tip_node(db, session, tip)
    snapshot = applicable_at(db, session, bottom, share_across_branches=share_across_branches)
    cutoff_depth = (snapshot.cutoff_depth or 0) if snapshot else 0
    if bottom.depth - cutoff_depth <= LONGEST_VIEW:
        return None
    return tree.ancestor(db, bottom, cutoff_depth + LONGEST_VIEW).id


def entries(db: Database, snapshot: Snapshot) -> list[ViewRow]:
    """Return the manifest with messages and edits in place of their ids, with two queries."""
    manifest = snapshot.manifest
    wanted = [entry.edit for entry in manifest if isinstance(entry, EditReference)]
    ends = [(entry.first, entry.last) for entry in manifest if isinstance(entry, KeptRange)]
    edits = edits_by_id(db, snapshot.session, wanted) if wanted else {}
    ranges = iter(tree.segments(db, snapshot.session, ends) if ends else ())
    shown: list[ViewRow] = []
    for entry in manifest:
        found: Sequence[ViewRow]
        match entry:
            case KeptRange():
                found = next(ranges)
            case EditReference(edit):
                found = [edits[edit]] if edit in edits else []
            case SummaryPlace():
                found = [entry]
        if not found:
            raise IntegrityError(
                f"snapshot {snapshot.id} shows {entry}, which is not in the session"
            )
        shown.extend(found)
    return shown
