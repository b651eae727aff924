"""The app as a whole: ids, errors, health, figures, and the audit log."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from enfold.engine import Engine
from enfold.server import App, create_app
from enfold.store import access
from tests.server.conftest import HERE, Client, client_of, talk


def test_the_server_starts_without_the_modules_of_the_api() -> None:
    program = "import sys, enfold.server.serve; sys.exit('fastapi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


async def test_first_requests_wait_together_until_the_api_is_loaded(engine: Engine) -> None:
    app = create_app(engine)
    async with client_of(app) as client:
        cancelled = asyncio.create_task(client.get("/api/sessions"))
        await asyncio.sleep(0)
        others = [asyncio.create_task(client.get("/api/sessions")) for _ in range(3)]
        await asyncio.sleep(0)
        cancelled.cancel()
        answers = await asyncio.gather(*others)
    assert [each.status_code for each in answers] == [200, 200, 200]


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_error(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    pieces: list[Message] = [
        {"type": "http.request", "body": b'{"messages": [', "more_body": True},
        {"type": "http.disconnect"},
    ]
    statuses: list[int] = []

    async def receive() -> Message:
        return pieces.pop(0)

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    path = "/api/sessions/chat/messages"
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8787"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8787),
        "scheme": "http",
        "root_path": "",
    }
    await app.asgi(scope, receive, send)
    assert statuses == [499]
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


async def test_a_request_keeps_its_id_or_gets_one(client: Client) -> None:
    kept = await client.get("/healthz", headers={"x-request-id": "abc-1"})
    assert kept.headers["x-request-id"] == "abc-1"
    for given in ({}, {"x-request-id": "two words\t<b>"}, {"x-request-id": "x" * 65}):
        made = await client.get("/healthz", headers=given)
        assert re.fullmatch(r"[0-9a-f]{32}", made.headers["x-request-id"])


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "no_such_route"),
        ("GET", "/api/nothing", 404, "no_such_route"),
        ("GET", "/api/sessions/none", 404, "not_found"),
        ("DELETE", "/api/sessions", 405, "method_not_allowed"),
    ],
)
async def test_every_error_has_one_shape(
    client: Client, method: str, path: str, status: int, code: str
) -> None:
    answer = await client.request(method, path)
    error = answer.json()["error"]
    assert answer.status_code == status
    assert error.keys() == {"code", "message", "retryable", "request_id"}
    assert (error["code"], error["request_id"]) == (code, answer.headers["x-request-id"])


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"{", "line 1, column 2"),
        (b'{"title": NaN}', "NaN"),
        (b'{"id": 1e999}', "out of range"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
    ],
    ids=["cut off", "NaN", "infinite", "no UTF-8", "deep"],
)
async def test_the_error_of_an_invalid_body_names_the_place(
    client: Client, body: bytes, place: str
) -> None:
    json = {"content-type": "application/json"}
    answer = await client.post("/api/sessions", content=body, headers=json)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_input")
    assert place in answer.json()["error"]["message"]


async def test_a_form_is_no_json(client: Client) -> None:
    """A page from elsewhere can send one without asking."""
    text = {"content-type": "text/plain"}
    answer = await client.post("/api/sessions", content=b'{"id": "chat"}', headers=text)
    assert answer.status_code == 400
    assert (await client.get("/api/sessions")).json()["sessions"] == []


async def test_a_mistake_of_ours_is_an_answer_with_an_id_and_no_text(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(request: Request) -> Response:
        raise LookupError("what somebody said")

    app = create_app(engine, forwarding=[Route("/v1/broken", fail)])
    async with client_of(app) as client:
        answer = await client.get("/v1/broken")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (500, "internal")
    assert error["request_id"] == answer.headers["x-request-id"]
    assert "LookupError" in caplog.text
    assert "somebody said" not in caplog.text + answer.text


async def test_routes_that_forward_are_inside_the_same_layers(engine: Engine) -> None:
    async def echo(request: Request) -> Response:
        return PlainTextResponse(request.state.caller.namespace or "ours")

    app = create_app(engine, forwarding=[Route("/v1/{path:path}", echo, methods=["POST"])])
    token = access.new_token()
    row = await engine.store.write(access.add, "ann", token)
    async with client_of(app) as client:
        assert (await client.post("/v1/chat")).text == "ours"
        assert (await client.post(f"/t/{token}/v1/chat")).text == row.namespace


async def test_health_and_readiness(client: Client, app: App) -> None:
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    ready = await client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json() == {
        "status": "ready",
        "store": {"engine": "sqlite", "status": "ok"},
        "queue": {"runner": "local", "status": "ok", "waiting": {}, "failing": 0},
        "server": {"token_required": False, "client_key": False},
    }
    app.drain()
    drained = await client.get("/readyz")
    assert (drained.status_code, drained.json()["status"]) == (503, "draining")


async def test_a_store_that_does_not_answer_is_not_ready(
    client: Client, engine: Engine, tmp_path: Path
) -> None:
    await client.get("/readyz")
    with sqlite3.connect(tmp_path / "chats.db") as file:
        file.execute("ALTER TABLE flush_outbox RENAME TO gone")
    ready = await client.get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["store"]["status"] == "store_failed"
    assert "enfold_store_up 0" in (await client.get("/metrics")).text
    with sqlite3.connect(tmp_path / "chats.db") as file:
        file.execute("ALTER TABLE gone RENAME TO flush_outbox")


async def test_figures_name_routes_and_not_what_callers_wrote(client: Client) -> None:
    await client.post("/api/sessions", json={"id": "secret-name"})
    await client.get("/api/sessions/secret-name")
    figures = (await client.get("/metrics")).text
    one = 'enfold_requests_total{method="GET",route="/api/sessions/{session}",status="200"} 1'
    assert one in figures.splitlines()
    assert "secret-name" not in figures
    assert "enfold_queue_waiting 0" in figures


async def test_changes_are_in_the_audit_log_and_reading_is_not(
    ann: Client, client: Client, engine: Engine
) -> None:
    await ann.post("/api/sessions", json={"id": "a/b", "title": "Private words"})
    await ann.get("/api/sessions")
    await ann.delete("/api/sessions/a%2Fb", headers={"x-request-id": "last"})
    await client.post("/api/sessions", json={"id": "chat"})
    row, _ = await engine.store.read(access.tokens)
    last, first = await engine.store.read(access.logged, row.namespace)
    assert (first.actor, first.action, first.status) == ("ann", "POST /api/sessions", 201)
    assert (last.action, last.session) == ("DELETE /api/sessions/{session}", "a/b")
    assert (last.status, last.request_id) == (204, "last")
    assert "Private" not in repr((first, last))


async def test_the_entry_is_there_before_the_answer(app: App, engine: Engine) -> None:
    counts: list[int] = []

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        async def look_first(message: Message) -> None:
            if message["type"] == "http.response.start":
                counts.append(len(await engine.store.read(access.logged, "")))
            await send(message)

        await app.asgi(scope, receive, look_first)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(asgi), base_url=HERE) as client:
        await client.post("/api/sessions", json={"id": "chat"})
    assert counts == [1]


async def test_a_refused_token_is_logged_without_its_text(
    client: Client, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    await client.get("/api/sessions", headers={"x-enfold-token": "a-wrong-guess"})
    (entry,) = await engine.store.read(access.logged, "")
    assert (entry.action, entry.status) == ("refused token from address 127.0.0.1", 401)
    assert "refused an invalid access token" in caplog.text
    assert "a-wrong-guess" not in caplog.text + repr(entry)


async def test_a_caller_verifies_own_sessions_and_the_owner_all(
    ann: Client, client: Client, engine: Engine
) -> None:
    await talk(ann, "hers", 2)
    await talk(client, "mine", 2)
    assert (await ann.get("/api/verify")).json()["sessions"] == 1
    assert (await ann.get("/api/verify", params={"session": "mine"})).status_code == 404
    found = (await client.get("/api/verify")).json()
    assert (found["ok"], found["sessions"], found["messages"]) == (True, 2, 8)


async def test_the_page_needs_nothing_from_elsewhere(client: Client) -> None:
    page = await client.get("/docs")
    assert page.status_code == 200
    assert "://" not in page.text
    assert (await client.get("/api")).text == page.text
    described = (await client.get("/openapi.json")).json()
    assert "/api/sessions/{session}" in described["paths"]


_WITHOUT_UI = """
import os, signal, sys, threading, urllib.request
from enfold.server.serve import ServeOptions, run

def ready(address):
    def ask():
        print("enfold.server.api.app" in sys.modules)
        print(urllib.request.urlopen(f"{address}/api/sessions").status)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=ask).start()

run(ServeOptions(port=0, db=sys.argv[1], ui=False), ready)
"""


def test_a_server_without_the_ui_loads_the_api_with_its_first_request(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WITHOUT_UI, f"sqlite:///{tmp_path}/s.db"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "200"]
