"""Headers: as they came, in bytes. A request has few, and each layer asks for one or two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

Header: TypeAlias = tuple[bytes, bytes]
"""Name and value; the names of a request are in small letters."""


def find(headers: Iterable[Header], name: bytes) -> bytes | None:
    """The first value of a header; None where there is none."""
    for key, value in headers:
        if key == name:
            return value
    return None


_SLASH = "\0"
"""Stands for a slash inside a segment until the route is found. No name can hold it."""


class Segments:
    """Decodes the segments of a path one by one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        raw: bytes = scope.get("raw_path") or b""
        if scope["type"] == "http" and b"%2f" in raw.lower():
            segments = raw.decode("latin-1").split("/")
            path = "/".join(unquote(each).replace("/", _SLASH) for each in segments)
            scope["path"] = path
        await self._app(scope, receive, send)


def name_in(segment: str) -> str:
    """The name that a segment of the path stands for."""
    return segment.replace(_SLASH, "/")
