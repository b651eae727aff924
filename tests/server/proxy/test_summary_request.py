"""A summary by the client's model continues the conversation that the provider has cached."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from enfold.records import Snapshot
from tests.server.proxy.stage import Stage, question, stage

SUMMARY = (
    "They asked about words by number and got short answers. Each question lists words with "
    "letters. Nothing was decided, and the next question is expected."
)
INSTRUCTION = "<summary_request>"
MARK = {"type": "ephemeral"}


@dataclass(frozen=True)
class Form:
    """How one provider's client speaks."""

    path: str
    key: str
    """The field of the messages."""
    extra: dict[str, Any]

    def user(self, text: str, *, marked: bool = False) -> dict[str, Any]:
        if self.key == "contents":
            return {"role": "user", "parts": [{"text": text}]}
        if marked and "messages" in self.path:
            return {
                "role": "user",
                "content": [{"type": "text", "text": text, "cache_control": MARK}],
            }
        return {"role": "user", "content": text}

    def answer(self, text: str) -> dict[str, Any]:
        if self.key == "contents":
            return {"role": "model", "parts": [{"text": text}]}
        return {"role": "assistant", "content": text}

    def reply(self, text: str) -> Response:
        usage: dict[str, Any] = {"input_tokens": 9, "output_tokens": 5}
        if self.key == "contents":
            content = {"role": "model", "parts": [{"text": text}]}
            return JSONResponse({"candidates": [{"content": content, "finishReason": "STOP"}]})
        if self.key == "input":
            block = {"type": "output_text", "text": text, "annotations": []}
            message = {"type": "message", "id": "m", "role": "assistant", "content": [block]}
            return JSONResponse(
                {"id": "r", "object": "response", "status": "completed", "output": [message]}
            )
        if "messages" in self.path:
            return JSONResponse(
                {
                    "id": "msg",
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "text", "text": text}],
                    "stop_reason": "end_turn",
                    "usage": usage,
                }
            )
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return JSONResponse({"id": "r", "object": "chat.completion", "choices": [choice]})


TOOL = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
FORMS = {
    "openai": Form(
        "/v1/chat/completions",
        "messages",
        {"tools": [{"type": "function", "function": TOOL}], "max_tokens": 400},
    ),
    "responses": Form(
        "/v1/responses",
        "input",
        {"instructions": "Be brief.", "tools": [{"type": "function", **TOOL}]},
    ),
    "anthropic": Form(
        "/v1/messages",
        "messages",
        {
            "max_tokens": 400,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": MARK}],
            "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        },
    ),
    "gemini": Form(
        "/v1beta/models/small:generateContent",
        "contents",
        {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "generationConfig": {"maxOutputTokens": 400},
        },
    ),
}


@dataclass
class SummarizingModel:
    """The client's model: it answers, and it writes summaries where it is asked to."""

    form: Form
    calls_a_tool: bool = False
    forwarded: list[dict[str, Any]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, _request: Request, body: Any) -> Response:
        if INSTRUCTION not in json.dumps(body[self.form.key][-1]):
            self.forwarded.append(body)
            return self.form.reply("Fine.")
        self.requests.append(body)
        if not self.calls_a_tool:
            return self.form.reply(SUMMARY)
        call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
        return JSONResponse({"id": "r", "object": "chat.completion", "choices": [choice]})


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}", background=True) as opened:
        await opened.engine.set("proxy_client_key", True)
        await opened.engine.set("strategy", "native")
        yield opened


async def _talk(on: Stage, form: Form) -> Snapshot:
    """Talk until there is a summary, and return it."""
    messages: list[Any] = []
    headers = {"authorization": "Bearer k"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as client, asyncio.timeout(120):
        for number in range(60):
            messages.append(form.user(question(number), marked=True))
            body = {"model": "small", **form.extra, form.key: messages}
            reply = await client.post(f"{on.address}{form.path}", json=body)
            assert reply.status_code == 200, reply.text
            messages[-1] = form.user(question(number))
            messages.append(form.answer("Fine."))
            await on.proxy.idle()
            for record in await on.engine.sessions(namespace=await on.namespace("k")):
                session = await on.engine.find(record.id, namespace=record.namespace)
                if made := await session.summaries():
                    return made[0]
    raise AssertionError("nothing was compressed")


@pytest.mark.parametrize("name", FORMS)
async def test_a_summary_continues_the_conversation_as_it_was_sent(on: Stage, name: str) -> None:
    form = FORMS[name]
    model = SummarizingModel(form)
    on.provider.script = model.answer
    made = await _talk(on, form)
    assert made.text is not None
    assert SUMMARY in made.text
    request = model.requests[0]
    *before, instruction = request.pop(form.key)
    (sent,) = [each for each in model.forwarded if each[form.key] == before]
    assert "Now write the summary" in json.dumps(instruction)
    limits = {"max_tokens", "generationConfig"}
    assert {k: v for k, v in request.items() if k not in limits} == {
        k: v for k, v in sent.items() if k not in {*limits, form.key}
    }
    if "max_tokens" in request:
        assert request["max_tokens"] == 500  # what the model can write, where a client allows less
    if name == "anthropic":
        assert before[-1]["content"][-1]["cache_control"] == MARK


async def test_a_model_that_calls_a_tool_instead_gets_a_transcript(on: Stage) -> None:
    form = FORMS["openai"]
    model = SummarizingModel(form, calls_a_tool=True)
    on.provider.script = lambda request, body: (
        form_stream(SUMMARY) if body.get("stream") else model.answer(request, body)
    )
    made = await _talk(on, form)
    assert made.text is not None
    assert SUMMARY in made.text
    assert len(model.requests) == 1
    assert any("written from a transcript" in each for each in made.content["warnings"])


def form_stream(text: str) -> Response:
    """A streamed chat completion, as the transcript form asks for."""
    piece = {"id": "s", "object": "chat.completion.chunk", "created": 1, "model": "small"}
    delta = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    events = "".join(
        f"data: {json.dumps({**piece, 'choices': [each]})}\n\n" for each in (delta, last)
    )
    return Response(f"{events}data: [DONE]\n\n", media_type="text/event-stream")


async def test_a_request_for_another_form_of_answer_is_not_continued(on: Stage) -> None:
    form = FORMS["openai"]
    model = SummarizingModel(
        Form(form.path, form.key, {"response_format": {"type": "json_object"}})
    )
    on.provider.script = lambda request, body: (
        form_stream(SUMMARY) if body.get("stream") else model.answer(request, body)
    )
    made = await _talk(on, model.form)
    assert made.text is not None
    assert SUMMARY in made.text
    assert model.requests == []
