"""Tools and calls in Chat Completions: an inner object, named by the type, describes each.

Before there were tools there were functions, in fields of their own. Those are read as tools and
calls too; their extras are that field alone, which is how they find their way back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from enfold.dialects.fields import (
    arguments_field,
    arguments_text,
    as_object,
    list_field,
    object_field,
    parse_field,
    put_back,
    put_back_list,
    text_field,
)
from enfold.messages import Extras, Tool, ToolCall

_OLD_CALL = "function_call"
_OLD_TOOLS = "functions"
_ARGUMENTS = {"function": "arguments", "custom": "input", _OLD_CALL: "arguments"}
"""The field of a call's arguments, by the field that describes the call."""


def parse_calls(raw: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The calls of an assistant's message."""
    calls = list_field(raw, "tool_calls", lambda call: _parse_call(call, _kind(as_object(call))))
    if raw.get(_OLD_CALL) is None:
        return calls
    return (*calls, _parse_call({_OLD_CALL: raw[_OLD_CALL]}, _OLD_CALL))


def put_back_calls(raw: dict[str, Any], calls: Sequence[ToolCall]) -> None:
    """Write the calls over those of an assistant's message."""
    old = [call for call in calls if _is_old(call.extras, _OLD_CALL)]
    if old:
        raw[_OLD_CALL] = _render_call(old[0], _OLD_CALL)[_OLD_CALL]
    elif raw.get(_OLD_CALL) is not None:
        del raw[_OLD_CALL]
    new = [call for call in calls if not _is_old(call.extras, _OLD_CALL)]
    put_back_list(raw, "tool_calls", [_render_call(call, _kind(call.extras)) for call in new])


def parse_tools(body: Mapping[str, Any]) -> tuple[Tool, ...]:
    """The tools that a request offers."""
    return (
        *list_field(body, "tools", _parse_tool),
        *list_field(body, _OLD_TOOLS, _parse_old_tool),
    )


def put_back_tools(body: dict[str, Any], tools: Sequence[Tool]) -> dict[str, Any]:
    """The request with the tools written over its own."""
    old = [tool for tool in tools if _is_old(tool.extras, _OLD_TOOLS)]
    new = [tool for tool in tools if not _is_old(tool.extras, _OLD_TOOLS)]
    functions = [lay_definition_over(tool.extras[_OLD_TOOLS], tool) for tool in old]
    put_back_list(body, "tools", [_render_tool(tool) for tool in new])
    put_back_list(body, _OLD_TOOLS, functions)
    return body


def read_definition(raw: Mapping[str, Any], extras: Extras, *, is_function: bool) -> Tool:
    """A tool from the object that holds its name, its description and a function's parameters."""
    parameters: dict[str, Any] | None = {} if is_function else None
    if is_function and raw.get("parameters") is not None:
        parameters = object_field(raw, "parameters")
    name = text_field(raw, "name", default="")
    return Tool(name, text_field(raw, "description", default=""), parameters, extras)


def lay_definition_over(raw: Mapping[str, Any], tool: Tool) -> dict[str, Any]:
    """That object again, as the tool is now."""
    definition = dict(raw)
    put_back(definition, "name", tool.name, absent="")
    put_back(definition, "description", tool.description, absent="")
    if tool.parameters is not None:
        put_back(definition, "parameters", tool.parameters, absent={})
    return definition


def _is_old(extras: Extras, field: str) -> bool:
    return extras.keys() == {field}


def _kind(raw: Mapping[str, Any]) -> str | None:
    """The field that describes a call or a tool; none for a type that enfold does not know."""
    kind = "custom" if raw.get("type") == "custom" else "function"
    return kind if kind in raw or raw.get("type") in (None, kind) else None


def _parse_call(raw: dict[str, Any], kind: str | None) -> ToolCall:
    call_id = text_field(raw, "id", default="")
    if kind is None:
        return ToolCall(call_id, "", "", raw)
    return parse_field(
        raw,
        kind,
        lambda inner: ToolCall(
            call_id,
            text_field(inner, "name", default=""),
            arguments_field(inner, _ARGUMENTS[kind]),
            raw,
        ),
    )


def _render_call(call: ToolCall, kind: str | None) -> dict[str, Any]:
    if not call.extras:
        function = {"name": call.name, "arguments": arguments_text(call)}
        return {"id": call.id, "type": "function", "function": function}
    raw = dict(call.extras)
    put_back(raw, "id", call.id, absent="")
    if kind is not None:
        raw[kind] = dict(raw[kind])
        put_back(raw[kind], "name", call.name, absent="")
        put_back(raw[kind], _ARGUMENTS[kind], call.arguments, absent="")
    return raw


def _parse_old_tool(raw: Any) -> Tool:
    return read_definition(as_object(raw), {_OLD_TOOLS: raw}, is_function=True)


def _parse_tool(raw: Any) -> Tool:
    raw = as_object(raw)
    kind = _kind(raw)
    if kind is None:
        return read_definition(raw, raw, is_function=False)
    return parse_field(
        raw, kind, lambda inner: read_definition(inner, raw, is_function=kind == "function")
    )


def _render_tool(tool: Tool) -> dict[str, Any]:
    raw = dict(tool.extras) or {"type": "function", "function": {}}
    kind = _kind(raw)
    if kind is None:
        return lay_definition_over(raw, tool)
    return {**raw, kind: lay_definition_over(raw[kind], tool)}
