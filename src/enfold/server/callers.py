"""Callers: the sender of a request, the namespace of its sessions, and headers as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from enfold.errors import AccessError


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


# Headers as bytes.


Header: TypeAlias = tuple[bytes, bytes]
"""Name and value; the names of a request are in lower case."""

_SLASH = "\0"
"""Stands for a slash inside a segment until the route is found. No name can contain it."""


def find(headers: Iterable[Header], name: bytes) -> bytes | None:
    """Return the first value of a header; None if it is absent."""
    for key, value in headers:
        if key == name:
            return value
    return None


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
