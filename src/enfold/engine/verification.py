"""Verification: checks that everything that is stored is whole and unchanged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from enfold.engine.state import message_of, search_text
from enfold.errors import ConfigError, NotFoundError, TokenCountError
from enfold.records import SessionKey, StoredMessage
from enfold.store import integrity
from enfold.store.database import Database
from enfold.store.integrity import IntegrityFault, ReadBody, SessionCheck, SessionHead
from enfold.store.store import Store
from enfold.tokens import count_message

_MOST = 1_000
"""The most problems that are listed."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification."""

    JSON_FIELDS: ClassVar = (
        "ok",
        "sessions",
        "messages",
        "snapshots",
        "edits",
        "search_rows",
        "problems",
    )
    sessions: int
    """The number of verified sessions."""
    messages: int
    """Their messages, of all branches."""
    snapshots: int
    """Their compressions, with their manifests."""
    edits: int
    """Their shortened messages, with their ledgers."""
    search_rows: int
    """Their rows of the search index."""
    problems: tuple[IntegrityFault, ...]
    """The rows that are missing or changed; at most 1,000."""

    @property
    def ok(self) -> bool:
        """True if nothing is missing or changed."""
        return not self.problems


async def verify(
    store: Store,
    *,
    namespace: str | None = None,
    session: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Verification:
    """Check every row of the database, or of a namespace or a session.

    Each session is read in one transaction. `progress` gets the number of verified sessions.
    """
    whole = namespace is None and session is None
    problems = await store.read(integrity.check_database) if whole else []
    total, number = SessionCheck(), 0
    async for head in _heads(store, namespace, session):
        found = await store.read(check, head.key)
        problems += [replace(problem, session=head.id) for problem in found.problems]
        for name in ("messages", "snapshots", "edits", "search_rows"):
            setattr(total, name, getattr(total, name) + getattr(found, name))
        number += 1
        progress(number)
    if session is not None and not number:
        raise NotFoundError(f"there is no session {session!r}")
    return Verification(
        sessions=number,
        messages=total.messages,
        snapshots=total.snapshots,
        edits=total.edits,
        search_rows=total.search_rows,
        problems=tuple(problems[:_MOST]),
    )


async def _heads(
    store: Store, namespace: str | None, session: str | None
) -> AsyncIterator[SessionHead]:
    """Yield the sessions to verify: all, those of a namespace, or one by its name."""
    key = 0
    while page := await store.read(integrity.heads, key):
        for head in page:
            is_there = namespace is None or namespace in {head.namespace, head.listed_in}
            if is_there and (session is None or head.id == session):
                yield head
        key = page[-1].key


def check(db: Database, key: SessionKey) -> SessionCheck:
    """Check every row of a session."""

    def read(stored: StoredMessage) -> ReadBody:
        message = message_of(stored)
        try:
            tokens: int | None = count_message(message, stored.tokenizer)
        except (ConfigError, TokenCountError):  # the tokenizer cannot be loaded here
            tokens = None
        return ReadBody(message.role, search_text(message), tokens)

    return integrity.check_session(db, key, read)
