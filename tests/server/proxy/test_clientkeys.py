"""A client's own key: used where it may be, for one request, and to be found nowhere afterwards."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse

from enfold.server.proxy.client import HttpRequest
from enfold.wire import WIRES
from tests.server.proxy.stage import Stage, question, stage

KEY = "sk-client-0123456789abcdef"
SUMMARY = "They counted words: question 0, question 1, question 2, question 3."


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}") as opened:
        yield opened


class Summaries:
    """Answers requests for a summary, and lets the stage answer the rest."""

    def __init__(self, status: int = 200, text: str = SUMMARY) -> None:
        self.keys: list[str] = []
        self._status = status
        self._text = text

    def answer(self, request: Any, body: Any) -> Response | None:
        if not body.get("stream"):
            return None
        self.keys.append(request.headers["authorization"])
        if self._status != 200:
            error = {"message": f"wrong key {KEY}", "type": "x", "param": None, "code": None}
            return JSONResponse({"error": error}, self._status)
        return StreamingResponse(_written(self._text), media_type="text/event-stream")


async def _written(text: str) -> AsyncIterator[bytes]:
    piece = {"id": "s", "object": "chat.completion.chunk", "created": 1, "model": "small"}
    delta = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 900, "completion_tokens": 12, "total_tokens": 912}
    for choices, more in (([delta], {}), ([last], {}), ([], {"usage": usage})):
        yield f"data: {json.dumps({**piece, 'choices': choices, **more})}\n\n".encode()
    yield b"data: [DONE]\n\n"


async def _talk(on: Stage, turns: int = 24) -> None:
    messages: list[Any] = []
    async with openai.AsyncOpenAI(base_url=f"{on.address}/v1", api_key=KEY) as client:
        for number in range(turns):
            messages.append({"role": "user", "content": question(number)})
            reply = await client.chat.completions.create(model="small", messages=messages)
            text = reply.choices[0].message.content
            messages.append({"role": "assistant", "content": text})


async def test_only_the_clients_model_writes_if_it_may(on: Stage) -> None:
    summaries = Summaries()
    on.provider.script = summaries.answer
    await on.engine.set("proxy.client_key", True)
    await _talk(on)
    assert set(summaries.keys) == {f"Bearer {KEY}"}
    assert SUMMARY in on.provider.last["messages"][0]["content"]
    namespace = await on.namespace(KEY)
    (record,) = await on.engine.sessions(namespace=namespace)
    session = await on.engine.find(record.id, namespace=namespace)
    (first, *_) = await session.summaries()
    assert first.author == "openai:small"
    used = {total.kind: total for total in await session.usage()}
    assert used["summary"].input_tokens == 900 * used["summary"].calls


async def test_an_answer_that_is_no_summary_leaves_it_to_the_built_in_summarizer(
    on: Stage,
) -> None:
    summaries = Summaries(text="no " * 60)
    on.provider.script = summaries.answer
    await on.engine.set("proxy.client_key", True)
    await _talk(on)
    assert summaries.keys
    namespace = await on.namespace(KEY)
    (record,) = await on.engine.sessions(namespace=namespace)
    session = await on.engine.find(record.id, namespace=namespace)
    (first, *_) = await session.summaries()
    assert first.author == "local"
    assert any("was no summary" in each for each in first.content["warnings"])


async def test_by_default_it_is_not_asked(on: Stage) -> None:
    summaries = Summaries()
    on.provider.script = summaries.answer
    await _talk(on)
    assert summaries.keys == []


async def test_a_summarizer_that_is_named_comes_first(on: Stage) -> None:
    summaries = Summaries()
    on.provider.script = summaries.answer
    await on.engine.set("proxy.client_key", True)
    await on.engine.set("summarizer", "local")
    await _talk(on)
    assert summaries.keys == []


@pytest.mark.parametrize(
    ("status", "background"),
    [(200, False), (200, True), (401, False)],
    ids=["accepted", "in the background too", "refused"],
)
async def test_the_key_is_in_no_file_log_error_or_queue(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, status: int, background: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    refused = ""
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}") as on:
        on.provider.script = Summaries(status).answer
        await on.engine.set("proxy.client_key", True)
        await on.engine.set("proxy.background", background)
        try:
            await _talk(on)
        except openai.APIStatusError as error:
            refused = error.response.text
        await on.proxy.idle()
        headers = {"x-enfold-namespace": await on.namespace(KEY)}
        async with httpx.AsyncClient(base_url=on.address, headers=headers, timeout=60) as api:
            texts = (await api.get("/api/sessions")).text + (await api.get("/metrics")).text
        kept = _files(tmp_path)
    assert bool(refused) == (status == 401)
    assert len(kept) > 1, "the log of the database is looked at, too"
    assert KEY not in refused + texts
    assert KEY not in caplog.text
    assert not any(KEY.encode() in content for content in kept)


def _files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.iterdir()]


@pytest.mark.parametrize(
    ("form", "headers", "path", "found"),
    [
        (WIRES["openai"], [(b"authorization", b"Bearer k")], "/x", ("openai", "http://a/v1", "k")),
        (WIRES["openai"], [(b"api-key", b"k")], "/x", ("openai", "http://a/v1", "k")),
        (WIRES["anthropic"], [(b"x-api-key", b"k")], "/x", ("anthropic", "http://a", "k")),
        (WIRES["gemini"], [(b"x-goog-api-key", b"k")], "/x", ("google", "http://a", "k")),
        (WIRES["gemini"], [], "/x?alt=sse&key=k%2B", ("google", "http://a", "k+")),
        (WIRES["gemini"], [], "/x?key=", None),
        (WIRES["openai"], [], "/x", None),
        (None, [(b"authorization", b"Bearer k")], "/x", None),
    ],
)
def test_a_key_is_where_clients_of_the_provider_put_it(
    form: Any, headers: Any, path: str, found: Any
) -> None:
    call = HttpRequest("POST", path, headers, b"{}", "openai", form)
    connection = call.connection("m", "http://a")
    if connection is None:
        assert found is None
        return
    assert connection.key is not None
    assert (connection.provider, connection.base_url, connection.key.reveal()) == found
    assert "k" not in repr(connection.key)
