"""Access: callers, token checks, sign-in, request rates and protection against foreign web pages.

An access token comes in the header `x-enfold-token`, at the beginning of the path (`/t/{token}/…`),
or, on enfold's own routes, as `Authorization: Bearer`. A browser that has signed in sends a cookie,
which opens the web UI only. The token is removed from the request here, so that no later layer and
no provider receives it.
"""

from __future__ import annotations

import ipaddress
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from importlib.resources import files
from string import Template
from time import monotonic
from typing import TypeAlias
from urllib.parse import parse_qs, quote, unquote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from enfold.engine.access import AccessRegistry
from enfold.errors import AccessError, TokenError, TooLargeError, TooManyError
from enfold.records import AccessToken, AuditDraft, check_name
from enfold.server.failures import request_id

Header: TypeAlias = tuple[bytes, bytes]
"""Name and value; the names of a request are in lower case."""

HEADER = b"x-enfold-token"
NAMESPACE = b"x-enfold-namespace"
"""Lets the owner act in another namespace, such as that of proxy clients without a token."""
COOKIE = "enfold-token"
"""The browser's cookie with the token of a signed-in user."""
OPEN = frozenset({"/healthz", "/readyz", "/docs", "/openapi.json", "/signin", "/signout"})
"""Paths that need no token."""
OWN = ("/api/", "/metrics")
"""Paths whose `Authorization` header is for enfold; elsewhere it is for the provider."""
_CREDENTIAL_HEADERS = frozenset({HEADER, NAMESPACE, b"cookie"})
_PATH = "/t/"
_CACHE_SECONDS = 5.0
"""Seconds that a token stays valid here after another process has deleted it."""
_CACHE_SIZE = 10_000
_MAX_CALLERS = 10_000
"""Callers with a bucket. The least recently used bucket is dropped."""
_GUESSES = 180
"""Wrong tokens per minute from one address; a sixth of them at once."""
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_COOKIE_SECONDS = 30 * 24 * 3600
_MAX_FORM_BYTES = 8_192
"""A token has about forty."""
_SEE_OTHER = 303
_UNAUTHORIZED = 401
_TOO_MANY = 429
_SIGN_IN_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'"
)
_log = logging.getLogger("enfold.server")
_SLASH = "\0"
"""Stands for a slash inside a segment until the route is found. No name can contain it."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request."""

    name: str
    """The access token's name; empty for a caller on this machine without a token."""
    namespace: str
    """The namespace of the caller's sessions; empty for the owner, as on the command line."""

    @property
    def is_owner(self) -> bool:
        """True for the first token, and for this machine if no token is required."""
        return not self.namespace

    @property
    def has_token(self) -> bool:
        """True if the request had an access token."""
        return bool(self.name)


ON_THIS_MACHINE = Caller(name="", namespace="")


def remember(scope: Scope, caller: Caller) -> None:
    """Store the caller in the request's scope."""
    scope.setdefault("state", {})["caller"] = caller


def caller_in(scope: Scope) -> Caller:
    """Return the caller that was stored in the request's scope."""
    caller: Caller = scope["state"]["caller"]
    return caller


def require_owner(caller: Caller) -> None:
    """Raise `AccessError` unless the caller is the owner."""
    if not caller.is_owner:
        raise AccessError(
            f"the token {caller.name!r} may not read or change what concerns all callers; "
            "use the server's first token"
        )


_FIRST_HEADERS = "first_headers"


def first_headers(scope: Scope) -> Mapping[bytes, bytes]:
    """Return the first value of each header of a request; the request's state caches it."""
    state = scope.setdefault("state", {})
    found: dict[bytes, bytes] | None = state.get(_FIRST_HEADERS)
    if found is None:
        found = state[_FIRST_HEADERS] = first_values(scope["headers"])
    return found


def first_values(headers: Sequence[Header]) -> dict[bytes, bytes]:
    """Return the first value of each header."""
    return dict(reversed(headers))


class Segments:
    """Decodes the segments of a path one by one, so that `%2F` does not separate segments."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        raw: bytes = scope.get("raw_path") or b""
        if scope["type"] == "http" and b"%2f" in raw.lower():
            segments = raw.decode("latin-1").split("/")
            scope["path"] = "/".join(unquote(each).replace("/", _SLASH) for each in segments)
        await self._app(scope, receive, send)


def name_in(segment: str) -> str:
    """Return the name that a segment of the path stands for."""
    return segment.replace(_SLASH, "/")


class Buckets:
    """A token bucket per caller: a sixth of the requests of a minute may come at once."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = monotonic) -> None:
        self._per_second = per_minute / 60
        self._size = float(max(1, per_minute // 6))
        self._clock = clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """Count one request of a caller; raise `TooManyError` if the bucket is empty."""
        now = self._clock()
        level, then = self._levels.get(caller, (self._size, now))
        level = min(self._size, level + (now - then) * self._per_second)
        if level < 1:
            wait = (1 - level) / self._per_second
            raise TooManyError(f"too many requests; retry in {wait:.1f} s", retry_after=wait)
        self._levels[caller] = (level - 1, now)
        self._levels.move_to_end(caller)
        if len(self._levels) > _MAX_CALLERS:
            self._levels.popitem(last=False)


class Rates:
    """Limits the requests per minute of each caller."""

    def __init__(self, app: ASGIApp, per_minute: int) -> None:
        self._app = app
        self._buckets = Buckets(per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        # A page of the web UI loads dozens of static files, which browsers cache.
        is_limited = scope["type"] == "http" and not (
            scope["method"] == "GET" and scope["path"].startswith("/_nicegui/")
        )
        if is_limited:
            caller = caller_in(scope)
            self._buckets.take(f"token {caller.name}" if caller.has_token else _address(scope))
        await self._app(scope, receive, send)


def _address(scope: Scope) -> str:
    """Return the client's address as the name of a bucket."""
    client = scope.get("client")
    return f"address {client[0]}" if client else "address unknown"


class Tokens:
    """Finds the caller of an access token and limits guessing."""

    def __init__(self, access: AccessRegistry) -> None:
        self._access = access
        self._guesses = Buckets(_GUESSES)
        self._cache: dict[str, tuple[float, AccessToken]] = {}
        self._deletions = 0

    async def caller(self, token: str, scope: Scope, *, logged: bool = True) -> Caller:
        """Return the caller with this token; raise `TokenError` if the token is not valid.

        A refused token is written to the log and to the owner's audit log.
        """
        row = await self._find(token)
        if row is None:
            address = _address(scope)
            self._guesses.take(address)
            if logged:
                _log.warning("refused an invalid access token from %s", address)
                action = f"refused token from {address}"
                await self._access.log(AuditDraft("", "", action, _UNAUTHORIZED, request_id(scope)))
            raise TokenError("invalid access token; ask the server's owner for another")
        return Caller(row.name, row.namespace)

    def forget(self, id: str) -> None:
        """Refuse a deleted token from now on."""
        self._deletions += 1
        self._cache = {token: kept for token, kept in self._cache.items() if kept[1].id != id}

    async def _find(self, token: str) -> AccessToken | None:
        """Return the token's row, from the cache if it was read a few seconds ago."""
        until, row = self._cache.get(token, (0.0, None))
        if row is not None and monotonic() < until:
            return row
        deletions = self._deletions
        row = await self._access.find_token(token)
        if row is None:
            self._cache.pop(token, None)
        elif deletions == self._deletions:  # else this token may have been deleted meanwhile
            if len(self._cache) >= _CACHE_SIZE:
                self._cache.clear()
            self._cache[token] = (monotonic() + _CACHE_SECONDS, row)
        return row


class SignIn:
    """The sign-in page and its form."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the form."""
        return (
            Route("/signin", self._form, methods=["GET"]),
            Route("/signin", self._sign_in, methods=["POST"]),
            Route("/signout", self._sign_out, methods=["POST"]),
        )

    def is_for(self, scope: Scope) -> bool:
        """True if a browser requests a page."""
        accepted = Headers(scope=scope).get("accept", "")
        return scope["type"] == "http" and scope["method"] == "GET" and "text/html" in accepted

    def page(self, scope: Scope) -> ASGIApp:
        """Return the form. After sign-in the browser goes to the requested page."""
        query = scope.get("query_string", b"").decode("latin-1")
        return _sign_in_page(quote(scope["path"]) + (f"?{query}" if query else ""))

    async def _form(self, _request: Request) -> Response:
        return _sign_in_page("/")

    async def _sign_in(self, request: Request) -> Response:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _MAX_FORM_BYTES:
                raise TooLargeError(f"the form is larger than {_MAX_FORM_BYTES:,} bytes")
        fields = parse_qs(body.decode("utf-8", "replace"))
        token = fields.get("token", [""])[0].strip()
        onwards = _own_path(fields.get("onwards", ["/"])[0])
        try:
            await self._tokens.caller(token, request.scope)
        except TokenError as error:
            return _sign_in_page(onwards, str(error))
        except TooManyError as error:
            return _sign_in_page(onwards, str(error), _TOO_MANY)
        answer = RedirectResponse(onwards, _SEE_OTHER)
        answer.set_cookie(
            COOKIE,
            quote(token, safe=""),
            max_age=_COOKIE_SECONDS,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    async def _sign_out(self, _request: Request) -> Response:
        answer = RedirectResponse("/signin", _SEE_OTHER)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer


def _own_path(path: str) -> str:
    """Return the path if it is on this server, else `/`: a link must not lead elsewhere."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if is_ours and path.isprintable() else "/"


def _sign_in_page(onwards: str, fault: str = "", status: int = _UNAUTHORIZED) -> Response:
    template = Template(files(__package__).joinpath("signin.html").read_text("utf-8"))
    text = template.substitute(onwards=escape(onwards), fault=escape(fault))
    headers = {"content-security-policy": _SIGN_IN_POLICY, "cache-control": "no-store"}
    return HTMLResponse(text, status, headers)


class Access:
    """Finds the caller of each request and refuses requests without a valid token."""

    def __init__(
        self, app: ASGIApp, tokens: Tokens, *, required: bool, sign_in: SignIn | None = None
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._required = required
        self._sign_in = sign_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] in {"http", "websocket"}:
            given = _take_credentials(scope)
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

    async def _caller(self, given: _Credentials, scope: Scope) -> Caller:
        if given.token is not None:
            return await self._tokens.caller(given.token, scope)
        if given.cookie is not None and self._sign_in is not None:
            # Another server on this machine may have set the cookie; it is not valid here then.
            with suppress(TokenError):
                return await self._tokens.caller(given.cookie, scope, logged=False)
        if self._required and scope["path"] not in OPEN:
            raise TokenError(
                "an access token is needed: send it as x-enfold-token, as Authorization: Bearer "
                "under /api, or put /t/{token} before the path"
            )
        return ON_THIS_MACHINE


@dataclass(frozen=True, slots=True)
class _Credentials:
    """A request's tokens and its namespace header."""

    token: str | None
    cookie: str | None
    """The token of a signed-in browser; valid for the web UI only."""
    namespace: str


_NO_CREDENTIALS = _Credentials(None, None, "")


def _take_credentials(scope: Scope) -> _Credentials:
    """Remove the credentials from the request and return them."""
    has_ours = scope["path"].startswith((_PATH, *OWN))
    if not has_ours and _CREDENTIAL_HEADERS.isdisjoint(first_headers(scope)):
        return _NO_CREDENTIALS
    token, cookie, namespace = _take_path_token(scope), None, ""
    path: str = scope["path"]
    others: list[tuple[bytes, bytes]] = []
    for name, value in scope["headers"]:
        if name == HEADER:
            token = token or value.decode("latin-1").strip()
        elif name == NAMESPACE:
            namespace = value.decode("latin-1").strip()
        elif name == b"authorization" and path.startswith(OWN):
            scheme, _, given = value.decode("latin-1").partition(" ")
            token = token or (given.strip() if scheme.lower() == "bearer" else None)
        elif name == b"cookie" and COOKIE.encode() in value:
            cookie, rest = _split_cookies(value.decode("latin-1"))
            others += [(name, rest.encode("latin-1"))] if rest else []
        else:
            others.append((name, value))
    scope["headers"] = others
    scope.get("state", {}).pop(_FIRST_HEADERS, None)
    # The cookie does not open the API: a page of another program on this machine could use it.
    return _Credentials(token, None if path.startswith((*OWN, "/v1")) else cookie, namespace)


def _split_cookies(cookies: str) -> tuple[str | None, str]:
    """Return the value of enfold's cookie, and the other cookies."""
    pairs = [pair.strip() for pair in cookies.split(";")]
    ours = [pair for pair in pairs if pair.partition("=")[0] == COOKIE]
    value = unquote(ours[0].partition("=")[2]) if ours else ""
    return value or None, "; ".join(pair for pair in pairs if pair not in ours)


def _take_path_token(scope: Scope) -> str | None:
    """Remove the token from the beginning of the path and return it."""
    path: str = scope["path"]
    if not path.startswith(_PATH):
        return None
    raw: bytes = scope.get("raw_path") or path.encode()
    token, slash, rest = raw[len(_PATH) :].partition(b"/")
    scope["raw_path"] = slash + rest or b"/"
    scope["path"] = unquote(scope["raw_path"].decode("latin-1"))
    return unquote(token.decode("latin-1")) or None


def is_loopback(host: str) -> bool:
    """True if only this machine can reach a server that listens on this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(host: str, more: tuple[str, ...]) -> frozenset[str] | None:
    """Return the valid values of the `Host` header; None for any, if tokens are required."""
    if is_loopback(host):
        return _LOOPBACK_NAMES | {host, *more}
    return frozenset(more) or None


class Guard:
    """Refuses requests that a foreign web page may have made in the user's browser."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] in {"http", "websocket"}:
            self._check(scope)
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers = first_headers(scope)
        host = headers.get(b"host", b"").decode("latin-1")
        if self._hosts is not None and _without_port(host) not in self._hosts:
            raise AccessError(
                f"this server does not answer to the host {host[:80]!r}; add it to ENFOLD_HOSTS"
            )
        origin = headers.get(b"origin")
        # A WebSocket has no method. It can do all that the UI can, so its origin is checked.
        if origin is None or scope.get("method") in _READING:
            return
        page = origin.decode("latin-1")
        if urlsplit(page).netloc.lower() != host.lower():
            raise AccessError(f"a page of {page[:80]!r} may not change anything on this server")


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
