"""Replies of a provider on the wire: whole, and as the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from enfold.messages import Message, Part, Reasoning, Text, ToolCall, Unknown
from enfold.testing.request_rules import gemini_signature, sign


@dataclass(frozen=True, slots=True)
class ReplyFacts:
    """The facts of a reply beside its content."""

    id: str
    model: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    streams_usage: bool = True
    """False: a stream of Chat Completions has no usage, because the client did not ask for it."""


Events: TypeAlias = list[Any]
Write: TypeAlias = Callable[[Message, ReplyFacts], tuple[Any, Events]]


def write_chat(reply: Message, facts: ReplyFacts) -> tuple[Any, Events]:
    """Return a reply of Chat Completions."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(arguments_of(call))},
        }
        for call in _calls(reply)
    ]
    about = {"id": f"chatcmpl-{facts.id}", "created": 1_700_000_000, "model": facts.model}
    usage = {
        "prompt_tokens": facts.input_tokens,
        "completion_tokens": facts.output_tokens,
        "total_tokens": facts.input_tokens + facts.output_tokens,
        "prompt_tokens_details": {"cached_tokens": facts.cached_tokens},
    }
    text = "".join(part.text for part in reply.parts if isinstance(part, Text))
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    finish = "tool_calls" if calls else "stop"

    def chunk(delta: Any, reason: str | None = None) -> Any:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**about, "object": "chat.completion.chunk", "choices": [choice]}

    deltas = [{"role": "assistant", "content": ""}, *({"content": half} for half in _halves(text))]
    events = [chunk(delta) for delta in (*deltas, *_call_deltas(calls))]
    events.append(chunk({}, finish))
    if facts.streams_usage:
        events.append({**chunk({}), "choices": [], "usage": usage})
    choice = {"index": 0, "message": message, "finish_reason": finish}
    whole = {**about, "object": "chat.completion", "choices": [choice], "usage": usage}
    return whole, [*events, "[DONE]"]


def _call_deltas(calls: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    for index, call in enumerate(calls):
        function = call["function"]
        first = {**call, "index": index, "function": {**function, "arguments": ""}}
        yield {"tool_calls": [first]}
        for half in _halves(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": half}}]}


def write_responses(reply: Message, facts: ReplyFacts) -> tuple[Any, Events]:
    """Return a reply of the Responses API."""
    items = [_item(part, f"{facts.id}{place}") for place, part in enumerate(reply.parts)]
    about = {
        "id": f"resp_{facts.id}",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": facts.model,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    usage = {
        "input_tokens": facts.input_tokens,
        "input_tokens_details": {"cached_tokens": facts.cached_tokens},
        "output_tokens": facts.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": facts.input_tokens + facts.output_tokens,
    }
    whole = {**about, "status": "completed", "output": items, "usage": usage}
    started = {**about, "status": "in_progress", "output": []}
    events: Events = [
        {"type": kind, "response": started} for kind in ("response.created", "response.in_progress")
    ]
    for index, item in enumerate(items):
        at = {"output_index": index}
        empty: Any = {"message": {"content": []}, "function_call": {"arguments": ""}}
        begun = {**item, **empty.get(item["type"], {})}
        events.append({"type": "response.output_item.added", **at, "item": begun})
        events += ({**event, **at} for event in _item_events(item))
        events.append({"type": "response.output_item.done", **at, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return whole, [{**event, "sequence_number": place} for place, event in enumerate(events)]


def _item(part: Part, id: str) -> Any:
    match part:
        case Reasoning(text=text):
            summary = [{"type": "summary_text", "text": text}]
            item = {"type": "reasoning", "id": f"rs_{id}", "summary": summary}
            return {**item, "encrypted_content": _signature(part)}
        case Unknown(extras=extras):
            return {"id": f"item_{id}", **extras}
        case ToolCall():
            arguments = json.dumps(arguments_of(part))
            item = {"type": "function_call", "id": f"fc_{id}", "call_id": part.id}
            return {**item, "name": part.name, "arguments": arguments, "status": "completed"}
        case _:
            text = part.text if isinstance(part, Text) else ""
            content = [{"type": "output_text", "text": text, "annotations": []}]
            item = {"type": "message", "id": f"msg_{id}", "role": "assistant"}
            return {**item, "status": "completed", "content": content}


def _item_events(item: Mapping[str, Any]) -> Iterator[Any]:
    about = {"item_id": item["id"]}
    if item["type"] == "reasoning":
        (part,) = item["summary"]
        at = {**about, "summary_index": 0}
        kind = "response.reasoning_summary"
        yield {"type": f"{kind}_part.added", **at, "part": {**part, "text": ""}}
        for half in _halves(part["text"]):
            yield {"type": f"{kind}_text.delta", **at, "delta": half}
        yield {"type": f"{kind}_text.done", **at, "text": part["text"]}
        yield {"type": f"{kind}_part.done", **at, "part": part}
    elif item["type"] == "message":
        (block,) = item["content"]
        at = {**about, "content_index": 0}
        yield {"type": "response.content_part.added", **at, "part": {**block, "text": ""}}
        for half in _halves(block["text"]):
            yield {"type": "response.output_text.delta", **at, "delta": half, "logprobs": []}
        done = {"text": block["text"], "logprobs": []}
        yield {"type": "response.output_text.done", **at, **done}
        yield {"type": "response.content_part.done", **at, "part": block}
    elif item["type"] == "function_call":
        arguments = item["arguments"]
        kind = "response.function_call_arguments"
        for half in _halves(arguments):
            yield {"type": f"{kind}.delta", **about, "delta": half}
        yield {"type": f"{kind}.done", **about, "arguments": arguments, "name": item["name"]}


def write_anthropic(reply: Message, facts: ReplyFacts) -> tuple[Any, Events]:
    """Return a reply of the Messages API."""
    blocks: list[Any] = []
    events: Events = []
    for index, part in enumerate(reply.parts):
        block, empty, deltas = _block(part)
        blocks.append(block)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += (
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        )
        events.append({"type": "content_block_stop", "index": index})
    usage = {
        "input_tokens": facts.input_tokens - facts.cached_tokens,
        "cache_read_input_tokens": facts.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": facts.output_tokens,
    }
    stop = "tool_use" if _calls(reply) else "end_turn"
    about = {
        "id": f"msg_{facts.id}",
        "type": "message",
        "role": "assistant",
        "model": facts.model,
        "stop_sequence": None,
    }
    whole = {**about, "content": blocks, "stop_reason": stop, "usage": usage}
    usage_at_first = {**usage, "output_tokens": 1}
    begun: Any = {**about, "content": [], "stop_reason": None, "usage": usage_at_first}
    ending = {"stop_reason": stop, "stop_sequence": None}
    written = {"output_tokens": facts.output_tokens}
    return whole, [
        {"type": "message_start", "message": begun},
        {"type": "ping"},
        *events,
        {"type": "message_delta", "delta": ending, "usage": written},
        {"type": "message_stop"},
    ]


def _block(part: Part) -> tuple[Any, Any, list[Any]]:
    """Return a content block, its empty form at the start of a stream, and its deltas."""
    match part:
        case Reasoning(text=text):
            signature = _signature(part)
            deltas = [
                {"type": "thinking_delta", "thinking": text},
                {"type": "signature_delta", "signature": signature},
            ]
            thought = {"type": "thinking", "thinking": text, "signature": signature}
            return thought, {"type": "thinking", "thinking": "", "signature": ""}, deltas
        case ToolCall():
            arguments = arguments_of(part)
            block: Any = {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments}
            halves = _halves(json.dumps(arguments))
            deltas = [{"type": "input_json_delta", "partial_json": half} for half in halves]
            return block, {**block, "input": {}}, deltas
        case _:
            text = part.text if isinstance(part, Text) else ""
            deltas = [{"type": "text_delta", "text": half} for half in _halves(text)]
            return {"type": "text", "text": text}, {"type": "text", "text": ""}, deltas


def write_gemini(reply: Message, facts: ReplyFacts) -> tuple[Any, Events]:
    """Return a reply of generateContent."""
    parts: list[Any] = []
    is_signed = False
    for part in reply.parts:
        match part:
            case Reasoning(text=text):
                parts.append({"text": text, "thought": True})
            case ToolCall():
                call = {"name": part.name, "args": arguments_of(part)}
                # The first call of a turn is signed; parallel calls are not.
                signature = {} if is_signed else {"thoughtSignature": gemini_signature(call)}
                is_signed = True
                parts.append({"functionCall": call, **signature})
            case Text(text=text):
                parts.append({"text": text})
    usage = {
        "promptTokenCount": facts.input_tokens,
        "candidatesTokenCount": facts.output_tokens,
        "totalTokenCount": facts.input_tokens + facts.output_tokens,
        "cachedContentTokenCount": facts.cached_tokens,
    }

    def piece(shown: list[Any], **ending: Any) -> Any:
        candidate = {"content": {"role": "model", "parts": shown}, **ending, "index": 0}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": facts.model}

    shown: list[Any] = []
    for part in parts:
        halves = _halves(part["text"]) if "text" in part else ()
        shown += [{**part, "text": half} for half in halves] or [part]
    *first, last = shown
    events = [*(piece([part]) for part in first), piece([last], finishReason="STOP")]
    return piece(parts, finishReason="STOP"), events


def as_stream(events: Events) -> bytes:
    """Return the events as the bytes of a stream."""
    lines = []
    for event in events:
        if isinstance(event, dict) and "type" in event:
            lines.append(f"event: {event['type']}\n")
        data = event if isinstance(event, str) else json.dumps(event)
        lines.append(f"data: {data}\n\n")
    return "".join(lines).encode()


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call; a script gives them as an object."""
    if isinstance(call.arguments, str):
        raise TypeError(f"the arguments of {call.id} are a text, not an object")
    return dict(call.arguments)


def _signature(thought: Reasoning) -> str:
    """Return the signature that a script gives a thought, or the one that belongs to its text."""
    return str(thought.extras.get("signature") or sign(thought.text))


def _halves(text: str) -> list[str]:
    """Return a text as a stream has it: in pieces."""
    middle = len(text) // 2
    return [half for half in (text[:middle], text[middle:]) if half] or [text]


def _calls(reply: Message) -> list[ToolCall]:
    return [part for part in reply.parts if isinstance(part, ToolCall)]
