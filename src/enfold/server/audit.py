"""Audit: who changed what through the API, in the store. Ids and counts, never text."""

from __future__ import annotations

import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from enfold.errors import StoreError
from enfold.server.callers import Caller
from enfold.server.failures import request_id
from enfold.server.segments import name_in
from enfold.server.tracing import route_of
from enfold.store import Store, access
from enfold.store.access import AuditDraft

_ONLY_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_log = logging.getLogger("enfold.server")


class Audit:
    """Writes down every request that may have changed something."""

    def __init__(self, app: ASGIApp, store: Store) -> None:
        self._app = app
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["method"] in _ONLY_READING:
            await self._app(scope, receive, send)
            return
        status = 0

        async def watch(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            if route_of(scope) != "other":
                await self._write(scope, status)

    async def _write(self, scope: Scope, status: int) -> None:
        """The work is done, so a log that cannot be written does not undo it; it is said."""
        caller: Caller = scope["state"]["caller"]
        named = scope.get("path_params", {}).get("session")
        entry = AuditDraft(
            actor=caller.name,
            namespace=caller.namespace,
            action=f"{scope['method']} {route_of(scope)}",
            status=status,
            request_id=request_id(scope),
            session=None if named is None else name_in(named),
            counts=scope["state"].get("counts", {}),
        )
        try:
            await self._store.write(access.log, entry)
        except StoreError as error:
            _log.error("the audit log could not be written: %s", error)
