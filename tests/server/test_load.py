"""Load: one caller with many, large or endless requests does not stop the others."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from enfold.errors import InputError, OverloadError
from enfold.jsontext import loads
from enfold.server import App, connections
from enfold.server.access import Caller, remember
from enfold.server.api import shapes
from enfold.server.app import API_BODY_LIMIT
from enfold.server.bodies import Bodies
from enfold.server.connections import HEAD_BYTES
from enfold.server.load import LoadGuard, LoadLimits, request_load
from enfold.server.metrics import Metrics
from enfold.server.request_log import Tracing
from enfold.text.words import texts_of_terms
from enfold.tokens.counts import counting_threads
from tests.server.conftest import Client
from tests.server.test_connections import listening

START = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"


@pytest.fixture
async def port(app: App) -> AsyncIterator[int]:
    async with listening(app.asgi, app) as port:
        yield port


async def _answer(port: int, sent: bytes) -> bytes:
    """Send bytes until the server ends the connection; return what it wrote."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize(
    "head",
    [
        START + b"x-long: " + b"a" * (HEAD_BYTES + 1) + b"\r\nconnection: close\r\n\r\n",
        START + b"x-short: a\r\n" * (HEAD_BYTES // 6) + b"connection: close\r\n\r\n",
        b"GET /healthz?" + b"a" * HEAD_BYTES + b" HTTP/1.1\r\nconnection: close\r\n\r\n",
    ],
    ids=["a long header", "many headers", "a long address"],
)
async def test_headers_that_are_too_large_are_refused(port: int, head: bytes) -> None:
    answer = await _answer(port, head)
    assert answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 ")) or not answer


async def test_an_endless_header_is_refused_after_its_first_bytes(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(START + b"x-endless: ")
    sent = 0
    try:
        async with asyncio.timeout(60):
            while sent < 100 * HEAD_BYTES and not reader.at_eof():
                writer.write(b"a" * 8192)
                await writer.drain()
                await asyncio.sleep(0)
                sent += 8192
    except ConnectionError:
        pass
    finally:
        writer.close()
    assert sent < 100 * HEAD_BYTES


async def test_headers_below_the_limit_are_read(port: int) -> None:
    head = START + b"x-long: " + b"a" * (HEAD_BYTES // 2) + b"\r\nconnection: close\r\n\r\n"
    assert (await _answer(port, head)).startswith(b"HTTP/1.1 200 ")


async def test_a_client_that_still_sends_can_read_the_413(port: int) -> None:
    size = 80 * 2**20
    head = b"POST /api/sessions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head + b"content-length: %d\r\n\r\n" % size)
    async with asyncio.timeout(60):
        try:
            for _ in range(64):
                writer.write(b"a" * 2**16)
                await writer.drain()
        finally:
            answer = await reader.read()
            writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"larger than" in answer


async def test_a_body_that_nobody_needs_is_read_slowly(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LINGER_PACE", 1)
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.2)
    head = b"POST /api/sessions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head + b"content-length: %d\r\n\r\n" % (80 * 2**20))
    assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
    sent = 0
    with suppress(ConnectionError):
        async with asyncio.timeout(60):
            while sent < 64 * 2**20:
                writer.write(b"a" * 2**16)
                await writer.drain()
                sent += 2**16
    writer.close()
    assert sent < 64 * 2**20


async def test_a_body_of_the_api_has_a_limit_of_its_own(client: Client) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(API_BODY_LIMIT // 2**20 + 1):
            yield b" " * 2**20

    answer = await client.post("/api/sessions", content=pieces())
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    "content",
    [
        '{"title": %s, "id": "x", "more": [{"a": 1.5}, "\\ud800", []]}',
        '{"title": %s, "id": "x", "more": [1, NaN]}',
        '{"title": %s, "id": "x", "more": [1, 2}',
        "[%s]",
    ],
)
def test_a_large_body_is_read_like_a_small_one(content: str) -> None:
    body = (content % f'"{"t" * 70_000}"').encode()

    def read(by: Callable[[bytes], Any]) -> Any:
        try:
            return by(body)
        except InputError as error:
            return str(error)

    assert read(shapes._read) == read(loads)


async def test_a_body_of_the_api_has_a_limited_number_of_objects(client: Client) -> None:
    body, headers = b"[" + b"{}," * 100_000 + b"{}]", {"content-type": "application/json"}
    answer = await client.post("/api/sessions", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert "100,000 objects" in answer.json()["error"]["message"]


@asynccontextmanager
async def _callers(limits: LoadLimits, inner: ASGIApp) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose header `x-caller` names the caller."""
    load = LoadGuard(inner, limits)

    async def named(scope: Scope, receive: Receive, send: Send) -> None:
        name = dict(scope["headers"]).get(b"x-caller", b"").decode()
        remember(scope, Caller(name, ""))
        await load(scope, receive, send)

    transport = httpx.ASGITransport(Tracing(named, Metrics()))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        yield client


async def test_a_caller_has_its_own_number_of_requests() -> None:
    go, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def wait(scope: Scope, receive: Receive, send: Send) -> None:
        begun.release()
        await go.wait()
        await Response()(scope, receive, send)

    limits = LoadLimits(requests=3, caller_requests=2, waiting=0, caller_waiting=0)
    async with _callers(limits, wait) as client:
        ann, ben = {"x-caller": "ann"}, {"x-caller": "ben"}
        running = [asyncio.create_task(client.get("/", headers=ann)) for _ in range(2)]
        for _ in running:
            await begun.acquire()
        refused = await client.get("/", headers=ann)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["error"]["code"] == "overloaded"
        running.append(asyncio.create_task(client.get("/", headers=ben)))
        await begun.acquire()
        assert (await client.get("/", headers={"x-caller": "eve"})).status_code == 503
        go.set()
        assert {answer.status_code for answer in await asyncio.gather(*running)} == {200}
        assert (await client.get("/", headers=ann)).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_a_health_check_does_not_wait_for_other_requests(path: str) -> None:
    go, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def wait(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/":
            begun.release()
            await go.wait()
        await Response()(scope, receive, send)

    limits = LoadLimits(requests=1, caller_requests=1, waiting=0, caller_waiting=0)
    async with _callers(limits, wait) as client:
        running = asyncio.create_task(client.get("/"))
        await begun.acquire()
        assert (await client.get("/other")).status_code == 503
        assert (await client.get(path)).status_code == 200
        go.set()
        assert (await running).status_code == 200


async def test_requests_above_the_number_at_once_wait_for_their_turn() -> None:
    go, begun = asyncio.Event(), asyncio.Semaphore(0)
    running, most = Counter[bytes](), Counter[bytes]()

    async def wait(scope: Scope, receive: Receive, send: Send) -> None:
        name = dict(scope["headers"])[b"x-caller"]
        running[name] += 1
        most[name] = max(most[name], running[name])
        begun.release()
        await go.wait()
        running[name] -= 1
        await Response()(scope, receive, send)

    limits = LoadLimits(caller_requests=2, caller_waiting=3)
    async with _callers(limits, wait) as client:
        ann, ben = {"x-caller": "ann"}, {"x-caller": "ben"}
        requests = [asyncio.create_task(client.get("/", headers=ann)) for _ in range(5)]
        await begun.acquire()
        await begun.acquire()
        refused = await client.get("/", headers=ann)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        requests.append(asyncio.create_task(client.get("/", headers=ben)))
        await begun.acquire()  # which does not wait for the requests of another caller
        assert running[b"ben"]
        go.set()
        assert {answer.status_code for answer in await asyncio.gather(*requests)} == {200}
    assert most == {b"ann": 2, b"ben": 1}


async def _read(receive: Receive) -> None:
    while (await receive()).get("more_body"):
        pass


class _Computing:
    """An application whose requests compute until they get a step; it records their callers."""

    def __init__(self) -> None:
        self.order: list[bytes] = []
        self.steps, self.begun = asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _read(receive)
        self.order.append(dict(scope["headers"])[b"x-caller"])
        self.begun.release()
        await self.steps.acquire()
        await Response()(scope, receive, send)


async def test_a_caller_with_many_requests_does_not_delay_a_caller_with_one() -> None:
    compute = _Computing()
    limits = LoadLimits(computing=1, computing_seconds=600)
    async with _callers(limits, Bodies(compute, 100)) as client:
        tasks = []
        for name in ("many", "many", "many", "many", "one"):
            tasks.append(asyncio.create_task(client.post("/", headers={"x-caller": name})))
            await asyncio.sleep(0.01)
        tasks[2].cancel()  # it waits no more
        for _ in range(4):
            await compute.begun.acquire()
            compute.steps.release()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert compute.order == [b"many", b"many", b"one", b"many"]


@pytest.mark.parametrize("limit", [0.01, 600.0])
async def test_a_request_that_waits_or_answers_lets_others_compute(limit: float) -> None:
    go, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def wait(scope: Scope, receive: Receive, send: Send) -> None:
        await _read(receive)
        if limit == 600.0:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.release()
        await go.wait()
        if limit != 600.0:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    limits = LoadLimits(computing=1, computing_seconds=limit)
    async with _callers(limits, Bodies(wait, 100)) as client:
        running = [asyncio.create_task(client.post("/")) for _ in range(3)]
        for _ in running:
            await begun.acquire()
        go.set()
        assert {answer.status_code for answer in await asyncio.gather(*running)} == {200}


async def test_large_requests_take_no_place_of_others() -> None:
    go, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def compute(scope: Scope, receive: Receive, send: Send) -> None:
        await _read(receive)
        if scope["path"] == "/large":
            begun.release()
            await go.wait()
        await Response()(scope, receive, send)

    limits = LoadLimits(computing=1, computing_seconds=600, large_bytes=10)
    async with _callers(limits, Bodies(compute, 100)) as client:
        large = [asyncio.create_task(client.post("/large", content=b"x" * 10)) for _ in range(2)]
        for _ in large:
            await begun.acquire()
        assert (await client.post("/", content=b"x" * 9)).status_code == 200
        go.set()
        assert {answer.status_code for answer in await asyncio.gather(*large)} == {200}


async def test_a_request_waits_for_a_limited_time() -> None:
    go = asyncio.Event()

    async def wait(scope: Scope, receive: Receive, send: Send) -> None:
        await go.wait()
        await Response()(scope, receive, send)

    async with _callers(LoadLimits(caller_requests=1, wait_seconds=0.05), wait) as client:
        first = asyncio.create_task(client.get("/"))
        await asyncio.sleep(0)
        late = await client.get("/")
        assert (late.status_code, late.headers["retry-after"]) == (503, "1")
        go.set()
        assert (await first).status_code == 200
        assert (await client.get("/")).status_code == 200


async def test_a_caller_holds_a_limited_number_of_bytes() -> None:
    async def hold(scope: Scope, receive: Receive, send: Send) -> None:
        load = request_load(scope)
        assert load is not None
        load.add(int(dict(scope["headers"])[b"x-size"]))
        await Response()(scope, receive, send)

    async with _callers(LoadLimits(bytes=100, caller_bytes=60), hold) as client:
        sizes = {"50": 200, "61": 503, "60": 200}
        for size, status in sizes.items():
            answer = await client.get("/", headers={"x-caller": "ann", "x-size": size})
            assert answer.status_code == status


async def test_a_caller_with_a_request_now_and_then_does_not_wait_for_a_round() -> None:
    compute = _Computing()
    limits = LoadLimits(computing=1, computing_seconds=600)
    async with _callers(limits, Bodies(compute, 9)) as client:
        tasks = []

        async def send(*names: str) -> None:
            for name in names:
                tasks.append(asyncio.create_task(client.post("/", headers={"x-caller": name})))
                await asyncio.sleep(0.01)

        await send("ann", "ann", "ann", "ben", "ben", "ben")
        for _ in range(2):
            await compute.begun.acquire()
            compute.steps.release()
        await compute.begun.acquire()
        await send("eve")
        for _ in range(5):
            compute.steps.release()
        await asyncio.gather(*tasks)
    assert compute.order == [b"ann", b"ann", b"ben", b"eve", b"ann", b"ben", b"ben"]


class _Upload:
    """A request whose body arrives piece by piece; `arrived` counts the pieces that were read."""

    def __init__(self, load: ASGIApp, name: str, pieces: int, *, is_slow: bool = False) -> None:
        self.arrived = 0
        self.status = 0
        self.go = asyncio.Event()
        """A slow sender sends its last piece when this is set."""
        self._left = pieces
        self._is_slow = is_slow
        scope = {"type": "http", "path": "/", "method": "POST", "headers": [], "state": {}}
        remember(scope, Caller(name, ""))
        self.task = asyncio.ensure_future(load(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await asyncio.sleep(0)
        self._left -= 1
        if self._is_slow and not self._left:
            await self.go.wait()
        self.arrived += 1
        return {"type": "http.request", "body": b"x" * 10, "more_body": self._left > 0}

    async def _send(self, message: Any) -> None:
        self.status = message.get("status", self.status)


def _turns(**limits: Any) -> LoadLimits:
    given = {
        "large_requests": 1,
        "large_seconds": 600,
        "large_turn_seconds": 600,
        "slow_seconds": 9,
    }
    return LoadLimits(large_bytes=10, **(given | limits))


async def test_large_requests_wait_for_their_turn() -> None:
    load = LoadGuard(Response(), _turns(large_seconds=0.05))
    end = await load.take_turn("ann")
    with pytest.raises(OverloadError):
        await load.take_turn("ben")
    end()
    (await load.take_turn("ben"))()


async def test_a_large_request_that_takes_long_lets_others_have_their_turn() -> None:
    load = LoadGuard(Response(), _turns(large_turn_seconds=0.01))
    for name in ("ann", "ben", "ann"):
        await load.take_turn(name)
    (await load.take_turn("ann"))()


async def test_a_large_body_is_not_read_before_its_turn() -> None:
    go, computing = asyncio.Event(), asyncio.Event()

    async def compute(scope: Scope, receive: Receive, send: Send) -> None:
        await _read(receive)
        computing.set()
        await go.wait()
        await Response()(scope, receive, send)

    load = LoadGuard(Bodies(compute, 10_000), _turns())
    first = _Upload(load, "ann", 100)
    await computing.wait()
    second = _Upload(load, "ben", 100)
    small = _Upload(load, "eve", 1)
    for _ in range(1_000):
        await asyncio.sleep(0)
    assert (first.arrived, second.arrived) == (100, 1)
    go.set()
    await asyncio.gather(first.task, second.task, small.task)
    assert (first.status, second.status, second.arrived, small.status) == (200, 200, 100, 200)


async def test_a_slow_sender_does_not_keep_its_turn() -> None:
    async def compute(scope: Scope, receive: Receive, send: Send) -> None:
        await _read(receive)
        await Response()(scope, receive, send)

    load = LoadGuard(Bodies(compute, 10_000), _turns(slow_seconds=0.01))
    slow = _Upload(load, "ann", 10, is_slow=True)
    while slow.arrived < 9:  # noqa: ASYNC110 - its body arrives step by step
        await asyncio.sleep(0)
    fast = _Upload(load, "ben", 100)
    await fast.task
    slow.go.set()
    await slow.task
    assert (slow.status, slow.arrived, fast.status, fast.arrived) == (200, 10, 200, 100)


def test_other_threads_run_while_a_long_text_is_indexed() -> None:
    text = "".join(chr(0x1F300 + number % 700) for number in range(9_000_000))
    thread = threading.Thread(target=texts_of_terms, args=(text,))
    thread.start()
    steps = 0
    while thread.is_alive():
        time.sleep(0.001)
        steps += 1
    assert steps > 10


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_large_work_leaves_a_core_to_other_requests() -> None:
    cores = os.cpu_count() or 1
    assert LoadLimits().large_requests < cores
    assert counting_threads()._max_workers < cores
