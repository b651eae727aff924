"""Access: an access token becomes the caller, whose namespace a request stays in.

A token comes as the header `x-enfold-token`, as the beginning of the path (`/t/{token}/…`), or, for
what is enfold's own and not passed on to a provider, as `Authorization: Bearer`. It is taken out of
the request here; nothing behind this place sees it.
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from enfold.errors import TokenError
from enfold.server.callers import ON_THIS_MACHINE, Caller, remember
from enfold.server.rates import Buckets, address_of
from enfold.store import Store, access
from enfold.store.access import AccessToken

HEADER = b"x-enfold-token"
NAMESPACE = b"x-enfold-namespace"
"""Lets whoever may do everything act for those who come to the proxy without a token."""
OPEN = frozenset({"/healthz", "/readyz", "/docs", "/openapi.json"})
"""What anybody may see: whether the server works, and how it is used."""
OWN = ("/api/", "/metrics")
"""Where `Authorization` is meant for enfold."""
_PATH = "/t/"
_SECONDS = 5.0
"""How long a token may still be taken for good after it was deleted."""
_KNOWN = 10_000
_GUESSES = 180
"""Wrong tokens a minute from one address; a sixth of them at once."""


class Access:
    """Finds out who calls, and turns away who may not."""

    def __init__(self, app: ASGIApp, store: Store, *, required: bool) -> None:
        self._app = app
        self._store = store
        self._required = required
        self._guesses = Buckets(_GUESSES)
        self._known: dict[str, tuple[float, AccessToken]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] in {"http", "websocket"}:
            token, namespace = _take_token(scope)
            caller = await self._caller(token, scope)
            if namespace and caller.is_owner:
                caller = replace(caller, namespace=namespace)
            remember(scope, caller)
        await self._app(scope, receive, send)

    async def _caller(self, token: str | None, scope: Scope) -> Caller:
        if token is not None:
            row = await self._find(token)
            if row is None:
                self._guesses.take(address_of(scope))
                raise TokenError("nobody here knows this access token; ask for another")
            return Caller(row.name, row.namespace)
        if self._required and scope["path"] not in OPEN:
            raise TokenError(
                "an access token is needed: send it as x-enfold-token, as Authorization: Bearer "
                "under /api, or put /t/{token} before the path"
            )
        return ON_THIS_MACHINE

    async def _find(self, token: str) -> AccessToken | None:
        """The token's row, asked for every few seconds and not with every request."""
        until, row = self._known.get(token, (0.0, None))
        if row is not None and monotonic() < until:
            return row
        row = await self._store.read(access.find, token)
        if row is None:
            self._known.pop(token, None)
            return None
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known[token] = (monotonic() + _SECONDS, row)
        return row


def _take_token(scope: Scope) -> tuple[str | None, str]:
    """The token of a request and the namespace it asks for; it is without them afterwards."""
    token, namespace = _from_path(scope), ""
    others: list[tuple[bytes, bytes]] = []
    for name, value in scope["headers"]:
        if name == HEADER:
            token = token or value.decode("latin-1").strip()
        elif name == NAMESPACE:
            namespace = value.decode("latin-1").strip()
        elif name == b"authorization" and _is_own(scope["path"]):
            scheme, _, given = value.decode("latin-1").partition(" ")
            token = token or (given.strip() if scheme.lower() == "bearer" else None)
        else:
            others.append((name, value))
    scope["headers"] = others
    return token, namespace


def _is_own(path: str) -> bool:
    return path.startswith(OWN)


def _from_path(scope: Scope) -> str | None:
    """The token before the path, and the path without it."""
    path: str = scope["path"]
    if not path.startswith(_PATH):
        return None
    raw: bytes = scope.get("raw_path") or path.encode()
    token, slash, rest = raw[len(_PATH) :].partition(b"/")
    scope["raw_path"] = slash + rest or b"/"
    scope["path"] = unquote(scope["raw_path"].decode("latin-1"))
    return unquote(token.decode("latin-1")) or None
