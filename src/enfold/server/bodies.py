"""Bodies: what a request may bring, how long it may take to, and how large it may unpack."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import Protocol

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from enfold.errors import InputError, TooLargeError, TooSlowError

SECONDS = 30.0
"""How long a body may take to arrive before its pace counts."""
PACE = 16 * 1024
"""Bytes a second that it must keep up after that."""
_SLICE = 1024
"""Bytes that are unpacked at a time: at most 32 MB, with the tightest packing there is."""
_LARGEST_WINDOW = 8 * 2**20
"""Bytes that a zstd body may look back; what RFC 9659 lets a sender use."""


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
            f"cannot unpack {name[:40]!r}; send {', '.join(_PACKED)} or nothing packed",
            place="content-encoding",
        )
    unpacker, error = _PACKED[name]()
    try:
        pieces = list(_pieces(unpacker, body, limit))
    except error:
        raise InputError(f"the body is not {name}", place="content-encoding") from None
    if not unpacker.eof:
        raise InputError(f"the body ends before its {name} does", place="content-encoding")
    return b"".join(pieces)


class _Unpacker(Protocol):
    """What takes a packed body bit by bit."""

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def _pieces(unpacker: _Unpacker, body: bytes, limit: int) -> Iterator[bytes]:
    """The body unpacked, a little at a time, so that no bomb goes off before it is noticed."""
    size = 0
    for start in range(0, len(body), _SLICE):
        piece = unpacker.decompress(body[start : start + _SLICE])
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        yield piece
        if unpacker.eof:
            return


def _zstd() -> tuple[_Unpacker, type[Exception]]:
    import zstandard

    return (
        zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).decompressobj(),
        zstandard.ZstdError,
    )


_PACKED: Mapping[str, Callable[[], tuple[_Unpacker, type[Exception]]]] = {
    "gzip": lambda: (zlib.decompressobj(zlib.MAX_WBITS | 16), zlib.error),
    "deflate": lambda: (zlib.decompressobj(zlib.MAX_WBITS), zlib.error),
    "zstd": _zstd,
}
"""Who unpacks what, and how they say that it is something else."""


def too_large(limit: int) -> TooLargeError:
    """The error for a body above the limit."""
    return TooLargeError(f"the request's body is larger than {limit:,} bytes, which is the most")
