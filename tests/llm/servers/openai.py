"""Chat completions: OpenAI itself, and those who speak like it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from enfold.llm.calls import Connection, Secret
from tests.llm.servers.loopback import Request, ScriptedAnswer, events
from tests.llm.servers.protocol import KEY, ParsedRequest, ProviderProtocol, ScriptedReply

_ENDINGS = {"stop": "stop", "length": "length", "refusal": "content_filter"}


def whole(reply: ScriptedReply) -> ScriptedAnswer:
    """A completion."""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.pieces) or None}
    if reply.tool is not None:
        message["tool_calls"] = [_tool(reply.tool)]
    return ScriptedAnswer.of({**_head("chat.completion"), "choices": [
        {"index": 0, "message": message, "finish_reason": _ending(reply)}
    ], "usage": _usage(reply)})  # fmt: skip


def streamed(reply: ScriptedReply) -> ScriptedAnswer:
    """The same in pieces, and the usage last."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in reply.pieces]
    if reply.tool is not None:
        call = _tool(reply.tool)
        arguments = call["function"].pop("arguments")
        deltas.append({"tool_calls": [{"index": 0, **call}]})
        half = len(arguments) // 2
        deltas += [
            {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}
            for part in (arguments[:half], arguments[half:])
        ]
    chunks = [_chunk({"index": 0, "delta": delta, "finish_reason": None}) for delta in deltas]
    chunks.append(_chunk({"index": 0, "delta": {}, "finish_reason": _ending(reply)}))
    last = {**_head("chat.completion.chunk"), "choices": [], "usage": _usage(reply)}
    return ScriptedAnswer(events(*chunks, last, "[DONE]"), mime="text/event-stream")


def failed(status: int) -> ScriptedAnswer:
    """An error, which repeats the key, as some do."""
    error = {"message": f"Something is wrong with {KEY}", "type": "some_error", "code": None}
    return ScriptedAnswer.of({"error": error}, status)


def read_request(request: Request) -> ParsedRequest:
    """A request for a completion."""
    body = request.json
    messages = [(each["role"], _text(each)) for each in body["messages"]]
    system = [text for role, text in messages if role in {"system", "developer"}]
    return ParsedRequest(
        request.path,
        request.headers.get("api-key") or request.headers["authorization"].removeprefix("Bearer "),
        body["model"],
        "".join(system[:1]),
        messages,
        body.get("max_completion_tokens", body.get("max_tokens")),
        body.get("temperature"),
    )


def overflow(message: str, code: str | None = None, **more: object) -> ScriptedAnswer:
    """The request is too long, in a server's own words."""
    return ScriptedAnswer.of({"error": {"message": message, "code": code, **more}}, 400)


def _tool(tool: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    id, name, arguments = tool
    return {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def _ending(reply: ScriptedReply) -> str:
    return "tool_calls" if reply.tool is not None else _ENDINGS[reply.ending]


def _head(kind: str) -> dict[str, Any]:
    # `provider` is what OpenRouter adds; the others do not mind it.
    return {"id": "c1", "object": kind, "created": 1, "model": "said-model", "provider": "One"}


def _chunk(choice: dict[str, Any]) -> dict[str, Any]:
    return {**_head("chat.completion.chunk"), "choices": [choice]}


def _usage(reply: ScriptedReply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached},
    }


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _like_openai(
    name: str,
    path: str,
    connection: Callable[[str], Connection],
    too_long: ScriptedAnswer,
    credential: str = KEY,
) -> ProviderProtocol:
    return ProviderProtocol(
        name, connection, path, path, whole, streamed, read_request, failed, too_long, credential
    )


OPENAI = _like_openai(
    "openai",
    "/v1/chat/completions",
    lambda url: Connection("openai", "gpt-4.1-mini", Secret(KEY), f"{url}/v1"),
    overflow("This model's maximum context length is 8 tokens.", "context_length_exceeded"),
)
COMPATIBLE = _like_openai(
    "compatible",
    "/v1/chat/completions",
    lambda url: Connection("compatible", "smol", None, f"{url}/v1"),
    overflow(
        "the request exceeds the available context size, try increasing it",
        type="exceed_context_size_error",
        n_prompt_tokens=9000,
        n_ctx=8192,
    ),
    "none",
)
AZURE = _like_openai(
    "azure",
    "/openai/deployments/my-gpt/chat/completions",
    lambda url: Connection(
        "azure", "my-gpt", Secret(KEY), url, options={"api_version": "2024-10-21"}
    ),
    overflow("maximum context length is 8 tokens", "context_length_exceeded"),
)
OPENROUTER = _like_openai(
    "openrouter",
    "/api/v1/chat/completions",
    lambda url: Connection("openrouter", "meta-llama/llama-4", Secret(KEY), f"{url}/api/v1"),
    overflow("This endpoint's maximum context length is 8 tokens.", "400"),
)
