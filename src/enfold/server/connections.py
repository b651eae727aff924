"""Connections: limits of request headers, and fewer writes.

A connection whose request headers do not arrive in time is closed; headers that are too large are
answered with 431. Both happen before anything else is known of the request. Head and body of a
short answer are written together. If an answer ends the connection before the request's body has
arrived, the rest of the body is read for a moment, because a client that is still sending could not
read the answer otherwise. All of it extends uvicorn's protocol class, which a test pins to tested
versions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 20.0
HEAD_BYTES = 64 * 1024
"""The most bytes of a request's first line and headers."""
LINGER_SECONDS = 5.0
"""The time that a client has to read an answer that ends the connection before its body's end."""
LINGER_PACE = 20 * 2**20
"""Bytes per second of such a body that are read."""
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s"
)
_TOO_LARGE_TEXT = b"the request's headers are larger than %d bytes\n" % HEAD_BYTES
_AT_ONCE = 64 * 1024
"""The most bytes that wait for the end of the step."""


_WHOLE = "is_whole"
_ON_DISCONNECT = "on_disconnect"


def is_whole(scope: Scope) -> bool:
    """True if the whole request had arrived before it was answered."""
    return _WHOLE in scope.get("state", ())


def call_on_disconnect(scope: Scope, callback: Callable[[], None]) -> bool:
    """Call a function if the client disconnects before the end of the answer to a whole request.

    Return False if nothing will call it: the request is not whole, or another server runs the app.
    """
    if not is_whole(scope):
        return False
    scope["state"][_ON_DISCONNECT] = callback
    return True


class Joined:
    """A transport that joins the writes of one step of the event loop."""

    def __init__(
        self,
        transport: Any,
        loop: asyncio.AbstractEventLoop,
        has_more: Callable[[], bool] = lambda: False,
    ) -> None:
        """`has_more` is asked at the end: True if the client is still sending."""
        self._transport = transport
        self._loop = loop
        self._has_more = has_more
        self._waiting: list[bytes] = []
        self._size = 0
        self.is_lingering = False
        """True if the answer is written and the rest of the request is read and dropped."""

    def write(self, data: bytes) -> None:
        """Write at the end of the step, or now if much waits, so that flow control works."""
        if not self._waiting:
            self._loop.call_soon(self._write_all)
        self._waiting.append(data)
        self._size += len(data)
        if self._size > _AT_ONCE:
            self._write_all()

    def close(self) -> None:
        """Write the waiting bytes and close, after a moment if the client is still sending."""
        self._write_all()
        if self.is_lingering or not self._has_more() or not self._transport.can_write_eof():
            self._transport.close()
            return
        self.is_lingering = True
        self._transport.write_eof()
        self._transport.resume_reading()
        self._loop.call_later(LINGER_SECONDS, self._transport.close)

    def drop(self, size: int) -> None:
        """Pause after dropped bytes: to read them fast would cost the time of other requests."""
        self._transport.pause_reading()
        self._loop.call_later(size / LINGER_PACE, self._resume)

    def _resume(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def is_closing(self) -> bool:
        """Return True if the connection is closed or about to be."""
        return bool(self._transport.is_closing())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _write_all(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting and not self._transport.is_closing():
            self._transport.write(b"".join(waiting))


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type] # one of two classes
    """The web server's protocol with limits of request headers."""

    head_seconds = HEAD_SECONDS
    _deadline: asyncio.TimerHandle | None = None
    _is_upgraded = False
    _in_head = False
    """True while the first line and headers of a request arrive."""
    _head_bytes = 0
    """Bytes that arrived with them so far."""
    _chunk_bytes = 0
    """Bytes of the data that is being read."""

    def connection_made(self, transport: Any) -> None:
        """Start the time limit of a new connection."""
        self._joined = Joined(transport, self.loop, self._has_more)
        super().connection_made(self._joined)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Stop the time limit when the headers are complete; refuse headers that are too large."""
        if self._joined.is_lingering:
            self._joined.drop(len(data))
            return
        self._chunk_bytes = len(data)
        super().data_received(data)
        if self._is_upgraded or (self.cycle is not None and not self.cycle.response_complete):
            self._stop_waiting()
        elif self._deadline is None and self.timeout_keep_alive_task is None:
            self._wait_for_head()
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse_head()

    def on_message_begin(self) -> None:
        """Begin to count the bytes of the headers."""
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Refuse headers that are too large and arrived in one piece."""
        self._in_head = False
        if self._head_bytes + self._chunk_bytes > HEAD_BYTES:
            size = sum(len(name) + len(value) for name, value in self.headers)
            if size + len(self.url) > HEAD_BYTES:
                self._refuse_head()
                raise ValueError("the headers are too large")  # stops the parser
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Mark the request as whole; a short one is whole before it is answered."""
        super().on_message_complete()
        self.scope["state"][_WHOLE] = True

    def handle_websocket_upgrade(self, *event: Any) -> None:
        """Hand the connection over to the WebSocket protocol."""
        self._is_upgraded = True
        super().handle_websocket_upgrade(*event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limit and the request in progress."""
        self._stop_waiting()
        super().connection_lost(exc)
        if self.cycle is not None and not self.cycle.response_complete:
            callback = self.cycle.scope["state"].get(_ON_DISCONNECT)
            if callback is not None:
                callback()

    def _has_more(self) -> bool:
        return self.cycle is not None and bool(self.cycle.more_body)

    def _refuse_head(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.write(_TOO_LARGE % (len(_TOO_LARGE_TEXT), _TOO_LARGE_TEXT))
            self.transport.close()

    def _wait_for_head(self) -> None:
        self._deadline = self.loop.call_later(self.head_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()
