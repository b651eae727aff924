"""The `langchain` dialect: LangChain's messages, as objects or as the dicts it dumps.

Objects give objects and dicts give dicts of the same shape; a message that did not change is the
very same value. A conversation of another dialect gives dicts, as JSON needs them, unless objects
are asked for. `langchain_core` is imported only when a new object has to be made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from enfold.dialects import openai
from enfold.dialects.adoption import the_only
from enfold.dialects.fields import each, split_body, text_field, without_extras
from enfold.dialects.langchain_blocks import (
    parse_block,
    parse_content,
    parse_result_block,
    readable,
    render_block,
    render_content,
)
from enfold.dialects.langchain_calls import (
    CONTENT,
    is_call_block,
    join_calls,
    parse_call_block,
    place_calls,
    put_back_additional,
    put_back_calls,
    render_call_block,
)
from enfold.dialects.langchain_shapes import FIELDS_AT, SHAPES, shape_of
from enfold.dialects.pairing import pair_calls
from enfold.errors import ConfigError, DialectError
from enfold.messages import (
    Conversation,
    Extras,
    Message,
    Part,
    Reasoning,
    Role,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)

NAME = "langchain"

_ROLES: Mapping[str, Role] = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "function": "tool",
    "tool": "tool",
    "remove": "system",
}
"""A `remove` message asks a graph to delete another one. It says nothing to a model: its only part
is unknown, and stays behind in other dialects."""
_CHAT_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "user": "user",
    "human": "user",
}
"""What roles a `ChatMessage` may name; whoever else speaks is a user of that name."""
_TYPES: Mapping[Role, str] = {
    "user": "human",
    "assistant": "ai",
    "system": "system",
    "tool": "tool",
}
_REASONING_FIELDS = ("reasoning_content", "reasoning")
_RESULT_KINDS = ("tool", "function")
_NEW = "data"
"""The shape of a message that has no others to follow."""
_OBJECT = "object"
"""The key of a message's extras that holds its object; the dicts all have a `type` instead."""


def parse(value: Any) -> Conversation:
    """An array of messages, or a state that has one under `messages`."""
    body, raw_messages = split_body(value, "messages")
    return Conversation(
        messages=each(raw_messages, parse_message, "messages"),
        dialect=NAME,
        tools=_parse_tools(body or {}),
        extras=body,
    )


def render(conversation: Conversation, shape: str | None = None) -> Any:
    """What `parse` read, with the messages as they are now; another dialect's is translated.

    New messages take the shape of the others, or `data` where there are none. With a `shape`
    (`object`, `data`, `flat` or `lc`) every message takes that one.
    """
    if shape is not None and shape not in SHAPES:
        known = ", ".join(SHAPES)
        raise ConfigError(f"no shape {shape!r} of LangChain messages; there are {known}")
    shapes = (_shape(message) for message in conversation.messages)
    new = shape or next((found for found in shapes if found), _NEW)
    system = () if conversation.system is None else (conversation.system,)
    adopted = _adopt((*system, *conversation.messages))
    messages = [_render(message, shape or _shape(message) or new) for message in adopted]
    body = _render_beside(conversation)
    return messages if body is None else {**body, "messages": messages}


def parse_message(raw: Any) -> Message:
    """One message, in any of the shapes."""
    shape = shape_of(raw)
    type_, fields = SHAPES[shape].read(raw)
    try:
        return _parse_fields(type_, fields, {_OBJECT: raw} if shape == _OBJECT else raw)
    except DialectError as error:
        raise (error.at(FIELDS_AT[shape]) if FIELDS_AT[shape] else error) from None


def render_message(message: Message) -> Any:
    """One message again, in its own shape; one made by hand or translated in `data`."""
    return the_only([_render(own, _shape(own) or _NEW) for own in _adopt((message,))], NAME)


def _parse_fields(type_: str, fields: dict[str, Any], extras: Extras) -> Message:
    kind = _kind(type_)
    content = fields.get("content")
    parts: tuple[Part, ...]
    if kind in _RESULT_KINDS:
        parts = (_parse_result(fields),)
    elif kind == "remove":
        parts = (Unknown({"type": kind}),)
    elif kind == "ai":
        blocks = parse_content(content, _parse_block)
        parts = (*_parse_reasoning(fields), *join_calls(blocks, fields))
    else:
        parts = parse_content(content, parse_block)
    return Message(
        role=_CHAT_ROLES.get(_chat_role(fields), "user") if kind == "chat" else _ROLES[kind],
        parts=parts,
        id=_text_or_none(fields, "id"),
        name=_speaker(kind, fields),
        dialect=NAME,
        extras=extras,
    )


def _kind(type_: str) -> str:
    """The type of the whole message that a chunk's type stands for."""
    return type_.removesuffix("MessageChunk").lower()


def _chat_role(fields: Mapping[str, Any]) -> str:
    return text_field(fields, "role").lower()


def _speaker(kind: str, fields: Mapping[str, Any]) -> str | None:
    name = None if kind in _RESULT_KINDS else _text_or_none(fields, "name")
    if name is None and kind == "chat" and _chat_role(fields) not in _CHAT_ROLES:
        return text_field(fields, "role")
    return name


def _parse_result(fields: Mapping[str, Any]) -> ToolResult:
    return ToolResult(
        call_id=text_field(fields, "tool_call_id", default=""),
        parts=parse_content(fields.get("content"), parse_result_block),
        is_error=fields.get("status") == "error",
        name=text_field(fields, "name", default=""),
    )


def _parse_block(raw: Any) -> Any:
    return parse_call_block(raw) if is_call_block(raw) else parse_block(raw)


def _parse_reasoning(fields: Mapping[str, Any]) -> tuple[Reasoning, ...]:
    """Reasoning that a provider's integration puts beside the content."""
    additional = fields.get("additional_kwargs")
    if not isinstance(additional, dict):
        return ()
    return tuple(
        Reasoning(readable(additional[field]), {field: additional[field]})
        for field in _REASONING_FIELDS
        if additional.get(field)
    )


def _raw(message: Message) -> Any:
    """The message as it came off the wire; None for one that did not."""
    return (message.extras if "type" in message.extras else message.extras.get(_OBJECT)) or None


def _shape(message: Message) -> str | None:
    raw = _raw(message) if message.dialect == NAME else None
    return None if raw is None else shape_of(raw)


def _render(message: Message, shape: str) -> Any:
    raw = _raw(message)
    if raw is None:
        type_, fields = _new_fields(message)
        return SHAPES[shape].make(type_, {**fields, **_changes(message, type_, fields)})
    before = shape_of(raw)
    type_, fields = SHAPES[before].read(raw)
    changes = _changes(message, type_, fields)
    if shape != before:
        return SHAPES[shape].make(type_, {**fields, **changes})
    return SHAPES[shape].change(raw, changes) if changes else raw


def _new_fields(message: Message) -> tuple[str, dict[str, Any]]:
    """Type and empty fields of a message made by hand; only an `ai` message has calls."""
    match message.parts:
        case (ToolResult(),):
            return "tool", {"content": "", "type": "tool", "tool_call_id": "", "status": "success"}
    calls = any(isinstance(part, ToolCall) for part in message.parts)
    type_ = "ai" if calls else _TYPES[message.role]
    return type_, {"content": "", "type": type_}


def _changes(message: Message, type_: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields whose values are not the ones that came; what is merely equal counts as new."""
    kind = _kind(type_)
    now: dict[str, Any] = {"id": message.id}
    parts = message.parts
    if kind in _RESULT_KINDS:
        result = _only_result(message)
        parts = result.parts
        now |= _changed_result(result, fields)
    elif message.name != _speaker(kind, fields):
        now["name"] = message.name
    if kind == "ai":
        parts = place_calls(parts)
        calls = [part for part in parts if isinstance(part, ToolCall)]
        now |= put_back_calls(fields, calls)
        now["additional_kwargs"] = _put_back_additional(fields, parts, calls)
    if kind != "remove":
        content = tuple(part for part in parts if _is_in_content(part))
        now["content"] = render_content(content, _render_part, fields.get("content"))
    return {key: value for key, value in now.items() if value is not fields.get(key)}


def _only_result(message: Message) -> ToolResult:
    match message.parts:
        case (ToolResult() as result,):
            return result
    raise DialectError("a LangChain tool message is one tool result and nothing else")


def _changed_result(result: ToolResult, fields: Mapping[str, Any]) -> dict[str, Any]:
    before = _parse_result(fields)
    now: dict[str, Any] = {}
    if result.call_id != before.call_id:
        now["tool_call_id"] = result.call_id
    if result.is_error != before.is_error:
        now["status"] = "error" if result.is_error else "success"
    if result.name != before.name:
        now["name"] = result.name
    return now


def _is_in_content(part: Part) -> bool:
    match part:
        case ToolCall(extras=extras):
            return CONTENT in extras
        case Reasoning(extras=extras):
            return not extras or "type" in extras
    return True


def _render_part(part: Part) -> Any:
    return render_call_block(part) if isinstance(part, ToolCall) else render_block(part)


def _put_back_additional(
    fields: Mapping[str, Any], parts: tuple[Part, ...], calls: list[ToolCall]
) -> Any:
    """Reasoning is never edited, only dropped as a whole."""
    additional = put_back_additional(fields.get("additional_kwargs"), calls)
    before = {field for part in _parse_reasoning(fields) for field in part.extras}
    kept = {field for part in parts if isinstance(part, Reasoning) for field in part.extras}
    if before <= kept:
        return additional
    return {key: value for key, value in additional.items() if key not in before - kept}


def _adopt(messages: tuple[Message, ...]) -> Iterator[Message]:
    """The messages as this dialect has them; a foreign one may become several, or none."""
    if all(message.dialect == NAME for message in messages):
        yield from messages
        return
    for message, paired in zip(messages, pair_calls(messages), strict=True):
        yield from (message,) if message.dialect == NAME else _translate(paired)


def _translate(message: Message) -> Iterator[Message]:
    """Each tool result is a message of its own; the first of several messages has the id.

    A user's words come after the results beside them: results must follow their calls.
    """
    plain = without_extras(message, NAME)
    plain = replace(plain, role="user" if plain.role == "tool" else plain.role)
    parts = list(plain.parts)
    if plain.role != "assistant":
        parts.sort(key=lambda part: not isinstance(part, ToolResult))
    pieces: list[Message] = [] if message.parts else [plain]
    for is_result, group in groupby(parts, lambda part: isinstance(part, ToolResult)):
        run = tuple(group)
        alone = [Message("tool", (part,), dialect=NAME) for part in run]
        pieces += alone if is_result else [replace(plain, parts=run)]
    for index, piece in enumerate(pieces):
        yield replace(piece, id=None if index else message.id)


def _parse_tools(body: Mapping[str, Any]) -> tuple[Tool, ...]:
    """Tools as OpenAI writes them, which is how LangChain binds them; a state may hold others."""
    tools = body.get("tools")
    if not isinstance(tools, list) or not all(_is_function(tool) for tool in tools):
        return ()
    return openai.parse({"messages": [], "tools": tools}).tools


def _render_beside(conversation: Conversation) -> Mapping[str, Any] | None:
    """What stands beside the messages: a state's own fields, and tools that are new in it."""
    body, tools = conversation.extras, conversation.tools
    is_own = conversation.dialect == NAME
    before = _parse_tools(body or {})
    if is_own and tools == before:
        return body
    if is_own and body and body.get("tools") and not before:
        raise DialectError("the state's `tools` are its own affair; none can be added to them")
    dialect = openai.NAME if is_own else NAME
    rendered = openai.render(Conversation((), dialect, tools=tools, extras=body))
    return rendered if isinstance(rendered, dict) else None


def _is_function(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("function"), dict)


def _text_or_none(fields: Mapping[str, Any], key: str) -> str | None:
    return None if fields.get(key) is None else text_field(fields, key)
