"""The front: remaining paths belong to the web UI, and its pages load nothing external."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from enfold.engine import Engine
from enfold.server import App, create_app
from tests.server.conftest import Client, client_of


async def ui(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands for the web UI: says what it was asked for, and by whom."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close"})
        return
    text = f"ui {scope['path']} {scope['state']['caller'].name}"
    await PlainTextResponse(text)(scope, receive, send)


@pytest.fixture
def app(engine: Engine) -> App:
    return create_app(engine, ui=ui)


@pytest.fixture
async def client(app: App) -> AsyncIterator[Client]:
    async with client_of(app) as made:
        yield made


@pytest.mark.parametrize("path", ["/", "/s/chat", "/settings", "/apiary"])
async def test_remaining_paths_belong_to_the_ui(client: Client, path: str) -> None:
    answer = await client.get(path)
    assert answer.text.startswith(f"ui {path}")
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "path", ["/api/sessions", "/docs", "/openapi.json", "/healthz", "/metrics"]
)
async def test_the_rest_stays_where_it_was(client: Client, path: str) -> None:
    answer = await client.get(path)
    assert answer.status_code == 200
    assert not answer.text.startswith("ui ")


async def test_windows_connect_by_socket_only(client: Client) -> None:
    answer = await client.get("/_nicegui_ws/socket.io/?transport=polling&EIO=4")
    assert answer.status_code == 404


async def test_a_name_may_have_a_slash_in_it(client: Client) -> None:
    assert (await client.get("/s/a%2Fb")).text.startswith("ui /s/a\0b")


@pytest.mark.parametrize(
    ("origin", "kind"),
    [
        (b"http://127.0.0.1:8787", "websocket.accept"),
        (b"http://evil.example", "websocket.close"),
        (b"http://127.0.0.1:9999", "websocket.close"),
        (b"null", "websocket.close"),
    ],
)
async def test_only_our_own_pages_may_connect(app: App, origin: bytes, kind: str) -> None:
    assert (await _connect(app, origin=origin))[0]["type"] == kind


async def test_a_socket_needs_the_token_too(engine: Engine, tokens: tuple[str, str]) -> None:
    app = create_app(engine, ui=ui, token_required=True)
    (refused,) = await _connect(app)
    assert refused == {"type": "websocket.close", "code": 1008}
    cookie = f"enfold-token={tokens[0]}".encode()
    assert (await _connect(app, cookie=cookie))[0]["type"] == "websocket.accept"


async def _connect(app: App, **headers: bytes) -> list[Message]:
    given = {"host": b"127.0.0.1:8787", **headers}
    scope = {
        "type": "websocket",
        "path": "/_nicegui_ws/socket.io/",
        "headers": [(name.encode(), value) for name, value in given.items()],
        "client": ("127.0.0.1", 5),
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await app.asgi(scope, receive, send)
    return sent
