"""Request bodies: limits on their size and their arrival time, and decompression."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from time import monotonic
from typing import Any, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from enfold.errors import InputError, TooLargeError, TooSlowError
from enfold.server.access import first_headers
from enfold.server.connections import is_whole
from enfold.server.load import RequestLoad, request_load

SECONDS = 30.0
"""The time a body may take to arrive before its pace is checked."""
PACE = 16 * 1024
"""The bytes per second that it must reach after that."""
_SLICE = 1024
"""Compressed bytes per step: at most 32 MB decompressed, at the highest ratio."""
_NO_BROTLI = (
    "cannot decompress 'br': brotli is not installed; install enfold[brotli], or use another "
    "compression"
)
_STEP = 2**20
"""Decompressed bytes per step where the ratio has no bound."""
_LARGEST_WINDOW = 8 * 2**20
"""The largest window of a zstd body, as RFC 9659 allows."""

_log = logging.getLogger("enfold.server")


class Bodies:
    """Passes bodies on as they arrive; refuses those that are too large or too slow."""

    def __init__(self, app: ASGIApp, limit: int, seconds: float = SECONDS) -> None:
        self._app = app
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            announced = first_headers(scope).get(b"content-length", b"")
            if announced.isdigit() and int(announced) > self._limit:
                raise too_large(self._limit)
            load = request_load(scope)
            whole = is_whole(scope)
            if whole and load is not None:
                await load.start_computing()
            if not (announced and whole):  # else nothing is left to check
                body = _Limited(receive, self._limit, self._seconds, load)
                await self._watch(body, scope, send)
                return
        await self._app(scope, receive, send)

    async def _watch(self, body: _Limited, scope: Scope, send: Send) -> None:
        try:
            await self._app(scope, body.receive, send)
        finally:
            body.stop_clock()


class _Limited:
    """The body of one request. One timer serves all its pieces.

    A large body is read in the turn of its request. While it waits, the connection is not read, so
    that its sender waits as well. A slow sender does not keep the others waiting: its request gets
    a turn when the whole body has arrived.
    """

    def __init__(
        self, receive: Receive, limit: int, seconds: float, load: RequestLoad | None
    ) -> None:
        self._receive = receive
        self._load = load
        self._limit = limit
        self._seconds = seconds
        self._begin = monotonic()
        self._size = 0
        self._whole = False
        self._clock: asyncio.TimerHandle | None = None
        self._waiting: asyncio.Task[Any] | None = None
        """The task that waits for the next piece."""
        self._is_late = False
        self._turn_check: asyncio.TimerHandle | None = None
        """The timer that ends the turn of a slow sender."""
        self._slow_since: tuple[float, int] | None = None
        """Time and size at which the sender was found to be slow."""

    async def receive(self) -> Message:
        """Return the next piece; after the last one, the message that the client disconnected."""
        if self._whole:
            return await self._receive()
        if self._load is not None and self._load.is_large:
            await self._wait_for_turn(self._load)
        message = await self._in_time()
        size = len(message.get("body", b""))
        self._size += size
        if self._size > self._limit:
            raise too_large(self._limit)
        if self._load is not None:
            self._load.add(size)
        self._whole = not message.get("more_body", False)
        if self._whole:
            self.stop_clock()
            if self._load is not None:
                await self._load.start_computing()
        return message

    def stop_clock(self) -> None:
        """Cancel the timers."""
        for timer in (self._clock, self._turn_check):
            if timer is not None:
                timer.cancel()

    async def _wait_for_turn(self, load: RequestLoad) -> None:
        """Wait until the next piece of a large body may be read."""
        begin = monotonic()
        if self._slow_since is not None:
            since, size = self._slow_since
            await asyncio.sleep(since + (self._size - size) / load.limits.slow_pace - begin)
        elif self._turn_check is None:
            await load.take_turn()
            self._check_turn_later(load)
        else:
            return
        self._begin += monotonic() - begin  # this time is not the sender's

    def _check_turn_later(self, load: RequestLoad) -> None:
        seconds, size = load.limits.slow_seconds, self._size
        loop = asyncio.get_running_loop()
        self._turn_check = loop.call_later(seconds, self._check_turn, load, size)

    def _check_turn(self, load: RequestLoad, size: int) -> None:
        """End the turn if the sender is slow and others wait for theirs."""
        if load.is_awaited and self._size - size < load.limits.slow_bytes:
            self._slow_since = monotonic(), self._size
            load.end_turn()
        else:
            self._check_turn_later(load)

    async def _in_time(self) -> Message:
        self._waiting = task = asyncio.current_task()
        if self._clock is None:
            self._look_later()
        try:
            return await self._receive()
        except asyncio.CancelledError:
            if task is None or not self._is_late or task.uncancel():
                raise  # it was cancelled for another reason
            raise TooSlowError(
                f"the request's body did not arrive in time; {self._size:,} bytes were received"
            ) from None
        finally:
            self._waiting = None

    def _look_later(self) -> None:
        self._clock = asyncio.get_running_loop().call_later(max(0.0, self._left()), self._look)

    def _look(self) -> None:
        """Cancel the task that waits if it is late. Without one, the next wait starts the timer."""
        self._clock = None
        if self._waiting is None:
            return
        if self._left() > 0:
            self._look_later()
        else:
            self._is_late = True
            self._waiting.cancel()

    def _left(self) -> float:
        """Return the seconds until the next piece must arrive."""
        return self._seconds + self._size / PACE - (monotonic() - self._begin)


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """Return the body, decompressed by its `Content-Encoding`, up to the limit."""
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return body
    if name not in _PACKED:
        raise InputError(
            f"cannot decompress {name[:40]!r}; use {', '.join(_PACKED)} or no compression",
            place="content-encoding",
        )
    if name == "br" and not _has_brotli():
        raise InputError(_NO_BROTLI, place="content-encoding")
    packing = _PACKED[name](limit)
    try:
        return b"".join(_pieces(packing, body, limit))
    except packing.error:
        raise InputError(f"the body is not {name}", place="content-encoding") from None
    except EOFError:
        raise InputError(
            f"the body is incomplete: its {name} data ends too early", place="content-encoding"
        ) from None


class _Unpacker(Protocol):
    """A decompressor of the standard library's kind."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class _Packing:
    """A compression format: its decompressor, its error, and the maximum number of parts."""

    unpacker: Callable[[], _Unpacker]
    error: type[Exception]
    most: int = 10_000


def _pieces(packing: _Packing, body: bytes, limit: int) -> Iterator[bytes]:
    """Yield the decompressed body in small steps, so that a bomb is found before it expands."""
    unpacker, parts, size = packing.unpacker(), 1, 0
    for start in range(0, len(body), _SLICE):
        packed = body[start : start + _SLICE]
        while packed:
            if unpacker.eof:
                unpacker, parts = packing.unpacker(), parts + 1
                if parts > packing.most:
                    raise InputError(
                        f"more than {packing.most:,} compressed parts; compress the body as one",
                        place="content-encoding",
                    )
            piece = unpacker.decompress(packed)
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            yield piece
            packed = unpacker.unused_data if unpacker.eof else b""
    if not unpacker.eof:
        raise EOFError


def _gzip(_limit: int) -> _Packing:
    return _Packing(lambda: zlib.decompressobj(zlib.MAX_WBITS | 16), zlib.error)


def _deflate(_limit: int) -> _Packing:
    return _Packing(lambda: zlib.decompressobj(zlib.MAX_WBITS), zlib.error, most=1)


def _zstd(_limit: int) -> _Packing:
    import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
    return _Packing(unpacker.decompressobj, zstandard.ZstdError)


@cache
def _has_brotli() -> bool:
    """Return False if brotli is not installed; this is logged once."""
    is_installed = find_spec("brotli") is not None
    if not is_installed:
        _log.warning("a request was not read: %s", _NO_BROTLI)
    return is_installed


class _BrotliUnpacker:
    """A brotli decompressor that stops above the limit: the ratio is unbounded."""

    unused_data = b""  # it refuses data after the end

    def __init__(self, limit: int) -> None:
        import brotli

        self._limit = limit
        self._inner = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._inner.is_finished())

    def decompress(self, data: bytes, /) -> bytes:
        pieces, left = [], self._limit
        while left >= 0:
            pieces.append(self._inner.process(data, output_buffer_limit=_STEP))
            left, data = left - len(pieces[-1]), b""
            if self._inner.is_finished() or self._inner.can_accept_more_data():
                break
        return b"".join(pieces)


def _brotli(limit: int) -> _Packing:
    import brotli

    return _Packing(lambda: _BrotliUnpacker(limit), brotli.error, most=1)


_PACKED: Mapping[str, Callable[[int], _Packing]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
    "br": _brotli,
}
"""The formats by name; each is given the largest size of a body."""


def too_large(limit: int) -> TooLargeError:
    """Return the error for a body above the limit."""
    return TooLargeError(f"the request's body is larger than {limit:,} bytes")
