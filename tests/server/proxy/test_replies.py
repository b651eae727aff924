"""Replies are read the same from a stream as from a whole answer, however the bytes are cut."""

from __future__ import annotations

import gzip
import json
import zlib
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.amounts import CallUsage
from enfold.wire import WIRES, Wire
from enfold.wire.replies import CalledTool, EventParser, Reply, ReplyReader

ARGUMENTS = '{"query":"é the port"}'


def _chat(delta: Any, finish: str | None = None, **fields: Any) -> Any:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chat-1", "choices": [choice], "usage": None, **fields}


def _call(**function: Any) -> Any:
    return {"tool_calls": [{"index": 0, "function": function}]}


CHAT_USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 7,
    "prompt_tokens_details": {"cached_tokens": 12},
}
CHAT_CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "find", "arguments": ARGUMENTS},
}
CHAT_EVENTS = [
    _chat({"role": "assistant", "content": ""}),
    _chat({"reasoning_content": "Hm"}),
    _chat({"content": "Let me "}),
    _chat({"content": "see."}),
    _chat(
        {"tool_calls": [{**CHAT_CALL, "index": 0, "function": {"name": "find", "arguments": ""}}]}
    ),
    _chat(_call(arguments=ARGUMENTS[:5])),
    _chat(_call(arguments=ARGUMENTS[5:])),
    _chat({}, "tool_calls"),
    {"id": "chat-1", "choices": [], "usage": CHAT_USAGE},
]
CHAT_MESSAGE = {
    "role": "assistant",
    "content": "Let me see.",
    "reasoning_content": "Hm",
    "tool_calls": [CHAT_CALL],
}
CHAT_WHOLE = {
    "id": "chat-1",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {**CHAT_MESSAGE, "refusal": None, "annotations": []},
        }
    ],
    "usage": CHAT_USAGE,
}

ITEMS: list[Any] = [
    {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "xx"},
    {
        "type": "message",
        "id": "msg",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
    },
    {"type": "function_call", "id": "fc", "call_id": "c1", "name": "find", "arguments": ARGUMENTS},
]
RESPONSES_WHOLE = {
    "id": "resp-1",
    "status": "completed",
    "output": ITEMS,
    "usage": {
        "input_tokens": 20,
        "output_tokens": 7,
        "input_tokens_details": {"cached_tokens": 12},
    },
}
RESPONSES_EVENTS = [
    {"type": "response.created", "response": {"id": "resp-1", "status": "in_progress"}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning"}},
    *(
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate(ITEMS)
    ),
    {"type": "response.completed", "response": {**RESPONSES_WHOLE, "output": []}},
]

THOUGHT = {"type": "thinking", "thinking": "Hm", "signature": "sig"}
USE = {"type": "tool_use", "id": "c1", "name": "find", "input": json.loads(ARGUMENTS)}
MESSAGES_WHOLE: Any = {
    "id": "msg-1",
    "content": [THOUGHT, {"type": "text", "text": "Let me see."}, USE],
    "stop_reason": "tool_use",
    "usage": {
        "input_tokens": 6,
        "cache_read_input_tokens": 12,
        "cache_creation_input_tokens": 2,
        "output_tokens": 7,
    },
}


def _block(index: int, block: Any, *deltas: Any) -> list[Any]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


MESSAGES_EVENTS = [
    {
        "type": "message_start",
        "message": {"id": "msg-1", "usage": {**MESSAGES_WHOLE["usage"], "output_tokens": 1}},
    },
    {"type": "ping"},
    *_block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Hm"},
        {"type": "signature_delta", "signature": "sig"},
    ),
    *_block(
        1,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "Let me "},
        {"type": "text_delta", "text": "see."},
    ),
    *_block(
        2,
        {**USE, "input": {}},
        {"type": "input_json_delta", "partial_json": ""},
        {"type": "input_json_delta", "partial_json": ARGUMENTS[:5]},
        {"type": "input_json_delta", "partial_json": ARGUMENTS[5:]},
    ),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"output_tokens": 7, "input_tokens": None},
    },
    {"type": "message_stop"},
]

GEMINI_USAGE = {
    "promptTokenCount": 20,
    "cachedContentTokenCount": 12,
    "candidatesTokenCount": 4,
    "thoughtsTokenCount": 3,
}
GEMINI_CALL = {
    "functionCall": {"id": "c1", "name": "find", "args": json.loads(ARGUMENTS)},
    "thoughtSignature": "sig",
}


def _gemini(*parts: Any, finish: str | None = None, **fields: Any) -> Any:
    candidate: Any = {"content": {"role": "model", "parts": list(parts)}}
    if finish:
        candidate["finishReason"] = finish
    return {"responseId": "g-1", "candidates": [candidate], **fields}


GEMINI_EVENTS = [
    _gemini({"text": "Hm", "thought": True}, usageMetadata={"promptTokenCount": 20}),
    _gemini({"text": "Let me "}),
    _gemini({"text": "see."}),
    _gemini(GEMINI_CALL, finish="STOP", usageMetadata=GEMINI_USAGE),
]
GEMINI_WHOLE = _gemini(
    {"text": "Hm", "thought": True},
    {"text": "Let me see."},
    GEMINI_CALL,
    finish="STOP",
    usageMetadata=GEMINI_USAGE,
)

CASES: dict[str, tuple[list[Any], Any, Reply]] = {
    "openai": (
        CHAT_EVENTS,
        CHAT_WHOLE,
        Reply(
            "chat-1",
            CallUsage(20, 7, 12),
            (CalledTool("c1", "find", ARGUMENTS),),
            "tool_calls",
            (CHAT_MESSAGE,),
        ),
    ),
    "openai-responses": (
        RESPONSES_EVENTS,
        RESPONSES_WHOLE,
        Reply(
            "resp-1",
            CallUsage(20, 7, 12),
            (CalledTool("c1", "find", ARGUMENTS),),
            "completed",
            tuple(ITEMS),
        ),
    ),
    "anthropic": (
        MESSAGES_EVENTS,
        MESSAGES_WHOLE,
        Reply(
            "msg-1",
            CallUsage(20, 7, 12, 2),
            (CalledTool("c1", "find", ARGUMENTS),),
            "tool_use",
            ({"role": "assistant", "content": MESSAGES_WHOLE["content"]},),
        ),
    ),
    "gemini": (
        GEMINI_EVENTS,
        GEMINI_WHOLE,
        Reply(
            "g-1",
            CallUsage(20, 7, 12),
            (CalledTool("c1", "find", ARGUMENTS),),
            "STOP",
            (GEMINI_WHOLE["candidates"][0]["content"],),
        ),
    ),
}
every_form = pytest.mark.parametrize("dialect", CASES)
forms = st.sampled_from(sorted(CASES))
JSON = [(b"content-type", b"application/json")]
SSE = [(b"Content-Type", b"text/event-stream; charset=utf-8")]


def stream(events: list[Any], newline: str = "\n") -> bytes:
    """The events as they are sent, with a name where they have a type."""
    lines = []
    for event in events:
        if "type" in event:
            lines.append(f"event: {event['type']}")
        lines += [f"data: {json.dumps(event, ensure_ascii=False)}", ""]
    return newline.join([": hello", "", *lines, "data: [DONE]", "", ""]).encode()


def _read(form: Wire, headers: Any, chunks: list[bytes]) -> Reply:
    reader = ReplyReader(form.reply_parser(), headers)
    for chunk in chunks:
        reader.feed(chunk)
    return reader.end()


def _cut(raw: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(raw) + 1) for place in places), len(raw)]
    return [raw[start:end] for start, end in pairwise(edges)]


@every_form
def test_a_whole_answer_is_read(dialect: str) -> None:
    _, whole, expected = CASES[dialect]
    assert _read(WIRES[dialect], JSON, [json.dumps(whole).encode()]) == expected


@given(forms, st.lists(st.integers(0, 9_999), max_size=40), st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_stream_says_the_same_wherever_it_is_cut(
    dialect: str, places: list[int], newline: str
) -> None:
    events, _, expected = CASES[dialect]
    chunks = _cut(stream(events, newline), places)
    assert _read(WIRES[dialect], SSE, chunks) == expected


@given(st.binary(max_size=80), st.lists(st.integers(0, 80), max_size=10))
def test_events_are_cut_at_the_same_places_and_no_byte_is_lost(
    raw: bytes, places: list[int]
) -> None:
    raw = raw.replace(b"\x00", b"\n").replace(b"\x01", b"\r")
    at_once, in_pieces = EventParser(), EventParser()
    whole = [*at_once.feed(raw), *at_once.end()]
    pieces = [event for chunk in _cut(raw, places) for event in in_pieces.feed(chunk)]
    assert [*pieces, *in_pieces.end()] == whole
    assert b"".join(event.raw for event in whole) == raw


@every_form
@pytest.mark.parametrize(
    ("encoding", "pack"), [(b"gzip", gzip.compress), (b"deflate", zlib.compress)]
)
def test_packed_answers_are_read(dialect: str, encoding: bytes, pack: Any) -> None:
    events, _, expected = CASES[dialect]
    packed = pack(stream(events))
    headers = [*SSE, (b"content-encoding", encoding)]
    assert _read(WIRES[dialect], headers, [packed[:9], packed[9:]]) == expected


@every_form
def test_replies_with_an_unreadable_encoding_are_not_read(dialect: str) -> None:
    headers = [*JSON, (b"content-encoding", b"br")]
    assert _read(WIRES[dialect], headers, [b"\x00\x01"]) == Reply()
    broken = [*JSON, (b"content-encoding", b"gzip")]
    assert _read(WIRES[dialect], broken, [b"not packed", b"at all"]) == Reply()


@every_form
def test_a_stream_that_breaks_off_has_no_end(dialect: str) -> None:
    events, _, expected = CASES[dialect]
    reply = _read(WIRES[dialect], SSE, [stream(events[:2])])
    assert (reply.finish, reply.calls) == (None, ())
    assert reply.id == expected.id


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
)


@given(forms, st.data())
def test_odd_values_in_replies_raise_no_error(dialect: str, data: Any) -> None:
    events, whole, _ = CASES[dialect]
    odd = [_spoilt(event, data) for event in events]
    _read(WIRES[dialect], SSE, [stream([event for event in odd if isinstance(event, dict)])])
    _read(WIRES[dialect], JSON, [json.dumps(_spoilt(whole, data)).encode()])


def _spoilt(value: Any, data: Any) -> Any:
    """The value with something else in one place of it."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 9)) > 0:
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: _spoilt(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.integers(0, 9)) > 0:
        at = data.draw(st.integers(0, len(value) - 1))
        return [*value[:at], _spoilt(value[at], data), *value[at + 1 :]]
    return data.draw(values)


def test_an_array_of_geminis_pieces_is_one_answer() -> None:
    events, _, expected = CASES["gemini"]
    assert _read(WIRES["gemini"], JSON, [json.dumps(events).encode()]) == expected


def test_unknown_usage_is_not_zero() -> None:
    assert _read(WIRES["openai"], JSON, [b'{"usage": {}}']).usage == CallUsage()
    assert _read(WIRES["openai"], JSON, [b"not json"]) == Reply()
