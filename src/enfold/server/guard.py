"""Guard: requests that a web page made a browser send are turned away.

A page from elsewhere can make its visitor's browser send requests to this machine. Two signs give
it away: `Origin` names another place than the one that was asked, or, where the page has made its
own name point here, `Host` does.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from enfold.errors import AccessError
from enfold.server.headers import find

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
