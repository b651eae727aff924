"""Connections that say nothing, or say it too slowly, are closed; the others are not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from enfold.server import App
from enfold.server.bodies import Bodies
from enfold.server.connections import (
    WHOLE_ANSWER,
    Joined,
    PatientProtocol,
    call_on_disconnect,
    is_whole,
    takes_whole_answer,
)
from enfold.server.metrics import Metrics
from enfold.server.request_log import Tracing
from enfold.server.serve import Server


class Impatient(PatientProtocol):
    """The same in a hurry."""

    head_seconds = 0.3


@asynccontextmanager
async def listening(asgi: ASGIApp, app: App, *, keep_alive: int = 5) -> AsyncIterator[int]:
    config = uvicorn.Config(
        asgi,
        port=0,
        http=Impatient,
        lifespan="off",
        log_config=None,
        timeout_keep_alive=keep_alive,
    )
    begun = asyncio.Event()
    server = Server(config, app, begun.set)
    task = asyncio.create_task(server._serve())
    await begun.wait()
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await task


@pytest.fixture
async def port(app: App) -> AsyncIterator[int]:
    async with listening(app.asgi, app) as port:
        yield port


HEAD = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"


@pytest.mark.parametrize("sent", [b"", HEAD], ids=["nothing", "half a head"])
async def test_a_head_that_does_not_end_is_given_up(port: int, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    assert await reader.read() == b""
    writer.close()


async def test_half_a_second_request_is_given_up_too(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HEAD + b"\r\n")
    answer = await reader.readuntil(b"}")
    assert b"200 OK" in answer
    writer.write(HEAD)
    assert await reader.read() == b""
    writer.close()


async def test_a_connection_that_is_kept_answers_again(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(HEAD + b"\r\n")
        assert b"200 OK" in await reader.readuntil(b"}")
        await asyncio.sleep(0.5)
    writer.close()


async def test_a_connection_that_stays_idle_is_closed(app: App) -> None:
    async with listening(app.asgi, app, keep_alive=1) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            writer.write(HEAD + b"\r\n")
            assert b"200 OK" in await reader.readuntil(b"}")
            await asyncio.sleep(0.6)
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    body = b"whole: " if is_whole(scope) else b"begun: "
    more = True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    await Response(body)(scope, receive, send)


POST = b"POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
ANNOUNCED = POST + b"content-length: 4\r\n\r\n"
IN_CHUNKS = POST + b"transfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        ([ANNOUNCED + b"four"], b"whole: four"),
        ([ANNOUNCED, b"fo", b"ur"], b"begun: four"),
        ([IN_CHUNKS + b"4\r\nfour\r\n0\r\n\r\n"], b"whole: four"),
        ([POST + b"content-length: 9\r\n\r\nfour more"], b"413"),
        ([IN_CHUNKS + b"9\r\nfour more\r\n0\r\n\r\n"], b"413"),
        ([ANNOUNCED + b"fo"], b"408"),
        ([IN_CHUNKS + b"4\r\nfour\r\n"], b"408"),
    ],
    ids=[
        "at once",
        "in pieces",
        "in chunks",
        "too long",
        "too many chunks",
        "half",
        "no last chunk",
    ],
)
async def test_a_body_is_watched_unless_all_of_it_is_here(
    app: App, sent: list[bytes], answered: bytes
) -> None:
    seconds = 0.2 if answered == b"408" else 60
    limited = Tracing(Bodies(echo, limit=8, seconds=seconds), Metrics())
    async with listening(limited, app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for piece in sent:
            writer.write(piece)
            await asyncio.sleep(0.02)
        assert answered in await reader.read()
        writer.close()


class Wire:
    """A transport that remembers what was written, piece by piece."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


async def test_a_client_that_leaves_stops_its_request_only(app: App) -> None:
    begun, left = asyncio.Event(), asyncio.Event()
    calls: list[str] = []

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        def leave() -> None:
            calls.append(scope["path"])
            left.set()

        await receive()
        assert call_on_disconnect(scope, leave)
        begun.set()
        if scope["path"] == "/answered":
            await Response("ok")(scope, receive, send)
        else:
            await left.wait()

    async with listening(asgi, app) as port:
        for path in ("/answered", "/waiting"):
            begun.clear()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{{}}"
            writer.write(head.encode())
            await asyncio.wait_for(begun.wait(), 30)
            if path == "/answered":
                await asyncio.wait_for(reader.readuntil(b"ok"), 30)
            writer.close()
            await writer.wait_closed()
        await asyncio.wait_for(left.wait(), 30)
    assert calls == ["/waiting"]


def whole(body: bytes, *headers: tuple[bytes, bytes]) -> ASGIApp:
    """Return an application that answers with one message."""

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["more_body"]:
            pass
        assert takes_whole_answer(scope, 200)
        message = {"type": WHOLE_ANSWER, "status": 200, "headers": list(headers), "body": body}
        await send(message)

    return asgi


REQUEST = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n%s\r\n{}"


async def test_a_whole_answer_has_its_length_and_keeps_the_connection(app: App) -> None:
    async with listening(whole(b"ok", (b"X-Name", b"value")), app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(REQUEST % b"")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"\r\nx-name: value\r\n" in head
            assert b"\r\ncontent-length: 2\r\n" in head
            assert b"connection: close" not in head
            assert await reader.readexactly(2) == b"ok"
        writer.close()


async def test_whole_answers_to_pipelined_requests_come_in_their_order(app: App) -> None:
    async with listening(whole(b"ok"), app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST % b"" * 2 + REQUEST % b"connection: close\r\n")
        answers = await reader.read()
        assert answers.count(b"HTTP/1.1 200 OK") == answers.count(b"\r\n\r\nok") == 3
        assert answers.count(b"connection: close") == 1
        writer.close()


async def test_a_client_that_leaves_stops_the_request_before_a_pipelined_one(app: App) -> None:
    begun, left = asyncio.Event(), asyncio.Event()
    calls: list[str] = []

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        calls.append(scope["path"])
        await receive()
        assert call_on_disconnect(scope, left.set)
        begun.set()
        await left.wait()

    async with listening(asgi, app) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST % b"" + (REQUEST % b"").replace(b" / ", b" /next "))
        await asyncio.wait_for(begun.wait(), 30)
        writer.close()
        await writer.wait_closed()
        await asyncio.wait_for(left.wait(), 30)
    assert calls == ["/"]


async def test_a_request_after_an_answer_that_ends_the_connection_is_not_run(app: App) -> None:
    calls: list[str] = []

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        calls.append(scope["path"])
        await Response("ok", headers={"connection": "close"})(scope, receive, send)

    async with listening(asgi, app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        unfinished = b"POST /next HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{"
        writer.write(REQUEST % b"" + unfinished)
        assert (await reader.read()).endswith(b"\r\n\r\nok")
        writer.close()
    assert calls == ["/"]


async def test_an_answer_before_the_awaited_body_ends_the_connection(app: App) -> None:
    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        await Response("no", status_code=403)(scope, receive, send)

    async with listening(asgi, app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write((REQUEST % b"expect: 100-continue\r\n")[:-2])
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert b"\r\nconnection: close\r\n" in answer
        writer.close()


@pytest.mark.parametrize(
    "header",
    [(b"x-name", b"a\r\nx-other: b"), (b"x-name", b"a\nb"), (b"x-name", b"\0"), (b"x name", b"a")],
    ids=["another line", "line feed", "zero", "space in the name"],
)
async def test_a_whole_answer_with_an_invalid_header_is_an_error(
    app: App, header: tuple[bytes, bytes]
) -> None:
    async with listening(whole(b"ok", header), app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST % b"")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 500 ")
        assert b"x-other" not in answer
        writer.close()


async def test_a_client_that_waits_for_it_is_told_to_continue(app: App) -> None:
    async with listening(whole(b"ok"), app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        request = REQUEST % b"expect: 100-Continue\r\n"
        writer.write(request[:-2])
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 Continue")
        writer.write(request[-2:])
        assert b"200 OK" in await reader.readuntil(b"ok")
        writer.close()


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("POST", 204), ("POST", 304)])
def test_an_answer_without_a_body_is_not_sent_as_one(method: str, status: int) -> None:
    scope = {"method": method, "extensions": {WHOLE_ANSWER: {}}}
    assert not takes_whole_answer(scope, status)
    assert not takes_whole_answer({"method": "POST"}, 200)


async def test_writes_of_one_step_are_joined() -> None:
    wire = Wire()
    joined = Joined(wire, asyncio.get_running_loop())
    joined.write(b"head ")
    joined.write(b"body")
    assert wire.written == []
    await asyncio.sleep(0)
    assert wire.written == [b"head body"]
    joined.write(b"more")
    await asyncio.sleep(0)
    assert wire.written == [b"head body", b"more"]


async def test_much_is_not_gathered() -> None:
    wire = Wire()
    joined = Joined(wire, asyncio.get_running_loop())
    for _ in range(10):
        joined.write(b"x" * 50_000)
    assert sum(map(len, wire.written)) == 500_000
    await asyncio.sleep(0)
    assert sum(map(len, wire.written)) == 500_000


async def test_pending_writes_are_sent_before_closing_and_later_ones_dropped() -> None:
    wire = Wire()
    joined = Joined(wire, asyncio.get_running_loop())
    joined.write(b"the last word")
    joined.close()
    joined.write(b"too late")
    await asyncio.sleep(0)
    assert wire.written == [b"the last word"]
    assert joined.is_closing()


def test_uvicorn_is_a_version_that_the_protocol_was_tested_with() -> None:
    tested = "0.54."
    assert uvicorn.__version__.startswith(tested), (
        f"enfold.server.connections extends uvicorn's protocol and was tested with {tested}*, "
        f"not with {uvicorn.__version__}: run tests/server/test_connections.py and "
        "tests/server/test_bodies.py with it, then change the version here and in pyproject.toml"
    )
