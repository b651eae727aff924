"""Requests that come packed are read like others, within the limit."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard
from starlette.responses import JSONResponse, Response

from tests.server.proxy.stage import Stage, question, stage

PATH = "/v1/chat/completions"
LIMIT = 200_000


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(f"sqlite:///{tmp_path / 'proxy.db'}", body_limit=LIMIT) as opened:
        opened.provider.script = lambda _request, _body: JSONResponse({"choices": []})
        yield opened


def _body(turns: int) -> bytes:
    history = [
        message
        for number in range(turns)
        for message in (
            {"role": "user", "content": question(number)},
            {"role": "assistant", "content": f"answer {number}"},
        )
    ]
    messages = [*history, {"role": "user", "content": "And now?"}]
    return json.dumps({"model": "small", "messages": messages}).encode()


async def _post(on: Stage, raw: bytes, encoding: str) -> httpx.Response:
    headers = {"content-encoding": encoding, "content-type": "application/json"}
    async with httpx.AsyncClient(timeout=60) as client:
        return await client.post(f"{on.address}{PATH}", content=raw, headers=headers)


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("zstd", zstandard.compress)],
)
async def test_an_unchanged_body_is_forwarded_packed(
    on: Stage, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    packed = pack(_body(2))
    reply = await _post(on, packed, encoding)
    assert reply.headers["x-enfold-decision"] == "keep"
    assert on.provider.bodies == [packed]
    assert on.provider.headers[0]["content-encoding"] == encoding


def _in_parts(body: bytes) -> bytes:
    return b"".join(zstandard.compress(body[at : at + 1_000]) for at in range(0, len(body), 1_000))


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("zstd", zstandard.compress), ("zstd", _in_parts)],
    ids=["gzip", "zstd", "zstd in parts"],
)
async def test_a_compressed_history_is_forwarded_unpacked(
    on: Stage, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    reply = await _post(on, pack(_body(30)), encoding)
    assert reply.headers["x-enfold-decision"] == "compressed"
    assert "content-encoding" not in on.provider.headers[0]
    assert on.provider.last["messages"][-1] == {"role": "user", "content": "And now?"}


async def test_a_bomb_does_not_go_off(on: Stage) -> None:
    reply = await _post(on, gzip.compress(b" " * 50_000_000), "gzip")
    assert reply.status_code == 413
    assert "200,000 bytes" in reply.json()["error"]["message"]
    assert on.provider.bodies == []


@pytest.mark.parametrize(
    ("raw", "encoding"),
    [(b"(\xb5/\xfd", "zstd"), (b"not packed", "gzip"), (gzip.compress(_body(2))[:-9], "gzip")],
    ids=["another packing", "not packed", "broken off"],
)
async def test_a_body_that_cannot_be_unpacked_is_left_to_the_provider(
    on: Stage, raw: bytes, encoding: str
) -> None:
    reply = await _post(on, raw, encoding)
    assert reply.headers["x-enfold-warning"] == "not-understood"
    assert on.provider.bodies == [raw]


async def test_answers_are_asked_for_in_a_form_that_can_be_read(on: Stage) -> None:
    def refused(request: Any, body: Any) -> Response | None:
        error = {
            "message": "too long",
            "code": "context_length_exceeded",
            "type": "",
            "param": None,
        }
        if len(body["messages"]) < 10:
            return None
        if "gzip" in request.headers.get("accept-encoding", ""):
            packed = gzip.compress(json.dumps({"error": error}).encode())
            return Response(packed, 400, headers={"content-encoding": "gzip"})
        return JSONResponse({"error": error}, 400)

    on.provider.script = refused
    async with httpx.AsyncClient(timeout=60) as client:
        reply = await client.post(f"{on.address}{PATH}", content=_body(8))
    assert (reply.status_code, reply.headers["x-enfold-decision"]) == (200, "compressed")
