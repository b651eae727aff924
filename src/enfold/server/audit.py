"""Audit: who changed what through the API, in the store. Ids and counts, never text."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from enfold.engine import Engine
from enfold.engine.audit import write_down
from enfold.server.callers import Caller
from enfold.server.failures import request_id
from enfold.server.segments import name_in
from enfold.server.tracing import route_of
from enfold.store.access import AuditDraft

_ONLY_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Audit:
    """Writes down every request that may have changed something."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self._app = app
        self._engine = engine

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
        await write_down(self._engine, entry)
