"""A web server that does as it is told, and remembers what it was asked and who hung up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote


class Step(Enum):
    """Steps of a server other than sending bytes."""

    WAIT = auto()
    """Say nothing more until the client hangs up."""
    CUT = auto()
    """Hang up in the middle."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that the server received."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """A scripted answer: a head, then bytes and steps."""

    steps: tuple[bytes | Step, ...] = ()
    status: int = 200
    mime: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    silent: bool = False
    """Not even a head; the client waits in vain."""

    @classmethod
    def of(cls, value: object, status: int = 200, **headers: str) -> ScriptedAnswer:
        """An answer in JSON."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls((json.dumps(value).encode(),), status, headers=named)


def events(*data: object, named: bool = False) -> tuple[bytes, ...]:
    """Server-sent events, one per value; named after their `type`, where the protocol does so."""
    written = []
    for each in data:
        text = each if isinstance(each, str) else json.dumps(each)
        name = f"event: {each['type']}\n" if named and isinstance(each, dict) else ""
        written.append(f"{name}data: {text}\n\n".encode())
    return tuple(written)


class Loopback:
    """The server. Its answers are given in turn, and the last one from then on.

    Requests by GET get the answer `listing`, if there is one, and take no turn.
    """

    def __init__(self, *answers: ScriptedAnswer, listing: ScriptedAnswer | None = None) -> None:
        self._answers = list(answers)
        self._listing = listing
        self.requests: list[Request] = []
        self.connections = 0
        self.request_arrived = asyncio.Event()
        """Set once the first request has come."""
        self.left = asyncio.Event()
        """Set once a client hung up while it was waiting for more."""

    @property
    def url(self) -> str:
        """Where it is."""
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._open: set[asyncio.StreamWriter] = set()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for writer in self._open:
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        with suppress(ConnectionError):
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                self.request_arrived.set()
                if not await self._say(self._answer(request), reader, writer):
                    break
        writer.close()
        self._open.discard(writer)

    def _answer(self, request: Request) -> ScriptedAnswer:
        if self._listing is not None and request.method == "GET":
            return self._listing
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    async def _say(
        self, answer: ScriptedAnswer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Return True if the connection can be used again."""
        if answer.silent:
            await self._wait(reader)
            return False
        head = {"content-type": answer.mime, "transfer-encoding": "chunked", **answer.headers}
        lines = [f"HTTP/1.1 {answer.status} X", *(f"{name}: {head[name]}" for name in head)]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for step in answer.steps:
            if step is Step.CUT:
                return False
            if step is Step.WAIT:
                await self._wait(reader)
                return False
            if step:
                writer.write(b"%x\r\n%s\r\n" % (len(step), step))
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _wait(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            await reader.read()
        self.left.set()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    method, target, _ = head[0].split(" ", 2)
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    path, _, query = target.partition("?")
    return Request(method, unquote(path), query, headers, body)
