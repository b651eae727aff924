"""Turns that do not go smoothly: compressions ahead, failures, divergences, overflows, deaths."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse

from enfold import count, wire
from enfold.budget import FREED_BELOW_GUARDS
from enfold.engine.recognition import ProxiedConversations
from enfold.errors import SummaryError
from enfold.records import Snapshot
from enfold.server import create_app
from enfold.server.proxy import bodies, turn
from enfold.server.proxy.routes import Proxy
from enfold.server.proxy.turn import ForwardedRequest, ProxyPipeline, ProxyRequest
from enfold.server.proxy.upstream import Upstream
from enfold.summaries import Summary, SummaryRequest
from enfold.tokens import count_conversation, get
from enfold.wire import WIRES
from tests.server.live_server import serving
from tests.server.proxy.stage import WINDOW, Stage, question, stage

PATH = "/v1/chat/completions"
PLEASE = question(99)


class Gated:
    """A summarizer that fails as often as it is told to, and else waits until it may go on."""

    name = "gated"
    max_input: int | None = None

    def __init__(self) -> None:
        self.calls = 0
        self.failures = 0
        self.was_asked = asyncio.Event()
        self.open = asyncio.Event()

    async def summarize(self, request: SummaryRequest) -> Summary:
        """A summary, sooner or later."""
        self.calls += 1
        self.was_asked.set()
        if self.failures:
            self.failures -= 1
            raise SummaryError("the writer is away; try again")
        await self.open.wait()
        text = "They counted words: question 0, question 1, question 2."
        return Summary(text, self.name, get(request.tokenizer).count(text))


@pytest.fixture
def writer() -> Gated:
    return Gated()


@pytest.fixture
async def on(tmp_path: Path, writer: Gated) -> AsyncIterator[Stage]:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}", gated=writer) as opened:
        await opened.engine.set("summarizer", "gated")
        yield opened
        writer.open.set()


class Chat:
    """A client that keeps its whole history."""

    def __init__(self, on: Stage, client: httpx.AsyncClient) -> None:
        self._on = on
        self._client = client
        self.messages: list[Any] = []
        self.more: dict[str, Any] = {}
        """Further fields of its requests."""

    async def say(self, text: str) -> httpx.Response:
        """Send one turn; the messages stay only if it was answered."""
        messages = [*self.messages, {"role": "user", "content": text}]
        body = {"model": "small", "messages": messages, **self.more}
        reply = await self._client.post(f"{self._on.address}{PATH}", json=body)
        if reply.is_success:
            self.messages = [*messages, reply.json()["choices"][0]["message"]]
        return reply

    async def until(self, happened: Callable[[httpx.Response], bool]) -> httpx.Response:
        """Turns until something happens."""
        for number in range(60):
            reply = await self.say(question(number))
            await self._on.proxy.idle()
            # A compression that has begun takes a moment until it asks for a summary.
            async with asyncio.timeout(60):
                while (  # noqa: ASYNC110 - a background task sets no event
                    self._on.proxy.cache_sizes()["background_running"] and not happened(reply)
                ):
                    await asyncio.sleep(0.01)
            if happened(reply):
                return reply
        raise AssertionError("it did not happen")


@pytest.fixture
async def chat(on: Stage) -> AsyncIterator[Chat]:
    headers = {"authorization": "Bearer k"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as client:
        yield Chat(on, client)


async def _eventually(is_so: Callable[[], Awaitable[Any]]) -> None:
    async with asyncio.timeout(60):
        while not await is_so():  # noqa: ASYNC110 - the queue sets no event
            await asyncio.sleep(0.01)


async def _made(on: Stage) -> tuple[Snapshot, ...]:
    namespace = await on.namespace("k")
    (record,) = await on.engine.sessions(namespace=namespace)
    session = await on.engine.find(record.id, namespace=namespace)
    return await session.summaries()


async def _summaries(on: Stage) -> int:
    return len(await _made(on))


@pytest.fixture
async def early(on: Stage) -> Stage:
    """Compressions begin in the background long before they are due."""
    await on.engine.set("proxy.background", True)
    await on.engine.set("early_mark", 0.4)
    return on


async def test_an_early_compression_runs_once_in_the_background_and_the_next_turn_uses_it(
    early: Stage, chat: Chat, writer: Gated
) -> None:
    first = await chat.until(lambda _: writer.calls > 0)
    others = [await chat.say(f"And {number}?") for number in range(3)]
    await early.proxy.idle()
    assert {each.headers["x-enfold-decision"] for each in (first, *others)} == {"keep"}
    assert writer.calls == 1
    writer.open.set()
    await _eventually(lambda: _summaries(early))
    after = await chat.say("And now?")
    assert after.headers["x-enfold-decision"] == "reused"
    assert writer.calls == 1
    assert await _summaries(early) == 1


async def test_a_compression_ahead_that_fails_costs_nothing_but_another_try(
    early: Stage, chat: Chat, writer: Gated
) -> None:
    writer.failures = 1
    writer.open.set()
    failed = await chat.until(lambda _: writer.calls > 0)
    assert (failed.status_code, failed.headers["x-enfold-decision"]) == (200, "keep")
    assert "x-enfold-warning" not in failed.headers
    then = await chat.until(lambda _: writer.calls > 1)
    assert then.status_code == 200
    await _eventually(lambda: _summaries(early))
    after = await chat.say("And now?")
    assert after.headers["x-enfold-decision"] == "reused"
    (record,) = await early.engine.sessions(namespace=await early.namespace("k"))
    assert record.blocked is None


async def test_a_turn_waits_only_at_the_hard_limit(early: Stage, chat: Chat, writer: Gated) -> None:
    await early.engine.set("threshold", 0.5)
    limit, goal = int(WINDOW * 0.95), int(WINDOW * 0.5 * FREED_BELOW_GUARDS)
    sent = step = number = 0
    while sent + 2 * step <= limit:
        reply = await chat.say(question(number))
        await early.proxy.idle()
        assert reply.headers["x-enfold-decision"] == "keep"
        last, sent = sent, int(reply.headers["x-enfold-tokens-after"])
        step, number = sent - last, number + 1
    assert writer.calls == 1
    waiting = asyncio.create_task(chat.say(question(number) * 3))
    async with asyncio.timeout(60):
        await writer.was_asked.wait()
    writer.open.set()
    waited = await waiting
    before, after = (int(waited.headers[f"x-enfold-tokens-{when}"]) for when in ("before", "after"))
    assert waited.headers["x-enfold-decision"] in {"compressed", "reused"}
    assert before > limit >= after
    (made,) = await _made(early)
    # The summary is of what was there when it was begun; what came since stays word for word.
    assert made.parent_depth is not None
    since = count(chat.messages[made.parent_depth + 1 : -1])
    assert after - since <= goal
    assert writer.calls == 1


async def test_a_background_failure_is_reported_and_the_request_continues(
    on: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    messages = [{"role": role, "content": "Hi"} for role in ("user", "assistant", "user")]
    body = bodies.parse_body(WIRES["openai"], json.dumps({"messages": messages}).encode())
    pipeline = ProxyPipeline(on.engine, ProxiedConversations(on.engine))
    out = await pipeline.prepare(ProxyRequest(body, "openai:small", namespace="n" * 257))
    await pipeline.idle()
    assert out.raw is body.raw
    assert "recording failed: namespace 'nnn" in caplog.text


def _asking(*texts: str, namespace: str = "") -> ProxyRequest:
    messages = [
        {"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)
    ]
    body = bodies.parse_body(WIRES["openai"], json.dumps({"messages": messages}).encode())
    return ProxyRequest(body, "openai:small", namespace=namespace)


async def _recorded(on: Stage, forwarded: ForwardedRequest) -> list[Any]:
    session = await on.engine.find(forwarded.session or "")
    return [row.value["content"] for row in await session.history()]


async def test_requests_of_one_moment_are_recorded_together(
    on: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "_RECORD_INTERVAL", 600)
    pipeline = ProxyPipeline(on.engine, ProxiedConversations(on.engine))
    await pipeline.prepare(_asking("Begin", "Yes?", "Go"))
    before = on.engine.store.writes
    sent = [await pipeline.prepare(_asking(f"Hi {n}", "Yes?", "Go")) for n in range(5)]
    longer = ("Hi 0", "Yes?", "Go", "Where?", "On")
    await pipeline.prepare(_asking(*longer))
    await pipeline.prepare(_asking("Hi 1", "Yes?", "Stop"))
    await pipeline.idle()
    assert on.engine.store.writes - before <= 2  # the first request may still have been waiting
    assert await _recorded(on, sent[0]) == list(longer)
    assert await _recorded(on, sent[1]) == ["Hi 1", "Yes?", "Stop"]
    assert await _recorded(on, sent[4]) == ["Hi 4", "Yes?", "Go"]
    branches = await (await on.engine.find(sent[1].session or "")).branches()
    assert len(branches) == 2


async def test_a_request_that_cannot_be_recorded_takes_no_other_with_it(
    on: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turn, "_RECORD_INTERVAL", 600)
    pipeline = ProxyPipeline(on.engine, ProxiedConversations(on.engine))
    namespaces = ("", "", "n" * 257, "")
    sent = [
        await pipeline.prepare(_asking(f"Hi {n}", "Yes?", "Go", namespace=namespace))
        for n, namespace in enumerate(namespaces)
    ]
    await pipeline.idle()
    assert caplog.text.count("recording failed") == 1
    for n in (0, 1, 3):
        assert await _recorded(on, sent[n]) == [f"Hi {n}", "Yes?", "Go"]


async def _blocked(on: Stage, chat: Chat, writer: Gated) -> tuple[dict[str, str], dict[str, str]]:
    """Block the conversation; return the ways to go on and the header that they need."""
    writer.failures = 10**6
    refused = await chat.until(lambda reply: not reply.is_success)
    assert refused.status_code == 409
    assert refused.headers["x-request-id"]
    message = refused.json()["error"]["message"]
    ways = {way.rpartition("/")[2]: way for way in re.findall(r"POST (/\S+?)[,) ]", message)}
    assert set(ways) == {"retry", "acknowledge"}
    found = re.search(r"x-enfold-namespace: (\S+?)\)", message)
    assert found is not None
    sent = len(on.provider.bodies)
    assert (await chat.say(PLEASE)).status_code == 409
    assert len(on.provider.bodies) == sent
    return ways, {"x-enfold-namespace": found[1]}


async def test_a_blocked_conversation_goes_on_after_the_retry_that_the_error_names(
    on: Stage, chat: Chat, writer: Gated
) -> None:
    ways, header = await _blocked(on, chat, writer)
    async with httpx.AsyncClient(base_url=on.address, headers=header, timeout=60) as api:
        assert (await api.post(ways["retry"])).status_code == 409
        assert (await chat.say(PLEASE)).status_code == 409
        writer.failures = 0
        writer.open.set()
        assert (await api.post(ways["retry"])).status_code == 200
    after = await chat.say(PLEASE)
    assert (after.status_code, after.headers["x-enfold-decision"]) == (200, "reused")


async def test_a_blocked_conversation_goes_on_once_the_risk_is_acknowledged(
    on: Stage, chat: Chat, writer: Gated
) -> None:
    ways, header = await _blocked(on, chat, writer)
    async with httpx.AsyncClient(base_url=on.address, headers=header, timeout=60) as api:
        assert (await api.post(ways["acknowledge"])).is_success
    after = await chat.say(PLEASE)
    assert (after.status_code, after.headers["x-enfold-warning"]) == (200, "risk-acknowledged")
    assert on.provider.last["messages"][-1]["content"] == PLEASE
    assert len(on.provider.last["messages"]) == len(chat.messages) - 1


async def test_on_failure_pass_forwards_the_whole_history_with_a_warning(
    on: Stage, chat: Chat, writer: Gated
) -> None:
    await on.engine.set("proxy.on_failure", "pass")
    writer.failures = 10**6
    reply = await chat.until(lambda reply: "x-enfold-warning" in reply.headers)
    assert (reply.status_code, reply.headers["x-enfold-warning"]) == (200, "compression-failed")
    assert len(on.provider.last["messages"]) == len(chat.messages) - 1
    writer.failures = 0
    writer.open.set()
    again = await chat.say("And now?")
    assert (again.status_code, again.headers["x-enfold-decision"]) == (200, "compressed")
    assert "x-enfold-warning" not in again.headers
    assert len(on.provider.last["messages"]) < len(chat.messages) - 1


async def test_a_blocked_conversation_goes_on_once_it_is_to_be_truncated(
    on: Stage, chat: Chat, writer: Gated
) -> None:
    await _blocked(on, chat, writer)
    await on.engine.set("on_failure", "truncate")
    after = await chat.say(PLEASE)
    assert (after.status_code, after.headers["x-enfold-warning"]) == (200, "truncated")
    assert len(on.provider.last["messages"]) < len(chat.messages) - 1
    (record,) = await on.engine.sessions(namespace=await on.namespace("k"))
    assert record.blocked is None


async def test_a_full_first_request_is_forwarded_compressed(
    on: Stage, chat: Chat, writer: Gated
) -> None:
    writer.open.set()
    chat.messages = [{"role": "user", "content": question(number)} for number in range(40)]
    reply = await chat.say("And now?")
    assert (reply.status_code, reply.headers["x-enfold-decision"]) == (200, "compressed")
    before, after = (int(reply.headers[f"x-enfold-tokens-{at}"]) for at in ("before", "after"))
    assert after < before
    assert len(on.provider.last["messages"]) < len(chat.messages) - 1
    assert "They counted words" in json.dumps(on.provider.last["messages"][0])
    chat.messages = chat.messages[:-2]
    again = await chat.say("And now?")
    assert again.headers["x-enfold-decision"] == "reused"
    assert on.provider.bodies[-1] == on.provider.bodies[-2]
    assert writer.calls == 1


@pytest.mark.parametrize("role", ["system", "user"])
async def test_a_summary_has_the_role_of_the_setting(
    on: Stage, chat: Chat, writer: Gated, role: str
) -> None:
    writer.open.set()
    await on.engine.set("summary_role", role)
    chat.messages = [{"role": "user", "content": question(number)} for number in range(40)]
    assert (await chat.say("And now?")).headers["x-enfold-decision"] == "compressed"
    (summary,) = (m for m in on.provider.last["messages"] if "They counted words" in m["content"])
    assert summary["role"] == role
    await chat.say("And then?")
    (summary,) = (m for m in on.provider.last["messages"] if "They counted words" in m["content"])
    assert summary["role"] == role


async def test_the_risk_can_be_acknowledged_before_the_first_reply(
    on: Stage, chat: Chat, writer: Gated
) -> None:
    chat.messages = [{"role": "user", "content": question(number)} for number in range(40)]
    writer.failures = 10**6
    assert [(await chat.say(PLEASE)).status_code for _ in range(2)] == [409, 409]
    assert writer.calls == 1
    namespace = await on.namespace("k")
    (record,) = await on.engine.sessions(namespace=namespace)
    await (await on.engine.find(record.id, namespace=namespace)).acknowledge()
    after = await chat.say(PLEASE)
    assert (after.status_code, after.headers["x-enfold-warning"]) == (200, "risk-acknowledged")


async def test_on_failure_truncate_forwards_a_smaller_history_with_a_warning(
    on: Stage, chat: Chat, writer: Gated
) -> None:
    await on.engine.set("on_failure", "truncate")
    writer.failures = 10**6
    reply = await chat.until(lambda reply: "x-enfold-warning" in reply.headers)
    assert (reply.status_code, reply.headers["x-enfold-warning"]) == (200, "truncated")
    assert reply.headers["x-enfold-decision"] == "compressed"
    assert len(on.provider.last["messages"]) < len(chat.messages) - 1
    again = await chat.say("And now?")
    assert (again.status_code, again.headers["x-enfold-decision"]) == (200, "reused")


async def test_a_client_that_asks_for_endless_replies_is_compressed_no_more_often(
    chat: Chat, writer: Gated, caplog: pytest.LogCaptureFixture
) -> None:
    writer.open.set()
    chat.more = {"max_tokens": 10**6}
    for _ in range(2):
        before = len(chat.messages)
        await chat.until(lambda reply: reply.headers["x-enfold-decision"] == "compressed")
        assert len(chat.messages) > before + 6
    assert caplog.text.count("asks for replies of up to 1000000 tokens") == 1


async def test_two_divergences_in_a_row_stop_the_summaries(
    on: Stage, chat: Chat, writer: Gated
) -> None:
    writer.open.set()
    await chat.until(lambda reply: reply.headers["x-enfold-decision"] == "compressed")
    whole = chat.messages
    decisions, warnings = [], []
    for number in range(3):
        chat.messages = [*whole[:2], {"role": "user", "content": question(70 + number)}, *whole[3:]]
        reply = await chat.say("And now?")
        decisions.append(reply.headers["x-enfold-decision"])
        warnings.append(reply.headers.get("x-enfold-warning"))
    assert decisions == ["compressed", "keep", "keep"]
    assert warnings == [None, "history-keeps-changing", "history-keeps-changing"]
    assert await _summaries(on) == writer.calls == 2
    assert len(on.provider.last["messages"]) == len(chat.messages) - 1
    chat.messages = whole
    again = await chat.say("And now?")
    assert again.headers["x-enfold-decision"] == "reused"


@pytest.mark.parametrize("changed", ["beginning", "middle"])
async def test_a_history_that_changes_every_time_is_not_compressed_every_time(
    on: Stage, chat: Chat, writer: Gated, changed: str
) -> None:
    writer.open.set()
    whole = [
        {"role": ("user", "assistant")[number % 2], "content": question(number)}
        for number in range(30)
    ]
    at = 0 if changed == "beginning" else 6
    decisions, warnings = [], []
    for minute in range(8):
        dated = {**whole[at], "content": f"It is 12:0{minute}. {question(at)}"}
        chat.messages = [*whole[:at], dated, *whole[at + 1 :]]
        reply = await chat.say("And now?")
        decisions.append(reply.headers["x-enfold-decision"])
        warnings.append(reply.headers.get("x-enfold-warning"))
    assert decisions == ["compressed"] * 2 + ["keep"] * 6
    assert warnings == [None] * 2 + ["history-keeps-changing"] * 6
    assert writer.calls == 2


async def test_different_conversations_with_the_same_document_are_not_variants(
    on: Stage, chat: Chat, writer: Gated
) -> None:
    writer.open.set()
    shared = [{"role": "user", "content": question(number)} for number in range(3)]
    for number in range(4):
        talk = [
            {"role": ("assistant", "user")[at % 2], "content": question(100 * number + at)}
            for at in range(30)
        ]
        chat.messages = [*shared, *talk]
        reply = await chat.say("And now?")
        assert reply.headers["x-enfold-decision"] == "compressed"


def _too_long(_request: Any, _body: Any) -> Response:
    error = {"message": "too long", "code": "context_length_exceeded", "type": "", "param": None}
    return JSONResponse({"error": error}, 400)


async def test_an_overflow_is_retried_once_and_then_reported(
    on: Stage, chat: Chat, writer: Gated
) -> None:
    writer.open.set()
    for number in range(8):
        await chat.say(question(number))
    on.provider.script, before = _too_long, len(on.provider.bodies)
    reply = await chat.say("And now?")
    assert (reply.status_code, reply.json()["error"]["message"]) == (400, "too long")
    assert len(on.provider.bodies) == before + 2
    assert writer.calls == 1
    assert len(on.provider.last["messages"]) < len(chat.messages)


async def test_an_overflow_before_the_first_reply_is_tried_again_with_less(
    on: Stage, chat: Chat, writer: Gated
) -> None:
    writer.open.set()
    on.provider.script = lambda request, body: (
        _too_long(request, body) if len(body["messages"]) > 10 else None
    )
    chat.messages = [{"role": "user", "content": question(number)} for number in range(12)]
    reply = await chat.say("And now?")
    assert (reply.status_code, reply.headers["x-enfold-decision"]) == (200, "compressed")


async def test_an_overflow_far_below_the_believed_limit_is_compressed(
    on: Stage, chat: Chat, writer: Gated
) -> None:
    writer.open.set()
    await on.engine.models.edit("openai:small", max_input=100_000, max_output=500)
    for number in range(12):
        await chat.say(question(number))
    size = len(on.provider.bodies[-1])
    on.provider.script = lambda request, body: (
        _too_long(request, body) if len(json.dumps(body)) > size else None
    )
    reply = await chat.say(question(12))
    assert (reply.status_code, reply.headers["x-enfold-decision"]) == (200, "compressed")
    assert len(on.provider.bodies[-1]) < 0.8 * size


@pytest.mark.parametrize(("setting", "means"), [("always", "recall"), ("off", "store")])
@pytest.mark.parametrize("way", ["overflow", "background"])
async def test_the_receipt_says_whether_the_model_can_look_it_up(
    on: Stage, chat: Chat, writer: Gated, way: str, setting: str, means: str
) -> None:
    writer.open.set()
    await on.engine.set("proxy_recall", setting)
    await on.engine.set("proxy_background", way == "background")
    await on.engine.set("early_mark", 0.4)
    for number in range(8):
        await chat.say(question(number))
    if way == "overflow":
        on.provider.script = _too_long
        await chat.say("And now?")
    else:
        await chat.until(lambda _: writer.calls > 0)
        await _eventually(lambda: _summaries(on))
    (made,) = await _made(on)
    assert made.content["receipt"]["restorable_by"] == means


async def test_a_provider_that_dies_while_it_answers_is_an_error_to_the_clients_library(
    on: Stage, chat: Chat, caplog: pytest.LogCaptureFixture
) -> None:
    async def dies() -> AsyncIterator[bytes]:
        yield b'data: {"id":"r","object":"chat.completion.chunk","created":1,"model":"m",'
        yield b'"choices":[{"index":0,"delta":{"content":"one"},"finish_reason":null}]}\n\n'
        raise ConnectionAbortedError

    await chat.say("Hello")
    await chat.say("Hello again")
    on.provider.script = lambda _request, _body: StreamingResponse(
        dies(), media_type="text/event-stream"
    )
    pieces: list[Any] = []
    async with openai.AsyncOpenAI(
        base_url=f"{on.address}/v1", api_key="k", max_retries=0
    ) as client:
        stream = await client.chat.completions.create(
            model="small",
            messages=[*chat.messages, {"role": "user", "content": "More"}],
            stream=True,
        )
        with pytest.raises((openai.APIError, httpx.HTTPError)):
            await _hear(stream, pieces)
    assert pieces == ["one"]
    await on.proxy.idle()
    namespace = await on.namespace("k")
    (record,) = await on.engine.sessions(namespace=namespace)
    session = await on.engine.find(record.id, namespace=namespace)
    roles = [row.role for row in await session.history(limit=100)]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert "unexpected error" not in caplog.text
    on.provider.script = None
    assert (await chat.say("More")).status_code == 200


async def _hear(stream: Any, pieces: list[Any]) -> None:
    async for chunk in stream:
        pieces += [chunk.choices[0].delta.content]


async def test_a_provider_that_hangs_up_at_once_is_an_error_with_an_id(on: Stage) -> None:
    async def hang_up(_reader: Any, writing: asyncio.StreamWriter) -> None:
        writing.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    silent = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    proxy = Proxy(on.engine, Upstream({"openai": silent}), on.namespaces)
    body = {"model": "small", "messages": [{"role": "user", "content": "Hello"}]}
    app = create_app(on.engine, forwarding=proxy.routes())
    async with server, serving(app.asgi) as address, httpx.AsyncClient(timeout=60) as client:
        reply = await client.post(f"{address}{PATH}", json=body)
    await proxy.close()
    assert reply.status_code == 503
    assert reply.headers["x-request-id"]
    assert "cannot be reached" in reply.json()["error"]["message"]


async def test_a_long_history_is_counted_whole_however_often_it_came(
    on: Stage, chat: Chat, writer: Gated
) -> None:
    """Counts with a cached beginning must equal counts of the whole history."""
    writer.open.set()
    await on.engine.models.edit("openai:small", max_input=60_000)
    model = await on.engine.models.get("openai:small")
    counts, names = set(), set()
    for number in range(24):
        reply = await chat.say(question(number, words=3_000))
        sent = {"messages": chat.messages[:-1]}
        whole = count_conversation(wire.parse(sent, "openai"), model.tokenizer).total
        assert int(reply.headers["x-enfold-tokens-before"]) == whole
        assert json.loads(on.provider.bodies[-1])["messages"][-1] == chat.messages[-2]
        counts.add(reply.headers["x-enfold-decision"])
        names.add(reply.headers.get("x-enfold-session"))
        await on.proxy.idle()
    assert len(json.dumps(chat.messages)) > 200_000
    assert counts == {"keep", "compressed", "reused"}
    assert len(names - {None}) == 1
    namespace = await on.namespace("k")
    (record,) = await on.engine.sessions(namespace=namespace)
    session = await on.engine.find(record.id, namespace=namespace)
    assert len(await session.history(limit=100)) == len(chat.messages) - 1
