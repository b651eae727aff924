"""Conversations made by hand, of any values that messages can hold."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Message,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)
from tests.wire.round_trips import json_objects, json_values, names, texts

_ids = st.sampled_from(["", "a", "call_1"])

text_parts = st.builds(Text, texts)
data_parts = st.builds(Data, json_values)
attachments = st.builds(
    Attachment,
    name=texts,
    mime=st.sampled_from(["", "image/png", "application/pdf", "audio/wav"]),
    size=st.none() | st.integers(0),
    data=st.none() | st.sampled_from(["", "aGk=", "aGVsbG8h"]),
    url=st.none() | st.sampled_from(["", "https://example.org/a"]),
)
known_types = st.sampled_from(["text", "tool_use", "tool_result", "unknown", "data"])
unknown_parts = st.builds(Unknown, json_objects | st.fixed_dictionaries({"type": known_types}))
arguments = json_objects | st.sampled_from(["", "{}", '{"a": 1}', '{"a": ', "[1]"]) | texts
calls = st.builds(ToolCall, _ids, names | st.just(""), arguments)
result_parts = st.one_of(text_parts, data_parts, attachments, unknown_parts)
results = st.builds(
    ToolResult,
    _ids,
    st.lists(result_parts, max_size=3).map(tuple),
    is_error=st.booleans(),
    name=names | st.just(""),
)
parts: st.SearchStrategy[Part] = st.one_of(
    text_parts,
    data_parts,
    attachments,
    unknown_parts,
    calls,
    results,
    st.builds(Reasoning, texts),
)
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.lists(parts, max_size=4).map(tuple),
    id=st.none() | texts,
    name=st.none() | texts,
)
tools = st.builds(Tool, names | st.just(""), texts, st.none() | json_objects)
conversations = st.builds(
    Conversation,
    st.lists(messages, max_size=4).map(tuple),
    system=st.none() | messages,
    tools=st.lists(tools, max_size=2).map(tuple),
    extras=st.none() | st.just({}),
)


def without_extras(value: Any) -> Any:
    """Return all typed fields of a conversation, without extras."""
    if isinstance(value, tuple):
        return tuple(without_extras(item) for item in value)
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is None:
        return value
    kept = [name for name in fields if name not in ("extras", "dialect")]
    return (type(value).__name__, *(without_extras(getattr(value, name)) for name in kept))
