"""Request headers as bytes, and path segments that contain an encoded slash."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

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
