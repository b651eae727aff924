"""Transfer: conversations from files into sessions, and sessions out again, whole.

A branch leaves as an array of its messages, each with the bytes it came with. A whole session,
all branches included, leaves as an archive, which can be read in again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import count
from typing import TYPE_CHECKING

from enfold.amounts import number
from enfold.engine.state import drafts, message_of, read_model
from enfold.errors import ConfigError, EnfoldError, InputError
from enfold.identity import chain
from enfold.jsontext import dumps
from enfold.records import (
    ROOT,
    AppendPlace,
    MessageDraft,
    SessionKey,
    SessionRecord,
    SessionUpdate,
    StoredMessage,
)
from enfold.store import sessions, tree
from enfold.store.database import Database
from enfold.text.sentences import title_from
from enfold.transcripts import Transcript, TranscriptEntry
from enfold.transcripts.archive import FORMAT, VERSION

if TYPE_CHECKING:
    from enfold.engine.engine import Engine
    from enfold.engine.session import Session

_BATCH = 5_000
"""Messages written in one transaction."""


@dataclass(frozen=True, slots=True)
class _MessageRun:
    """Messages of a file that follow each other, and the file's ids of them."""

    parent_id: str | None
    entry_ids: tuple[str, ...]
    drafts: tuple[MessageDraft, ...]


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """The sessions and messages that an import stored."""

    sessions: tuple[str, ...]
    """The ids of the sessions, in the order of the file."""
    messages: int
    first: date | None = None
    """The day of the oldest message. None if no message has a time."""
    last: date | None = None

    def __str__(self) -> str:
        """Describe it: conversations, messages and their days."""
        days = ""
        if self.first is not None and self.last is not None:
            days = (
                f", {self.first}" if self.first == self.last else f", {self.first} to {self.last}"
            )
        conversations = number(len(self.sessions), "conversation")
        return f"{conversations} with {number(self.messages, 'message')}{days}"


@dataclass(slots=True)
class _Import:
    """An import in progress."""

    namespace: str
    name: str
    title: str | None
    total: int
    key: SessionKey | None = None
    """The session's key, once the first batch is stored."""
    ids: dict[str, str] = field(default_factory=dict)
    """The file's ids of the stored messages -> the ids in the session."""


async def import_transcript(
    engine: Engine, transcript: Transcript, *, id: str | None = None, namespace: str = ""
) -> Session:
    """Store a conversation of a file with all its branches; stored messages are recognised.

    A short conversation is stored in one transaction. A long one is stored in batches, and its
    session is marked until the last one is stored; importing the file again goes on with it.
    """
    _check_parents(transcript.entries)
    name = id or transcript.id
    found = None if not name else await engine.store.read(sessions.find_listed, namespace, name)
    key = None if found is None else found.key
    model_id, model = await engine.store.read(read_model, key, engine.static_settings)
    tokenizer = (model or await engine.models.get(model_id)).tokenizer
    if not name:
        name = await _name_of(engine, transcript, namespace, tokenizer)
    title = transcript.title or title_from(transcript.conversation().messages) or None
    done = _Import(namespace, name, title, len(transcript.entries))
    batches = _batches(transcript.entries)
    for place, batch in enumerate(batches, 1):
        runs = await asyncio.to_thread(_prepare, batch, tokenizer)
        is_last = place == len(batches)
        tip = transcript.tip if is_last else None
        done = await engine.store.write(_store_batch, done, runs, tip, is_last=is_last)
    return await engine.session(name, namespace=namespace, title=transcript.title or None)


async def import_all(
    engine: Engine,
    transcripts: Sequence[Transcript],
    *,
    namespace: str = "",
    on_progress: Callable[[int], None] = lambda _done: None,
) -> ImportSummary:
    """Store all conversations, or none: after a failure the new sessions are deleted."""
    names: list[str] = []
    new: list[Session] = []
    messages = 0
    try:
        for done, transcript in enumerate(transcripts, 1):
            id = transcript.id
            listed = await engine.store.read(sessions.find_listed, namespace, id) if id else None
            stored = await import_transcript(engine, transcript, namespace=namespace)
            names.append(stored.id)
            if listed is None:
                new.append(stored)
            messages += len(transcript.entries)
            on_progress(done)
    except (EnfoldError, asyncio.CancelledError):
        for each in new:
            await each.delete()
        raise
    times = [
        entry.message.at.date()
        for transcript in transcripts
        for entry in transcript.entries
        if entry.message.at is not None
    ]
    return ImportSummary(tuple(names), messages, min(times, default=None), max(times, default=None))


def _prepare(batch: Sequence[Sequence[TranscriptEntry]], tokenizer: str) -> list[_MessageRun]:
    """Count and hash the messages of a batch."""
    runs = []
    for entries in batch:
        made = drafts([entry.message for entry in entries], tokenizer)
        dated = tuple(
            # The time of the import is not the time of the message.
            replace(draft, is_dated=entry.message.at is not None)
            for draft, entry in zip(made, entries, strict=True)
        )
        runs.append(_MessageRun(entries[0].parent_id, tuple(entry.id for entry in entries), dated))
    return runs


def _store_batch(
    db: Database, given: _Import, runs: Sequence[_MessageRun], tip: str | None, *, is_last: bool
) -> _Import:
    """Store a batch; the first one creates the session, the last one moves the tip."""
    key, ids = given.key, dict(given.ids)
    if key is None:
        wanted = SessionUpdate(title=given.title)
        found = sessions.find_listed(db, given.namespace, given.name)
        key = (found or sessions.get_or_create(db, given.namespace, given.name, wanted)).key
        if not is_last:
            sessions.mark_import(db, key, given.total)
    for run in runs:
        after: str | AppendPlace = ROOT if run.parent_id is None else ids[run.parent_id]
        stored = tree.append(db, key, run.drafts, after)
        ids.update(zip(run.entry_ids, (row.id for row in stored), strict=True))
    if is_last:
        sessions.mark_import(db, key, None)
    if tip is not None:
        tree.set_tip(db, key, ids[tip])
    return replace(given, key=key, ids=ids)


def _check_parents(entries: Sequence[TranscriptEntry]) -> None:
    """Raise `InputError` for a message whose parent does not come before it."""
    earlier: set[str] = set()
    for entry in entries:
        if entry.parent_id is not None and entry.parent_id not in earlier:
            raise InputError(
                f"message {entry.id!r} follows the unknown message {entry.parent_id!r}"
            )
        earlier.add(entry.id)


async def _name_of(engine: Engine, transcript: Transcript, namespace: str, tokenizer: str) -> str:
    """Return the name of the interrupted import of this conversation, else a free name."""
    unfinished = await engine.store.read(sessions.unfinished_imports, namespace)
    same = [each for each in unfinished if each.importing == len(transcript.entries)]
    if same:
        first = drafts([transcript.entries[0].message], tokenizer)
        (id,) = chain(draft.content_hash for draft in first)
        for each in same:
            found = await engine.store.read(tree.recognise, [id], session=each.key)
            if found.count:
                return each.id
    for place in count(1):
        name = f"imported-{place}"
        if await engine.store.read(sessions.find, namespace, name) is None:
            return name
    raise AssertionError("numbers do not end")


async def fork_session(
    engine: Engine, session: Session, id: str, *, at: str | None = None
) -> Session:
    """A new session that begins with the messages of a branch, up to one of them or to its tip."""
    if await engine.store.read(sessions.find, session.namespace, id) is not None:
        raise ConfigError(f"there is a session {id!r} already; choose another name")
    record = await engine.store.read(sessions.get, session.key)
    rows = await engine.store.read(tree.path, session.key, at)
    messages = [message_of(row) for row in rows]
    written = [
        replace(draft, body=row.body, created_at=row.created_at, is_dated=row.is_dated)
        for draft, row in zip(drafts(messages, await session.tokenizer()), rows, strict=True)
    ]
    wanted = SessionUpdate(
        title=record.title, profile=record.profile, model=record.model, settings=record.settings
    )

    def create(db: Database) -> None:
        key = sessions.get_or_create(db, session.namespace, id, wanted).key
        tree.append(db, key, written, ROOT)

    await engine.store.write(create)
    return await engine.find(id, namespace=session.namespace)


def _batches(entries: Sequence[TranscriptEntry]) -> list[list[list[TranscriptEntry]]]:
    """Return the entries in batches of runs; in a run each entry follows the one before it."""
    batches: list[list[list[TranscriptEntry]]] = [[]]
    size = 0
    last: str | None = None
    for entry in entries:
        if size == _BATCH:
            batches.append([])
            size = 0
        if not batches[-1] or entry.parent_id is None or entry.parent_id != last:
            batches[-1].append([])
        batches[-1][-1].append(entry)
        size, last = size + 1, entry.id
    return batches


async def export_branch(engine: Engine, session: Session) -> bytes:
    """The current branch as a JSON array, every message with the bytes it came with."""
    rows = await engine.store.read(tree.path, session.key)
    return b"[" + b",".join(row.body for row in rows) + b"]"


async def export_archive(engine: Engine, session: Session) -> bytes:
    """The whole session as one JSON object: every message of every branch, and how they hang."""

    def read(db: Database) -> tuple[SessionRecord, dict[str, StoredMessage]]:
        rows: dict[str, StoredMessage] = {}
        for branch in tree.branches(db, session.key):
            for row in tree.path(db, session.key, branch.tip):
                rows.setdefault(row.id, row)
        return sessions.get(db, session.key), rows

    record, rows = await engine.store.read(read)
    named = {"id": record.id, "title": record.title, "tip": record.tip}
    entries = []
    for row in sorted(rows.values(), key=lambda row: row.key):
        at = row.created_at if row.is_dated else None
        fields = {"id": row.id, "parent_id": row.parent, "dialect": row.dialect, "at": at}
        entries.append(dumps(fields)[:-1] + b',"message":' + row.body + b"}")
    head = dumps({"format": FORMAT, "version": VERSION, **named})
    return head[:-1] + b',"entries":[' + b",".join(entries) + b"]}"
