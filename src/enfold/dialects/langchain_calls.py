"""The tool calls of a LangChain message: a call stands in several places, and is one call.

LangChain's own list is `tool_calls`; what it could not read is in `invalid_tool_calls`. Beside them
a message keeps what its provider sent: call blocks in the content, chunks of a stream, OpenAI's
calls in `additional_kwargs`. A call's extras say what was found in which place, so that a change of
its arguments reaches every one of them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from enfold.dialects.fields import (
    arguments_field,
    arguments_object,
    arguments_text,
    as_object,
    each,
    list_field,
    parse_field,
    text_field,
)
from enfold.dialects.langchain_blocks import are_the_same
from enfold.errors import DialectError, InputError
from enfold.jsontext import loads
from enfold.messages import Part, ToolCall

CONTENT = "content"
_LISTS = ("tool_calls", "invalid_tool_calls", "tool_call_chunks")
_OPENAI = "additional_kwargs.tool_calls"
_LEGACY = "additional_kwargs.function_call"


@dataclass(frozen=True, slots=True)
class _Form:
    """How an entry of one place, or a block of one type, writes a call."""

    arguments: str
    as_text: bool = False
    id: str = "id"
    inside: str = ""
    """The object in the entry that has name and arguments; empty if the entry itself has them."""


_FORMS: Mapping[str, _Form] = {
    "tool_calls": _Form("args"),
    "invalid_tool_calls": _Form("args", as_text=True),
    "tool_call_chunks": _Form("args", as_text=True),
    _OPENAI: _Form("arguments", as_text=True, inside="function"),
    _LEGACY: _Form("arguments", as_text=True),
}
_BLOCK_FORMS: Mapping[str, _Form] = {
    "tool_use": _Form("input"),
    "tool_call": _Form("args"),
    "invalid_tool_call": _Form("args", as_text=True),
    "tool_call_chunk": _Form("args", as_text=True),
    "function_call": _Form("arguments", as_text=True, id="call_id"),
}


def is_call_block(raw: Any) -> bool:
    """Whether an entry of a content array is a call."""
    return (
        isinstance(raw, dict) and isinstance(raw.get("type"), str) and raw["type"] in _BLOCK_FORMS
    )


def parse_call_block(raw: dict[str, Any]) -> ToolCall:
    """The call of a block, as if it stood nowhere else."""
    return _parse_entry(raw, CONTENT)


def join_calls(content: tuple[Any, ...], fields: Mapping[str, Any]) -> tuple[Any, ...]:
    """The parts of a content, its calls joined with their twins; calls that it lacks follow."""
    lists = {key: _parse_list(fields, key) for key in _LISTS}
    calls = _merge(
        lists["tool_calls"],
        lists["invalid_tool_calls"],
        [part for part in content if isinstance(part, ToolCall)],
        lists["tool_call_chunks"],
        *_parse_additional(fields.get("additional_kwargs")),
    )
    joined = {id(call.extras[CONTENT]): call for call in calls if CONTENT in call.extras}
    parts = (
        joined[id(part.extras[CONTENT])] if isinstance(part, ToolCall) else part for part in content
    )
    return (*parts, *(call for call in calls if CONTENT not in call.extras))


def place_calls(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts, with a place for each call made by hand.

    The lists of calls come after the content, broken calls last. Where that is not the order of
    the parts, the calls stand in the content too, as providers' call blocks do.
    """
    placed = tuple(_placed(part, in_content=False) for part in parts)
    order = [_rank(part) for part in placed]
    if order == sorted(order):
        return placed
    return tuple(_placed(part, in_content=True) for part in parts)


def render_call_block(call: ToolCall) -> dict[str, Any]:
    """The call's block again; the very same one if the call did not change."""
    return _render_entry(call, CONTENT)


def put_back_calls(fields: Mapping[str, Any], calls: Sequence[ToolCall]) -> dict[str, Any]:
    """The lists of calls as they are now; those that did not change are the very same."""
    lists = {key: _rebuild(fields.get(key), calls, key) for key in _LISTS}
    return {key: entries for key, entries in lists.items() if entries is not None}


def put_back_additional(additional: Any, calls: Sequence[ToolCall]) -> Any:
    """`additional_kwargs` with the calls that are left; the very same if nothing changed."""
    if not isinstance(additional, dict):
        return additional
    now = dict(additional)
    if "tool_calls" in additional:
        now["tool_calls"] = _rebuild(additional["tool_calls"], calls, _OPENAI)
    if isinstance(additional.get("function_call"), dict):
        kept = [_render_entry(call, _LEGACY) for call in calls if _LEGACY in call.extras]
        now["function_call"] = kept[0] if kept else None
    emptied = {key for key in now if not now[key] and additional[key]}
    now = {key: value for key, value in now.items() if key not in emptied}
    return additional if are_the_same([*now.values()], [*additional.values()]) else now


def _placed(part: Part, *, in_content: bool) -> Part:
    if isinstance(part, ToolCall) and not part.extras:
        return _place(part, in_content=in_content)
    return part


def _place(call: ToolCall, *, in_content: bool) -> ToolCall:
    arguments = _object_or_broken_text(call)
    entry: dict[str, Any] = {"name": call.name, "args": arguments, "id": call.id or None}
    if isinstance(arguments, str):
        extras = {"invalid_tool_calls": {**entry, "error": None, "type": "invalid_tool_call"}}
    else:
        extras = {"tool_calls": {**entry, "type": "tool_call"}}
    if in_content:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}
        extras[CONTENT] = block
    return replace(call, arguments=arguments, extras=extras)


def _rank(part: Part) -> int:
    if not isinstance(part, ToolCall) or CONTENT in part.extras:
        return 0
    return 2 if "invalid_tool_calls" in part.extras else 1


def _parse_list(fields: Mapping[str, Any], key: str) -> tuple[ToolCall, ...]:
    return list_field(fields, key, lambda raw: _parse_entry(as_object(raw), key))


def _parse_additional(additional: Any) -> tuple[list[ToolCall], list[ToolCall]]:
    """OpenAI's calls and its single call of old; other things under these names are not ours."""
    if not isinstance(additional, dict):
        return [], []
    listed = additional.get("tool_calls")
    single = additional.get("function_call")
    calls = each(listed if isinstance(listed, list) else [], _parse_openai, _OPENAI)
    old = [_parse_legacy(single)] if isinstance(single, dict) else []
    return [call for call in calls if call is not None], old


def _parse_openai(raw: Any) -> ToolCall | None:
    return _parse_entry(raw, _OPENAI) if _is_entry(raw, _OPENAI) else None


def _parse_legacy(raw: dict[str, Any]) -> ToolCall:
    try:
        return _parse_entry(raw, _LEGACY)
    except DialectError as error:
        raise error.at(_LEGACY) from None


def _is_entry(raw: Any, place: str) -> bool:
    """Whether the value is a call: the place may hold other things, which are left alone."""
    if not isinstance(raw, dict):
        return False
    inside = _FORMS[place].inside
    return not inside or isinstance(raw.get(inside), dict)


def _form(entry: Mapping[str, Any], place: str) -> _Form:
    return _BLOCK_FORMS[entry["type"]] if place == CONTENT else _FORMS[place]


def _parse_entry(entry: dict[str, Any], place: str) -> ToolCall:
    form = _form(entry, place)
    call_id = text_field(entry, form.id, default="")

    def parse_holder(holder: dict[str, Any]) -> ToolCall:
        name = text_field(holder, "name", default="")
        return ToolCall(call_id, name, arguments_field(holder, form.arguments), {place: entry})

    return parse_field(entry, form.inside, parse_holder) if form.inside else parse_holder(entry)


def _render_entry(call: ToolCall, place: str) -> dict[str, Any]:
    entry: dict[str, Any] = call.extras[place]
    first, found = next(iter(call.extras.items()))
    if call.arguments is _parse_entry(found, first).arguments:
        return entry
    form = _form(entry, place)
    holder = entry[form.inside] if form.inside else entry
    as_text = form.as_text or isinstance(holder.get(form.arguments), str)
    arguments = arguments_text(call) if as_text else arguments_object(call)
    changed = {**holder, form.arguments: arguments}
    return {**entry, form.inside: changed} if form.inside else changed


def _rebuild(before: Any, calls: Sequence[ToolCall], place: str) -> Any:
    """A list of calls as they are now, in the order in which they stood there."""
    standing = {id(call.extras[place]): call for call in calls if place in call.extras}
    now = []
    for entry in before if isinstance(before, list) else ():
        if id(entry) in standing:
            now.append(_render_entry(standing.pop(id(entry)), place))
        elif not _is_entry(entry, place):
            now.append(entry)
    now += [_render_entry(call, place) for call in standing.values()]
    return before if are_the_same(now, before or []) else now


def _merge(*places: Iterable[ToolCall]) -> list[ToolCall]:
    """The calls of all places, each once; the place named first says what a call is.

    An entry is the twin of a call with its id, or, where the place gives no ids, with its name.
    """
    calls: list[ToolCall] = []
    for place in places:
        by_id: dict[str, deque[int]] = defaultdict(deque)
        by_name: dict[str, deque[int]] = defaultdict(deque)
        for position, call in enumerate(calls):
            by_id[call.id].append(position)
            by_name[call.name].append(position)
        joined: set[int] = set()
        for entry in place:
            twins = by_id[entry.id] if entry.id else by_name[entry.name]
            while twins and twins[0] in joined:
                twins.popleft()
            if not twins:
                calls.append(entry)
                continue
            position = twins.popleft()
            joined.add(position)
            extras = {**calls[position].extras, **entry.extras}
            calls[position] = replace(calls[position], extras=extras)
    return calls


def _object_or_broken_text(call: ToolCall) -> dict[str, Any] | str:
    """The arguments as the object they should be; as they are if they are no object's JSON."""
    if not isinstance(call.arguments, str):
        return dict(call.arguments)
    try:
        value = loads(call.arguments or "{}")
    except InputError:
        return call.arguments
    return value if isinstance(value, dict) else call.arguments
