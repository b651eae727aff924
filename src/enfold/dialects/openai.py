"""The `openai` dialect: Chat Completions.

Text and attachments are in `content`, calls in `tool_calls`, a refusal and readable reasoning in
fields of their own. A tool's result is a message of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from enfold.dialects.adoption import (
    adopt,
    files_after_results,
    join_calls,
    offered,
    the_only,
)
from enfold.dialects.fields import (
    as_object,
    choice_field,
    each,
    parse_content,
    put_back,
    render_content,
    split_body,
    text_field,
    with_defaults,
)
from enfold.dialects.openai_blocks import parse_block, render_chat_block
from enfold.dialects.openai_tools import parse_calls, parse_tools, put_back_calls, put_back_tools
from enfold.messages import (
    Conversation,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)

NAME = "openai"

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_READABLE_REASONING = (
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "reasoning_details",
    "thinking_blocks",
)
"""What compatible servers call it; where a message has several, they say the same."""
_REASONING = (*_READABLE_REASONING, "reasoning_opaque")
_UNFIT_FOR_NAMES = re.compile(r"[\s<|\\/>]+")


def parse(value: Any) -> Conversation:
    """A request body, or the bare array of its messages."""
    body, raw_messages = split_body(value, "messages")
    return Conversation(
        messages=each(raw_messages, parse_message, "messages"),
        dialect=NAME,
        tools=parse_tools(body or {}),
        extras=body,
    )


def render(conversation: Conversation) -> Any:
    """What `parse` read, with the messages as they are now; another dialect's is translated."""
    system = () if conversation.system is None else (conversation.system,)
    messages = _render_all((*system, *conversation.messages))
    if conversation.extras is None and not conversation.tools:
        return messages
    if conversation.dialect != NAME:
        return put_back_tools({"messages": messages}, offered(conversation.tools))
    return put_back_tools({**(conversation.extras or {}), "messages": messages}, conversation.tools)


def parse_message(raw: Any) -> Message:
    """One entry of `messages`."""
    raw = as_object(raw)
    role = choice_field(raw, "role", _ROLES)
    name = text_field(raw, "name", default="")
    content = parse_content(raw.get("content"), parse_block)
    parts: tuple[Part, ...] = content
    if role == "tool":
        parts = (ToolResult(text_field(raw, "tool_call_id", default=""), content, name=name),)
    elif role == "assistant":
        parts = (*_parse_reasoning(raw), *content, *_parse_refusal(raw), *parse_calls(raw))
    own_id = raw.get("id")
    return Message(
        role,
        parts,
        id=own_id if isinstance(own_id, str) else None,
        name=None if role == "tool" else name or None,
        dialect=NAME,
        extras=raw,
    )


def render_message(message: Message) -> dict[str, Any]:
    """One entry of `messages` again; another dialect's message must be one entry here too."""
    return the_only(_render_all((message,)), NAME)


def _render_all(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Every message, and of foreign ones only what this wire takes in the order it takes it."""
    adopted = files_after_results(join_calls(adopt(messages, NAME)))
    return [_render(message) for message in adopted]


def _render(message: Message) -> dict[str, Any]:
    raw = with_defaults(message.extras, role=message.role)
    if _ROLES.get(raw["role"]) != message.role:
        raw["role"] = message.role
    parts: tuple[Part, ...] = message.parts
    match parts:
        case (ToolResult(call_id, inner, name=name),):
            put_back(raw, "tool_call_id", call_id, absent="")
            put_back(raw, "name", name, absent="")
            parts = inner
        case _ if message.name and message.name != raw.get("name"):
            raw["name"] = _UNFIT_FOR_NAMES.sub("_", message.name)[:64]
    is_assistant = message.role == "assistant"
    calls = [part for part in parts if is_assistant and isinstance(part, ToolCall)]
    content = [part for part in parts if not (is_assistant and _is_beside_content(part))]
    if content or "content" in raw or not message.extras:
        empty = None if calls else ""
        raw["content"] = render_content(
            content, render_chat_block, raw.get("content", empty), empty
        )
    if is_assistant:
        _put_back_reasoning(raw, parts)
        _put_back_refusal(raw, parts)
        put_back_calls(raw, calls)
    return raw


def _is_beside_content(part: Part) -> bool:
    """True for what an assistant's message has in other fields than `content`."""
    return isinstance(part, ToolCall | Reasoning) or _is_refusal(part)


def _parse_reasoning(raw: Mapping[str, Any]) -> tuple[Reasoning, ...]:
    """One part for all its fields, because it is kept or dropped as a whole."""
    fields = {field: raw[field] for field in _REASONING if raw.get(field)}
    texts = (_readable(fields.get(field)) for field in _READABLE_REASONING)
    return (Reasoning(next(filter(None, texts), ""), fields),) if fields else ()


def _readable(value: Any) -> str:
    """What can be read of a reasoning field: a text, or an array of pieces that hold some."""
    if isinstance(value, str):
        return value
    pieces = value if isinstance(value, list) else []
    objects = (piece for piece in pieces if isinstance(piece, dict))
    texts = (piece.get(key) for piece in objects for key in ("text", "summary", "thinking"))
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def _put_back_reasoning(raw: dict[str, Any], parts: Iterable[Part]) -> None:
    kept = {field for part in parts if isinstance(part, Reasoning) for field in part.extras}
    for field in _REASONING:
        if raw.get(field) and field not in kept:
            del raw[field]


def _parse_refusal(raw: Mapping[str, Any]) -> tuple[Text, ...]:
    refusal = text_field(raw, "refusal", default="")
    return (Text(refusal, {"refusal": refusal}),) if refusal else ()


def _is_refusal(part: Part) -> TypeGuard[Text]:
    return isinstance(part, Text) and part.extras.keys() == {"refusal"}


def _put_back_refusal(raw: dict[str, Any], parts: Iterable[Part]) -> None:
    refusals = [part.text for part in parts if _is_refusal(part)]
    if refusals:
        raw["refusal"] = refusals[0]
    elif raw.get("refusal"):
        del raw["refusal"]
