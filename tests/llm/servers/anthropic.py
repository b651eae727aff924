"""Anthropic's messages."""

from __future__ import annotations

import json
from typing import Any

from enfold.llm.calls import Connection, Secret
from tests.llm.servers.loopback import Request, ScriptedAnswer, events
from tests.llm.servers.protocol import KEY, ParsedRequest, ProviderProtocol, ScriptedReply

_ENDINGS = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"}


def whole(reply: ScriptedReply) -> ScriptedAnswer:
    """A message."""
    content: list[dict[str, Any]] = []
    if reply.pieces:
        content.append({"type": "text", "text": "".join(reply.pieces)})
    if reply.tool is not None:
        id, name, arguments = reply.tool
        content.append({"type": "tool_use", "id": id, "name": name, "input": arguments})
    return ScriptedAnswer.of({**_message(reply), "content": content, "stop_reason": _ending(reply)})


def streamed(reply: ScriptedReply) -> ScriptedAnswer:
    """The same in pieces."""
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": _message(reply)}]
    if reply.pieces:
        sent += _block({"type": "text", "text": ""}, *(
            {"type": "text_delta", "text": piece} for piece in reply.pieces
        ))  # fmt: skip
    if reply.tool is not None:
        id, name, arguments = reply.tool
        text = json.dumps(arguments)
        sent += _block({"type": "tool_use", "id": id, "name": name, "input": {}}, *(
            {"type": "input_json_delta", "partial_json": part} for part in (text[:5], text[5:])
        ))  # fmt: skip
    sent.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": _ending(reply), "stop_sequence": None},
            "usage": {"output_tokens": reply.output_tokens},
        }
    )
    sent.append({"type": "message_stop"})
    return ScriptedAnswer(events(*sent, named=True), mime="text/event-stream")


def failed(status: int, message: str = f"Something is wrong with {KEY}") -> ScriptedAnswer:
    """An error."""
    kinds = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        429: "rate_limit_error",
        503: "overloaded_error",
    }
    error = {"type": kinds.get(status, "api_error"), "message": message}
    return ScriptedAnswer.of({"type": "error", "error": error}, status)


def read_request(request: Request) -> ParsedRequest:
    """A request for a message."""
    body = request.json
    return ParsedRequest(
        request.path,
        request.headers["authorization"].removeprefix("Bearer "),
        body["model"],
        _text(body.get("system", "")),
        [(each["role"], _text(each["content"])) for each in body["messages"]],
        body.get("max_tokens"),
        body.get("temperature"),
    )


def _block(start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
    ]


def _message(reply: ScriptedReply) -> dict[str, Any]:
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "said-model",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.input_tokens - reply.cached,
            "cache_read_input_tokens": reply.cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": reply.output_tokens,
        },
    }


def _ending(reply: ScriptedReply) -> str:
    return "tool_use" if reply.tool is not None else _ENDINGS[reply.ending]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


ANTHROPIC = ProviderProtocol(
    "anthropic",
    lambda url: Connection("anthropic", "claude-haiku-4-5", Secret(KEY), url),
    "/v1/messages",
    "/v1/messages",
    whole,
    streamed,
    read_request,
    failed,
    failed(400, "prompt is too long: 210000 tokens > 200000 maximum"),
)
