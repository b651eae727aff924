"""Clients that go on from a response at the provider: known, compressed, and never another's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse

from tests.server.proxy.stage import Stage, question, stage

HEADING = "[Previous conversation summary]"


@dataclass
class Keeper:
    """A provider that keeps its responses, as the real one does."""

    contexts: dict[str, list[Any]] = field(default_factory=dict)
    items: dict[str, Any] = field(default_factory=dict)
    shown: list[list[Any]] = field(default_factory=list)
    """The contexts that the model was shown, in order."""

    def answer(self, request: Any, body: Any) -> Response | None:
        if not request.url.path.endswith("/responses"):
            return None
        previous = body.get("previous_response_id")
        if previous is not None and previous not in self.contexts:
            return JSONResponse({"error": {"message": "not found", "code": None}}, 404)
        given = body.get("input", [])
        given = [{"role": "user", "content": given}] if isinstance(given, str) else given
        items = [self.items[item["id"]] if _is_reference(item) else item for item in given]
        context = [*self.contexts.get(previous, []), *items]
        self.shown.append(context)
        number = len(self.shown)
        text = {"type": "output_text", "text": f"answer {number}", "annotations": []}
        message = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
        output = [{**message, "status": "completed", "content": [text]}]
        self.contexts[f"resp_{number}"] = [*context, *output]
        self.items[f"msg_{number}"] = output[0]
        whole = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1,
            "model": body["model"],
            "status": "completed",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        if not body.get("stream"):
            return JSONResponse(whole)
        return StreamingResponse(_events(whole), media_type="text/event-stream")


def _is_reference(item: Any) -> bool:
    return item.get("type") == "item_reference" or ("role" not in item and "type" not in item)


async def _events(whole: Any) -> AsyncIterator[bytes]:
    started = {**whole, "status": "in_progress", "output": []}
    done = {"output_index": 0, "item": whole["output"][0]}
    for number, (kind, fields) in enumerate(
        [
            ("response.created", {"response": started}),
            ("response.output_item.done", done),
            ("response.completed", {"response": whole}),
        ]
    ):
        data = json.dumps({"type": kind, "sequence_number": number, **fields})
        yield f"event: {kind}\ndata: {data}\n\n".encode()


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
async def on(tmp_path: Path, keeper: Keeper) -> AsyncIterator[Stage]:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}") as opened:
        opened.provider.script = keeper.answer
        yield opened


async def _talk(
    on: Stage, turns: int, previous: str | None = None, *, key: str = "k", **fields: Any
) -> tuple[str, list[dict[str, str]]]:
    """A conversation that sends only what is new; the last response's id, and all headers."""
    headers: list[dict[str, str]] = []
    async with openai.AsyncOpenAI(base_url=f"{on.address}/v1", api_key=key) as client:
        create: Any = client.responses.with_raw_response.create
        for number in range(turns):
            given = {"previous_response_id": previous} if previous else {}
            reply = await create(model="small", input=question(number), **given, **fields)
            headers.append(dict(reply.headers))
            previous = reply.parse().id
    assert previous is not None
    return previous, headers


async def test_a_chain_passes_untouched_and_its_whole_history_is_counted(
    on: Stage, keeper: Keeper
) -> None:
    _, headers = await _talk(on, 5)
    assert {each["x-enfold-decision"] for each in headers} == {"keep"}
    assert not any("x-enfold-warning" in each for each in headers)
    bodies = [json.loads(raw) for raw in on.provider.bodies]
    assert [each.get("previous_response_id") for each in bodies] == [
        None,
        *(f"resp_{number}" for number in range(1, 5)),
    ]
    assert all(isinstance(each["input"], str) for each in bodies)
    counts = [int(each["x-enfold-tokens-before"]) for each in headers]
    assert counts == sorted(counts)
    assert counts[-1] > 4 * counts[0]
    assert len({each["x-enfold-session"] for each in headers[1:]}) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_long_chain_is_compressed_and_goes_on(
    on: Stage, keeper: Keeper, stream: bool
) -> None:
    previous, decisions = None, []
    async with openai.AsyncOpenAI(base_url=f"{on.address}/v1", api_key="k") as client:
        create: Any = client.responses.with_raw_response.create
        for number in range(30):
            given: dict[str, Any] = {"previous_response_id": previous} if previous else {}
            reply = await create(model="small", input=question(number), stream=stream, **given)
            decisions.append(reply.headers["x-enfold-decision"])
            parsed = reply.parse()
            if stream:
                events = [event async for event in parsed]
                previous = events[-1].response.id
            else:
                previous = parsed.id
    assert {"keep", "compressed", "reused"} == set(decisions)
    assert all(sum(len(json.dumps(item)) for item in items) < 50_000 for items in keeper.shown)
    sent = on.provider.last
    assert "previous_response_id" not in sent
    assert HEADING in json.dumps(sent["input"][0])
    assert sent["input"][-1] == {"role": "user", "content": question(29)}
    (record,) = await on.engine.sessions(namespace=await on.namespace("k"))
    session = await on.engine.find(record.id, namespace=await on.namespace("k"))
    stored = [json.loads(row.body) for row in await session.history(limit=1_000)]
    assert [each["role"] for each in stored] == ["user", "assistant"] * 29 + ["user"]


async def test_instructions_of_the_first_request_are_sent_again_when_the_id_is_dropped(
    on: Stage, keeper: Keeper
) -> None:
    rules = {"role": "developer", "content": "Answer in rhymes."}
    opening: Any = [rules, {"role": "user", "content": "Hello"}]
    async with openai.AsyncOpenAI(base_url=f"{on.address}/v1", api_key="k") as client:
        first = await client.responses.create(model="small", input=opening)
    await _talk(on, 30, first.id)
    assert "previous_response_id" not in on.provider.last
    assert on.provider.last["input"][0] == rules
    assert HEADING in json.dumps(on.provider.last["input"][1])


async def test_a_chain_that_began_elsewhere_passes_with_a_warning(
    on: Stage, keeper: Keeper
) -> None:
    keeper.contexts["resp_old"] = [{"role": "user", "content": "Long ago"}]
    last, headers = await _talk(on, 3, "resp_old")
    assert {each["x-enfold-warning"] for each in headers} == {"history-not-visible"}
    assert [json.loads(raw)["previous_response_id"] for raw in on.provider.bodies] == [
        "resp_old",
        "resp_1",
        "resp_2",
    ]
    assert last == "resp_3"


@pytest.mark.parametrize(
    "fields",
    [
        {"conversation": "conv_1"},
        {"conversation": {"id": "conv_1"}},
        {"previous_response_id": "resp_of_nobody"},
        {"previous_response_id": 7},
        {"input": [{"type": "item_reference", "id": "msg_of_nobody"}]},
        {"input": [{"id": "msg_of_nobody"}, {"role": "user", "content": "Go on"}]},
    ],
    ids=["conversation", "as object", "response", "no id", "item", "item without type"],
)
async def test_an_unknown_response_id_is_left_to_the_provider(on: Stage, fields: Any) -> None:
    on.provider.script = lambda _request, _body: JSONResponse({"id": "r"})
    raw = json.dumps({"model": "small", "input": "Go on", **fields}).encode()
    async with httpx.AsyncClient(timeout=60) as client:
        reply = await client.post(f"{on.address}/v1/responses", content=raw)
    assert reply.headers["x-enfold-warning"] == "history-not-visible"
    assert on.provider.bodies == [raw]


async def test_response_ids_of_another_key_are_unknown(on: Stage, keeper: Keeper) -> None:
    last, _ = await _talk(on, 3, key="anna")
    _, headers = await _talk(on, 1, last, key="bert")
    assert headers[0]["x-enfold-warning"] == "history-not-visible"
    raw = {"model": "small", "input": [{"type": "item_reference", "id": "msg_1"}]}
    async with httpx.AsyncClient(headers={"authorization": "Bearer bert"}, timeout=60) as client:
        reply = await client.post(f"{on.address}/v1/responses", json=raw)
    assert reply.headers["x-enfold-warning"] == "history-not-visible"
    _, headers = await _talk(on, 1, last, key="anna")
    assert "x-enfold-warning" not in headers[0]


async def test_a_chain_is_known_after_a_restart(tmp_path: Path, keeper: Keeper) -> None:
    database = f"sqlite:///{tmp_path / 'proxy.db'}"
    async with stage(database) as on:
        on.provider.script = keeper.answer
        last, _ = await _talk(on, 12)
        namespace = await on.namespace("k")
    async with stage(database) as on:
        on.provider.script = keeper.answer
        assert await on.namespace("k") == namespace
        _, headers = await _talk(on, 18, last)
    assert not any("x-enfold-warning" in each for each in headers)
    assert "compressed" in {each["x-enfold-decision"] for each in headers}


async def test_references_to_items_are_resolved_where_the_view_is_sent(
    on: Stage, keeper: Keeper
) -> None:
    items: list[Any] = []
    async with openai.AsyncOpenAI(base_url=f"{on.address}/v1", api_key="k") as client:
        for number in range(24):
            items.append({"role": "user", "content": question(number)})
            answer = await client.responses.create(model="small", input=items)
            items.append({"type": "item_reference", "id": answer.output[0].to_dict()["id"]})
    first, sent = json.loads(on.provider.bodies[2]), on.provider.last
    assert first["input"][1] == {"type": "item_reference", "id": "msg_1"}
    assert HEADING in json.dumps(sent["input"])
    assert not any(_is_reference(item) for item in sent["input"])
    assert sent["input"][-2] == keeper.items["msg_23"]


async def test_responses_that_the_provider_does_not_store_are_not_stored_here(
    on: Stage, keeper: Keeper
) -> None:
    last, _ = await _talk(on, 1, store=False)
    _, headers = await _talk(on, 1, last)
    assert headers[0]["x-enfold-warning"] == "history-not-visible"
    assert await on.engine.sessions(namespace=await on.namespace("k")) == []


async def test_an_undone_compression_sends_the_whole_history_again(
    on: Stage, keeper: Keeper
) -> None:
    last, headers = await _talk(on, 24)
    assert headers[-1]["x-enfold-decision"] in {"compressed", "reused"}
    namespace = await on.namespace("k")
    (record,) = await on.engine.sessions(namespace=namespace)
    await on.engine.models.edit("openai:small", max_input=100_000)
    session = await on.engine.find(record.id, namespace=namespace)
    while await session.undo() is not None:
        pass
    _, headers = await _talk(on, 1, last)
    assert headers[0]["x-enfold-decision"] == "keep"
    assert "previous_response_id" not in on.provider.last
    assert len(on.provider.last["input"]) == 49
    assert HEADING not in json.dumps(on.provider.last["input"])
