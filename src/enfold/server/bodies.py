"""Bodies: what a request may bring, how long it may take to, and how large it may unpack."""

from __future__ import annotations

import asyncio
import zlib
from time import monotonic

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from enfold.errors import InputError, TooLargeError, TooSlowError

SECONDS = 30.0
"""How long a body may take to arrive before its pace counts."""
PACE = 16 * 1024
"""Bytes a second that it must keep up after that."""
_PACKED = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
_CHUNK = 1 << 20


class Bodies:
    """Passes bodies on as they come, and stops those that are too large or too slow."""

    def __init__(self, app: ASGIApp, limit: int, seconds: float = SECONDS) -> None:
        self._app = app
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            announced = Headers(scope=scope).get("content-length", "")
            if announced.isdigit() and int(announced) > self._limit:
                raise too_large(self._limit)
            receive = _Limited(receive, self._limit, self._seconds).receive
        await self._app(scope, receive, send)


class _Limited:
    """The body of one request."""

    def __init__(self, receive: Receive, limit: int, seconds: float) -> None:
        self._receive = receive
        self._limit = limit
        self._seconds = seconds
        self._begin = monotonic()
        self._size = 0
        self._whole = False

    async def receive(self) -> Message:
        """The next piece; after the last, word that the caller has gone, whenever that comes."""
        if self._whole:
            return await self._receive()
        left = self._seconds + self._size / PACE - (monotonic() - self._begin)
        try:
            async with asyncio.timeout(max(0.0, left)):
                message = await self._receive()
        except TimeoutError:
            raise TooSlowError(
                f"the request's body did not arrive in time; {self._size:,} bytes came"
            ) from None
        self._size += len(message.get("body", b""))
        if self._size > self._limit:
            raise too_large(self._limit)
        self._whole = not message.get("more_body", False)
        return message


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """The body that was packed as `Content-Encoding` says, if it is not larger than the limit."""
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return body
    if name not in _PACKED:
        raise InputError(
            f"cannot unpack {name[:40]!r}; send gzip, deflate or nothing packed",
            place="content-encoding",
        )
    unpacker = zlib.decompressobj(_PACKED[name])
    pieces: list[bytes] = []
    size, rest = 0, body
    try:
        while rest and not unpacker.eof:
            pieces.append(unpacker.decompress(rest, _CHUNK))
            size += len(pieces[-1])
            if size > limit:
                raise too_large(limit)
            rest = unpacker.unconsumed_tail
    except zlib.error:
        raise InputError(f"the body is not {name}", place="content-encoding") from None
    if not unpacker.eof:
        raise InputError(f"the body ends before its {name} does", place="content-encoding")
    return b"".join(pieces)


def too_large(limit: int) -> TooLargeError:
    """The error for a body above the limit."""
    return TooLargeError(f"the request's body is larger than {limit:,} bytes, which is the most")
