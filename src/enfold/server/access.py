"""Access: an access token becomes the caller, whose namespace a request stays in.

A token comes as the header `x-enfold-token`, as the beginning of the path (`/t/{token}/…`), or, for
what is enfold's own and not passed on to a provider, as `Authorization: Bearer`. A browser whose
user has signed in sends it as a cookie, which opens the web UI and nothing else. It is taken out of
the request here; nothing behind this place sees it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import Protocol
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from enfold.errors import TokenError
from enfold.server.callers import ON_THIS_MACHINE, Caller, remember
from enfold.server.rates import Buckets, address_of
from enfold.store import Store, access
from enfold.store.access import AccessToken
from enfold.store.sessions import check_name

HEADER = b"x-enfold-token"
NAMESPACE = b"x-enfold-namespace"
"""Lets whoever may do everything act for those who come to the proxy without a token."""
COOKIE = "enfold-token"
"""What a browser keeps the token in once somebody has signed in."""
OPEN = frozenset({"/healthz", "/readyz", "/docs", "/openapi.json", "/signin", "/signout"})
"""What anybody may see: whether the server works, how it is used, and where one signs in."""
OWN = ("/api/", "/metrics")
"""Where `Authorization` is meant for enfold."""
_PATH = "/t/"
_SECONDS = 5.0
"""How long a token may still be taken for good after another process has deleted it."""
_KNOWN = 10_000
_GUESSES = 180
"""Wrong tokens a minute from one address; a sixth of them at once."""


class SignInPage(Protocol):
    """What somebody sees in a browser who has not said who they are."""

    def is_for(self, scope: Scope) -> bool:
        """Whether the request is a browser's, for a page."""

    def page(self, scope: Scope) -> ASGIApp:
        """The page."""


class Tokens:
    """Whose an access token is, and a limit to guessing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._guesses = Buckets(_GUESSES)
        self._known: dict[str, tuple[float, AccessToken]] = {}
        self._forgotten = 0
        """How often that was."""

    async def caller(self, token: str, scope: Scope) -> Caller:
        """Who has that token; `TokenError` if nobody."""
        row = await self._find(token)
        if row is None:
            self._guesses.take(address_of(scope))
            raise TokenError("nobody here knows this access token; ask for another")
        return Caller(row.name, row.namespace)

    def forget(self, id: str) -> None:
        """The token of that id was deleted: it is refused from now on."""
        self._forgotten += 1
        self._known = {token: kept for token, kept in self._known.items() if kept[1].id != id}

    async def _find(self, token: str) -> AccessToken | None:
        """The token's row, asked for every few seconds and not with every request."""
        until, row = self._known.get(token, (0.0, None))
        if row is not None and monotonic() < until:
            return row
        forgotten = self._forgotten
        row = await self._store.read(access.find, token)
        if row is None:
            self._known.pop(token, None)
            return None
        if forgotten != self._forgotten:
            return row  # it may be the one that was deleted while it was looked for
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known[token] = (monotonic() + _SECONDS, row)
        return row


class Access:
    """Finds out who calls, and turns away who may not."""

    def __init__(
        self, app: ASGIApp, tokens: Tokens, *, required: bool, sign_in: SignInPage | None = None
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._required = required
        self._sign_in = sign_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] in {"http", "websocket"}:
            given = _take(scope)
            try:
                caller = await self._caller(given, scope)
            except TokenError:
                if self._sign_in is None or not self._sign_in.is_for(scope):
                    raise
                await self._sign_in.page(scope)(scope, receive, send)
                return
            if given.namespace and caller.is_owner:
                check_name("x-enfold-namespace", given.namespace)
                caller = replace(caller, namespace=given.namespace)
            remember(scope, caller)
        await self._app(scope, receive, send)

    async def _caller(self, given: _Given, scope: Scope) -> Caller:
        if given.token is not None:
            return await self._tokens.caller(given.token, scope)
        if given.cookie is not None and self._sign_in is not None:
            # One that another server on this machine has set means nothing here.
            with suppress(TokenError):
                return await self._tokens.caller(given.cookie, scope)
        if self._required and scope["path"] not in OPEN:
            raise TokenError(
                "an access token is needed: send it as x-enfold-token, as Authorization: Bearer "
                "under /api, or put /t/{token} before the path"
            )
        return ON_THIS_MACHINE


@dataclass(frozen=True, slots=True)
class _Given:
    """What a request says of who sent it."""

    token: str | None
    cookie: str | None
    """The token of somebody who signed in; it is good for the web UI only."""
    namespace: str


def _take(scope: Scope) -> _Given:
    """What the request says of its caller; it is without it afterwards."""
    token, cookie, namespace = _from_path(scope), None, ""
    others: list[tuple[bytes, bytes]] = []
    for name, value in scope["headers"]:
        if name == HEADER:
            token = token or value.decode("latin-1").strip()
        elif name == NAMESPACE:
            namespace = value.decode("latin-1").strip()
        elif name == b"authorization" and _is_own(scope["path"]):
            scheme, _, given = value.decode("latin-1").partition(" ")
            token = token or (given.strip() if scheme.lower() == "bearer" else None)
        elif name == b"cookie" and COOKIE.encode() in value:
            cookie, rest = _from_cookies(value.decode("latin-1"))
            others += [(name, rest.encode("latin-1"))] if rest else []
        else:
            others.append((name, value))
    scope["headers"] = others
    return _Given(token, None if _is_for_programs(scope["path"]) else cookie, namespace)


def _from_cookies(cookies: str) -> tuple[str | None, str]:
    """Our cookie's value, and the other cookies."""
    pairs = [pair.strip() for pair in cookies.split(";")]
    ours = [pair for pair in pairs if pair.partition("=")[0] == COOKIE]
    value = unquote(ours[0].partition("=")[2]) if ours else ""
    return value or None, "; ".join(pair for pair in pairs if pair not in ours)


def _is_for_programs(path: str) -> bool:
    """What a browser's cookie does not open: a page of another program here could use it."""
    return path.startswith((*OWN, "/v1"))


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
