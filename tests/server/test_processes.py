"""Several processes over one database: all see every change and share the work."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.databases import Server
from tests.server.cluster import Answer, Cluster, joined, servers
from tests.server.live_server import serving
from tests.server.processes import Process
from tests.server.proxy.stage import ScriptedProvider, question


@pytest.fixture(scope="module")
def running(server: Server) -> Iterator[tuple[list[Process], int]]:
    """Two servers over one database, and the port at which they look for a provider."""
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    upstream = f"http://127.0.0.1:{port}"
    with servers(server.new_database(), 2, ENFOLD_OPENAI_BASE_URL=upstream) as processes:
        yield processes, port


@pytest.fixture
async def on(running: tuple[list[Process], int]) -> AsyncIterator[Cluster]:
    processes, port = running
    provider = ScriptedProvider()
    async with serving(provider.app(), port), joined(processes, provider) as made:
        yield made


async def talk(on: Cluster, messages: list[Any], turns: int, first: int = 0) -> list[Answer]:
    """Send a number of turns through the proxy; the messages grow as a client's do."""
    answers = []
    for _ in range(turns):
        messages.append({"role": "user", "content": question(first + len(messages))})
        answer = await on.say(messages)
        assert answer.status == 200, answer.body
        messages.append(answer.body["choices"][0]["message"])
        answers.append(answer)
    return answers


async def test_a_setting_changed_in_one_process_holds_at_the_next_decision_in_another(
    on: Cluster,
) -> None:
    session = {"id": "chat", "model": "openai:small"}
    await on.ask("POST", "/api/sessions", session, at=0)
    texts = [question(number) for number in range(12)]
    await on.ask("POST", "/api/sessions/chat/messages", {"messages": texts}, at=0)
    before = await on.ask("GET", "/api/sessions/chat/status", at=1)
    assert not before["needs_compression"]
    await on.ask("PATCH", "/api/settings", {"settings": {"threshold": 0.2}}, at=0)
    after = await on.ask("GET", "/api/sessions/chat/status", at=1)
    assert after["needs_compression"]
    assert after["threshold_token_count"] < before["threshold_token_count"]
    prepared = await on.ask("POST", "/api/sessions/chat/prepare", {}, at=1)
    assert prepared["compression"]["outcome"] == "compressed"
    await on.ask("PATCH", "/api/settings", {"settings": {"threshold": None}}, at=1)
    again = await on.ask("GET", "/api/sessions/chat/status", at=0)
    assert again["threshold_token_count"] == before["threshold_token_count"]


async def test_a_conversation_goes_on_in_whichever_process_it_comes_to(on: Cluster) -> None:
    await on.ask("PATCH", "/api/settings", {"settings": {"background": False}})
    messages: list[Any] = []
    answers = await talk(on, messages, 24)
    decisions = [answer.decision for answer in answers]
    assert {"keep", "compressed", "reused"} == set(decisions)
    assert decisions.count("compressed") < 8
    names = {answer.headers.get("x-enfold-session") for answer in answers[1:]}
    assert len(names) == 1


async def test_events_of_one_process_reach_another(on: Cluster) -> None:
    await on.ask("POST", "/api/sessions", {"id": "told", "model": "openai:small"})
    body = {"messages": [question(number) for number in range(20)]}
    await on.ask("POST", "/api/sessions/told/messages", body)
    async with on.http.get(f"{on.address(1)}/api/events") as feed, asyncio.timeout(60):
        await on.ask("POST", "/api/sessions/told/compress", {}, at=0)
        events = []
        async for line in feed.content:
            if line.startswith(b"data: "):
                events.append(json.loads(line[6:]))
                if events[-1]["event"] == "compression.finished":
                    break
    assert events[0]["event"] == "compression.started"
    assert {each["session"] for each in events} == {"told"}


async def test_controls_ahead_is_done_by_one_of_them(on: Cluster) -> None:
    await on.ask("PATCH", "/api/settings", {"settings": {"background": True}})
    messages: list[Any] = []
    answers = await talk(on, messages, 2, 1_000)
    while answers[-1].decision == "keep":
        answers += await talk(on, messages, 1, 1_000)
        await _idle(on)
    assert answers[-1].decision == "reused"  # and never was one compressed while it waited
    name = answers[-1].headers["x-enfold-session"]
    summaries = await on.ask("GET", f"/api/sessions/{name}/summaries")
    assert len(summaries) == 1
    ready = await on.ask("GET", "/readyz")
    assert (ready["queue"]["runner"], ready["queue"]["status"]) == ("procrastinate", "ok")


async def _idle(on: Cluster) -> None:
    """Wait until what was asked for in the background is done."""
    await asyncio.sleep(0.1)
    async with asyncio.timeout(30):
        while (await on.ask("GET", "/readyz"))["queue"]["waiting"]:  # noqa: ASYNC110 - a table
            await asyncio.sleep(0.05)
