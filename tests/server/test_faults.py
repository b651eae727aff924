"""Faults: the process is killed, the database goes away, very many come at once.

Nothing that was acknowledged is lost, and every refusal is typed and has an id.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest

import enfold
from enfold.messages import text_of
from enfold.server import create_app
from tests.databases import Server
from tests.server.cluster import Answer, Cluster, cluster
from tests.server.conftest import client_of
from tests.server.processes import serve
from tests.server.proxy.stage import question

FIELDS = {"provider": "openai", "model": "gpt-4o", "key": "env:SOME_KEY"}


def test_a_process_killed_during_a_compression_loses_nothing(tmp_path: Path) -> None:
    db = tmp_path / "chats.db"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with serve(db, "--no-ui", SOME_KEY="a-key", ENFOLD_TIMEOUT="600") as process:
            with httpx.Client(base_url=process.address, timeout=None) as client:
                client.put("/api/profiles/slow", json={"fields": {**FIELDS, "base_url": url}})
                client.post("/api/sessions", json={"id": "chat", "profile": "slow"})
                messages = [
                    {"role": "user", "content": f"{turn}: " + "alpha " * 60} for turn in range(40)
                ]
                client.post("/api/sessions/chat/messages", json={"messages": messages})
            threading.Thread(target=_compress, args=(process.address,), daemon=True).start()
            request, _ = silent.accept()  # the run's own time limit ends a wait that never would
            with request:  # the model was called and does not answer
                assert process.stop(signal.SIGKILL) != 0
    with (
        serve(db, "--no-ui") as process,
        httpx.Client(base_url=process.address, timeout=None) as client,
    ):
        assert client.get("/readyz").status_code == 200
        session = client.get("/api/sessions/chat").json()
        assert (session["messages"], session["blocked"]) == (40, None)
        assert client.get("/api/sessions/chat/summaries").json() == []
        history = client.get("/api/sessions/chat/messages", params={"limit": 100}).json()
        assert [each["message"] for each in history["messages"]] == messages
        assert process.stop() == 0


def _compress(address: str) -> None:
    try:
        httpx.post(f"{address}/api/sessions/chat/compress", json={}, timeout=None)
    except httpx.HTTPError:
        return  # it was killed


@pytest.mark.parametrize("path", ["/api/sessions", "/api/search?q=tea"])
async def test_a_database_that_restarts_is_an_error_with_an_id_and_then_none(
    server: Server, path: str
) -> None:
    async with (
        enfold.open(server.emptied_database()) as engine,
        client_of(create_app(engine)) as client,
    ):
        await client.post("/api/sessions", json={"id": "chat"})
        server.stop()
        try:
            failed = await client.get(path)
            ready = await client.get("/readyz")
        finally:
            server.start()
        error = failed.json()["error"]
        assert (failed.status_code, error["retryable"]) == (503, True)
        assert error["request_id"] == failed.headers["x-request-id"]
        assert ready.status_code == 503
        assert (await client.get(path)).status_code == 200
        assert (await client.get("/api/sessions/chat")).status_code == 200
        assert (await client.get("/readyz")).status_code == 200


def conversation(name: str, turns: int) -> list[Any]:
    """A history as a client sends it, unlike that of any other name; it ends with a question."""
    messages: list[Any] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{name}: {question(turn)}"})
        messages.append({"role": "assistant", "content": f"{name}: answer {turn}"})
    return [*messages, {"role": "user", "content": f"{name}: and now?"}]


def check_refusals(answers: Sequence[Answer]) -> None:
    """Every one that is no success is a typed error with an id."""
    for answer in answers:
        assert answer.headers["x-request-id"]
        if answer.status >= 400:
            assert answer.status in {409, 502, 503}, answer.body
            assert answer.body["error"]["code"]


async def test_a_process_killed_while_the_proxy_compresses_is_waited_for_and_replaced(
    url: str,
) -> None:
    history = conversation("chat", 24)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        model = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        async with cluster(url, SOME_KEY="a-key") as on:
            await on.ask("PUT", "/api/profiles/slow", {"fields": {**FIELDS, "base_url": model}})
            await on.ask("PATCH", "/api/settings", {"settings": {"summarizer": "slow"}})
            turn = asyncio.create_task(on.say(history))
            connection, _ = await asyncio.to_thread(silent.accept)
            with connection:  # the model was asked, and says nothing
                assert on.processes[0].stop(signal.SIGKILL) != 0
            with pytest.raises(aiohttp.ClientError):
                await turn
    async with cluster(url) as on:
        await on.ask("PATCH", "/api/settings", {"settings": {"summarizer": None}})
        (session,) = await on.sessions()
        assert (session["messages"], session["blocked"]) == (len(history), None)
        again = await on.say(history)  # the dead one's lease runs out first
        assert (again.status, again.decision) == (200, "compressed")
        assert len(await on.ask("GET", f"/api/sessions/{session['id']}/summaries")) == 1
        assert await on.history(session["id"]) == history
        assert on.processes[0].stop() == 0


async def test_a_database_that_restarts_under_load_costs_errors_with_ids_and_no_message(
    server: Server,
) -> None:
    async with cluster(server.new_database()) as on:
        talks, writes = (
            [Talk(on, f"c{n}") for n in range(8)],
            [Write(on, f"w{n}") for n in range(4)],
        )
        loads: list[Talk | Write] = [*talks, *writes]
        tasks = [asyncio.create_task(load.run()) for load in loads]
        await _until(lambda: all(load.good for load in loads))
        await asyncio.to_thread(server.stop)
        try:
            await _until(lambda: all(load.bad for load in loads))
        finally:
            await asyncio.to_thread(server.start)
        before = [load.good for load in loads]
        await _until(lambda: all(load.good > n for load, n in zip(loads, before, strict=True)))
        for load in loads:
            load.stopped = True
        await asyncio.gather(*tasks)
        check_refusals([answer for load in loads for answer in load.answers])
        for write in writes:
            there = await on.history(write.name)
            assert [
                message for message in there if message in write.acknowledged
            ] == write.acknowledged
        assert (await on.call("GET", "/readyz")).status == 200
        assert on.processes[0].stop() == 0


class Talk:
    """One turn after the other through the proxy, a little longer each time."""

    def __init__(self, on: Cluster, name: str) -> None:
        self._on = on
        self.name = name
        self.answers: list[Answer] = []
        self.stopped = False

    @property
    def good(self) -> int:
        return sum(answer.status < 400 for answer in self.answers)

    @property
    def bad(self) -> int:
        return len(self.answers) - self.good

    async def run(self) -> None:
        while not self.stopped:
            self.answers.append(await self.step(len(self.answers)))

    async def step(self, number: int) -> Answer:
        return await self._on.say(conversation(self.name, number % 30))


class Write(Talk):
    """One message after the other through the API; it knows which the server said it has."""

    def __init__(self, on: Cluster, name: str) -> None:
        super().__init__(on, name)
        self.acknowledged: list[Any] = []

    async def step(self, number: int) -> Answer:
        if not number:
            return await self._on.call("POST", "/api/sessions", {"id": self.name})
        message = {"role": "user", "content": f"{self.name}, message {number}"}
        body = {"messages": [message]}
        answer = await self._on.call("POST", f"/api/sessions/{self.name}/messages", body)
        if answer.status == 201:
            self.acknowledged.append(message)
        await asyncio.sleep(0.05)
        return answer


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 - of things that have no event
            await asyncio.sleep(0.02)


async def test_a_thousand_sessions_at_once(url: str) -> None:
    async with cluster(url) as on:
        histories = [conversation(f"chat {number}", 1) for number in range(1_000)]
        answers = await asyncio.gather(*(on.say(history) for history in histories))
        assert Counter(answer.status for answer in answers) == {200: 1_000}
        assert len({answer.headers["x-enfold-session"] for answer in answers}) == 1_000
        assert on.processes[0].stop() == 0  # which lets it finish what it was recording
        assert len(on.provider.bodies) == 1_000
    async with enfold.open(url) as engine:
        texts = []
        for record in await engine.sessions(limit=2_000):
            session = await engine.find(record.id)
            texts.append([text_of(message.parts) for message in await session.messages()])
    wanted = [[message["content"] for message in history] for history in histories]
    assert sorted(texts) == sorted(wanted)


async def test_twenty_clients_use_one_session_at_once(url: str) -> None:
    number = 1 if url.startswith("sqlite") else 2
    async with cluster(url, number) as on:
        history = conversation("chat", 24)
        answers = await asyncio.gather(*(on.say(history) for _ in range(20)))
        assert Counter(answer.status for answer in answers) == {200: 20}
        (name,) = {answer.headers["x-enfold-session"] for answer in answers}
        assert len(set(on.provider.bodies)) == 1  # all were sent the same view
        assert len(await on.ask("GET", f"/api/sessions/{name}/summaries")) == 1
        assert len(await on.ask("GET", f"/api/sessions/{name}/branches")) == 1
        assert await on.history(name) == history
        # Each goes on in its own way: one tree, and no message is summarized twice.
        branches = [
            [*history, {"role": "assistant", "content": "Well."}, {"role": "user", "content": text}]
            for text in map(str, range(20))
        ]
        answers = await asyncio.gather(*(on.say(branch) for branch in branches))
        assert {answer.decision for answer in answers} == {"reused"}
        assert [process.stop() for process in on.processes] == [0] * number
    async with enfold.open(url) as engine:
        session = await engine.find(name)
        assert len(await session.summaries()) == 1
        assert len(await session.branches()) == 20
