"""The `gemini` dialect: the `contents` of Google's Gemini API.

A content is a role and its parts; a part is known by the field it has. Google reads every field in
camelCase and in snake_case, and one object where an array of one is meant; each comes back as it
came. Calls need no id: `pairing` gives them one that the wire never sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from enfold.dialects.fields import (
    arguments_object,
    as_object,
    choice_field,
    each,
    file_from_base64,
    file_from_url,
    flag_field,
    object_field,
    parse_field,
    put_back,
    split_body,
    text_field,
)
from enfold.dialects.pairing import pair_calls
from enfold.dialects.turns import adopt, adopt_message
from enfold.errors import DialectError
from enfold.jsontext import dump_text
from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)

NAME = "gemini"

Item = TypeVar("Item")

_ROLES: Mapping[str, Role] = {"user": "user", "model": "assistant", "function": "tool"}
_OWN_ROLES: Mapping[Role, str] = {
    "user": "user",
    "assistant": "model",
    "tool": "user",
    "system": "user",
}
_UNSIGNED = {"thoughtSignature": "skip_thought_signature_validator"}
"""Newer models refuse calls without a signature, except under these words, which Google documents
for calls that its models did not make."""


def parse(value: Any) -> Conversation:
    """A request body, or the bare array of its contents."""
    body, contents = split_body(value, "contents")
    beside = body or {}
    return Conversation(
        messages=pair_calls(_each_or_one(contents, _parse_content, "contents")),
        dialect=NAME,
        system=_parse_system(beside),
        tools=_parse_tools(beside),
        extras=body,
    )


def render(conversation: Conversation) -> Any:
    """What `parse` read, with the messages as they are now; another dialect's is translated."""
    own = adopt(conversation, NAME)
    contents = [render_message(message) for message in own.messages]
    body = dict(own.extras or {})
    body["contents"] = _like(body.get("contents"), contents)
    _put_back_system(body, own.system)
    _put_back_tools(body, own.tools)
    return contents if own.extras is None and len(body) == 1 else body


def parse_message(raw: Any) -> Message:
    """One entry of `contents`; calls without an id are counted within it."""
    return pair_calls((_parse_content(raw),))[0]


def render_message(message: Message) -> dict[str, Any]:
    """One entry of `contents` again; another dialect's is translated on its own."""
    own = adopt_message(message, NAME)
    raw: dict[str, Any] = dict(own.extras) or {"role": _OWN_ROLES[own.role], "parts": []}
    _put_back_parts(raw, own.parts)
    return raw


def _parse_content(raw: Any) -> Message:
    raw = as_object(raw)
    if "role" not in raw and "parts" not in raw:
        raise DialectError(f"expected a field 'parts', found only {', '.join(raw) or 'nothing'}")
    role = "user" if raw.get("role") is None else choice_field(raw, "role", _ROLES)
    return Message(role, _parse_parts(raw, _parse_part), dialect=NAME, extras=raw)


def _parse_parts(raw: Mapping[str, Any], parse_one: Callable[[Any], Item]) -> tuple[Item, ...]:
    parts = raw.get("parts")
    return () if parts is None else _each_or_one(parts, parse_one, "parts")


def _put_back_parts(raw: dict[str, Any], parts: tuple[Part, ...]) -> None:
    before = raw.get("parts")
    if parts or before:
        raw["parts"] = _like(before, [_render_part(part) for part in parts])


def _parse_system(body: Mapping[str, Any]) -> Message | None:
    key = _spelt(body, "systemInstruction")
    if body.get(key) is None:
        return None
    return parse_field(body, key, _parse_instruction)


def _parse_instruction(raw: dict[str, Any]) -> Message:
    """A content whose role, if it has one, means nothing."""
    return Message("system", _parse_parts(raw, _parse_part), dialect=NAME, extras=raw)


def _put_back_system(body: dict[str, Any], system: Message | None) -> None:
    key = _spelt(body, "systemInstruction")
    if system is not None:
        body[key] = dict(system.extras)
        _put_back_parts(body[key], system.parts)
    elif body.get(key) is not None:
        del body[key]


def _parse_part(raw: Any) -> Part:
    raw = as_object(raw)
    call, result = _spelt(raw, "functionCall"), _spelt(raw, "functionResponse")
    if raw.get(call) is not None:
        return parse_field(raw, call, lambda inner: _parse_call(inner, raw))
    if raw.get(result) is not None:
        return parse_field(raw, result, lambda inner: _parse_result(inner, raw))
    if flag_field(raw, "thought") or _is_bare_signature(raw):
        return Reasoning(text_field(raw, "text", default=""), raw)
    if raw.get("text") is not None:
        return Text(text_field(raw, "text"), raw)
    return _parse_file(raw)


def _is_bare_signature(raw: Mapping[str, Any]) -> bool:
    """True for a part that carries a signature of thoughts and says nothing else."""
    signature = _spelt(raw, "thoughtSignature")
    return bool(raw.get(signature)) and not any(raw[key] for key in raw if key != signature)


def _parse_file(raw: Any) -> Attachment | Unknown:
    raw = as_object(raw)
    inline, address = _spelt(raw, "inlineData"), _spelt(raw, "fileData")
    if raw.get(inline) is not None:
        return parse_field(raw, inline, lambda blob: _parse_blob(blob, raw))
    if raw.get(address) is not None:
        return parse_field(raw, address, lambda file: _parse_address(file, raw))
    return Unknown(raw)


def _parse_blob(blob: dict[str, Any], part: dict[str, Any]) -> Attachment:
    mime = text_field(blob, _spelt(blob, "mimeType"), default="")
    name = text_field(blob, _spelt(blob, "displayName"), default="")
    return file_from_base64(text_field(blob, "data"), mime, name, part)


def _parse_address(file: dict[str, Any], part: dict[str, Any]) -> Attachment:
    mime = text_field(file, _spelt(file, "mimeType"), default="")
    name = text_field(file, _spelt(file, "displayName"), default="")
    return file_from_url(text_field(file, _spelt(file, "fileUri")), mime, name, part)


def _parse_call(call: dict[str, Any], part: dict[str, Any]) -> ToolCall:
    arguments = {} if call.get("args") is None else object_field(call, "args")
    return ToolCall(text_field(call, "id", default=""), text_field(call, "name"), arguments, part)


def _parse_result(result: dict[str, Any], part: dict[str, Any]) -> ToolResult:
    """A failed tool says so under the key `error`: that is Google's convention, not a field."""
    response = None if result.get("response") is None else object_field(result, "response")
    said: tuple[ResultPart, ...] = () if response is None else (Data(response),)
    return ToolResult(
        text_field(result, "id", default=""),
        (*said, *_parse_parts(result, _parse_file)),
        is_error=bool(response and response.get("error")),
        name=text_field(result, "name"),
        extras=part,
    )


def _render_part(part: Part) -> dict[str, Any]:
    match part:
        case Text(text, extras):
            return {**extras, "text": text}
        case Data(value):
            return {"text": dump_text(value)}
        case ToolCall():
            return _render_call(part)
        case ToolResult():
            return _render_result(part)
        case Attachment(extras=extras) if not extras:
            return _render_file(part)
        case Reasoning(text, extras) if not extras:
            return {"text": text, "thought": True}
    return dict(part.extras)


def _render_file(file: Attachment) -> dict[str, Any]:
    """A file made by hand or elsewhere."""
    mime = {"mimeType": file.mime} if file.mime else {}
    if file.data is None:
        return {"fileData": {**mime, "fileUri": file.url or ""}}
    return {"inlineData": {**mime, "data": file.data}}


def _render_call(call: ToolCall) -> dict[str, Any]:
    key = _spelt(call.extras, "functionCall")
    inner = _with_id(call.extras.get(key), call.id)
    inner["name"] = call.name
    put_back(inner, "args", arguments_object(call), absent={})
    return {**(call.extras or _UNSIGNED), key: inner}


def _render_result(result: ToolResult) -> dict[str, Any]:
    key = _spelt(result.extras, "functionResponse")
    inner = _with_id(result.extras.get(key), result.call_id)
    inner["name"] = result.name or result.call_id
    said = [part for part in result.parts if isinstance(part, Text | Data)]
    if said or not result.extras or inner.get("response") is not None:
        inner["response"] = _render_response(said, "error" if result.is_error else "output")
    _put_back_parts(inner, tuple(part for part in result.parts if part not in said))
    return {**result.extras, key: inner}


def _with_id(before: Mapping[str, Any] | None, call_id: str) -> dict[str, Any]:
    """A call or result to write over; an id that `pairing` gave it stays off the wire."""
    if before is None:
        return {"id": call_id} if call_id else {}
    return {**before, "id": call_id} if before.get("id") else dict(before)


def _render_response(said: list[Text | Data], key: str) -> dict[str, Any]:
    match said:
        case [Data(value)]:
            return value if isinstance(value, dict) else {key: value}
    texts = (part.text if isinstance(part, Text) else dump_text(part.value) for part in said)
    return {key: "\n\n".join(texts)}


def _parse_tools(body: Mapping[str, Any]) -> tuple[Tool, ...]:
    groups = body.get("tools")
    parsed = () if groups is None else _each_or_one(groups, _parse_tool_group, "tools")
    return tuple(tool for group in parsed for tool in group)


def _parse_tool_group(raw: Any) -> tuple[Tool, ...]:
    """One entry of `tools`: declarations of functions, and built-in tools by their field."""
    raw = as_object(raw)
    key = _spelt(raw, "functionDeclarations")
    declared = () if raw.get(key) is None else each(raw[key], _parse_declaration, key)
    built_in = (name for name in raw if name != key and raw[name] is not None)
    return (*declared, *(Tool(name, extras={name: raw[name]}) for name in built_in))


def _parse_declaration(raw: Any) -> Tool:
    raw = as_object(raw)
    spelt = _spelt(raw, "parametersJsonSchema")
    key = "parameters" if raw.get(spelt) is None else spelt
    return Tool(
        text_field(raw, "name"),
        text_field(raw, "description", default=""),
        {} if raw.get(key) is None else object_field(raw, key),
        raw,
    )


def _put_back_tools(body: dict[str, Any], tools: tuple[Tool, ...]) -> None:
    """The body's own stay as they are; those made by hand or elsewhere are one more group."""
    added = [_render_tool(tool) for tool in tools if not tool.extras]
    if added:
        before = body.get("tools") or []
        groups = [before] if isinstance(before, dict) else before
        body["tools"] = [*groups, {"functionDeclarations": added}]


def _render_tool(tool: Tool) -> dict[str, Any]:
    """The schema goes into the newer field: `parameters` takes less than JSON schema has."""
    fields = {"description": tool.description, "parametersJsonSchema": tool.parameters}
    return {"name": tool.name, **{key: value for key, value in fields.items() if value}}


def _each_or_one(value: Any, parse_one: Callable[[Any], Item], place: str) -> tuple[Item, ...]:
    return each([value] if isinstance(value, dict) else value, parse_one, place)


def _like(before: Any, rendered: list[dict[str, Any]]) -> Any:
    """One object where there was one and still is; an array otherwise."""
    return rendered[0] if isinstance(before, dict) and len(rendered) == 1 else rendered


def _spelt(raw: Mapping[str, Any], name: str) -> str:
    """The field's name as this object spells it; camelCase, as in REST, where it has neither."""
    snake = _in_snake_case(name)
    return snake if raw.get(name) is None and snake in raw else name


@cache
def _in_snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
