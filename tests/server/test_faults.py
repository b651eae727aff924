"""Faults: the process is killed, the database goes away; nothing is lost, answers have ids."""

from __future__ import annotations

import signal
import socket
import threading
from pathlib import Path

import httpx
import pytest

import enfold
from enfold.server import create_app
from tests.databases import Server
from tests.server.conftest import client_of
from tests.server.processes import serve

FIELDS = {"provider": "openai", "model": "gpt-4o", "key": "env:SOME_KEY"}


def test_a_process_killed_during_a_compression_loses_nothing(tmp_path: Path) -> None:
    db = tmp_path / "chats.db"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with serve(db, "--no-ui", SOME_KEY="a-key", ENFOLD_TIMEOUT="60") as process:
            with httpx.Client(base_url=process.address) as client:
                client.put("/api/profiles/slow", json={"fields": {**FIELDS, "base_url": url}})
                client.post("/api/sessions", json={"id": "chat", "profile": "slow"})
                said = [
                    {"role": "user", "content": f"{turn}: " + "alpha " * 60} for turn in range(40)
                ]
                client.post("/api/sessions/chat/messages", json={"messages": said})
            threading.Thread(target=_compress, args=(process.address,), daemon=True).start()
            silent.settimeout(60)
            asked, _ = silent.accept()
            with asked:  # the model was asked, and says nothing
                assert process.stop(signal.SIGKILL) != 0
    with (
        serve(db, "--no-ui") as process,
        httpx.Client(base_url=process.address, timeout=60) as client,
    ):
        assert client.get("/readyz").status_code == 200
        session = client.get("/api/sessions/chat").json()
        assert (session["messages"], session["blocked"]) == (40, None)
        assert client.get("/api/sessions/chat/summaries").json() == []
        history = client.get("/api/sessions/chat/messages", params={"limit": 100}).json()
        assert [each["message"] for each in history["messages"]] == said
        assert process.stop() == 0


def _compress(address: str) -> None:
    try:
        httpx.post(f"{address}/api/sessions/chat/compress", json={}, timeout=60)
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
