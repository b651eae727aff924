"""The proxy between real client libraries and a provider on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from google import genai
from google.genai.types import Content, HttpOptions, Part
from starlette.responses import JSONResponse, Response, StreamingResponse

from enfold.errors import SummaryError
from enfold.summaries import Summary, SummaryRequest
from tests.server.proxy.stage import Stage, question, stage


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}") as opened:
        yield opened


async def _talk(on: Stage, turns: int, key: str = "k") -> list[dict[str, str]]:
    """A conversation with the OpenAI client that keeps its whole history, as clients do."""
    headers: list[dict[str, str]] = []
    messages: list[Any] = [{"role": "system", "content": "Be brief."}]
    async with openai.AsyncOpenAI(base_url=f"{on.address}/v1", api_key=key) as client:
        for number in range(turns):
            messages.append({"role": "user", "content": question(number)})
            reply = await client.chat.completions.with_raw_response.create(
                model="small", messages=messages
            )
            headers.append(dict(reply.headers))
            text = reply.parse().choices[0].message.content
            messages.append({"role": "assistant", "content": text})
    return headers


async def test_a_long_conversation_goes_on_and_always_fits(on: Stage) -> None:
    headers = await _talk(on, 30)
    decisions = [each["x-enfold-decision"] for each in headers]
    assert decisions[0] == "keep"
    assert {"compressed", "reused"} <= set(decisions)
    assert decisions.count("compressed") < 10, decisions
    assert all(int(each["x-enfold-tokens-after"]) < 10_000 for each in headers)
    assert int(headers[-1]["x-enfold-tokens-before"]) > 10_000
    assert on.provider.last["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "[Previous conversation summary]" in on.provider.last["messages"][1]["content"]
    assert question(29) in on.provider.last["messages"][-1]["content"]
    assert len({each["x-enfold-session"] for each in headers[1:]}) == 1


async def test_between_two_compressions_what_is_sent_only_grows(on: Stage) -> None:
    headers = await _talk(on, 30)
    sent = [json.loads(body)["messages"] for body in on.provider.bodies]
    for before, after, header in zip(sent, sent[1:], headers[1:], strict=False):
        if header["x-enfold-decision"] != "compressed":
            assert after[: len(before)] == before


async def test_an_unchanged_body_is_forwarded_byte_for_byte(on: Stage) -> None:
    raw = b'{ "model":"small",\n "messages" : [{"content":"h\\u00e9","role":"user"}], "x": 1.50}'
    async with httpx.AsyncClient(timeout=60) as client:
        reply = await client.post(f"{on.address}/v1/chat/completions?a=%2F", content=raw)
    assert reply.headers["x-enfold-decision"] == "keep"
    assert on.provider.bodies == [raw]


@pytest.mark.parametrize(
    ("raw", "header", "value"),
    [
        (b'{"\xdd":1,"model":"small","messages":[]}', "x-enfold-warning", "not-understood"),
        (
            b'{"model":"small","max_tokens":1%b,"messages":[{"role":"user","content":"Hi"}]}'
            % (b"0" * 309),
            "x-enfold-decision",
            "keep",
        ),
    ],
    ids=["key not UTF-8", "number above all floats"],
)
async def test_odd_bodies_are_the_providers_to_judge(
    on: Stage, raw: bytes, header: str, value: str
) -> None:
    on.provider.script = lambda _request, _body: JSONResponse({"choices": []})
    async with httpx.AsyncClient(timeout=60) as client:
        reply = await client.post(f"{on.address}/v1/chat/completions", content=raw)
    assert (reply.status_code, reply.headers[header]) == (200, value)
    assert on.provider.bodies == [raw]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v1/chat/completions", ("error", "code")),
        ("/v1/messages", ("error", "type")),
        ("/v1beta/models/small:generateContent", ("error", "status")),
    ],
)
async def test_a_sessions_name_that_cannot_be_stored_is_refused_in_the_providers_words(
    on: Stage, path: str, code: tuple[str, str]
) -> None:
    async with httpx.AsyncClient(headers={"x-enfold-session": "x" * 257}, timeout=60) as client:
        reply = await client.post(f"{on.address}{path}", json={"model": "small", "messages": []})
    body = reply.json()
    assert reply.status_code == 400
    assert "x-enfold-session" in body["error"]["message"]
    assert "at most 256 characters" in body["error"]["message"]
    assert body[code[0]][code[1]].lower() == "bad_input"
    assert on.provider.bodies == []


async def test_the_clients_key_is_forwarded_and_headers_for_enfold_are_not(on: Stage) -> None:
    headers = {"authorization": "Bearer sk-mine", "x-enfold-session": "mine", "x-other": "1"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as client:
        await client.post(
            f"{on.address}/v1/chat/completions",
            json={"model": "small", "messages": [{"role": "user", "content": "Hi"}]},
        )
    (forwarded,) = on.provider.headers
    assert (forwarded["authorization"], forwarded["x-other"]) == ("Bearer sk-mine", "1")
    assert not any(name.startswith("x-enfold") for name in forwarded)


async def test_anthropic_clients_get_the_summary_in_a_users_message(on: Stage) -> None:
    messages: list[Any] = []
    async with anthropic.AsyncAnthropic(base_url=on.address, api_key="k") as client:
        for number in range(24):
            messages.append({"role": "user", "content": question(number)})
            reply = await client.messages.create(
                model="small", max_tokens=100, messages=messages, system="Be brief."
            )
            messages.append({"role": "assistant", "content": reply.content[0].to_dict()["text"]})
    sent = on.provider.last
    assert sent["system"] == "Be brief."
    assert sent["messages"][0]["role"] == "user"
    assert "[Previous conversation summary]" in json.dumps(sent["messages"][0])
    roles = [message["role"] for message in sent["messages"]]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")
async def test_responses_and_gemini_clients_are_served_too(on: Stage) -> None:
    items: list[Any] = []
    contents: list[Any] = []
    google = genai.Client(api_key="k", http_options=HttpOptions(base_url=on.address))
    async with openai.AsyncOpenAI(base_url=f"{on.address}/v1", api_key="k") as client:
        for number in range(24):
            items.append({"role": "user", "content": question(number)})
            answer = await client.responses.create(model="small", input=items)
            items += [item.to_dict() for item in answer.output]
            responses = on.provider.last
            contents.append(Content(role="user", parts=[Part(text=question(number))]))
            reply = await google.aio.models.generate_content(model="small", contents=contents)
            assert reply.candidates is not None
            contents.append(reply.candidates[0].content)
    gemini = on.provider.last
    await google.aio.aclose()
    assert len(responses["input"]) < len(items) // 2
    assert "[Previous conversation summary]" in json.dumps(responses["input"])
    assert len(gemini["contents"]) < len(contents) // 2
    assert "[Previous conversation summary]" in json.dumps(gemini["contents"][0])


async def test_a_stream_arrives_piece_by_piece(on: Stage) -> None:
    async with openai.AsyncOpenAI(base_url=f"{on.address}/v1", api_key="k") as client:
        stream = await client.chat.completions.create(
            model="small", messages=[{"role": "user", "content": "Hi"}], stream=True
        )
        pieces = [chunk.choices[0].delta.content async for chunk in stream]
    assert pieces == ["one ", "two ", "three"]


async def test_a_client_that_hangs_up_stops_the_call(on: Stage) -> None:
    async def forever() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"data: {}\n\n"
                await asyncio.sleep(0.01)
        finally:
            on.provider.cancelled.set()

    on.provider.script = lambda _request, _body: StreamingResponse(forever())
    body = {"model": "small", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    async with (
        httpx.AsyncClient(timeout=60) as client,
        client.stream("POST", f"{on.address}/v1/chat/completions", json=body) as reply,
    ):
        await anext(reply.aiter_bytes())
    await asyncio.wait_for(on.provider.cancelled.wait(), 20)
    assert on.provider.cancelled.is_set()


async def test_the_providers_errors_and_limits_pass_through(on: Stage) -> None:
    error = {"error": {"message": "slow down", "type": "rate_limit", "param": None, "code": None}}
    limits = {"x-ratelimit-remaining-requests": "0", "retry-after": "7"}
    on.provider.script = lambda _request, _body: JSONResponse(error, 429, headers=limits)
    async with httpx.AsyncClient(timeout=60) as client:
        reply = await client.post(
            f"{on.address}/v1/chat/completions",
            json={"model": "small", "messages": [{"role": "user", "content": "Hi"}]},
        )
    assert (reply.status_code, reply.json()) == (429, error)
    assert {name: reply.headers[name] for name in limits} == limits


async def test_other_paths_pass_unchanged_to_the_provider_they_are_meant_for(on: Stage) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        await client.get(f"{on.address}/v1/models?limit=2")
        await client.post(f"{on.address}/v1/embeddings", content=b"not json")
    assert on.provider.paths == ["/v1/models", "/v1/embeddings"]
    assert on.provider.bodies == [b"", b"not json"]


@pytest.mark.parametrize(
    ("body", "warning"),
    [
        (b"{}", "not-understood"),
        (b"[", "not-understood"),
        (
            b'{"model": "small", "input": "Go on", "previous_response_id": "r"}',
            "history-not-visible",
        ),
        (b'{"model": 7, "input": "Hi"}', "not-understood"),
    ],
    ids=["empty", "broken", "elsewhere", "no model"],
)
async def test_unreadable_bodies_are_left_to_the_provider(
    on: Stage, body: bytes, warning: str
) -> None:
    on.provider.script = lambda _request, _body: Response(status_code=400)
    async with httpx.AsyncClient(timeout=60) as client:
        reply = await client.post(f"{on.address}/v1/responses", content=body)
    assert (reply.status_code, reply.headers["x-enfold-warning"]) == (400, warning)
    assert on.provider.bodies == [body]


async def test_an_edited_message_makes_a_branch_that_uses_the_same_summary(on: Stage) -> None:
    await _talk(on, 22)
    (record,) = await on.engine.sessions(namespace=await on.namespace("k"))
    session = await on.engine.find(record.id, namespace=await on.namespace("k"))
    stored = [json.loads(row.body) for row in await session.history(limit=1_000)]
    edited = [*stored[:-1], {"role": "user", "content": "Something else, please."}]
    async with httpx.AsyncClient(headers={"authorization": "Bearer k"}, timeout=60) as client:
        reply = await client.post(
            f"{on.address}/v1/chat/completions", json={"model": "small", "messages": edited}
        )
    assert reply.headers["x-enfold-decision"] == "reused"
    assert reply.headers["x-enfold-session"] == record.id
    assert len(on.provider.last["messages"]) < len(edited)
    assert on.provider.last["messages"][-1] == edited[-1]


async def test_two_clients_with_the_same_words_have_nothing_in_common(on: Stage) -> None:
    await _talk(on, 6, key="anna")
    await _talk(on, 6, key="bert")
    await on.proxy.idle()
    of_anna = await on.engine.sessions(namespace=await on.namespace("anna"))
    of_bert = await on.engine.sessions(namespace=await on.namespace("bert"))
    assert len(of_anna) == len(of_bert) == 1
    assert of_anna[0].id != of_bert[0].id
    assert await on.engine.search("word d or b", namespace=await on.namespace("carl")) == []


async def test_an_overflow_at_the_provider_compresses_once_and_tries_again(on: Stage) -> None:
    def too_long(_request: Any, body: Any) -> Response | None:
        if len(body["messages"]) < 10:
            return None
        error = {
            "message": "too long",
            "code": "context_length_exceeded",
            "type": "",
            "param": None,
        }
        return JSONResponse({"error": error}, 400)

    on.provider.script = too_long
    headers = await _talk(on, 8)
    assert "compressed" in [each["x-enfold-decision"] for each in headers]


class Away:
    """A summarizer that always fails."""

    name = "away"
    max_input: int | None = None

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Fail."""
        raise SummaryError(f"{self.name} could not summarize {len(request.messages)} messages")


@pytest.fixture
async def failing(tmp_path: Path) -> AsyncIterator[Stage]:
    """A proxy whose summarizer always fails."""
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}", away=Away()) as opened:
        await opened.engine.set("summarizer", "away")
        yield opened


async def test_a_failed_compression_blocks_the_conversation_until_a_person_decides(
    failing: Stage,
) -> None:
    on = failing
    with pytest.raises(openai.APIStatusError) as refused:
        await _talk(on, 30)
    sent = len(on.provider.bodies)
    assert refused.value.status_code == 409
    assert refused.value.response.headers["x-should-retry"] == "false"
    assert "acknowledge" in refused.value.message
    with pytest.raises(openai.APIStatusError):
        await _talk(on, 30)
    assert len(on.provider.bodies) > sent
    await on.engine.set("proxy.on_failure", "pass")
    headers = await _talk(on, 30)
    assert headers[-1].get("x-enfold-warning") == "compression-failed"


async def test_an_unreachable_provider_is_reported_in_the_providers_format(tmp_path: Path) -> None:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}") as on:
        on.provider.script = lambda _request, _body: _gone()
        async with anthropic.AsyncAnthropic(
            base_url=on.address, api_key="k", max_retries=0
        ) as client:
            with pytest.raises(anthropic.APIStatusError) as error:
                await client.messages.create(
                    model="small", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
                )
    assert error.value.status_code == 500


def _gone() -> Response:
    return Response(status_code=500)


async def test_the_operator_can_unblock_a_conversation(
    failing: Stage,
) -> None:
    on = failing
    with pytest.raises(openai.APIStatusError):
        await _talk(on, 30)
    answered = len(on.provider.bodies)
    namespace = await on.namespace("k")
    (record,) = await on.engine.sessions(namespace=namespace)
    async with httpx.AsyncClient(base_url=on.address, timeout=60) as client:
        path = f"/api/sessions/{record.id}"
        found = await client.get(path)
        assert found.status_code == 200
        inside = await client.get(path, headers={"x-enfold-namespace": namespace})
    assert inside.json() == found.json()
    await (await on.engine.find(record.id, namespace=namespace)).acknowledge()
    headers = await _talk(on, answered + 1)
    assert headers[-1]["x-enfold-warning"] == "risk-acknowledged"
    with pytest.raises(openai.APIStatusError) as refused:  # it covers one request
        await _talk(on, answered + 2)
    assert refused.value.status_code == 409
