"""The `langchain` dialect: LangChain's messages, as objects or as the dicts it dumps.

Objects give objects and dicts give dicts of the same shape; a message that did not change is the
very same value. A conversation of another dialect gives dicts, as JSON needs them, unless objects
are asked for. `langchain_core` is imported only when a new object has to be made.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeAlias

from enfold.errors import ConfigError, DialectError, InputError
from enfold.jsontext import dump_text, loads
from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Extras,
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
from enfold.wire import openai
from enfold.wire.fields import (
    arguments_field,
    arguments_object,
    arguments_text,
    as_object,
    choice_field,
    each,
    file_from_base64,
    file_from_url,
    flag_field,
    kind_of,
    list_field,
    object_field,
    parse_field,
    split_body,
    text_field,
    with_defaults,
)
from enfold.wire.translation import pair_calls, single_entry, without_extras

_Blocks: TypeAlias = Mapping[str, Callable[[dict[str, Any]], Any]]
"""How a block of each type is parsed."""

BARE: Extras = {"langchain": "bare text"}
"""The extras of a text that stands in an array without a block around it."""


def parse_content(content: Any, parse_block: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Parts of a content: a text, or an array of texts and blocks."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return () if content is None else each(content, parse_block, "content")


def render_content(parts: tuple[Any, ...], render_part: Callable[[Any], Any], before: Any) -> Any:
    """The content again; `before` itself if nothing in it changed."""
    if not parts:
        return "" if before else before
    match parts:
        case (Text(text, extras),) if not extras:
            return text
    now = [render_part(part) for part in parts]
    return before if are_the_same(now, before) else now


def parse_block(raw: Any) -> Any:
    """The part of one entry of a content array."""
    return _parse(raw, _BLOCKS)


def parse_result_block(raw: Any) -> Any:
    """The part of one entry of a tool result's content array."""
    return _parse(raw, _RESULT_BLOCKS)


def _parse(raw: Any, parsers: _Blocks) -> Any:
    if isinstance(raw, str):
        return Text(raw, BARE)
    if not isinstance(raw, dict):
        raise DialectError(f"expected text or an object, found {kind_of(raw)}")
    kind = raw.get("type")
    return parsers[kind](raw) if isinstance(kind, str) and kind in parsers else Unknown(raw)


def render_block(part: Any) -> Any:
    """The entry of a content array again; the very same one if it did not change."""
    match part:
        case Text(text, extras) if extras == BARE:
            return text
        case Text():
            return _render_text(part)
        case ToolResult() if part.extras:
            return _render_result(part)
        case Unknown(extras):
            return extras
        case Attachment(extras=extras) | Reasoning(extras=extras) if extras:
            return extras
        case Attachment():
            return _render_attachment(part)
        case Reasoning(text):
            return {"type": "reasoning", "reasoning": text}
        case Data(value):
            return {"type": "text", "text": dump_text(value)}
    raise DialectError(f"a {type(part).__name__} part has no place in a message's content")


def readable(raw: Any) -> str:
    """Return the readable text of a provider's reasoning."""
    if isinstance(raw, str):
        return raw
    if not isinstance(raw, dict):
        return ""
    inner = raw.get("reasoning_content")
    holder = inner if isinstance(inner, dict) else raw
    texts = [holder.get(key) for key in ("reasoning", "thinking", "text")]
    for key in ("summary", "content"):
        items = holder.get(key)
        if isinstance(items, list):
            texts += [item.get("text") for item in items if isinstance(item, dict)]
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def _parse_text(raw: dict[str, Any]) -> Text:
    return Text(text_field(raw, _text_key(raw)), raw)


def _text_key(raw: Mapping[str, Any]) -> str:
    return "refusal" if raw.get("type") == "refusal" else "text"


def _langchain_blocks_parse_reasoning(raw: dict[str, Any]) -> Reasoning:
    return Reasoning(readable(raw), raw)


def _langchain_blocks_parse_result(raw: dict[str, Any]) -> ToolResult:
    return ToolResult(
        call_id=text_field(raw, "tool_use_id", default=""),
        parts=parse_content(raw.get("content"), parse_result_block),
        is_error=flag_field(raw, "is_error"),
        extras=raw,
    )


def _render_result(result: ToolResult) -> Any:
    raw = result.extras
    content = render_content(result.parts, render_block, raw.get("content"))
    return raw if content is raw.get("content") else {**raw, "content": content}


def _parse_file(raw: dict[str, Any]) -> Text | Attachment:
    """A file; one of plain text is text, because the model reads it as such."""
    if _is_text_document(raw):
        return Text(raw["source"]["data"], raw)
    is_written = raw["type"] == "text-plain" or raw.get("source_type") == "text"
    if is_written and isinstance(raw.get("text"), str):
        return Text(raw["text"], raw)
    return _parse_attachment(raw)


def _is_text_document(raw: Mapping[str, Any]) -> bool:
    """Return True for a document block of plain text."""
    match raw:
        case {"type": "document", "source": {"type": "text", "data": str()}}:
            return True
    return False


def _render_text(part: Text) -> Any:
    raw = part.extras
    if not _is_text_document(raw):
        key = _text_key(raw)
        is_same = raw.get(key) is part.text
        return raw if is_same else {**with_defaults(raw, type="text"), key: part.text}
    source = raw["source"]
    if source["data"] is part.text:
        return raw
    return {**raw, "source": {**source, "data": part.text}}


def _parse_attachment(raw: dict[str, Any]) -> Attachment:
    """Its content is carried, not read, so what is written in another way is not an error."""
    fields = _with_inner_fields(raw)
    name = _first_text(fields, "filename", "title", "name")
    mime = _first_text(fields, "mime_type", "media_type")
    if not mime and (sound := _first_text(fields, "format")):
        mime = f"audio/{sound}"
    if data := _first_text(fields, "base64", "data", "file_data"):
        if data.startswith("data:"):
            return file_from_url(data, mime, name, raw)
        return file_from_base64(data, mime, name, raw)
    url = _first_text(fields, "url", "image_url", "file_url", "file_uri")
    return file_from_url(url, mime, name, raw) if url else Attachment(name, mime, extras=raw)


def _with_inner_fields(raw: dict[str, Any]) -> dict[str, Any]:
    """The block's fields, and those of the object in it that says where the content is."""
    inner = [value for key in _SOURCES if isinstance(value := raw.get(key), dict)]
    notes = [value for key in ("metadata", "extras") if isinstance(value := raw.get(key), dict)]
    return {key: value for fields in (*notes, raw, *inner) for key, value in fields.items()}


def _first_text(fields: Mapping[str, Any], *keys: str) -> str:
    texts = (fields.get(key) for key in keys)
    return next((text for text in texts if isinstance(text, str) and text), "")


def _render_attachment(file: Attachment) -> dict[str, Any]:
    """As LangChain's own block, which its integrations turn into what their provider takes."""
    kind = file.mime.partition("/")[0]
    raw = {
        "type": kind if kind in ("image", "audio", "video") else "file",
        "mime_type": file.mime,
        "base64": file.data,
        "url": file.url,
        "filename": file.name,
    }
    return {key: value for key, value in raw.items() if value}


def are_the_same(now: list[Any], before: Any) -> bool:
    """Return True if the lists hold identical objects, not only equal ones."""
    return (
        isinstance(before, list)
        and len(now) == len(before)
        and all(new is old for new, old in zip(now, before, strict=True))
    )


_SOURCES = ("source", "file", "image_url", "input_audio")
_RESULT_BLOCKS: _Blocks = {
    **dict.fromkeys(("text", "input_text", "output_text", "refusal"), _parse_text),
    **dict.fromkeys(("image", "audio", "video", "file", "text-plain"), _parse_file),
    **dict.fromkeys(("image_url", "input_audio"), _parse_file),
    **dict.fromkeys(("input_image", "input_file"), _parse_file),
    **dict.fromkeys(("document", "media"), _parse_file),
}
_BLOCKS: _Blocks = {
    **_RESULT_BLOCKS,
    **dict.fromkeys(("reasoning", "reasoning_content"), _langchain_blocks_parse_reasoning),
    **dict.fromkeys(("thinking", "redacted_thinking"), _langchain_blocks_parse_reasoning),
    "tool_result": _langchain_blocks_parse_result,
}


CONTENT = "content"
_LISTS = ("tool_calls", "invalid_tool_calls", "tool_call_chunks")
_ADDITIONAL_CALLS = "additional_kwargs.tool_calls"
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
    _ADDITIONAL_CALLS: _Form("arguments", as_text=True, inside="function"),
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
    """Return True if an entry of a content array is a call."""
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
        now["tool_calls"] = _rebuild(additional["tool_calls"], calls, _ADDITIONAL_CALLS)
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
    calls = each(
        listed if isinstance(listed, list) else [], _parse_additional_call, _ADDITIONAL_CALLS
    )
    old = [_parse_legacy(single)] if isinstance(single, dict) else []
    return [call for call in calls if call is not None], old


def _parse_additional_call(raw: Any) -> ToolCall | None:
    return _parse_entry(raw, _ADDITIONAL_CALLS) if _is_entry(raw, _ADDITIONAL_CALLS) else None


def _parse_legacy(raw: dict[str, Any]) -> ToolCall:
    try:
        return _parse_entry(raw, _LEGACY)
    except DialectError as error:
        raise error.at(_LEGACY) from None


def _is_entry(raw: Any, place: str) -> bool:
    """Return True if the value is a call; other values in its place are kept."""
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


_BASES = ("Human", "AI", "System", "Chat", "Function", "Tool")
CLASSES: Mapping[str, str] = {
    **{base.lower(): f"{base}Message" for base in (*_BASES, "Remove")},
    **{f"{base}MessageChunk": f"{base}MessageChunk" for base in _BASES},
}
"""The class of each message type."""

_LANGCHAIN_SHAPES_TYPES = {name: type_ for type_, name in CLASSES.items()}
_TYPE_NAMES = {type_: type_ for type_ in CLASSES}


@dataclass(frozen=True, slots=True)
class LangChainShape:
    """One way to hold a message's fields."""

    read: Callable[[Any], tuple[str, dict[str, Any]]]
    """The message's type and its fields."""
    change: Callable[[Any, dict[str, Any]], Any]
    """The same message with some fields changed."""
    make: Callable[[str, dict[str, Any]], Any]
    """A message of that type, from its fields."""


def is_object(value: Any) -> bool:
    """Return True if the value looks like a LangChain message object."""
    return (
        isinstance(getattr(value, "type", None), str)
        and hasattr(value, "content")
        and hasattr(value, "additional_kwargs")
        and hasattr(value, "model_copy")
    )


def shape_of(raw: Any) -> str:
    """The name of the message's shape."""
    if not isinstance(raw, dict):
        if is_object(raw):
            return "object"
        raise DialectError(f"expected a LangChain message or its dict, found {kind_of(raw)}")
    if "lc" in raw:
        return "lc"
    return "data" if "data" in raw and "content" not in raw else "flat"


def _read_object(raw: Any) -> tuple[str, dict[str, Any]]:
    return choice_field({"type": raw.type}, "type", _TYPE_NAMES), dict(raw)


def _change_object(raw: Any, changes: dict[str, Any]) -> Any:
    return raw.model_copy(update=changes)


def _make_object(type_: str, fields: dict[str, Any]) -> Any:
    try:
        from langchain_core import messages
    except ImportError:
        raise ConfigError(
            "LangChain message objects need langchain-core, which is not installed; "
            "install enfold[langchain], or ask for dicts"
        ) from None
    arguments = {key: value for key, value in fields.items() if key != "type"}
    try:
        return getattr(messages, CLASSES[type_])(**arguments)
    except (ValueError, TypeError, KeyError):
        # Its validators raise all three. What they say quotes the message, so it is left out.
        raise DialectError(f"langchain-core refuses these fields in a {type_} message") from None


def _read_data(raw: Any) -> tuple[str, dict[str, Any]]:
    return choice_field(raw, "type", _TYPE_NAMES), object_field(raw, "data")


def _change_data(raw: Any, changes: dict[str, Any]) -> Any:
    return {**raw, "data": {**raw["data"], **changes}}


def _make_data(type_: str, fields: dict[str, Any]) -> Any:
    return {"type": type_, "data": fields}


def _read_flat(raw: Any) -> tuple[str, dict[str, Any]]:
    return choice_field(raw, "type", _TYPE_NAMES), as_object(raw)


def _change_flat(raw: Any, changes: dict[str, Any]) -> Any:
    return {**raw, **changes}


def _make_flat(type_: str, fields: dict[str, Any]) -> Any:
    return {**fields, "type": type_}


def _read_lc(raw: Any) -> tuple[str, dict[str, Any]]:
    if text_field(raw, "type") != "constructor":
        raise DialectError("expected a serialised object: constructor", place="type")
    fields = object_field(raw, "kwargs")
    path = raw.get("id")
    name = path[-1] if isinstance(path, list) and path else None
    if isinstance(name, str) and name in _LANGCHAIN_SHAPES_TYPES:
        return _LANGCHAIN_SHAPES_TYPES[name], fields
    # A subclass of somebody's own: its type still says which message it is.
    try:
        return choice_field(fields, "type", _TYPE_NAMES), fields
    except DialectError as error:
        raise error.at("kwargs") from None


def _change_lc(raw: Any, changes: dict[str, Any]) -> Any:
    return {**raw, "kwargs": {**raw["kwargs"], **changes}}


def _make_lc(type_: str, fields: dict[str, Any]) -> Any:
    path = ["langchain", "schema", "messages", CLASSES[type_]]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": fields}


SHAPES: Mapping[str, LangChainShape] = {
    "object": LangChainShape(_read_object, _change_object, _make_object),
    "data": LangChainShape(_read_data, _change_data, _make_data),
    "flat": LangChainShape(_read_flat, _change_flat, _make_flat),
    "lc": LangChainShape(_read_lc, _change_lc, _make_lc),
}
"""By name."""

FIELDS_AT: Mapping[str, str] = {"object": "", "data": "data", "flat": "", "lc": "kwargs"}
"""Where in each shape the fields are, for saying where one is wrong."""


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
    """Return the conversation as it was parsed, with its current messages.

    A conversation of another dialect is translated. New messages take the shape of the others, or
    `data` if there are none. With a `shape` (`object`, `data`, `flat` or `lc`) all take it.
    """
    if shape is not None and shape not in SHAPES:
        names = ", ".join(SHAPES)
        raise ConfigError(f"no shape {shape!r} of LangChain messages; there are {names}")
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
    return single_entry([_render(own, _shape(own) or _NEW) for own in _adopt((message,))], NAME)


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
    """Return reasoning that a provider's integration keeps outside the content."""
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
    """Return the fields whose values are not the identical objects that were parsed."""
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

    A user's text comes after the results of the same message: results must follow their calls.
    """
    plain = without_extras(message, NAME)
    plain = replace(plain, role="user" if plain.role == "tool" else plain.role)
    parts = list(plain.parts)
    if plain.role != "assistant":
        parts.sort(key=lambda part: not isinstance(part, ToolResult))
    pieces: list[Message] = [] if message.parts else [plain]
    for is_result, group in groupby(parts, lambda part: isinstance(part, ToolResult)):
        run = tuple(group)
        results = [Message("tool", (part,), dialect=NAME) for part in run]
        pieces += results if is_result else [replace(plain, parts=run)]
    for index, piece in enumerate(pieces):
        yield replace(piece, id=None if index else message.id)


def _parse_tools(body: Mapping[str, Any]) -> tuple[Tool, ...]:
    """Tools as OpenAI writes them, which is how LangChain binds them; a state may hold others."""
    tools = body.get("tools")
    if not isinstance(tools, list) or not all(_is_function(tool) for tool in tools):
        return ()
    return openai.parse({"messages": [], "tools": tools}).tools


def _render_beside(conversation: Conversation) -> Mapping[str, Any] | None:
    """Return the other fields of a state, and its new tools."""
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
