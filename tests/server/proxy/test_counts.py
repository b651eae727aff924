"""Requests that only count tokens: the provider counts the view that would be sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from enfold.summaries import HEADING
from tests.server.proxy.stage import Stage, question, stage

HEADERS = {"authorization": "Bearer k", "x-api-key": "k", "x-goog-api-key": "k"}
PATHS = {
    "anthropic": ("/v1/messages", "/v1/messages/count_tokens", "messages"),
    "openai-responses": ("/v1/responses", "/v1/responses/input_tokens", "input"),
    "gemini": (
        "/v1beta/models/small:generateContent",
        "/v1beta/models/small:countTokens",
        "contents",
    ),
}
every_form = pytest.mark.parametrize("form", PATHS)


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}") as opened:
        yield opened


def _body(form: str, turns: int) -> dict[str, Any]:
    texts = [(("user", "assistant")[n % 2], question(n)) for n in range(2 * turns - 1)]
    if form == "gemini":
        roles = {"user": "user", "assistant": "model"}
        return {"contents": [{"role": roles[r], "parts": [{"text": text}]} for r, text in texts]}
    messages = [{"role": role, "content": text} for role, text in texts]
    limit = {"max_tokens": 9} if form == "anthropic" else {}
    return {"model": "small", PATHS[form][2]: messages, **limit}


async def _post(on: Stage, path: str, body: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=on.address, headers=HEADERS, timeout=60) as client:
        response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    await on.proxy.idle()
    return response


@every_form
async def test_a_conversation_without_a_summary_is_counted_as_it_came(on: Stage, form: str) -> None:
    _, count, _ = PATHS[form]
    body = _body(form, 3)
    response = await _post(on, count, body)
    assert on.provider.last == body
    assert response.headers["x-enfold-decision"] == "keep"
    assert await on.engine.sessions() == []
    assert await on.engine.usage() == []


@every_form
async def test_a_compressed_conversation_is_counted_as_its_view(on: Stage, form: str) -> None:
    send, count, key = PATHS[form]
    body = _body(form, 14)
    sent = await _post(on, send, body)
    assert sent.headers["x-enfold-decision"] == "compressed"
    view = on.provider.last
    counted = await _post(on, count, {name: body[name] for name in body if name != "max_tokens"})
    assert on.provider.last[key] == view[key]
    assert HEADING in json.dumps(on.provider.last)
    assert counted.headers["x-enfold-decision"] == "reused"
    assert counted.headers["x-enfold-tokens-after"] == sent.headers["x-enfold-tokens-after"]
