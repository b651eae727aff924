"""Limits in the proxy: the client's window, limits that errors name, and silent providers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse

from enfold.budget import DEFAULT_POLICY
from enfold.errors import UnavailableError
from enfold.jsontext import dumps
from enfold.llm.costs import detect, find, published_limits
from enfold.server import create_app
from enfold.server.proxy.bodies import MAX_MESSAGES, MAX_TEXT
from enfold.server.proxy.routes import TOO_LONG_TO_READ, Proxy, open_proxy_namespaces
from enfold.server.proxy.upstream import Upstream
from enfold.wiring import open_engine
from tests.server.live_server import serving
from tests.server.proxy.stage import ScriptedProvider, Stage, question, stage

CLAUDE_CODE = {"user-agent": "claude-cli/2.1.0 (external, cli)", "x-api-key": "k"}
BIG = "claude-opus-4-8"


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}") as opened:
        yield opened


def _talk(turns: int) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": question(n)} for n in range(2 * turns - 1)]


async def _send(
    on: Stage, path: str, model: str, turns: int, *lines: tuple[str, str], **headers: str
) -> httpx.Response:
    body = {"model": model, "max_tokens": 100, "messages": _talk(turns)}
    sent = [*headers.items(), *lines]
    async with httpx.AsyncClient(base_url=on.address, headers=sent, timeout=60) as client:
        response = await client.post(path, json=body)
    await on.proxy.idle()
    return response


async def test_the_window_of_claude_code_is_the_sessions(on: Stage) -> None:
    await _send(on, "/v1/messages", BIG, 3, **CLAUDE_CODE)
    (record,) = await on.engine.sessions()
    session = await on.engine.find(record.id)
    assert (await session.status()).context_limit == await _limit(on, 175_000)
    assert (await on.engine.models.get(f"anthropic:{BIG}")).max_input > 175_000


async def _limit(on: Stage, max_input: int) -> int:
    """Return the limit in counted tokens, without the margin."""
    model = await on.engine.models.get(f"anthropic:{BIG}")
    counted = replace(model, max_input=max_input).limits.input
    return counted - int(counted * DEFAULT_POLICY.margin)


@pytest.mark.parametrize(
    "headers",
    [
        [*CLAUDE_CODE.items(), ("anthropic-beta", "oauth-2025-04-20,context-1m-2025-08-07")],
        [
            *CLAUDE_CODE.items(),
            ("anthropic-beta", "context-1m-2025-08-07"),
            ("anthropic-beta", "oauth-2025-04-20"),
        ],
        [("user-agent", "Anthropic/Python 0.60.0"), ("x-api-key", "k")],
    ],
    ids=["a million enabled", "a million enabled in its own line", "another client"],
)
async def test_other_requests_use_the_window_of_the_model(
    on: Stage, headers: list[tuple[str, str]]
) -> None:
    await _send(on, "/v1/messages", BIG, 3, *headers)
    (record,) = await on.engine.sessions()
    status = await (await on.engine.find(record.id)).status()
    model = await on.engine.models.get(f"anthropic:{BIG}")
    assert status.context_limit == await _limit(on, model.max_input)


async def test_a_window_that_a_person_set_stays(on: Stage) -> None:
    await on.engine.set("window", 50_000)
    await _send(on, "/v1/messages", BIG, 3, **CLAUDE_CODE)
    (record,) = await on.engine.sessions()
    session = await on.engine.find(record.id)
    assert (await session.status()).context_limit == await _limit(on, 50_000 - 50_000 // 8)
    await session.configure(window=30_000)
    await _send(on, "/v1/messages", BIG, 4, **CLAUDE_CODE)
    assert (await session.settings()).window == 30_000


async def test_a_request_above_the_clients_window_is_compressed(on: Stage) -> None:
    await on.engine.models.edit(f"anthropic:{BIG}", max_input=936_000, max_output=64_000)
    # About 180,000 tokens: the model would take them, the client would compact.
    response = await _send(on, "/v1/messages", BIG, 225, **CLAUDE_CODE)
    assert response.headers["x-enfold-decision"] == "compressed"


async def test_a_limit_that_an_error_names_is_stored(on: Stage) -> None:
    refusals = 0

    def refuse_once(_: Any, body: Any) -> Response | None:
        nonlocal refusals
        if body.get("model") != "unknown-llama" or refusals:
            return None
        refusals += 1
        words = "This model's maximum context length is 8192 tokens. Reduce the messages."
        return JSONResponse({"error": {"message": words, "code": None}}, 400)

    on.provider.script = refuse_once
    authorization = {"authorization": "Bearer k"}
    response = await _send(on, "/v1/chat/completions", "unknown-llama", 14, **authorization)
    assert response.status_code == 200
    assert response.headers["x-enfold-decision"] == "compressed"
    learnt = await on.engine.models.get("openai:unknown-llama")
    assert (learnt.max_input + learnt.max_output, learnt.source) == (8_192, "api")


async def test_limits_of_a_new_model_are_asked_for_at_its_first_use(on: Stage) -> None:
    def list_models(request: Any, _: Any) -> Response | None:
        if request.method != "GET":
            return None
        return JSONResponse({"data": [{"id": "new-llama", "context_length": 16_384}]})

    on.provider.script = list_models
    for _ in range(2):
        await _send(on, "/v1/chat/completions", "new-llama", 2, authorization="Bearer k")
        await on.proxy.idle()
    learnt = await on.engine.models.get("openai:new-llama")
    assert (learnt.max_input + learnt.max_output, learnt.source) == (16_384, "api")
    assert [path for path in on.provider.paths if path.endswith("/models")] == ["/v1/models"]


async def test_a_limit_that_a_person_set_is_not_replaced(on: Stage) -> None:
    def refuse(_: Any, body: Any) -> Response:
        words = "This model's maximum context length is 8192 tokens."
        return JSONResponse({"error": {"message": words, "code": None}}, 400)

    on.provider.script = refuse
    await _send(on, "/v1/chat/completions", "small", 3, authorization="Bearer k")
    assert (await on.engine.models.get("openai:small")).max_input == 10_000


@pytest.mark.parametrize(
    ("model", "limits"),
    [
        ("openai:gpt-5-codex", (272_000, 128_000)),
        ("openai:gpt-5.1-codex-max", (272_000, 128_000)),
        ("openai:gpt-5-mini", (272_000, 128_000)),
        ("anthropic:claude-sonnet-4-5", (136_000, 64_000)),
        ("google:gemini-3-pro-preview", (983_040, 65_536)),
    ],
)
def test_limits_of_current_models_are_the_published_ones(
    model: str, limits: tuple[int, int]
) -> None:
    found = detect(model)
    assert (found.max_input, found.max_output) == limits


def test_published_windows_are_the_librarys() -> None:
    compared = 0
    for row in published_limits():
        for model in row.models:
            assert row.pattern.fullmatch(model)
            info = find(row.provider, model)
            if info is not None and info.context_window is not None:
                assert info.context_window == row.max_input + row.max_output, model
                compared += 1
    assert compared >= 4


async def test_a_provider_that_falls_silent_is_an_error() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"hi"
        await asyncio.Event().wait()

    def answer(*_: Any) -> Response:
        return StreamingResponse(pieces())

    async with serving(ScriptedProvider(script=answer).app()) as address:
        upstream = Upstream({"openai": address}, read_timeout=2)
        async with upstream.call("openai", "GET", "/v1/models", [], None) as response:
            chunks = aiter(response.chunks())
            assert await anext(chunks) == b"hi"
            with pytest.raises(UnavailableError, match="sent nothing for too long"):
                await anext(chunks)
        await upstream.close()


CHUNK = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":%s}]}\n\n'


@pytest.mark.parametrize("is_whole", [True, False])
async def test_a_stream_that_is_broken_off_is_no_clean_end(tmp_path: Path, is_whole: bool) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        writer.write(CHUNK % b"null" + (CHUNK % b'"stop"' if is_whole else b""))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    provider = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = provider.sockets[0].getsockname()[1]
    async with provider, open_engine(f"sqlite:///{tmp_path / 'proxy.db'}") as engine:
        upstream = Upstream({"openai": f"http://127.0.0.1:{port}"})
        proxy = Proxy(engine, upstream, await open_proxy_namespaces(engine))
        async with (
            serving(create_app(engine, forwarding=proxy.routes()).asgi) as address,
            httpx.AsyncClient(base_url=address, timeout=60) as client,
        ):
            body = {"model": "small", "stream": True, "messages": _talk(1)}
            sending = client.post("/v1/chat/completions", json=body)
            if is_whole:
                assert (await sending).content == CHUNK % b"null" + CHUNK % b'"stop"'
            else:
                with pytest.raises(httpx.RemoteProtocolError):
                    await sending
        await proxy.close()


def _body(*contents: str) -> bytes:
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(contents)]
    return dumps({"model": "small", "max_tokens": 100, "messages": messages})


@pytest.mark.parametrize(
    "body",
    [
        _body(*(f"{n}" for n in range(MAX_MESSAGES + 1))),
        _body("one two " * (MAX_TEXT // 8 + 1), "a", "b"),
        _body("\U0001f300" * (MAX_TEXT // 4 + 1), "a", "b"),
        _body("a" * (MAX_TEXT + 1), "a", "b"),
        _body("a")[:-1] + b',"tools":[%s]}' % b",".join([b'{ "type": "f", "f":{}}'] * 60_000),
    ],
    ids=["messages", "text", "emoji", "letters", "objects"],
)
async def test_a_body_that_is_too_long_to_read_passes_byte_for_byte(on: Stage, body: bytes) -> None:
    async with httpx.AsyncClient(base_url=on.address, timeout=60) as client:
        response = await client.post("/v1/chat/completions", content=body)
    await on.proxy.idle()
    assert (response.status_code, response.headers["x-enfold-warning"]) == (200, TOO_LONG_TO_READ)
    assert on.provider.bodies == [body]
    assert await on.engine.sessions() == []


async def test_a_large_attachment_does_not_make_a_body_too_long_to_read(on: Stage) -> None:
    image = {"url": "data:image/png;base64," + "iVBORw0KGgo+" * (MAX_TEXT // 12 + 1)}
    parts = [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": image}]
    messages = [
        {"role": "user", "content": parts},
        {"role": "assistant", "content": "A harbour."},
        {"role": "user", "content": "And now?"},
    ]
    body = dumps({"model": "small", "messages": messages})
    async with httpx.AsyncClient(base_url=on.address, timeout=60) as client:
        response = await client.post("/v1/chat/completions", content=body)
    await on.proxy.idle()
    assert "x-enfold-warning" not in response.headers
    assert on.provider.bodies == [body]
    assert len(await on.engine.sessions()) == 1
