"""Servers over one database as processes of their own, and a client that takes them in turn."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from itertools import count
from typing import Any

import aiohttp

from tests.server.live_server import serving
from tests.server.processes import Process, serve
from tests.server.proxy.stage import ScriptedProvider

TOKEN = "a-token-of-the-test"
WINDOW = 8_000


@dataclass(frozen=True)
class Answer:
    """The answer of a server."""

    status: int
    headers: Any
    body: Any

    @property
    def decision(self) -> str | None:
        """The decision that the proxy reports."""
        header = self.headers.get("x-enfold-decision")
        return None if header is None else str(header)


class Cluster:
    """Servers, and the provider behind them."""

    def __init__(
        self, processes: list[Process], provider: ScriptedProvider, http: aiohttp.ClientSession
    ) -> None:
        self.processes = processes
        self.provider = provider
        self.http = http
        self._turns = count()

    def address(self, at: int | None = None) -> str:
        """Of one of them, else of the next."""
        number = next(self._turns) if at is None else at
        return self.processes[number % len(self.processes)].address

    async def call(
        self, method: str, path: str, body: Any = None, *, at: int | None = None
    ) -> Answer:
        """Return the answer, errors included."""
        async with self.http.request(method, self.address(at) + path, json=body) as answer:
            text = await answer.text()
            return Answer(answer.status, answer.headers, json.loads(text) if text else None)

    async def ask(self, method: str, path: str, body: Any = None, *, at: int | None = None) -> Any:
        """Return the answer, which must be no error."""
        answer = await self.call(method, path, body, at=at)
        assert answer.status < HTTPStatus.BAD_REQUEST, (method, path, answer.body)
        return answer.body

    async def say(self, messages: Sequence[Any], *, at: int | None = None) -> Answer:
        """A turn through the proxy."""
        body = {"model": "small", "messages": messages}
        return await self.call("POST", "/v1/chat/completions", body, at=at)

    async def sessions(self) -> list[Any]:
        """All of them, page by page."""
        found: list[Any] = []
        after = ""
        while True:
            page = await self.ask("GET", f"/api/sessions?limit=200{after}")
            found += page["sessions"]
            if page["next"] is None:
                return found
            after = f"&after={page['next']}"

    async def history(self, session: str) -> list[Any]:
        """Return its last 200 messages."""
        page = await self.ask("GET", f"/api/sessions/{session}/messages?limit=200")
        return [each["message"] for each in page["messages"]]


@contextmanager
def servers(url: str, number: int, **variables: str) -> Iterator[list[Process]]:
    """Start a number of processes over a database at once."""
    with ExitStack() as stack, ThreadPoolExecutor(number) as threads:
        begun = [serve(url, "--no-ui", ENFOLD_TOKEN=TOKEN, **variables) for _ in range(number)]
        yield list(threads.map(stack.enter_context, begun))


@asynccontextmanager
async def joined(processes: list[Process], provider: ScriptedProvider) -> AsyncIterator[Cluster]:
    """Processes that run already, with a small model."""
    async with aiohttp.ClientSession(
        headers={"x-enfold-token": TOKEN},
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(90),
    ) as http:
        made = Cluster(processes, provider, http)
        limits = {"max_input": WINDOW, "max_output": 500, "retention_tokens": 300}
        await made.ask("PATCH", "/api/models/openai:small", limits)
        yield made


@asynccontextmanager
async def cluster(url: str, number: int = 1, **variables: str) -> AsyncIterator[Cluster]:
    """Start a number of servers in front of a provider."""
    provider = ScriptedProvider()
    async with serving(provider.app()) as upstream:
        with servers(url, number, ENFOLD_OPENAI_BASE_URL=upstream, **variables) as processes:
            async with joined(processes, provider) as made:
                yield made
