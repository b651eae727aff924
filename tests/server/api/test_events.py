"""Events over HTTP: two listeners, one namespace each, and what was missed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn

from enfold.server import App
from enfold.server.serve import Server
from tests.server.conftest import talk


@pytest.fixture
async def address(app: App) -> AsyncIterator[str]:
    """Where the app listens: streams need a real server."""
    config = uvicorn.Config(app.asgi, port=0, lifespan="off", log_config=None, access_log=False)
    begun = asyncio.Event()
    server = Server(config, app, begun.set)
    task = asyncio.create_task(server._serve())
    await begun.wait()
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    await task


EventStream = AsyncIterator[dict[str, Any]]


@asynccontextmanager
async def listening(
    address: str, path: str = "/api/events", **headers: str
) -> AsyncIterator[EventStream]:
    """The events that come, once the server has begun to answer."""
    async with (
        httpx.AsyncClient(base_url=address, timeout=30) as client,
        client.stream("GET", path, headers=headers) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _events(answer)


async def _events(answer: httpx.Response) -> EventStream:
    event: dict[str, Any] = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "data":
            event["data"] = json.loads(value)
        elif name in {"event", "id"}:
            event[name] = value
        elif not line and event:
            yield event
            event = {}


async def compressed(client: httpx.AsyncClient, session: str = "chat") -> None:
    await talk(client, session)
    assert (await client.post(f"/api/sessions/{session}/compress", json={})).status_code == 200


async def test_two_listen_and_hear_the_same(address: str) -> None:
    async with (
        listening(address) as first,
        listening(address, "/api/events?session=chat") as second,
        httpx.AsyncClient(base_url=address, timeout=60) as client,
    ):
        await compressed(client, "other")
        await compressed(client)
        mine = [await anext(second) for _ in range(3)]
        names = [event["event"] for event in mine]
        assert names[0] == "compression.started"
        assert mine[0]["data"]["session"] == "chat"
        received: list[dict[str, Any]] = []
        while mine[-1] not in received:
            received.append(await anext(first))
        assert [event for event in received if event["data"]["session"] == "chat"][:3] == mine
        assert any(event["data"]["session"] == "other" for event in received)


async def test_a_returning_listener_gets_missed_events(address: str) -> None:
    async with (
        listening(address) as events,
        httpx.AsyncClient(base_url=address, timeout=60) as client,
    ):
        await compressed(client)
        first = await anext(events)
        second = await anext(events)
    async with listening(address, **{"last-event-id": first["id"]}) as again:
        assert await anext(again) == second


async def test_events_stay_within_their_namespace(address: str, tokens: tuple[str, str]) -> None:
    ann, ben = ({"x-enfold-token": token} for token in tokens)
    async with (
        listening(address, **ann) as hers,
        listening(address, **ben) as his,
        httpx.AsyncClient(base_url=address, headers=ann, timeout=60) as ann_client,
        httpx.AsyncClient(base_url=address, headers=ben, timeout=60) as ben_client,
    ):
        await compressed(ann_client, "chat")
        await compressed(ben_client, "another")
        assert (await anext(hers))["data"]["session"] == "chat"
        assert (await anext(his))["data"]["session"] == "another"


async def test_a_stream_ends_when_the_server_stops(address: str, app: App) -> None:
    async with listening(address) as events:
        app.drain()
        assert [event async for event in events] == []
