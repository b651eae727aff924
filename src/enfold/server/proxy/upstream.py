"""The upstream servers: requests are forwarded to the providers, and their responses come back.

Bodies are neither decoded nor decompressed on the way. Headers of a single connection, and those
that are meant for enfold, are not forwarded.

A general HTTP client would take longer for a short request than the rest of the proxy. Here a
connection writes the bytes of the request, and httptools parses the response.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from http import HTTPStatus
from time import monotonic
from typing import Protocol, cast
from urllib.parse import urlsplit

import httptools
from aiohappyeyeballs import start_connection

from enfold.errors import UnavailableError
from enfold.server.access import Header

WITHOUT_BODY = frozenset({HTTPStatus.NO_CONTENT.value, HTTPStatus.NOT_MODIFIED.value})
"""Statuses of responses that have no body."""
_OK, BAD_REQUEST = HTTPStatus.OK.value, HTTPStatus.BAD_REQUEST.value
"""As numbers: an enumeration is slow to look up."""
ENFOLD_HEADERS = b"x-enfold-"
"""The prefix of headers that are read or written by enfold."""
_CONNECTION_HEADERS = frozenset(
    {
        b"connection",
        b"content-length",
        b"host",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"expect",
    }
)
_METHODS_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_REPEATABLE_METHODS = _METHODS_WITHOUT_BODY | {"PUT", "DELETE"}
_CONNECT_SECONDS = 30.0
_NEXT_ADDRESS_SECONDS = 0.25
"""Seconds after which the next address of a server is tried, too."""
_IDLE_SECONDS = 15.0
"""Seconds after which an unused connection is not used again; it is closed soon after."""
_OF_PROVIDERS_SITE = (
    b"access-control-",
    b"alt-svc",
    b"clear-site-data",
    b"content-security-policy",
    b"cross-origin-",
    b"date",
    b"nel",
    b"permissions-policy",
    b"refresh",
    b"report",
    b"service-worker-",
    b"set-cookie",
    b"strict-transport-security",
    b"timing-allow-origin",
)
"""How the names of such headers begin; the server writes its own date."""
_CACHED_NAMES = 128
"""Names of headers for which it is remembered if they are passed on; a name may be long."""
_MAX_HEADER_BYTES = 64 * 1024
_RESEND_SECONDS = 1.0
"""Seconds in which a reset shows that an idle connection was closed."""
_PIECE_BYTES = 2**20
"""A longer body is sent in pieces of this size, so that other requests go on meanwhile."""
_MAX_UNREAD_BYTES = 256 * 1024
"""Bytes of a response that are held; more are not received before these are read."""


class RelayedResponse(Protocol):
    """A response on its way to the client."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> list[Header]: ...
    @property
    def length(self) -> int | None:
        """The size of the body in bytes; None while it is unknown."""

    def whole_body(self) -> bytes | None:
        """Return a body of known length if all of it has arrived, in place of its chunks."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
        ...


@dataclass(frozen=True, slots=True)
class _Address:
    """The address of an upstream server."""

    origin: str
    host: str
    port: int
    context: ssl.SSLContext | None
    """None without TLS."""
    host_header: bytes
    path: str
    """The path before that of each request."""

    @classmethod
    def of(cls, url: str) -> _Address:
        parts = urlsplit(url)
        context = None
        if parts.scheme == "https":
            context = ssl.create_default_context()
            context.set_alpn_protocols(["http/1.1"])
        host = (parts.hostname or "").encode("idna").decode()
        port = parts.port or (80 if context is None else 443)
        shown = f"[{host}]" if ":" in host else host
        named = shown if parts.port is None else f"{shown}:{parts.port}"
        return cls(f"{parts.scheme}://{named}", host, port, context, named.encode(), parts.path)


class _ResponseError(Exception):
    """A response that is missing, incomplete or invalid."""

    def __init__(self, cause: str, reason: str) -> None:
        """`cause` is the verb of a sentence about the provider."""
        super().__init__(reason)
        self.cause = cause


_SILENT = "sent nothing for too long"
_INVALID = "sent an invalid response"
_BROKEN_OFF = "broke off its response"
_FAILURES = (OSError, UnicodeError, _ResponseError)
"""Errors of a connection. A name that cannot be looked up may be a `UnicodeError`."""


class _Connection(asyncio.Protocol):
    """A connection to an upstream server: one request and its response at a time."""

    def __init__(self, idle: list[_Connection], read_timeout: float | None) -> None:
        """`idle` are the open connections to the same server that are not used."""
        self._idle = idle
        self._read_timeout = read_timeout
        self._loop = asyncio.get_running_loop()
        self.idle_since = 0.0
        """The loop's time when it was last used."""
        self._clock: asyncio.TimerHandle | None = None
        """Ends a response that does not arrive. One timer serves all waits of a connection."""
        self._waiting_since = 0.0
        self._waiter: asyncio.Future[None] | None = None
        self._is_full = False
        """True while the transport takes no more of the request."""
        self.lost = asyncio.Event()
        """Set when the connection is closed."""
        self.is_reused = False
        self._has_body = False
        self.is_complete = True
        """True if the whole response has arrived, or nothing was sent yet."""
        self.status = 0
        """The status of the response; 0 before its headers are there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    async def send(self, method: str, head: bytes, body: bytes) -> None:
        """Send a request, and return when the head of its response is there."""
        if not self._has_body:
            self._parser = httptools.HttpResponseParser(self)  # it would wait for the body
        self._has_body = method != "HEAD"
        self.status, self.headers = 0, list[Header]()
        self.length: int | None = None
        self.is_chunked = self.is_complete = self._may_stay_open = self._is_paused = False
        self._chunks: list[bytes] = []
        self._unread = self._head_bytes = 0
        self._error: Exception | None = None
        self.is_written = False
        if self._transport.is_closing():
            raise ConnectionResetError("the server closed the connection")
        if len(body) <= _PIECE_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            view = memoryview(body)
            for start in range(0, len(body), _PIECE_BYTES):
                self._transport.write(view[start : start + _PIECE_BYTES])
                while self._is_full and self.status < BAD_REQUEST:
                    await self._wait()
                if self.status >= BAD_REQUEST:
                    return  # the server does not want the rest
        self.is_written = True
        while not self.status:
            await self._wait()

    async def read(self) -> bytes:
        """Return the bytes of the body that have arrived; wait for some; empty at its end."""
        while not self._chunks:
            if self.is_complete:
                return b""
            await self._wait()
        return self._take()

    def take_all(self) -> bytes | None:
        """Return a body of known length if all of it has arrived and none was read; else None."""
        if self.is_complete and self._chunks and self._unread == self.length:
            return self._take()
        return None

    def _take(self) -> bytes:
        chunk = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks, self._unread = [], 0
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        return chunk

    def release(self) -> None:
        """Keep the connection for another request if the response has arrived; else close it."""
        if (
            self.is_complete
            and self.is_written
            and self._may_stay_open
            and not (self._is_paused or self._transport.is_closing())
        ):
            self._chunks, self.is_reused = [], True
            self.idle_since = self._loop.time()
            self._idle.append(self)
        else:
            self._transport.abort()

    def close(self) -> None:
        """Close the connection."""
        self._transport.abort()

    async def _wait(self) -> None:
        """Wait for the next event of the connection; raise the error that ended it."""
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        if self._read_timeout is not None:
            self._waiting_since = self._loop.time()
            if self._clock is None:
                self._clock = self._loop.call_later(self._read_timeout, self._check_silence)
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _check_silence(self) -> None:
        """Fail if nothing has arrived in time. Without a wait, the next one starts the timer."""
        self._clock = None
        if self._waiter is None or self._read_timeout is None:
            return
        left = self._waiting_since + self._read_timeout - self._loop.time()
        if left > 0:
            self._clock = self._loop.call_later(left, self._check_silence)
        else:
            self._fail(_SILENT, "no data")

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, cause: str, reason: str) -> None:
        self._error = self._error or _ResponseError(cause, reason)
        self._transport.abort()
        self._wake()

    # The methods that the transport and the parser call.

    def data_received(self, data: bytes) -> None:
        if self.is_complete:
            self._transport.abort()  # nothing was sent to it
            return
        if not self.status:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(_INVALID, str(error))
        if not self.status and self._head_bytes > _MAX_HEADER_BYTES:
            self._fail(_INVALID, f"its headers are larger than {_MAX_HEADER_BYTES:,} bytes")
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        if self in self._idle:
            self._idle.remove(self)
        if self._clock is not None:
            self._clock.cancel()
        self.lost.set()
        if self.status and not self.is_complete and not self.is_chunked and self.length is None:
            self.is_complete = exc is None  # the end of the connection is the end of the body
        if not self.is_complete and self._error is None:
            if self.status:
                self._error = _ResponseError(_BROKEN_OFF, str(exc or "the connection ended"))
            else:
                self._error = exc or ConnectionResetError("the server closed the connection")
        self._wake()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise ValueError("it has more than one response")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < _OK:
            self.headers = []  # of an interim response, such as 103
            return
        headers = dict(self.headers)
        self.is_chunked = b"transfer-encoding" in headers
        length = headers.get(b"content-length")
        self.length = None if self.is_chunked or length is None else int(length)
        self.status = status
        self._may_stay_open = self._parser.should_keep_alive()
        self.is_complete = not self._has_body

    def on_body(self, data: bytes) -> None:
        self._chunks.append(data)
        self._unread += len(data)
        if self._unread > _MAX_UNREAD_BYTES and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self.status:
            self.is_complete = True


@dataclass(slots=True)
class UpstreamResponse:
    """A provider's response that is still arriving."""

    status: int
    headers: list[Header]
    _connection: _Connection
    _origin: str

    @property
    def length(self) -> int | None:
        """The size of the body in bytes; None if there is no body or the size is unknown."""
        return None if self.status in WITHOUT_BODY else self._connection.length

    @property
    def ends_with_connection(self) -> bool:
        """True if only the end of the connection ends the body: it may have been broken off."""
        is_chunked = self._connection.is_chunked
        return not is_chunked and self.status not in WITHOUT_BODY and self.length is None

    def broken_off(self) -> UnavailableError:
        """Return the error for a body that ended before the reply did."""
        return UnavailableError(f"the provider at {self._origin} {_BROKEN_OFF}; try again")

    def whole_body(self) -> bytes | None:
        """Return a body of known length if all of it has arrived, in place of its chunks."""
        return self._connection.take_all()

    def chunks(self) -> AsyncIterator[bytes]:
        """Return the body as it arrives; it raises `UnavailableError` if the connection breaks."""
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        # Not a generator: the event loop keeps a list of those, which takes longer than the rest.
        try:
            chunk = await self._connection.read()
        except _FAILURES as error:
            raise _unavailable_error(self._origin, error) from None
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def read(self) -> bytes:
        """Return the whole body."""
        return b"".join([chunk async for chunk in self.chunks()])


@dataclass(frozen=True, slots=True)
class BufferedResponse:
    """A response whose body is complete."""

    status: int
    headers: list[Header]
    body: bytes

    @property
    def length(self) -> int:
        """The size of the body in bytes."""
        return len(self.body)

    def whole_body(self) -> bytes:
        """Return the body."""
        return self.body

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the whole body at once."""
        yield self.body


def is_stream(response: RelayedResponse) -> bool:
    """Return True if the response is a stream of server-sent events."""
    return b"text/event-stream" in dict(response.headers).get(b"content-type", b"")


async def buffer_response(response: RelayedResponse) -> BufferedResponse:
    """Read the response to its end."""
    body = b"".join([chunk async for chunk in response.chunks()])
    return BufferedResponse(response.status, response.headers, body)


class _UpstreamServer:
    """An upstream server, and the connections to it."""

    def __init__(self, url: str, read_timeout: float | None) -> None:
        self._url = url
        self._read_timeout = read_timeout
        self._idle: list[_Connection] = []
        self._sweeping: asyncio.TimerHandle | None = None

    @cached_property
    def address(self) -> _Address:
        """The address."""
        return _Address.of(self._url)

    def idle_connection(self) -> _Connection | None:
        """Return the connection that was used last; None if all are in use."""
        if not self._idle:
            return None
        connection = self._idle.pop()
        if asyncio.get_running_loop().time() - connection.idle_since < _IDLE_SECONDS:
            return connection
        connection.close()
        return None

    async def connect(self) -> _Connection:
        """Return a new connection."""
        address, loop = self.address, asyncio.get_running_loop()
        if self._sweeping is None:
            self._sweeping = loop.call_later(_IDLE_SECONDS, self._sweep)
        async with asyncio.timeout(_CONNECT_SECONDS):
            found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
            opened = await start_connection(found, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _, connection = await loop.create_connection(
                lambda: _Connection(self._idle, self._read_timeout),
                sock=opened,
                ssl=address.context,
                server_hostname=None if address.context is None else address.host,
            )
        return connection

    def _sweep(self) -> None:
        """Close connections that are idle for too long, and do so again later."""
        loop = asyncio.get_running_loop()
        oldest = loop.time() - _IDLE_SECONDS
        for connection in [each for each in self._idle if each.idle_since <= oldest]:
            self._idle.remove(connection)
            connection.close()
        self._sweeping = loop.call_later(_IDLE_SECONDS, self._sweep)

    async def close(self) -> None:
        """Close the connections that are not used."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        closed = tuple(self._idle)
        for connection in closed:
            connection.close()
        for connection in closed:
            await connection.lost.wait()


class _UpstreamCall(AbstractAsyncContextManager[UpstreamResponse]):
    """A request to a provider while its response is read."""

    def __init__(
        self,
        server: _UpstreamServer,
        method: str,
        path: str,
        headers: Iterable[Header],
        body: bytes | None,
    ) -> None:
        self._server = server
        self._method = method
        self._path = path
        self._headers = headers
        self._body = body

    async def __aenter__(self) -> UpstreamResponse:
        origin = self._server.address.origin
        try:
            self._connection = connection = await self._send()
        except _FAILURES as error:
            raise _unavailable_error(origin, error) from None
        headers = response_headers(connection.headers)
        return UpstreamResponse(connection.status, headers, connection, origin)

    async def _send(self) -> _Connection:
        connection, started = self._server.idle_connection(), monotonic()
        if connection is None:
            connection = await self._server.connect()
        try:
            await self._send_over(connection)
        except ConnectionError:
            # The provider closed an idle connection before it had received all of the request.
            # A later reset may come after it has worked on the request: that is not repeated.
            is_late = connection.is_written and monotonic() - started > _RESEND_SECONDS
            if not connection.is_reused or (is_late and self._method not in _REPEATABLE_METHODS):
                raise
            connection = await self._server.connect()
            await self._send_over(connection)
        return connection

    async def _send_over(self, connection: _Connection) -> None:
        is_sent = False
        try:
            await connection.send(self._method, self._head(), self._body or b"")
            is_sent = True
        finally:
            if not is_sent:
                connection.close()

    def _head(self) -> bytes:
        address = self._server.address
        first = f"{self._method} {address.path}{self._path} HTTP/1.1".encode("latin-1")
        lines = [first, b"host: " + address.host_header]
        lines += [name + b": " + value for name, value in self._headers if is_forwarded(name)]
        if self._body or self._method not in _METHODS_WITHOUT_BODY:
            lines.append(b"content-length: %d" % len(self._body or b""))
        return b"\r\n".join(lines) + b"\r\n\r\n"

    async def __aexit__(self, *_: object) -> None:
        self._connection.release()


class Upstream:
    """Forwards requests to the providers over connections that stay open."""

    def __init__(self, addresses: Mapping[str, str], *, read_timeout: float | None = None) -> None:
        """`read_timeout` is how many seconds a provider may send nothing; None is without limit."""
        self._addresses = addresses
        self._servers = {
            name: _UpstreamServer(address, read_timeout) for name, address in addresses.items()
        }

    def address(self, name: str) -> str:
        """Return the base URL of an upstream server."""
        return self._addresses[name]

    def call(
        self, name: str, method: str, path: str, headers: Iterable[Header], body: bytes | None
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Send a request; the context yields the response and ends the call when it is left."""
        return _UpstreamCall(self._servers[name], method, path, headers, body)

    async def close(self) -> None:
        """Close the connections that are not used."""
        for server in self._servers.values():
            await server.close()


@lru_cache(maxsize=_CACHED_NAMES)
def is_forwarded(name: bytes) -> bool:
    """Return True if a header is passed on to the other side."""
    lower = name.lower()
    return lower not in _CONNECTION_HEADERS and not lower.startswith(ENFOLD_HEADERS)


def response_headers(headers: Iterable[Header]) -> list[Header]:
    """Return the headers of a provider's response that the client gets.

    Cookies, rights and orders for web pages are those of the provider's own site.
    """
    return [header for header in headers if _is_for_client(header[0])]


@lru_cache(maxsize=_CACHED_NAMES)
def _is_for_client(name: bytes) -> bool:
    return is_forwarded(name) and not name.lower().startswith(_OF_PROVIDERS_SITE)


def _unavailable_error(origin: str, error: Exception) -> UnavailableError:
    cause = error.cause if isinstance(error, _ResponseError) else "cannot be reached"
    reason = str(error) or type(error).__name__
    return UnavailableError(f"the provider at {origin} {cause}: {reason}; try again")
