"""Load: the same request again and again over kept connections, with little work of its own.

A client library would take longer for a request than a quick proxy does, and its own speed would be
what is measured.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass
from typing import cast

import httptools
import uvloop

OK = 200
REST = 3.0
"""Seconds for what a proxy still does in the background after it has seen a request first."""
KEY = "sk-bench-4c1f7ab20d9e58336fd2a97e"
"""Made up; one proxy wants its clients to have a long one."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one address did with one request."""

    p50: float
    """Seconds of a request, one after the other."""
    per_second: float
    """Requests a second, many at a time."""


class WrongAnswerError(Exception):
    """An answer that is not the one expected."""


def measure(port: int, body: bytes, seconds: float, *, concurrent: int, alone: int) -> Figures:
    """Latency of one at a time, then throughput of many."""
    return uvloop.run(_measure(port, request(body), seconds, concurrent, alone))


def request(body: bytes) -> bytes:
    """A request for a chat completion, as it goes over the wire."""
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: */*\r\n"
        b"authorization: Bearer %s\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n" % (KEY.encode(), len(body))
    ) + body


async def send_all(port: int, requests: list[bytes], concurrent: int) -> None:
    """Every request once."""
    left = iter(requests)

    async def go_on() -> None:
        connection = await _connect(port)
        for each in left:
            await connection.ask(each)
        connection.close()

    await asyncio.gather(*(go_on() for _ in range(concurrent)))


async def _measure(port: int, asked: bytes, seconds: float, concurrent: int, alone: int) -> Figures:
    connection = await _connect(port)
    for _ in range(max(3, alone // 10)):
        await connection.ask(asked)
    await asyncio.sleep(REST)
    taken = []
    for _ in range(alone):
        started = time.perf_counter()
        await connection.ask(asked)
        taken.append(time.perf_counter() - started)
    connection.close()
    started = time.perf_counter()
    until = started + seconds
    done = await asyncio.gather(*(_go_on(port, asked, until) for _ in range(concurrent)))
    return Figures(statistics.median(taken), sum(done) / (time.perf_counter() - started))


async def _go_on(port: int, asked: bytes, until: float) -> int:
    connection = await _connect(port)
    count = 0
    while time.perf_counter() < until:
        await connection.ask(asked)
        count += 1
    connection.close()
    return count


async def _connect(port: int) -> _Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(_Connection, "127.0.0.1", port)
    return connection


class _Connection(asyncio.Protocol):
    """One connection, for one request after the other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)
        self._body = b""

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answered.done():
            self._answered.set_exception(exc or ConnectionError("the connection was closed"))

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        status, body = self._parser.get_status_code(), self._body
        self._parser, self._body = httptools.HttpResponseParser(self), b""
        if status != OK or b'"pong"' not in body:
            self._answered.set_exception(WrongAnswerError(f"{status}: {body[:300]!r}"))
        elif not self._answered.done():
            self._answered.set_result(None)

    async def ask(self, asked: bytes) -> None:
        """Send a request, and wait for its answer."""
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(asked)
        await self._answered

    def close(self) -> None:
        """Hang up."""
        self._answered = asyncio.get_running_loop().create_future()
        self._answered.set_result(None)
        self._transport.close()
