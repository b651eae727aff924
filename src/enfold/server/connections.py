"""Connections: limits of request headers, and fewer writes.

A connection whose request headers do not arrive in time is closed; headers that are too large are
answered with 431. Both happen before anything else is known of the request. Head and body of a
short answer are written together; an application that has a complete answer sends it as one
message. If an answer ends the connection before the request's body has arrived, the rest of the
body is read for a moment, because a client that is still sending could not read the answer
otherwise. All of it extends uvicorn's classes, which a test pins to tested versions. Of uvicorn's
options `limit_concurrency` and `reset_contextvars` have no effect: `enfold.server.load` limits
requests.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from starlette.types import Message, Scope
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from enfold.server.access import first_headers

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
WHOLE_ANSWER = "enfold.whole_answer"
"""The type of a message with status, headers and body, and the name of the extension."""
_EXTENSIONS: dict[str, dict[object, object]] = {WHOLE_ANSWER: {}}
_WITHOUT_BODY = frozenset({204, 304})
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n")
r"""Control characters are not valid in headers; `\r\n` only ends a line."""
_CACHED_NAMES = 128


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


def takes_whole_answer(scope: Scope, status: int) -> bool:
    """True if a complete answer with this status can be sent as one message.

    The message must not have the headers `content-length`, `connection` and `transfer-encoding`.
    """
    return (
        WHOLE_ANSWER in scope.get("extensions", ())
        and scope["method"] != "HEAD"
        and status not in _WITHOUT_BODY
    )


@lru_cache(maxsize=_CACHED_NAMES)
def _line_start(name: bytes) -> bytes:
    """Return the start of a header's line; raise `RuntimeError` if the name is not valid."""
    lower = name.lower()
    if not _NAME.fullmatch(lower):
        raise RuntimeError("Invalid HTTP header name.")
    return lower + b": "


class HttpExchange(RequestResponseCycle):
    """A request and its answer, which may come as one message."""

    transport: Any  # a `Joined`

    async def send(self, message: Message) -> None:  # type: ignore[override]
        """Send a part of the answer, or all of it."""
        if self.waiting_for_100_continue:
            # The client may leave the body out, or send it: the next bytes could be either.
            self.keep_alive = False
        if message["type"] != WHOLE_ANSWER:
            await super().send(message)  # type: ignore[arg-type]
            return
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if self.response_started:
            raise RuntimeError("The answer has started already.")
        body: bytes = message["body"]
        headers = self.default_headers + message["headers"]
        lines = [_line_start(name) + value for name, value in headers]
        lines.append(b"content-length: %d" % len(body))
        if not self.keep_alive:
            lines.append(b"connection: close")
        head = b"\r\n".join(lines)
        if _CONTROL.search(head) or head.count(b"\r\n") != len(lines) - 1:
            raise RuntimeError("Invalid HTTP header value.")
        self.waiting_for_100_continue = False
        self.response_started = self.response_complete = True
        self.transport.write_now(
            b"".join((STATUS_LINE[message["status"]], head, b"\r\n\r\n", body))
        )
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


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

    def write_now(self, data: bytes) -> None:
        """Write after what waits, without a wait for the end of the step."""
        if self._waiting:
            self._waiting.append(data)
            self._write_all()
        elif not self._transport.is_closing():
            self._transport.write(data)

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


class PatientProtocol(HttpToolsProtocol):
    """The web server's protocol with limits of request headers."""

    cycle: Any  # the `HttpExchange` of the newest request; None before the first
    scope: Any
    _answered: Any = None
    """The `HttpExchange` of the request that is answered now, or was answered last."""
    head_seconds = HEAD_SECONDS
    _clock: asyncio.TimerHandle | None = None
    """Closes the connection. One timer serves all its waits."""
    _close_at: float | None = None
    """The time at which the connection is closed; None while a request is in progress."""
    _is_idle = False
    """True from the end of an answer until the next request begins to arrive."""
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
        super().connection_made(self._joined)  # type: ignore[arg-type]
        self._close_after(self.head_seconds)

    def data_received(self, data: bytes) -> None:
        """Stop the time limit when the headers are complete; refuse headers that are too large."""
        if self._joined.is_lingering:
            self._joined.drop(len(data))
            return
        self._chunk_bytes = len(data)
        super().data_received(data)
        if self._is_upgraded or (self.cycle is not None and not self.cycle.response_complete):
            self._is_idle, self._close_at = False, None
        elif self._is_idle or self._close_at is None:
            self._is_idle = False
            self._close_after(self.head_seconds)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header."""
        self.headers.append((name.lower(), value))

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
        expected = first_headers(self.scope).get(b"expect", b"")
        self.expect_100_continue = expected.lower() == b"100-continue"
        is_path = self.url.startswith(b"/") and b"#" not in self.url
        if is_path and not self.parser.should_upgrade():
            self._begin_exchange()
        else:
            super().on_headers_complete()

    def _begin_exchange(self) -> None:
        """Start the request, or let it wait until those before it are answered."""
        parser, scope = self.parser, self.scope
        raw_path, _, query = self.url.partition(b"?")
        path = raw_path.decode("ascii")
        scope["method"] = parser.get_method().decode("ascii")
        scope["http_version"] = version = parser.get_http_version()
        scope["path"] = self.root_path + (unquote(path) if "%" in path else path)
        scope["raw_path"] = self.root_path.encode("ascii") + raw_path
        scope["query_string"] = query
        scope["extensions"] = _EXTENSIONS
        before = self.cycle
        self.cycle = HttpExchange(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

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
        self.pipeline.clear()
        super().connection_lost(exc)
        answered = self._answered
        if answered is not None and not answered.response_complete:
            answered.disconnected = True
            answered.message_event.set()
            callback = answered.scope["state"].get(_ON_DISCONNECT)
            if callback is not None:
                callback()

    def _has_more(self) -> bool:
        return self.cycle is not None and bool(self.cycle.more_body)

    def on_response_complete(self) -> None:
        """Start the next request that has arrived, or wait for one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing() or self._joined.is_lingering:
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self._is_idle = True
            self._close_after(self.timeout_keep_alive)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        self.tasks.add(self.loop.create_task(self._answer(cycle, app)))

    async def _answer(self, cycle: RequestResponseCycle, app: Any) -> None:
        try:
            await cycle.run_asgi(app)
        finally:
            self.tasks.discard(asyncio.current_task())

    def _refuse_head(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.write(_TOO_LARGE % (len(_TOO_LARGE_TEXT), _TOO_LARGE_TEXT))
            self.transport.close()

    def _close_after(self, seconds: float) -> None:
        """Close the connection at that time, unless a request begins before."""
        self._close_at = at = self.loop.time() + seconds
        if self._clock is None or self._clock.when() > at:
            self._stop_clock()
            self._clock = self.loop.call_at(at, self._give_up)

    def _stop_waiting(self) -> None:
        self._close_at = None
        self._stop_clock()

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _give_up(self) -> None:
        """Close the connection if it is time; the next wait starts the timer if none is on."""
        self._clock = None
        if self._close_at is None or self.transport.is_closing():
            return
        if self._close_at > self.loop.time():
            self._clock = self.loop.call_at(self._close_at, self._give_up)
        else:
            self.transport.close()
