"""Gemini's contents: Google's own service, and Vertex in its express mode."""

from __future__ import annotations

from typing import Any

from enfold.llm.calls import Connection, Secret
from tests.llm.servers.loopback import Request, ScriptedAnswer, events
from tests.llm.servers.protocol import KEY, ParsedRequest, ProviderProtocol, ScriptedReply

_ENDINGS = {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


def whole(reply: ScriptedReply) -> ScriptedAnswer:
    """Generated content."""
    parts: list[dict[str, Any]] = [{"text": "".join(reply.pieces)}] if reply.pieces else []
    return ScriptedAnswer.of(_last(reply, [*parts, *_calls(reply)]))


def streamed(reply: ScriptedReply) -> ScriptedAnswer:
    """The same in pieces."""
    pieces = [
        {"candidates": [{"content": {"role": "model", "parts": [{"text": piece}]}, "index": 0}]}
        for piece in reply.pieces
    ]
    return ScriptedAnswer(events(*pieces, _last(reply, _calls(reply))), mime="text/event-stream")


def failed(status: int, message: str = f"Something is wrong with {KEY}") -> ScriptedAnswer:
    """An error."""
    error = {"code": status, "message": message, "status": _STATUSES[status]}
    return ScriptedAnswer.of({"error": error}, status)


def read_request(request: Request) -> ParsedRequest:
    """A request for content."""
    body = request.json
    config = body.get("generationConfig", {})
    return ParsedRequest(
        request.path,
        request.headers.get("x-goog-api-key") or request.headers["authorization"],
        request.path.rpartition("/")[2].partition(":")[0],
        _text(body.get("systemInstruction", {})),
        [(each["role"], _text(each)) for each in body["contents"]],
        config.get("maxOutputTokens"),
        config.get("temperature"),
    )


def _calls(reply: ScriptedReply) -> list[dict[str, Any]]:
    if reply.tool is None:
        return []
    id, name, arguments = reply.tool
    return [{"functionCall": {"id": id, "name": name, "args": arguments}}]


def _last(reply: ScriptedReply, parts: list[dict[str, Any]]) -> dict[str, Any]:
    content = {"role": "model", "parts": parts}
    return {
        "candidates": [{"content": content, "finishReason": _ENDINGS[reply.ending], "index": 0}],
        "modelVersion": "said-model",
        "usageMetadata": {
            "promptTokenCount": reply.input_tokens,
            "cachedContentTokenCount": reply.cached,
            "candidatesTokenCount": reply.output_tokens,
            "totalTokenCount": reply.input_tokens + reply.output_tokens,
        },
    }


def _text(content: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in content.get("parts", []))


_TOO_LONG = failed(
    400, "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."
)
GOOGLE = ProviderProtocol(
    "google",
    lambda url: Connection("google", "gemini-2.5-flash", Secret(KEY), url),
    "/v1/models/gemini-2.5-flash:generateContent",
    "/v1/models/gemini-2.5-flash:streamGenerateContent",
    whole,
    streamed,
    read_request,
    failed,
    _TOO_LONG,
)
VERTEX = ProviderProtocol(
    "vertex",
    lambda url: Connection("vertex", "gemini-2.5-flash", Secret(KEY), url),
    "/v1beta1/publishers/google/models/gemini-2.5-flash:generateContent",
    "/v1beta1/publishers/google/models/gemini-2.5-flash:streamGenerateContent",
    whole,
    streamed,
    read_request,
    failed,
    _TOO_LONG,
)
