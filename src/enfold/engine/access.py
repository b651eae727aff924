"""Access: the tokens that open a server, their namespaces, and the audit log."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from enfold.engine.state import SettingsLevel, read_settings
from enfold.errors import NotFoundError, StoreError
from enfold.records import AccessToken, AuditDraft, AuditEntry
from enfold.store import access, sessions
from enfold.store.database import Database
from enfold.store.store import Store

_SESSIONS_AT_A_TIME = 100
_DAY = 24 * 60 * 60 * 1_000

_log = logging.getLogger("enfold.engine")


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace that has sessions."""

    JSON_FIELDS: ClassVar = ("namespace=name", "token", "sessions")
    name: str
    """The namespace's name, for the header `x-enfold-namespace`."""
    sessions: int
    """The number of its sessions."""
    token: str | None
    """The name of its access token. None if it has none, or if the token was deleted."""


class AccessRegistry:
    """Access tokens, namespaces and the audit log of a store."""

    def __init__(self, store: Store, static_settings: Sequence[SettingsLevel]) -> None:
        self._store = store
        self._static_settings = static_settings

    async def tokens(self) -> tuple[AccessToken, ...]:
        """Return every access token, by name."""
        return await self._store.read(access.tokens)

    async def token(self, id: str) -> AccessToken:
        """Return the token with an id; raise `NotFoundError` if there is none."""
        return await self._store.read(access.get, id)

    async def find_token(self, text: str) -> AccessToken | None:
        """Return the record of a token's text. None if the token is not valid."""
        return await self._store.read(access.find, text)

    async def add_token(self, name: str) -> tuple[AccessToken, str]:
        """Make a token with a new namespace; return its record and its text."""
        text = access.new_token()
        return await self._store.write(access.add, name, text), text

    async def put_first_token(self, text: str) -> AccessToken:
        """Accept the server's own token, in place of the one before."""
        return await self._store.write(access.put_first, text)

    async def delete_token(self, id: str) -> AccessToken:
        """Delete a token and return its record. Its sessions stay."""
        return await self._store.write(access.delete, id)

    async def namespace_secret(self) -> bytes:
        """Return the key for hashes that separate callers without a token."""
        return await self._store.write(access.namespace_secret)

    async def namespaces(self, *, limit: int = 50, after: str = "") -> list[Namespace]:
        """Return namespaces with sessions, by name, without the command line's."""

        def read(db: Database) -> list[Namespace]:
            names = {row.namespace: row.name for row in access.tokens(db)}
            found = sessions.namespaces(db, limit=limit, after=after)
            return [Namespace(name, number, names.get(name)) for name, number in found]

        return await self._store.read(read)

    async def list_client_sessions(self) -> None:
        """List older sessions of proxy clients without a token in the owner's namespace."""
        # One at a time: each is a write, and requests must not wait long for the store.
        while await self._store.write(sessions.list_next_client_session):
            pass

    async def count_sessions(self, namespace: str) -> int:
        """Return the number of sessions of a namespace."""
        return await self._store.read(sessions.count, namespace)

    async def delete_sessions(self, namespace: str) -> int:
        """Delete all sessions of a namespace and return their number.

        Each is deleted in a transaction of its own, so that no other writer waits for long and an
        interrupted deletion can be repeated.
        """
        number = 0
        while page := await self._store.read(sessions.page, namespace, limit=_SESSIONS_AT_A_TIME):
            for session in page:
                with suppress(NotFoundError):  # another process deleted it first
                    await self._store.write(sessions.delete, session.key)
                    number += 1
        return number

    async def log(self, entry: AuditDraft) -> None:
        """Write an audit entry, and delete some of those that are too old.

        The action has already happened, so a log that cannot be written is only reported.
        """

        def write(db: Database) -> None:
            access.log(db, entry)
            days = read_settings(db, self._static_settings).audit_days
            access.forget(db, before=db.now() - days * _DAY)

        try:
            await self._store.append(write)
        except StoreError as error:
            _log.error("the audit log could not be written: %s", error)

    async def audit(
        self, namespace: str, *, limit: int = 50, before: int | None = None
    ) -> tuple[AuditEntry, ...]:
        """Return audit entries of a namespace, newest first."""
        return await self._store.read(access.logged, namespace, limit=limit, before=before)
