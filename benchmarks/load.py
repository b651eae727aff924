"""Load: repeats a request over open connections, with little overhead.

A client library takes longer for a request than a fast proxy, so its own speed would be measured.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast

import httptools
import uvloop

OK = 200
REST = 3.0
"""Pause after the first request, for background work of the proxy, in seconds."""
TURNS = 4
"""Number of rounds."""
PAUSE = 1.0
"""Pause between rounds, for background work, in seconds."""
BURST = 10
"""Requests in a row before the next address is measured."""
LONGEST = 120.0
"""Seconds for one step. An address that takes longer is left out."""
KEY = "sk-bench-4c1f7ab20d9e58336fd2a97e"
"""An invented key; one proxy requires a long one."""


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """The figures of one address for one request."""

    p50: float
    """Seconds per request, one at a time."""
    per_second: float
    """Requests per second, many at a time."""


class WrongAnswerError(Exception):
    """The response is not the expected one."""


def measure(
    ports: Mapping[str, int], body: bytes, seconds: float, *, concurrent: int, single: int
) -> dict[str, LoadFigures]:
    """Measure the latency of single requests, then the throughput of many, in turns.

    An address that gives a wrong response has no figures.
    """
    return uvloop.run(_Measuring(request(body), seconds, concurrent, single).all(ports))


def request(body: bytes) -> bytes:
    """Return the bytes of a request for a chat completion."""
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: */*\r\n"
        b"user-agent: load\r\n"
        b"authorization: Bearer %s\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n" % (KEY.encode(), len(body))
    ) + body


async def send_all(port: int, requests: list[bytes], concurrent: int) -> None:
    """Send every request once."""
    left = iter(requests)

    async def go_on() -> None:
        connection = await _connect(port)
        for each in left:
            await connection.ask(each)
        connection.close()

    await asyncio.gather(*(go_on() for _ in range(concurrent)))


@dataclass(frozen=True, slots=True)
class _Measuring:
    """One request, sent to all addresses."""

    payload: bytes
    seconds: float
    concurrent: int
    single: int

    async def all(self, ports: Mapping[str, int]) -> dict[str, LoadFigures]:
        """Return the figures of all addresses."""
        able = dict(ports)
        taken: dict[str, list[float]] = {name: [] for name in ports}
        rates: dict[str, list[float]] = {name: [] for name in ports}
        await _each(able, self._warm)
        await asyncio.sleep(REST)
        for _ in range(self.single // BURST):
            await _each(able, lambda name, port: self._one_by_one(port, taken[name]))
        for _ in range(TURNS):
            await _each(able, lambda name, port: self._many_at_a_time(port, rates[name]))
        return {
            name: LoadFigures(statistics.median(taken[name]), statistics.median(rates[name]))
            for name in able
        }

    async def _warm(self, _name: str, port: int) -> None:
        connection = await _connect(port)
        for _ in range(max(3, self.single // 10)):
            await connection.ask(self.payload)
        connection.close()

    async def _one_by_one(self, port: int, taken: list[float]) -> None:
        connection = await _connect(port)
        await connection.ask(self.payload)  # what was kept close for the one before is not for this
        for _ in range(BURST):
            started = time.perf_counter()
            await connection.ask(self.payload)
            taken.append(time.perf_counter() - started)
        connection.close()

    async def _many_at_a_time(self, port: int, rates: list[float]) -> None:
        await asyncio.sleep(PAUSE)
        started = time.perf_counter()
        until = started + self.seconds / TURNS
        going = (self._go_on(port, until) for _ in range(self.concurrent))
        done = await asyncio.gather(*going)
        rates.append(sum(done) / (time.perf_counter() - started))

    async def _go_on(self, port: int, until: float) -> int:
        connection = await _connect(port)
        count = 0
        while time.perf_counter() < until:
            await connection.ask(self.payload)
            count += 1
        connection.close()
        return count


async def _each(able: dict[str, int], do: Callable[[str, int], Awaitable[None]]) -> None:
    """Run a step for each address; one that fails is removed."""
    for name, port in list(able.items()):
        try:
            async with asyncio.timeout(LONGEST):
                await do(name, port)
        except (WrongAnswerError, ConnectionError, TimeoutError) as error:
            print(f"  {name}: {str(error) or 'no answer'}", file=sys.stderr)
            del able[name]


async def _connect(port: int) -> _Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(_Connection, "127.0.0.1", port)
    return connection


class _Connection(asyncio.Protocol):
    """One connection for consecutive requests."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)
        self._body = b""

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answered.done():
            reason = str(exc or "the connection was closed")
            self._answered.set_exception(ConnectionError(reason))

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

    async def ask(self, payload: bytes) -> None:
        """Send a request and return its response."""
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(payload)
        await self._answered

    def close(self) -> None:
        """Close the connection."""
        self._answered = asyncio.get_running_loop().create_future()
        self._answered.set_result(None)
        self._transport.close()
