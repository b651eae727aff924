"""Usage and cost of clients' calls: read from the answers, written together, never guessed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from enfold.engine.recognition import ClientHistory, add_named_usage
from enfold.identity import content_hash
from enfold.records import UsageEvent
from enfold.server.proxy.recorder import ProxiedCall, RecordedResponse, UsageWriter
from enfold.store import Store, catalog, open_store, sessions
from enfold.testing import assistant, user
from enfold.wire import WIRES
from tests.server.proxy.stage import Stage, stage

USAGE = {
    "prompt_tokens": 1_000,
    "completion_tokens": 100,
    "total_tokens": 1_100,
    "prompt_tokens_details": {"cached_tokens": 600},
}


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}") as opened:
        yield opened


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with await open_store(url) as opened:
        yield opened


def _writing_to(store: Store) -> Callable[[Sequence[UsageEvent]], Awaitable[None]]:
    return lambda events: store.write(add_named_usage, events)


def _response(usage: Any = None) -> RecordedResponse:
    body = {"id": "r", "choices": [], **({"usage": usage} if usage else {})}
    return RecordedResponse(WIRES["openai"], [], [json.dumps(body).encode()])


async def test_calls_are_written_together_in_their_sessions(store: Store) -> None:
    session = await store.write(sessions.get_or_create, "ours", "chat")
    usage_events: list[UsageEvent] = []
    accounts = UsageWriter(_writing_to(store), usage_events.append)
    for name in ("chat", "chat", None, "not there"):
        accounts.add(ProxiedCall("ours", name, "openai:gpt-4o", _response(USAGE)))
    accounts.add(ProxiedCall("theirs", "chat", "openai:gpt-4o", _response(USAGE)))
    await accounts.idle()
    (usage,) = await store.read(catalog.usage_of_session, session.key)
    assert (usage.kind, usage.model, usage.calls, usage.unknown_costs) == (
        "reply",
        "openai:gpt-4o",
        2,
        0,
    )
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (2_000, 1_200, 200)
    # Dollars for a million tokens: 2.50, 1.25 from the cache, 10.00 for output.
    assert usage.cost == pytest.approx(2 * (400 * 2.5 + 600 * 1.25 + 100 * 10) / 1e6)
    (all_of_ours,) = await store.read(catalog.usage_of_namespace, "ours")
    assert all_of_ours.calls == 4
    (all_of_theirs,) = await store.read(catalog.usage_of_namespace, "theirs")
    assert all_of_theirs.calls == 1
    assert len(usage_events) == 5


async def test_many_calls_are_written_at_once() -> None:
    written, is_written = [], asyncio.Event()

    async def write(events: Sequence[UsageEvent]) -> None:
        written.append(len(events))
        is_written.set()

    accounts = UsageWriter(write)
    for _ in range(200):
        accounts.add(ProxiedCall("ours", None, "openai:gpt-4o", _response(USAGE)))
    accounts.add(ProxiedCall("ours", None, "openai:gpt-4o", _response(USAGE)))
    await asyncio.wait_for(is_written.wait(), 30)
    is_written.clear()
    accounts.add(ProxiedCall("ours", None, "openai:gpt-4o", _response(USAGE)))
    await accounts.idle()
    assert written == [201, 1]


async def test_usage_before_the_session_exists_is_assigned_to_it_later(store: Store) -> None:
    begun = ClientHistory(("user",), (content_hash(user("Hello")),))
    reply = {"role": "assistant", "content": "Hi."}
    body = {"id": "r", "choices": [{"index": 0, "message": reply}], "usage": USAGE}
    response = RecordedResponse(WIRES["openai"], [], [json.dumps(body).encode()])
    name = begun.followed_by([assistant("Hi.")]).session_name()
    assert name is not None
    accounts = UsageWriter(_writing_to(store))
    accounts.add(ProxiedCall("ours", None, "openai:gpt-4o", response, begun))
    accounts.add(ProxiedCall("ours", "named", "openai:gpt-4o", response))
    await accounts.idle()
    for called in (name, "named"):
        made = await store.write(sessions.get_or_create, "ours", called)
        theirs = await store.write(sessions.get_or_create, "theirs", called)
        (usage,) = await store.read(catalog.usage_of_session, made.key)
        assert (usage.calls, usage.input_tokens) == (1, 1_000)
        assert await store.read(catalog.usage_of_session, theirs.key) == []
        await store.write(sessions.delete, theirs.key)
        await store.write(sessions.delete, made.key)
        again = await store.write(sessions.get_or_create, "ours", called)
        assert await store.read(catalog.usage_of_session, again.key) == []
    assert await store.read(catalog.usage_of_namespace, "ours") == []


async def test_missing_usage_and_missing_prices_stay_unknown(store: Store) -> None:
    accounts = UsageWriter(_writing_to(store))
    accounts.add(ProxiedCall("ours", None, "openai:gpt-4o", _response()))
    accounts.add(ProxiedCall("ours", None, "openai:nobody-knows-it", _response(USAGE)))
    accounts.add(
        ProxiedCall(
            "ours", None, "openai:gpt-4o", RecordedResponse(WIRES["openai"], [], [b"<html>"])
        )
    )
    await accounts.idle()
    totals = await store.read(catalog.usage_of_namespace, "ours")
    assert [(each.calls, each.unknown_costs, each.cost) for each in totals] == [
        (2, 2, 0.0),
        (1, 1, 0.0),
    ]
    assert totals[1].input_tokens == 1_000


async def test_nothing_is_lost_while_the_store_is_away(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'away.db'}"
    async with await open_store(url, patience=0.05) as store, await open_store(url) as other:
        accounts = UsageWriter(_writing_to(store))
        accounts.add(ProxiedCall("ours", None, "openai:gpt-4o", _response(USAGE)))
        locked, go_on = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def hold(_db: Any) -> None:
            loop.call_soon_threadsafe(locked.set)
            asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(30)

        holding = asyncio.create_task(other.write(hold))
        await locked.wait()
        await accounts.idle()
        assert await store.read(catalog.usage_of_namespace, "ours") == []
        go_on.set()
        await holding
        accounts.add(ProxiedCall("ours", None, "openai:gpt-4o", _response(USAGE)))
        await accounts.idle()
        (total,) = await store.read(catalog.usage_of_namespace, "ours")
        assert total.calls == 2


async def test_the_api_and_the_figures_show_what_clients_used(on: Stage) -> None:
    def answer(_request: Any, body: Any) -> Response | None:
        text = {"role": "assistant", "content": f"answer {len(body['messages'])}"}
        choice = {"index": 0, "finish_reason": "stop", "message": text}
        whole = {"id": "r", "object": "chat.completion", "created": 1, "model": "gpt-4o"}
        return JSONResponse({**whole, "choices": [choice], "usage": USAGE})

    on.provider.script = answer
    messages: list[Any] = []
    async with openai.AsyncOpenAI(base_url=f"{on.address}/v1", api_key="k") as client:
        for number in range(3):
            messages.append({"role": "user", "content": f"Question {number}?"})
            reply = await client.chat.completions.create(model="gpt-4o", messages=messages)
            text = reply.choices[0].message.content
            messages.append({"role": "assistant", "content": text})
    namespace = await on.namespace("k")
    await on.counted(namespace, 3)
    (record,) = await on.engine.sessions(namespace=namespace)
    headers = {"x-enfold-namespace": namespace}
    async with httpx.AsyncClient(base_url=on.address, headers=headers, timeout=60) as api:
        of_session = (await api.get(f"/api/sessions/{record.id}/usage")).json()
        of_all = (await api.get("/api/usage")).json()
        figures = (await api.get("/metrics")).text
    assert (of_session["calls"], of_all["calls"]) == (3, 3)
    assert of_session["totals"][0]["cached_tokens"] == 1_800
    assert of_all["cost"] == pytest.approx(of_session["cost"])
    assert 'enfold_reply_tokens_total{provider="openai",kind="cached"} 1800' in figures
    assert 'enfold_replies_total{provider="openai",cost="known"} 3' in figures


async def test_the_usage_of_a_reply_is_stored_with_its_message(on: Stage) -> None:
    talk: list[Any] = []
    answers = iter(range(1, 4))

    def reported(_request: Request, _body: Any) -> Response:
        number = next(answers)
        message = {"role": "assistant", "content": f"answer {number}"}
        usage = {"prompt_tokens": 100 * number, "completion_tokens": number, "total_tokens": 0}
        whole = {"id": "r", "object": "chat.completion", "created": 1, "model": "small"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return JSONResponse({**whole, "choices": [choice], "usage": usage})

    on.provider.script = reported
    namespace = await on.namespace("sk-a")
    async with openai.AsyncOpenAI(base_url=f"{on.address}/v1", api_key="sk-a") as client:
        for number in range(1, 4):
            talk.append({"role": "user", "content": f"question {number}"})
            done = await client.chat.completions.create(model="small", messages=talk)
            talk.append({"role": "assistant", "content": done.choices[0].message.content})
            await on.counted(namespace, number)
    (record,) = await on.engine.sessions(namespace=namespace)
    stored = await (await on.engine.find(record.id, namespace=namespace)).history()
    usage = [(row.input_tokens, row.output_tokens) for row in stored]
    # The last reply is recorded with the client's next request.
    assert usage == [(None, None), (100, 1), (None, None), (200, 2), (None, None)]


async def test_streams_are_counted_by_what_they_say_at_their_end(on: Stage) -> None:
    started = {"input_tokens": 5, "cache_read_input_tokens": 20, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "small"}
    events: list[Any] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "usage": started}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ]
    raw = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events]
    on.provider.script = lambda _request, _body: StreamingResponse(
        _in_pieces(raw), media_type="text/event-stream"
    )
    async with (
        anthropic.AsyncAnthropic(base_url=on.address, api_key="k") as client,
        client.messages.stream(
            model="small", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
        ) as stream,
    ):
        assert await stream.get_final_text() == "Hi"
    (total,) = await on.counted(await on.namespace("k"), 1)
    assert (total.input_tokens, total.cached_tokens, total.output_tokens) == (25, 20, 9)
    assert (total.model, total.unknown_costs) == ("anthropic:small", 1)


async def _in_pieces(raw: list[bytes]) -> AsyncIterator[bytes]:
    for piece in raw:
        yield piece
        await asyncio.sleep(0)


async def test_refused_requests_are_not_counted(on: Stage) -> None:
    on.provider.script = lambda _request, _body: JSONResponse({"error": {}}, 429)
    async with httpx.AsyncClient(timeout=60) as client:
        await client.post(
            f"{on.address}/v1/chat/completions",
            json={"model": "small", "messages": [{"role": "user", "content": "Hi"}]},
        )
    await on.proxy.idle()
    assert await on.engine.store.read(catalog.usage_of_namespace, "") == []
