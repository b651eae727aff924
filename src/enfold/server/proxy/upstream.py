"""Upstream: requests go on to the provider, and its answers come back as they are.

Bytes are neither decoded nor unpacked on the way. Only what concerns a single connection, and what
is said to enfold alone, stays behind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

import aiohttp
from yarl import URL

from enfold.errors import UnavailableError
from enfold.server.headers import Header

_OF_A_CONNECTION = frozenset(
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
OWN = b"x-enfold-"
"""How the names of headers begin that are said to enfold, or by it."""
_ADDED = frozenset({"user-agent", "accept", "accept-encoding", "content-type"})
"""What the library would say by itself where the client says nothing."""
_CONNECT_SECONDS = 30.0
_WITHOUT_BODY = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class Arriving(Protocol):
    """An answer on its way to the client."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> list[Header]: ...
    @property
    def length(self) -> int | None:
        """Bytes of the body; None while nobody knows."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What a provider answers, still arriving."""

    status: int
    headers: list[Header]
    _response: aiohttp.ClientResponse

    @property
    def length(self) -> int | None:
        """Bytes of the body, if there is one and the provider said so."""
        if self.status in _WITHOUT_BODY or "transfer-encoding" in self._response.headers:
            return None
        return self._response.content_length

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives; `UnavailableError` if it breaks off."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unavailable(self._response.url, error) from None

    async def read(self) -> bytes:
        """The whole body."""
        try:
            return await self._response.read()
        except aiohttp.ClientError as error:
            raise _unavailable(self._response.url, error) from None


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer that is all there."""

    status: int
    headers: list[Header]
    body: bytes

    @property
    def length(self) -> int:
        """Bytes of the body."""
        return len(self.body)

    async def chunks(self) -> AsyncIterator[bytes]:
        """All of it."""
        yield self.body


def is_stream(answer: Arriving) -> bool:
    """Whether the answer is a stream of events."""
    said = {name.lower(): value for name, value in answer.headers}
    return b"text/event-stream" in said.get(b"content-type", b"")


async def gathered(answer: Arriving) -> Whole:
    """The answer, once it is all there."""
    body = b"".join([chunk async for chunk in answer.chunks()])
    return Whole(answer.status, answer.headers, body)


class _Asking(AbstractAsyncContextManager[Answer]):
    """A call under way."""

    def __init__(self, request: Awaitable[aiohttp.ClientResponse], url: URL) -> None:
        self._request = request
        self._url = url

    async def __aenter__(self) -> Answer:
        try:
            self._response = response = await self._request
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unavailable(self._url, error) from None
        return Answer(response.status, forwarded(response.raw_headers), response)

    async def __aexit__(self, *_: object) -> None:
        # Released if it was read to its end, closed if it was not.
        self._response.release()


class Upstream:
    """The providers, reached over connections that are kept."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._addresses = addresses
        self._client: aiohttp.ClientSession | None = None

    def address(self, provider: str) -> str:
        """Where the provider is."""
        return self._addresses[provider]

    def ask(
        self, provider: str, method: str, path: str, headers: Iterable[Header], body: bytes | None
    ) -> AbstractAsyncContextManager[Answer]:
        """The provider's answer. Leaving the context ends the call, wherever it is."""
        url = URL(self._addresses[provider] + path, encoded=True)
        sent = _text(forwarded(headers))
        request = self._session().request(
            method,
            url,
            headers=sent,
            data=body,
            allow_redirects=False,
            skip_auto_headers=_ADDED.difference(name for name, _ in sent) or None,
        )
        return _Asking(request, url)

    def _session(self) -> aiohttp.ClientSession:
        if self._client is None:
            self._client = aiohttp.ClientSession(
                auto_decompress=False,
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
            )
        return self._client

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.close()


def forwarded(headers: Iterable[Header]) -> list[Header]:
    """The headers that concern the other side."""
    return [
        (name, value)
        for name, value in headers
        if (lower := name.lower()) not in _OF_A_CONNECTION and not lower.startswith(OWN)
    ]


def _text(headers: Iterable[Header]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


def _unavailable(url: URL, error: Exception) -> UnavailableError:
    why = str(error) or type(error).__name__
    return UnavailableError(f"the provider at {url.origin()} cannot be reached: {why}; try again")
