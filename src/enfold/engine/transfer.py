"""Transfer: conversations from files into sessions, and sessions out again, whole.

A branch leaves as an array of its messages, each with the bytes it came with. A whole session,
all branches included, leaves as an archive, which can be read in again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from enfold.engine.state import drafts, message_of
from enfold.errors import ConfigError, InputError
from enfold.jsontext import dumps
from enfold.records import ROOT, AppendPlace, MessageDraft, SessionKey, SessionUpdate, StoredMessage
from enfold.store import sessions, tree
from enfold.store.database import Database
from enfold.transcripts import Transcript, TranscriptEntry
from enfold.transcripts.archive import FORMAT, VERSION

if TYPE_CHECKING:
    from enfold.engine.engine import Engine
    from enfold.engine.session import Session

_BATCH = 1_000
"""Messages written in one transaction."""


async def import_transcript(
    engine: Engine, transcript: Transcript, *, id: str | None = None, namespace: str = ""
) -> Session:
    """Store a conversation of a file with all its branches; stored messages are recognised."""
    name = id or transcript.id or await _free_name(engine, namespace)
    session = await engine.session(name, namespace=namespace, title=transcript.title or None)
    tokenizer = await session.tokenizer()
    ids: dict[str, str] = {}
    for run in _runs(transcript.entries):
        after: str | AppendPlace = ROOT
        if run[0].parent_id is not None:
            if run[0].parent_id not in ids:
                raise InputError(f"message {run[0].id!r} follows {run[0].parent_id!r}, unknown")
            after = ids[run[0].parent_id]
        written = [
            # The time of the import is not the time of the message.
            replace(draft, is_dated=entry.message.at is not None)
            for draft, entry in zip(
                drafts([entry.message for entry in run], tokenizer), run, strict=True
            )
        ]
        stored = await engine.store.write(tree.append, session.key, written, after)
        ids.update((entry.id, row.id) for entry, row in zip(run, stored, strict=True))
    if transcript.tip is not None:
        await session.switch(ids[transcript.tip])
    return session


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
    made = await engine.session(
        id,
        namespace=session.namespace,
        profile=record.profile,
        model=record.model,
        title=record.title or None,
    )
    await engine.store.write(_fill, made.key, written, record.settings)
    return made


def _fill(
    db: Database, key: SessionKey, written: Sequence[MessageDraft], settings: Mapping[str, Any]
) -> None:
    tree.append(db, key, written, ROOT)
    sessions.update(db, key, SessionUpdate(settings=settings))


def _runs(entries: Sequence[TranscriptEntry]) -> Iterator[list[TranscriptEntry]]:
    """Entries that follow each other, in batches."""
    run: list[TranscriptEntry] = []
    for entry in entries:
        if run and (entry.parent_id != run[-1].id or len(run) == _BATCH):
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


async def _free_name(engine: Engine, namespace: str) -> str:
    for number in count(1):
        name = f"imported-{number}"
        if await engine.store.read(sessions.find, namespace, name) is None:
            return name
    raise AssertionError("numbers do not end")


async def export_branch(engine: Engine, session: Session) -> bytes:
    """The current branch as a JSON array, every message with the bytes it came with."""
    rows = await engine.store.read(tree.path, session.key)
    return b"[" + b",".join(row.body for row in rows) + b"]"


async def export_archive(engine: Engine, session: Session) -> bytes:
    """The whole session as one JSON object: every message of every branch, and how they hang."""
    head, rows = await engine.store.read(_read_all, session.key)
    entries = b",".join(_entry(row) for row in rows)
    return dumps(head)[:-1] + b',"entries":[' + entries + b"]}"


def _read_all(db: Database, key: SessionKey) -> tuple[dict[str, object], Sequence[StoredMessage]]:
    session = sessions.get(db, key)
    rows: dict[str, StoredMessage] = {}
    for branch in tree.branches(db, key):
        for row in tree.path(db, key, branch.tip):
            rows.setdefault(row.id, row)
    head: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "id": session.id,
        "title": session.title,
        "tip": session.tip,
    }
    return head, sorted(rows.values(), key=lambda row: row.key)


def _entry(row: StoredMessage) -> bytes:
    at = row.created_at if row.is_dated else None
    fields = {"id": row.id, "parent_id": row.parent, "dialect": row.dialect, "at": at}
    return dumps(fields)[:-1] + b',"message":' + row.body + b"}"
