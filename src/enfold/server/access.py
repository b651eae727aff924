"""Access: an access token becomes the caller, whose namespace a request stays in.

A token comes as the header `x-enfold-token`, as the beginning of the path (`/t/{token}/…`), or, for
what is enfold's own and not passed on to a provider, as `Authorization: Bearer`. A browser whose
user has signed in sends it as a cookie, which opens the web UI and nothing else. It is taken out of
the request here; nothing behind this place sees it.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import Protocol
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from enfold.engine.access import AccessRegistry
from enfold.errors import AccessError, TokenError, TooManyError
from enfold.records import AccessToken, check_name
from enfold.server.callers import ON_THIS_MACHINE, Caller, remember
from enfold.server.headers import find

_REMEMBERED = 10_000
"""So many callers at most are told apart; who has not come for longest is forgotten."""


class Buckets:
    """A bucket for each caller."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = monotonic) -> None:
        self._per_second = per_minute / 60
        self._size = float(max(1, per_minute // 6))
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str) -> None:
        """One request of theirs; `TooManyError` if their bucket is empty."""
        level = self._level(who)
        if level < 1:
            wait = (1 - level) / self._per_second
            raise TooManyError(f"too many requests; come back in {wait:.1f} s", retry_after=wait)
        self._levels[who] = (level - 1, self._clock())
        self._levels.move_to_end(who)
        if len(self._levels) > _REMEMBERED:
            self._levels.popitem(last=False)

    def _level(self, who: str) -> float:
        level, then = self._levels.get(who, (self._size, self._clock()))
        return min(self._size, level + (self._clock() - then) * self._per_second)


class Rates:
    """Lets each caller through as often as is allowed."""

    def __init__(self, app: ASGIApp, per_minute: int) -> None:
        self._app = app
        self._buckets = Buckets(per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and not _is_part_of_a_page(scope):
            caller: Caller = scope["state"]["caller"]
            self._buckets.take(f"token {caller.name}" if caller.has_token else address_of(scope))
        await self._app(scope, receive, send)


def _is_part_of_a_page(scope: Scope) -> bool:
    """The pieces of the web UI's pages: dozens a page, the same for all, and kept by browsers."""
    return bool(scope["method"] == "GET" and scope["path"].startswith("/_nicegui/"))


def address_of(scope: Scope) -> str:
    """Where a request came from."""
    client = scope.get("client")
    return f"address {client[0]}" if client else "address unknown"


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

    def __init__(self, access: AccessRegistry) -> None:
        self._access = access
        self._guesses = Buckets(_GUESSES)
        self._known: dict[str, tuple[float, AccessToken]] = {}
        self._forgotten = 0
        """How often that was."""

    async def caller(self, token: str, scope: Scope) -> Caller:
        """Who has that token; `TokenError` if nobody."""
        row = await self._find(token)
        if row is None:
            self._guesses.take(address_of(scope))
            raise TokenError("invalid access token; ask the server's owner for another")
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
        row = await self._access.find_token(token)
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


_HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(host: str, more: tuple[str, ...]) -> frozenset[str] | None:
    """The names that a request may ask for; None for any, where only a token lets one in."""
    if is_loopback(host):
        return _HERE | {host, *more}
    return frozenset(more) or None


class Guard:
    """Lets requests through that no foreign page can have made."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] in {"http", "websocket"}:
            # A socket can do anything that our own pages can, so it is never taken for harmless.
            self._check(scope)
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        host = _text(find(scope["headers"], b"host"))
        if self._hosts is not None and _name(host) not in self._hosts:
            raise AccessError(
                f"this server does not answer to the host {host[:80]!r}; "
                "name it in ENFOLD_HOSTS if it should"
            )
        origin = find(scope["headers"], b"origin")
        if origin is None or scope.get("method") in _HARMLESS:
            return
        if urlsplit(_text(origin)).netloc.lower() != host.lower():
            raise AccessError(f"a page of {_text(origin)[:80]!r} may not change anything here")


def _text(value: bytes | None) -> str:
    return (value or b"").decode("latin-1")


def _name(host: str) -> str:
    """The host without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
