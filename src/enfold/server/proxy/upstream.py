"""The upstream servers: requests are forwarded to the providers, and their responses come back.

Bodies are neither decoded nor decompressed on the way. Headers of a single connection, and those
that are meant for enfold, are not forwarded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from http import HTTPStatus
from time import monotonic
from typing import Protocol

import aiohttp
from yarl import URL

from enfold.errors import UnavailableError
from enfold.server.access import Header

WITHOUT_BODY = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
"""Statuses of responses that have no body."""
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
_AUTOMATIC_HEADERS = frozenset({"user-agent", "accept", "accept-encoding", "content-type"})
"""Headers that aiohttp adds unless it is told not to."""
_CONNECT_SECONDS = 30.0
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
_MAX_HEADER_BYTES = 64 * 1024
_RESEND_SECONDS = 1.0
"""Seconds in which a reset shows that an idle connection was closed."""
_PIECE_BYTES = 2**20
"""A longer body is sent in pieces of this size, so that other requests go on meanwhile."""


class RelayedResponse(Protocol):
    """A response on its way to the client."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> list[Header]: ...
    @property
    def length(self) -> int | None:
        """The size of the body in bytes; None while it is unknown."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
        ...


@dataclass(frozen=True, slots=True)
class UpstreamResponse:
    """A provider's response that is still arriving."""

    status: int
    headers: list[Header]
    _response: aiohttp.ClientResponse

    @property
    def length(self) -> int | None:
        """The size of the body in bytes; None if there is no body or the size is unknown."""
        if self.status in WITHOUT_BODY or "transfer-encoding" in self._response.headers:
            return None
        return self._response.content_length

    @property
    def ends_with_connection(self) -> bool:
        """True if only the end of the connection ends the body: it may have been broken off."""
        is_chunked = "transfer-encoding" in self._response.headers
        return self.length is None and not is_chunked and self.status not in WITHOUT_BODY

    def broken_off(self) -> UnavailableError:
        """Return the error for a body that ended before the reply did."""
        return UnavailableError(
            f"the provider at {self._response.url.origin()} broke off its response; try again"
        )

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; raise `UnavailableError` if the connection breaks."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unavailable_error(self._response.url, error) from None

    async def read(self) -> bytes:
        """Return the whole body."""
        try:
            return await self._response.read()
        except aiohttp.ClientError as error:
            raise _unavailable_error(self._response.url, error) from None


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

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the whole body at once."""
        yield self.body


def is_stream(response: RelayedResponse) -> bool:
    """Return True if the response is a stream of server-sent events."""
    values = {name.lower(): value for name, value in response.headers}
    return b"text/event-stream" in values.get(b"content-type", b"")


async def buffer_response(response: RelayedResponse) -> BufferedResponse:
    """Read the response to its end."""
    body = b"".join([chunk async for chunk in response.chunks()])
    return BufferedResponse(response.status, response.headers, body)


class _UpstreamCall(AbstractAsyncContextManager[UpstreamResponse]):
    """A request to a provider while its response is read."""

    def __init__(
        self,
        send: Callable[[], Awaitable[aiohttp.ClientResponse]],
        url: URL,
        is_written: Callable[[], bool],
    ) -> None:
        self._send = send
        self._url = url
        self._is_written = is_written

    async def __aenter__(self) -> UpstreamResponse:
        try:
            self._response = response = await self._send_over_open_connection()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unavailable_error(self._url, error) from None
        return UpstreamResponse(response.status, response_headers(response.raw_headers), response)

    async def _send_over_open_connection(self) -> aiohttp.ClientResponse:
        started = monotonic()
        try:
            return await self._send()
        except aiohttp.ClientConnectorError:
            raise
        except aiohttp.ClientOSError:
            # The provider closed an idle connection before it had received all of the request.
            # A later reset may come after it has worked on the request: that is not repeated.
            if self._is_written() and monotonic() - started > _RESEND_SECONDS:
                raise
            return await self._send()

    async def __aexit__(self, *_: object) -> None:
        # The connection is reused if the body was read to its end, and closed if it was not.
        self._response.release()


class Upstream:
    """Forwards requests to the providers over connections that stay open."""

    def __init__(self, addresses: Mapping[str, str], *, read_timeout: float | None = None) -> None:
        """`read_timeout` is how many seconds a provider may send nothing; None is without limit."""
        self._addresses = addresses
        self._read_timeout = read_timeout
        self._client: aiohttp.ClientSession | None = None

    def address(self, name: str) -> str:
        """Return the base URL of an upstream server."""
        return self._addresses[name]

    def call(
        self, name: str, method: str, path: str, headers: Iterable[Header], body: bytes | None
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Send a request; the context yields the response and ends the call when it is left."""
        url = URL(self._addresses[name] + path, encoded=True)
        sent = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in forwarded_headers(headers)
        ]
        in_pieces = body is not None and len(body) > _PIECE_BYTES
        is_written = not in_pieces
        if body is not None and in_pieces:
            sent.append(("Content-Length", str(len(body))))

        async def pieces(body: bytes) -> AsyncIterator[memoryview]:
            nonlocal is_written
            view = memoryview(body)
            for start in range(0, len(body), _PIECE_BYTES):
                yield view[start : start + _PIECE_BYTES]
            is_written = True

        def send() -> Awaitable[aiohttp.ClientResponse]:
            return self._session().request(
                method,
                url,
                headers=sent,
                data=pieces(body) if body is not None and in_pieces else body,
                allow_redirects=False,
                skip_auto_headers=_AUTOMATIC_HEADERS.difference(name for name, _ in sent) or None,
            )

        return _UpstreamCall(send, url, lambda: is_written)

    def _session(self) -> aiohttp.ClientSession:
        if self._client is None:
            self._client = aiohttp.ClientSession(
                auto_decompress=False,
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=_CONNECT_SECONDS, sock_read=self._read_timeout
                ),
                max_line_size=_MAX_HEADER_BYTES,
                max_field_size=_MAX_HEADER_BYTES,
            )
        return self._client

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.close()


def forwarded_headers(headers: Iterable[Header]) -> list[Header]:
    """Return the headers that are passed on to the other side."""
    return [
        (name, value)
        for name, value in headers
        if (lower := name.lower()) not in _CONNECTION_HEADERS
        and not lower.startswith(ENFOLD_HEADERS)
    ]


def response_headers(headers: Iterable[Header]) -> list[Header]:
    """Return the headers of a provider's response that the client gets.

    Cookies, rights and orders for web pages are those of the provider's own site.
    """
    return [
        (name, value)
        for name, value in forwarded_headers(headers)
        if not name.lower().startswith(_OF_PROVIDERS_SITE)
    ]


def _unavailable_error(url: URL, error: Exception) -> UnavailableError:
    reason = str(error) or type(error).__name__
    provider = f"the provider at {url.origin()}"
    if isinstance(error, aiohttp.SocketTimeoutError):
        return UnavailableError(f"{provider} sent nothing for too long: {reason}; try again")
    if isinstance(error, aiohttp.ClientResponseError):
        return UnavailableError(f"{provider} sent an invalid response: {reason}; try again")
    if isinstance(error, aiohttp.ClientPayloadError):
        return UnavailableError(f"{provider} broke off its response: {reason}; try again")
    return UnavailableError(f"{provider} cannot be reached: {reason}; try again")
