"""The `openai` dialect: Chat Completions.

Text and attachments are in `content`, calls in `tool_calls`, readable reasoning in fields that
compatible servers add. A tool's result is a message of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from enfold.dialects.fields import (
    arguments_field,
    arguments_text,
    as_object,
    choice_field,
    data_url,
    each,
    file_from_base64,
    file_from_url,
    object_field,
    parse_content,
    put_back,
    render_content,
    split_body,
    text_field,
    without_extras,
)
from enfold.errors import DialectError
from enfold.jsontext import dump_text
from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
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
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
_ARGUMENTS = {"function": "arguments", "custom": "input"}
"""The field of a call's arguments, by the call's type."""


def parse(value: Any) -> Conversation:
    """A request body, or the bare array of its messages."""
    body, raw_messages = split_body(value, "messages")
    return Conversation(
        messages=each(raw_messages, parse_message, "messages"),
        dialect=NAME,
        tools=each((body or {}).get("tools") or [], _parse_tool, "tools"),
        extras=body,
    )


def render(conversation: Conversation) -> Any:
    """What `parse` read, with the messages as they are now; another dialect's is translated."""
    system = () if conversation.system is None else (conversation.system,)
    messages = [
        render_message(own)
        for message in (*system, *conversation.messages)
        for own in _adopt(message)
    ]
    if conversation.dialect == NAME:
        body = conversation.extras
    elif conversation.extras is None and not conversation.tools:
        body = None
    else:
        tools = [_render_tool(tool) for tool in conversation.tools]
        body = {"tools": tools} if tools else {}
    return messages if body is None else {**body, "messages": messages}


def parse_message(raw: Any) -> Message:
    """One entry of `messages`."""
    raw = as_object(raw)
    role = choice_field(raw, "role", _ROLES)
    content = parse_content(raw.get("content"), _parse_block)
    parts: tuple[Part, ...] = content
    name = text_field(raw, "name", default="")
    if role == "tool":
        call_id = text_field(raw, "tool_call_id", default="")
        parts = (ToolResult(call_id, content, name=name),)
    elif role == "assistant":
        parts = (*_parse_reasoning(raw), *content, *_parse_calls(raw))
    return Message(role, parts, name=name or None, dialect=NAME, extras=raw)


def render_message(message: Message) -> dict[str, Any]:
    """One entry of `messages` again."""
    raw: dict[str, Any] = {"role": message.role, **message.extras}
    parts = message.parts
    match parts:
        case (ToolResult(call_id=call_id, parts=inner),):
            parts = inner
            put_back(raw, "tool_call_id", call_id, absent="")
    if message.name and "name" not in raw:
        raw["name"] = message.name
    content = [part for part in parts if not isinstance(part, ToolCall | Reasoning)]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if content or "content" in raw or not calls:
        empty = None if calls else ""
        raw["content"] = render_content(content, _render_block, raw.get("content", empty), empty)
    _put_back_reasoning(raw, [part for part in parts if isinstance(part, Reasoning)])
    _put_back_calls(raw, calls)
    return raw


def _adopt(message: Message) -> tuple[Message, ...]:
    """The message as this dialect would have it: each tool result is a message of its own."""
    if message.dialect == NAME:
        return (message,)
    plain = without_extras(message, NAME)
    results = [part for part in plain.parts if isinstance(part, ToolResult)]
    rest = tuple(part for part in plain.parts if not isinstance(part, ToolResult))
    adopted = [Message("tool", (result,), dialect=NAME) for result in results]
    if rest or not results:
        adopted.append(replace(plain, parts=rest, role="user" if results else plain.role))
    return tuple(adopted)


def _parse_block(raw: Any) -> Text | Attachment | Unknown:
    raw = as_object(raw)
    match raw.get("type"):
        case "text":
            return Text(text_field(raw, "text"), raw)
        case "image_url":
            return file_from_url(text_field(object_field(raw, "image_url"), "url"), extras=raw)
        case "input_audio":
            audio = object_field(raw, "input_audio")
            mime = f"audio/{text_field(audio, 'format', default='')}"
            return file_from_base64(text_field(audio, "data"), mime, extras=raw)
        case "file":
            file = object_field(raw, "file")
            name = text_field(file, "filename", default="")
            return file_from_url(text_field(file, "file_data", default=""), name=name, extras=raw)
    return Unknown(raw)


def _render_block(part: Part) -> dict[str, Any]:
    match part:
        case Text(text, extras):
            return {"type": "text", **extras, "text": text}
        case Attachment(extras=extras) | Unknown(extras) if extras:
            return dict(extras)
        case Attachment(mime=mime, data=data) if mime.startswith("image/") or data is None:
            return {"type": "image_url", "image_url": {"url": data_url(part)}}
        case Attachment(name=name):
            file = {"filename": name or "file", "file_data": data_url(part)}
            return {"type": "file", "file": file}
        case Data(value):
            return {"type": "text", "text": dump_text(value)}
    raise DialectError(f"a {type(part).__name__} part has no place in a message's content")


def _parse_reasoning(raw: Mapping[str, Any]) -> tuple[Reasoning, ...]:
    return tuple(
        Reasoning(raw[field] if isinstance(raw[field], str) else "", {field: raw[field]})
        for field in _REASONING_FIELDS
        if raw.get(field)
    )


def _put_back_reasoning(raw: dict[str, Any], reasoning: list[Reasoning]) -> None:
    """Reasoning is never edited, only dropped as a whole."""
    kept = {field for part in reasoning for field in part.extras}
    for field in _REASONING_FIELDS:
        if raw.get(field) and field not in kept:
            del raw[field]


def _parse_calls(raw: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    calls = each(raw.get("tool_calls") or [], _parse_call, "tool_calls")
    if raw.get("function_call") is None:
        return calls
    legacy = object_field(raw, "function_call")
    name = text_field(legacy, "name", default="")
    return (*calls, ToolCall("", name, arguments_field(legacy, "arguments"), legacy))


def _parse_call(raw: Any) -> ToolCall:
    raw = as_object(raw)
    kind = "custom" if raw.get("type") == "custom" else "function"
    inner = object_field(raw, kind)
    arguments = arguments_field(inner, _ARGUMENTS[kind])
    name = text_field(inner, "name", default="")
    return ToolCall(text_field(raw, "id", default=""), name, arguments, raw)


def _put_back_calls(raw: dict[str, Any], calls: list[ToolCall]) -> None:
    before = raw.get("function_call")
    legacy = [call for call in calls if before is not None and call.extras is before]
    modern = [call for call in calls if before is None or call.extras is not before]
    if legacy:
        raw["function_call"] = dict(legacy[0].extras)
        put_back(raw["function_call"], "arguments", legacy[0].arguments, absent="")
    elif before is not None:
        del raw["function_call"]
    if modern:
        raw["tool_calls"] = [_render_call(call) for call in modern]
    elif raw.get("tool_calls"):
        del raw["tool_calls"]


def _render_call(call: ToolCall) -> dict[str, Any]:
    if not call.extras:
        function = {"name": call.name, "arguments": arguments_text(call)}
        return {"id": call.id, "type": "function", "function": function}
    kind = "custom" if call.extras.get("type") == "custom" else "function"
    inner = dict(call.extras[kind])
    put_back(inner, _ARGUMENTS[kind], call.arguments, absent="")
    return {**call.extras, kind: inner}


def _parse_tool(raw: Any) -> Tool:
    raw = as_object(raw)
    function = raw.get("function")
    if not isinstance(function, dict):
        return Tool(text_field(raw, "name", default=""), extras=raw)
    return Tool(
        text_field(function, "name", default=""),
        text_field(function, "description", default=""),
        function.get("parameters") or {},
        raw,
    )


def _render_tool(tool: Tool) -> dict[str, Any]:
    """Another dialect's tool; a provider's built-in one has no counterpart and goes by name."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": {k: v for k, v in function.items() if v}}
