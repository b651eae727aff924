"""The `enfold` dialect: the neutral format, which can hold everything that messages can hold.

A message is `{id, role, content, name, at, …}`; its content is one text or an array of blocks, one
a part; `at` is its time in ISO form. A call's input is an object, or text where a model wrote text
(it may be broken). A body has `messages`, a `system` prompt (a content or a whole message) and
`tools`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from enfold.errors import DialectError
from enfold.messages import (
    NOTHING,
    Attachment,
    Conversation,
    Data,
    Message,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)
from enfold.wire.fields import (
    arguments_field,
    as_object,
    choice_field,
    each,
    flag_field,
    kind_of,
    list_field,
    object_field,
    optional_text,
    parse_content,
    put_back,
    render_content,
    split_body,
    text_field,
    time_in,
    with_defaults,
)
from enfold.wire.translation import without_extras

NAME = "enfold"

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}

_Blocks: TypeAlias = Mapping[str, Callable[[dict[str, Any]], Any]]
"""The parser of each block type."""


def parse(value: Any) -> Conversation:
    """Return the conversation of a request body or of a bare array of messages."""
    body, raw_messages = split_body(value, "messages")
    return Conversation(
        messages=each(raw_messages, parse_message, "messages"),
        dialect=NAME,
        system=_parse_system((body or {}).get("system")),
        tools=list_field(body or {}, "tools", _parse_tool),
        extras=body,
    )


def render(conversation: Conversation) -> Any:
    """Return the conversation as it was parsed, with its current content."""
    own = conversation.dialect == NAME
    body = dict(conversation.extras or NOTHING) if own else {}
    if conversation.system is not None:
        body["system"] = _render_system(conversation.system)
    elif body.get("system"):
        del body["system"]
    if conversation.tools or body.get("tools"):
        tools = conversation.tools
        body["tools"] = [_render_tool(t if own else replace(t, extras=NOTHING)) for t in tools]
    messages = [render_message(m) for m in conversation.messages if _is_translatable(m)]
    return {**body, "messages": messages} if body or conversation.extras is not None else messages


def parse_message(raw: Any) -> Message:
    """Return one entry of `messages`."""
    raw = as_object(raw)
    return Message(
        role=choice_field(raw, "role", _ROLES),
        parts=parse_content(raw.get("content"), _parse_part),
        id=optional_text(raw, "id"),
        name=optional_text(raw, "name"),
        dialect=NAME,
        extras=raw,
        at=time_in(raw),
    )


def render_message(message: Message) -> dict[str, Any]:
    """Return one entry of `messages`; a message of another dialect is translated."""
    is_new = message.dialect == NAME and not message.extras
    message = _adopt(message)
    raw = dict(message.extras)
    if message.id != raw.get("id"):
        raw["id"] = message.id
    raw["role"] = message.role
    _put_back_content(raw, message.parts, _PARTS, wanted=not message.extras)
    if message.name != raw.get("name"):
        raw["name"] = message.name
    if is_new and message.at is not None:
        # Only here: a stored message has a time that its own JSON need not have.
        raw["at"] = message.at.isoformat()
    return raw


def _adopt(message: Message) -> Message:
    """Return the message without fields of other dialects; readable reasoning is kept."""
    return message if message.dialect == NAME else without_extras(message, NAME, drop=(Unknown,))


def _is_translatable(message: Message) -> bool:
    """Return False for a message of another dialect of which no part can be translated."""
    return message.dialect == NAME or not message.parts or bool(_adopt(message).parts)


def _parse_system(raw: Any) -> Message | None:
    if raw in (None, "", []):
        return None
    try:
        if isinstance(raw, dict):
            return parse_message(raw)
        return Message("system", parse_content(raw, _parse_part, ""), dialect=NAME)
    except DialectError as error:
        raise error.at("system") from None


def _render_system(system: Message) -> Any:
    """Return a content, or a whole message if the prompt has other fields or no parts."""
    system = _adopt(system)
    if system.parts and system == Message("system", system.parts):
        return _render_content(system.parts, "", _PARTS)
    return render_message(system)


def _put_back_content(
    raw: dict[str, Any], parts: tuple[Any, ...], parsers: _Blocks, *, wanted: bool
) -> None:
    """Write the content; one that was missing and still is empty stays out, unless wanted."""
    if parts or wanted or "content" in raw:
        raw["content"] = _render_content(parts, raw.get("content", ""), parsers)


def _render_content(parts: tuple[Any, ...], before: Any, parsers: _Blocks) -> Any:
    """Return a content; a new empty text is a block, because a bare one would be no part."""
    if parts == (Text(""),):
        return [_render_block(parts[0], parsers)]
    return render_content(parts, lambda part: _render_block(part, parsers), before, "")


def _parse_part(raw: Any, *, in_result: bool = False) -> Any:
    raw = as_object(raw)
    parsers = _RESULT_PARTS if in_result else _PARTS
    return parsers[raw["type"]](raw) if _has_parser(raw, parsers) else Unknown(raw)


def _has_parser(raw: Mapping[str, Any], parsers: _Blocks) -> bool:
    kind = raw.get("type")
    return isinstance(kind, str) and kind in parsers


def _render_block(part: Any, parsers: _Blocks) -> dict[str, Any]:
    match part:
        case Text(text, extras):
            return {**with_defaults(extras, type="text"), "text": text}
        case Data(value, extras):
            return {**with_defaults(extras, type="data"), "value": value}
        case Reasoning(text, extras):
            raw = with_defaults(extras, type="reasoning")
            put_back(raw, absent="", text=text)
            return raw
        case Attachment():
            return _render_attachment(part)
        case ToolCall():
            return _render_call(part)
        case ToolResult():
            return _render_result(part)
        case Unknown(extras):
            # Inside an envelope it is not parsed as a part of the type that it names.
            misleading = _has_parser(extras, parsers)
            return dict(extras) if not misleading else {"type": "unknown", "value": dict(extras)}
    raise DialectError(f"a message has no {type(part).__name__} parts")


def _parse_data(raw: dict[str, Any]) -> Data:
    if "value" not in raw:
        raise DialectError("expected a value, found nothing", place="value")
    return Data(raw["value"], raw)


def _parse_attachment(raw: dict[str, Any]) -> Attachment:
    return Attachment(
        name=text_field(raw, "name", default=""),
        mime=text_field(raw, "mime", default=""),
        size=_whole_number_or_none(raw, "size"),
        data=optional_text(raw, "data"),
        url=optional_text(raw, "url"),
        extras=raw,
    )


def _render_attachment(part: Attachment) -> dict[str, Any]:
    raw = with_defaults(part.extras, type="attachment")
    put_back(raw, absent="", name=part.name, mime=part.mime)
    put_back(raw, absent=None, size=part.size, data=part.data, url=part.url)
    return raw


def _parse_call(raw: dict[str, Any]) -> ToolCall:
    return ToolCall(
        id=text_field(raw, "id", default=""),
        name=text_field(raw, "name", default=""),
        arguments=arguments_field(raw, "input"),
        extras=raw,
    )


def _render_call(call: ToolCall) -> dict[str, Any]:
    raw = with_defaults(call.extras, type="tool_use")
    arguments = call.arguments if isinstance(call.arguments, str) else dict(call.arguments)
    put_back(raw, absent="", id=call.id, name=call.name, input=arguments)
    return raw


def _parse_result(raw: dict[str, Any]) -> ToolResult:
    return ToolResult(
        call_id=text_field(raw, "tool_use_id", default=""),
        parts=parse_content(raw.get("content"), partial(_parse_part, in_result=True)),
        is_error=flag_field(raw, "is_error"),
        name=text_field(raw, "name", default=""),
        extras=raw,
    )


def _render_result(result: ToolResult) -> dict[str, Any]:
    raw = with_defaults(result.extras, type="tool_result")
    put_back(raw, absent="", tool_use_id=result.call_id)
    _put_back_content(raw, result.parts, _RESULT_PARTS, wanted=not result.extras)
    put_back(raw, absent=False, is_error=result.is_error)
    put_back(raw, absent="", name=result.name)
    return raw


def _parse_tool(raw: Any) -> Tool:
    raw = as_object(raw)
    return Tool(
        name=text_field(raw, "name", default=""),
        description=text_field(raw, "description", default=""),
        parameters=None if raw.get("parameters") is None else object_field(raw, "parameters"),
        extras=raw,
    )


def _render_tool(tool: Tool) -> dict[str, Any]:
    raw = dict(tool.extras)
    put_back(raw, absent="", name=tool.name, description=tool.description)
    put_back(raw, absent=None, parameters=tool.parameters)
    return raw


def _whole_number_or_none(raw: Mapping[str, Any], key: str) -> int | None:
    value = raw.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise DialectError(f"expected a whole number, found {kind_of(value)}", place=key)


_RESULT_PARTS: _Blocks = {
    "text": lambda raw: Text(text_field(raw, "text"), raw),
    "data": _parse_data,
    "attachment": _parse_attachment,
}
_PARTS: _Blocks = {
    **_RESULT_PARTS,
    "tool_use": _parse_call,
    "tool_result": _parse_result,
    "reasoning": lambda raw: Reasoning(text_field(raw, "text", default=""), raw),
}
