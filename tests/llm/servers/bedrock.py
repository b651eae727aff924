"""Bedrock's converse, whose streams are frames of bytes."""

from __future__ import annotations

import json
import struct
from typing import Any
from zlib import crc32

from enfold.llm.calls import Connection, Secret
from tests.llm.servers.loopback import Request, ScriptedAnswer
from tests.llm.servers.protocol import KEY, ParsedRequest, ProviderProtocol, ScriptedReply

_ENDINGS = {"stop": "end_turn", "length": "max_tokens", "refusal": "guardrail_intervened"}
_ERRORS = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
_STRING = 7
_KEY_ID = "AKIDLOOPBACK"
"""Shown in requests, which are signed with the key; a Bedrock key itself asks for https."""
MODEL = "meta.llama3-1-8b-instruct-v1:0"


def whole(reply: ScriptedReply) -> ScriptedAnswer:
    """A message."""
    content: list[dict[str, Any]] = [{"text": "".join(reply.pieces)}] if reply.pieces else []
    if reply.tool is not None:
        id, name, arguments = reply.tool
        content.append({"toolUse": {"toolUseId": id, "name": name, "input": arguments}})
    return ScriptedAnswer.of(
        {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": _ending(reply),
            "usage": _usage(reply),
            "metrics": {"latencyMs": 1},
        }
    )


def streamed(reply: ScriptedReply) -> ScriptedAnswer:
    """The same in frames."""
    sent: list[tuple[str, dict[str, Any]]] = [("messageStart", {"role": "assistant"})]
    sent += [
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}})
        for piece in reply.pieces
    ]
    if reply.tool is not None:
        id, name, arguments = reply.tool
        start = {"toolUse": {"toolUseId": id, "name": name}}
        delta = {"toolUse": {"input": json.dumps(arguments)}}
        sent.append(("contentBlockStart", {"contentBlockIndex": 0, "start": start}))
        sent.append(("contentBlockDelta", {"contentBlockIndex": 0, "delta": delta}))
    sent.append(("contentBlockStop", {"contentBlockIndex": 0}))
    sent.append(("messageStop", {"stopReason": _ending(reply)}))
    sent.append(("metadata", {"usage": _usage(reply), "metrics": {"latencyMs": 1}}))
    frames = tuple(frame(kind, value) for kind, value in sent)
    return ScriptedAnswer(frames, mime="application/vnd.amazon.eventstream")


def frame(kind: str, value: dict[str, Any]) -> bytes:
    """An event: lengths, a checksum, headers, the payload, and a checksum of it all."""
    named = {":message-type": "event", ":event-type": kind, ":content-type": "application/json"}
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode()
        + struct.pack("!BH", _STRING, len(text)) + text.encode()
        for name, text in named.items()
    )  # fmt: skip
    payload = json.dumps(value).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack("!I", crc32(prelude)) + headers + payload
    return message + struct.pack("!I", crc32(message))


def failed(status: int, message: str = f"Something is wrong with {KEY}") -> ScriptedAnswer:
    """An error."""
    return ScriptedAnswer.of({"message": message}, status, x_amzn_errortype=_ERRORS[status])


def read_request(request: Request) -> ParsedRequest:
    """A request for a message."""
    body = request.json
    config = body.get("inferenceConfig", {})
    return ParsedRequest(
        request.path,
        request.headers["authorization"].partition("Credential=")[2].partition("/")[0],
        request.path.split("/")[2],
        _text(body.get("system", [])),
        [(each["role"], _text(each["content"])) for each in body["messages"]],
        config.get("maxTokens"),
        config.get("temperature"),
    )


def _ending(reply: ScriptedReply) -> str:
    return "tool_use" if reply.tool is not None else _ENDINGS[reply.ending]


def _usage(reply: ScriptedReply) -> dict[str, int]:
    return {
        "inputTokens": reply.input_tokens - reply.cached,
        "outputTokens": reply.output_tokens,
        "totalTokens": reply.input_tokens + reply.output_tokens,
        "cacheReadInputTokens": reply.cached,
        "cacheWriteInputTokens": 0,
    }


def _text(blocks: list[dict[str, Any]]) -> str:
    return "".join(block.get("text", "") for block in blocks)


BEDROCK = ProviderProtocol(
    "bedrock",
    lambda url: Connection(
        "bedrock",
        MODEL,
        Secret(KEY),
        url,
        options={"region": "eu-west-1", "access_key_id": _KEY_ID},
    ),
    f"/model/{MODEL}/converse",
    f"/model/{MODEL}/converse-stream",
    whole,
    streamed,
    read_request,
    failed,
    failed(400, "Input is too long for requested model."),
    _KEY_ID,
)
