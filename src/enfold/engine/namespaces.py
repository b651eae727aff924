"""Namespaces: whose sessions there are, and how all of somebody's are deleted."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from enfold.errors import NotFoundError
from enfold.store import access, sessions
from enfold.store.database import Database
from enfold.store.store import Store

_AT_A_TIME = 100


@dataclass(frozen=True, slots=True)
class Namespace:
    """Where somebody's sessions are."""

    name: str
    sessions: int
    token: str | None
    """The name of the access token that opens it. None: there is none, or it was deleted."""


def read_namespaces(db: Database, *, limit: int = 50, after: str = "") -> list[Namespace]:
    """Namespaces in which there are sessions, by name; the command line's own is not among them."""
    names = {row.namespace: row.name for row in access.tokens(db)}
    found = sessions.namespaces(db, limit=limit, after=after)
    return [Namespace(name, number, names.get(name)) for name, number in found]


async def delete_sessions(store: Store, namespace: str) -> int:
    """Delete all sessions of a namespace, one after the other; how many there were.

    Nobody else waits for long, and what a failure interrupts can be done again.
    """
    number = 0
    while page := await store.read(sessions.page, namespace, limit=_AT_A_TIME):
        for session in page:
            with suppress(NotFoundError):  # somebody else was quicker
                await store.write(sessions.delete, session.key)
                number += 1
    return number
