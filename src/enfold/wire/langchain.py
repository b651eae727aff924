"""The `langchain` dialect: LangChain's messages, as objects or as the dicts it dumps.

Objects are rendered as objects and dicts as dicts of the same shape; an unchanged message is the
identical value. A conversation of another dialect is rendered as dicts, as JSON needs them, unless
objects are requested. `langchain_core` is imported only to make a new object.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
    optional_text,
    parse_content,
    parse_field,
    split_body,
    text_field,
    with_defaults,
)
from enfold.wire.openai import text_key
from enfold.wire.translation import (
    pair_calls,
    single_entry,
    with_results_apart,
    without_extras,
)

_Blocks: TypeAlias = Mapping[str, Callable[[dict[str, Any]], Any]]
"""The parser of each block type."""

BARE: Extras = {"langchain": "bare text"}
"""The extras of a text that stands in an array without a block around it."""


def _render_content(parts: tuple[Any, ...], before: Any) -> Any:
    """Return the content; `before` itself if no part of it changed."""
    if not parts:
        return "" if before else before
    match parts:
        case (Text(text, extras),) if not extras:
            return text
    now = [_render_block(part) for part in parts]
    return before if _are_identical(now, before) else now


def _parse_block(parsers: _Blocks, raw: Any) -> Any:
    """Return the part of one entry of a content array."""
    if isinstance(raw, str):
        return Text(raw, BARE)
    if not isinstance(raw, dict):
        raise DialectError(f"expected text or an object, found {kind_of(raw)}")
    kind = raw.get("type")
    return parsers[kind](raw) if isinstance(kind, str) and kind in parsers else Unknown(raw)


def _render_block(part: Any) -> Any:
    """Return the entry of a content array; the parsed one itself if the part did not change."""
    match part:
        case ToolCall():
            return _render_entry(part, CONTENT)
        case Text(text, extras) if extras == BARE:
            return text
        case Text():
            return _render_text(part)
        case ToolResult() if part.extras:
            return _render_result(part)
        case Unknown(extras) | Attachment(extras=extras) | Reasoning(extras=extras) if (
            extras or isinstance(part, Unknown)
        ):
            return extras
        case Attachment():
            return _render_attachment(part)
        case Reasoning(text):
            return {"type": "reasoning", "reasoning": text}
        case Data(value):
            return {"type": "text", "text": dump_text(value)}
    raise DialectError(f"a {type(part).__name__} part has no place in a message's content")


def _readable(raw: Any) -> str:
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


def _parse_result_block(raw: dict[str, Any]) -> ToolResult:
    return ToolResult(
        call_id=text_field(raw, "tool_use_id", default=""),
        parts=parse_content(raw.get("content"), partial(_parse_block, _RESULT_BLOCKS)),
        is_error=flag_field(raw, "is_error"),
        extras=raw,
    )


def _render_result(result: ToolResult) -> Any:
    raw = result.extras
    content = _render_content(result.parts, raw.get("content"))
    return raw if content is raw.get("content") else {**raw, "content": content}


def _parse_file(raw: dict[str, Any]) -> Text | Attachment:
    """Return a file; plain text becomes a `Text`, because the model reads all of it."""
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
        key = text_key(raw)
        is_same = raw.get(key) is part.text
        return raw if is_same else {**with_defaults(raw, type="text"), key: part.text}
    source = raw["source"]
    if source["data"] is part.text:
        return raw
    return {**raw, "source": {**source, "data": part.text}}


def _parse_attachment(raw: dict[str, Any]) -> Attachment:
    """Return an attachment. Its content is not read, so an unknown form is not an error."""
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
    """Return the block's fields with those of the object inside that describes the content."""
    inner = [value for key in _SOURCES if isinstance(value := raw.get(key), dict)]
    notes = [value for key in ("metadata", "extras") if isinstance(value := raw.get(key), dict)]
    return {key: value for fields in (*notes, raw, *inner) for key, value in fields.items()}


def _first_text(fields: Mapping[str, Any], *keys: str) -> str:
    texts = (fields.get(key) for key in keys)
    return next((text for text in texts if isinstance(text, str) and text), "")


def _render_attachment(file: Attachment) -> dict[str, Any]:
    """Return LangChain's standard block, which its integrations translate for their providers."""
    kind = file.mime.partition("/")[0]
    raw = {
        "type": kind if kind in ("image", "audio", "video") else "file",
        "mime_type": file.mime,
        "base64": file.data,
        "url": file.url,
        "filename": file.name,
    }
    return {key: value for key, value in raw.items() if value}


def _are_identical(now: list[Any], before: Any) -> bool:
    """Return True if the lists hold identical objects, not only equal ones."""
    return (
        isinstance(before, list)
        and len(now) == len(before)
        and all(new is old for new, old in zip(now, before, strict=True))
    )


_SOURCES = ("source", "file", "image_url", "input_audio")
_RESULT_BLOCKS: _Blocks = {
    **dict.fromkeys(
        ("text", "input_text", "output_text", "refusal"),
        lambda raw: Text(text_field(raw, text_key(raw)), raw),
    ),
    **dict.fromkeys(("image", "audio", "video", "file", "text-plain"), _parse_file),
    **dict.fromkeys(("image_url", "input_audio", "input_image", "input_file"), _parse_file),
    **dict.fromkeys(("document", "media"), _parse_file),
}
_BLOCKS: _Blocks = {
    **_RESULT_BLOCKS,
    **dict.fromkeys(
        ("reasoning", "reasoning_content", "thinking", "redacted_thinking"),
        lambda raw: Reasoning(_readable(raw), raw),
    ),
    "tool_result": _parse_result_block,
}


CONTENT = "content"
_LISTS = ("tool_calls", "invalid_tool_calls", "tool_call_chunks")
_ADDITIONAL_CALLS = "additional_kwargs.tool_calls"
_LEGACY = "additional_kwargs.function_call"


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of a call in the entries of one field, or in blocks of one type."""

    arguments: str
    as_text: bool = False
    id: str = "id"
    inside: str = ""
    """The object in the entry that holds name and arguments; empty: the entry itself."""


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
_AI_BLOCKS: _Blocks = {
    **_BLOCKS,
    **dict.fromkeys(_BLOCK_FORMS, lambda raw: _parse_entry(raw, CONTENT)),
}
"""Only the messages of a model have calls among their blocks."""


def _join_calls(content: tuple[Any, ...], fields: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the parts of a content and the calls that only other fields have.

    LangChain repeats a call in several fields; all entries of a call become one part.
    """
    lists = {key: list_field(fields, key, partial(_parse_entry, place=key)) for key in _LISTS}
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


def _place_calls(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts with entries for each new call.

    The lists of calls come after the content, broken calls last. If that is not the order of the
    parts, the calls are in the content too, like the call blocks of providers.
    """
    placed = tuple(_with_entries(part, in_content=False) for part in parts)
    order = [_rank(part) for part in placed]
    if order == sorted(order):
        return placed
    return tuple(_with_entries(part, in_content=True) for part in parts)


def _with_entries(call: Part, *, in_content: bool) -> Part:
    """Return a new call with its entries in the fields of a message; other parts as they are."""
    if not isinstance(call, ToolCall) or call.extras:
        return call
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


def _parse_additional(additional: Any) -> tuple[list[ToolCall], list[ToolCall]]:
    """Return the calls in `additional_kwargs`: a list, and the older single call.

    Values of other kinds under these names are not calls.
    """
    if not isinstance(additional, dict):
        return [], []
    listed, single = additional.get("tool_calls"), additional.get("function_call")
    calls = each(
        listed if isinstance(listed, list) else [],
        lambda raw: (
            _parse_entry(raw, _ADDITIONAL_CALLS) if _is_entry(raw, _ADDITIONAL_CALLS) else None
        ),
        _ADDITIONAL_CALLS,
    )
    found = [call for call in calls if call is not None]
    if not isinstance(single, dict):
        return found, []
    try:
        return found, [_parse_entry(single, _LEGACY)]
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


def _parse_entry(raw: Any, place: str) -> ToolCall:
    entry = as_object(raw)
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
    """Return a list of calls with their current content, in its old order."""
    by_entry = {id(call.extras[place]): call for call in calls if place in call.extras}
    now = []
    for entry in before if isinstance(before, list) else ():
        if id(entry) in by_entry:
            now.append(_render_entry(by_entry.pop(id(entry)), place))
        elif not _is_entry(entry, place):
            now.append(entry)
    now += [_render_entry(call, place) for call in by_entry.values()]
    return before if _are_identical(now, before or []) else now


def _merge(*places: Iterable[ToolCall]) -> list[ToolCall]:
    """Return the calls of all places, each once; the content of the first entry is used.

    Entries with the same id are the same call; in places without ids, those with the same name.
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
            same = by_id[entry.id] if entry.id else by_name[entry.name]
            while same and same[0] in joined:
                same.popleft()
            if not same:
                calls.append(entry)
                continue
            position = same.popleft()
            joined.add(position)
            extras = {**calls[position].extras, **entry.extras}
            calls[position] = replace(calls[position], extras=extras)
    return calls


def _object_or_broken_text(call: ToolCall) -> dict[str, Any] | str:
    """Return the arguments as an object; their text if it is not the JSON of an object."""
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

_TYPE_OF_CLASS = {name: type_ for type_, name in CLASSES.items()}
_TYPE_NAMES = {type_: type_ for type_ in CLASSES}


def is_object(value: Any) -> bool:
    """Return True if the value looks like a LangChain message object."""
    return (
        isinstance(getattr(value, "type", None), str)
        and hasattr(value, "content")
        and hasattr(value, "additional_kwargs")
        and hasattr(value, "model_copy")
    )


SHAPES = ("object", "data", "flat", "lc")
"""The forms of a message: an object, or a dict as LangChain's three ways of dumping write it."""
_FIELDS_KEYS = {"data": "data", "lc": "kwargs"}
"""The key under which a dict has the message's fields, in shapes that do not have them directly."""


def shape_of(raw: Any) -> str:
    """Return the name of the message's shape."""
    if not isinstance(raw, dict):
        if is_object(raw):
            return "object"
        raise DialectError(f"expected a LangChain message or its dict, found {kind_of(raw)}")
    if "lc" in raw:
        return "lc"
    return "data" if "data" in raw and "content" not in raw else "flat"


def read_fields(raw: Any, shape: str) -> tuple[str, dict[str, Any]]:
    """Return the message's type and its fields."""
    match shape:
        case "object":
            return choice_field({"type": raw.type}, "type", _TYPE_NAMES), dict(raw)
        case "data":
            return choice_field(raw, "type", _TYPE_NAMES), object_field(raw, "data")
        case "flat":
            return choice_field(raw, "type", _TYPE_NAMES), raw
    if text_field(raw, "type") != "constructor":
        raise DialectError("expected a serialised object: constructor", place="type")
    fields = object_field(raw, "kwargs")
    path = raw.get("id")
    name = path[-1] if isinstance(path, list) and path else None
    if isinstance(name, str) and name in _TYPE_OF_CLASS:
        return _TYPE_OF_CLASS[name], fields
    # The class is a program's subclass; the type still names the kind of message.
    try:
        return choice_field(fields, "type", _TYPE_NAMES), fields
    except DialectError as error:
        raise error.at("kwargs") from None


def change_fields(raw: Any, shape: str, changes: dict[str, Any]) -> Any:
    """Return the message with some fields changed."""
    if shape == "object":
        return raw.model_copy(update=changes)
    key = _FIELDS_KEYS.get(shape)
    return {**raw, **changes} if key is None else {**raw, key: {**raw[key], **changes}}


def make_message(shape: str, type_: str, fields: dict[str, Any]) -> Any:
    """Return a new message of that type."""
    match shape:
        case "object":
            return _make_object(type_, fields)
        case "data":
            return {"type": type_, "data": fields}
        case "flat":
            return {**fields, "type": type_}
    path = ["langchain", "schema", "messages", CLASSES[type_]]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": fields}


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
        # Its validators raise all three. Their texts quote the message, so they are left out.
        raise DialectError(f"langchain-core refuses these fields in a {type_} message") from None


NAME = "langchain"

_ROLES: Mapping[str, Role] = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "function": "tool",
    "tool": "tool",
    "remove": "system",
}
"""A `remove` message asks a graph to delete another message. A model does not receive it: its only
part is unknown, and other dialects leave it out."""
_CHAT_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "user": "user",
    "human": "user",
}
"""The roles that a `ChatMessage` may name; any other name is that of a user."""
_TYPES: Mapping[Role, str] = {
    "user": "human",
    "assistant": "ai",
    "system": "system",
    "tool": "tool",
}
_REASONING_FIELDS = ("reasoning_content", "reasoning")
_RESULT_KINDS = ("tool", "function")
_NEW = "data"
"""The shape of new messages in a conversation without other messages."""
_OBJECT = "object"
"""The key of a message's extras that holds its object; the dicts all have a `type` instead."""


def parse(value: Any) -> Conversation:
    """Return the conversation of an array of messages, or of a state with `messages`."""
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
        raise ConfigError(f"no shape {shape!r} of LangChain messages; available: {names}")
    shapes = map(_shape, conversation.messages)
    new = shape or next(filter(None, shapes), _NEW)
    system = () if conversation.system is None else (conversation.system,)
    adopted = _adopt((*system, *conversation.messages))
    messages = [_render(message, shape or _shape(message) or new) for message in adopted]
    body = _render_state(conversation)
    return messages if body is None else {**body, "messages": messages}


def parse_message(raw: Any) -> Message:
    """Return one message, in any of the shapes."""
    shape = shape_of(raw)
    type_, fields = read_fields(raw, shape)
    try:
        return _parse_fields(type_, fields, {_OBJECT: raw} if shape == _OBJECT else raw)
    except DialectError as error:
        key = _FIELDS_KEYS.get(shape)
        raise (error.at(key) if key else error) from None


def render_message(message: Message) -> Any:
    """Return one message in its shape; a new or translated one in the shape `data`."""
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
        blocks = parse_content(content, partial(_parse_block, _AI_BLOCKS))
        parts = (*_parse_reasoning(fields), *_join_calls(blocks, fields))
    else:
        parts = parse_content(content, partial(_parse_block, _BLOCKS))
    return Message(
        role=_CHAT_ROLES.get(_chat_role(fields), "user") if kind == "chat" else _ROLES[kind],
        parts=parts,
        id=optional_text(fields, "id"),
        name=_speaker(kind, fields),
        dialect=NAME,
        extras=extras,
    )


def _kind(type_: str) -> str:
    """Return the type of a message; a chunk has the type of the whole message."""
    return type_.removesuffix("MessageChunk").lower()


def _chat_role(fields: Mapping[str, Any]) -> str:
    return text_field(fields, "role").lower()


def _speaker(kind: str, fields: Mapping[str, Any]) -> str | None:
    name = None if kind in _RESULT_KINDS else optional_text(fields, "name")
    if name is None and kind == "chat" and _chat_role(fields) not in _CHAT_ROLES:
        return text_field(fields, "role")
    return name


def _parse_result(fields: Mapping[str, Any]) -> ToolResult:
    return ToolResult(
        call_id=text_field(fields, "tool_call_id", default=""),
        parts=parse_content(fields.get("content"), partial(_parse_block, _RESULT_BLOCKS)),
        is_error=fields.get("status") == "error",
        name=text_field(fields, "name", default=""),
    )


def _parse_reasoning(fields: Mapping[str, Any]) -> tuple[Reasoning, ...]:
    """Return reasoning that a provider's integration keeps outside the content."""
    additional = fields.get("additional_kwargs")
    if not isinstance(additional, dict):
        return ()
    return tuple(
        Reasoning(_readable(additional[field]), {field: additional[field]})
        for field in _REASONING_FIELDS
        if additional.get(field)
    )


def _raw(message: Message) -> Any:
    """Return the message as it was parsed; None for a new one."""
    return (message.extras if "type" in message.extras else message.extras.get(_OBJECT)) or None


def _shape(message: Message) -> str | None:
    raw = _raw(message) if message.dialect == NAME else None
    return None if raw is None else shape_of(raw)


def _render(message: Message, shape: str) -> Any:
    raw = _raw(message)
    if raw is None:
        type_, fields = _new_fields(message)
        return make_message(shape, type_, {**fields, **_changes(message, type_, fields)})
    before = shape_of(raw)
    type_, fields = read_fields(raw, before)
    changes = _changes(message, type_, fields)
    if shape != before:
        return make_message(shape, type_, {**fields, **changes})
    return change_fields(raw, shape, changes) if changes else raw


def _new_fields(message: Message) -> tuple[str, dict[str, Any]]:
    """Return the type and the empty fields of a new message; only an `ai` message has calls."""
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
        match parts:
            case (ToolResult() as result,):
                parts = result.parts
            case _:
                raise DialectError("a LangChain tool message is one tool result and nothing else")
        now |= _changed_result(result, fields)
    elif message.name != _speaker(kind, fields):
        now["name"] = message.name
    if kind == "ai":
        parts = _place_calls(parts)
        calls = [part for part in parts if isinstance(part, ToolCall)]
        lists = {key: _rebuild(fields.get(key), calls, key) for key in _LISTS}
        now |= {key: entries for key, entries in lists.items() if entries is not None}
        now["additional_kwargs"] = _put_back_additional(fields, parts, calls)
    if kind != "remove":
        content = tuple(part for part in parts if _is_in_content(part))
        now["content"] = _render_content(content, fields.get("content"))
    return {key: value for key, value in now.items() if value is not fields.get(key)}


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


def _put_back_additional(
    fields: Mapping[str, Any], parts: tuple[Part, ...], calls: list[ToolCall]
) -> Any:
    """Return `additional_kwargs` with the remaining calls and reasoning; itself if nothing changed.

    Reasoning is never edited, only dropped as a whole.
    """
    additional = fields.get("additional_kwargs")
    if not isinstance(additional, dict):
        return additional
    now = dict(additional)
    if isinstance(additional.get("tool_calls"), list):
        now["tool_calls"] = _rebuild(additional["tool_calls"], calls, _ADDITIONAL_CALLS)
    if isinstance(additional.get("function_call"), dict):
        kept = [_render_entry(call, _LEGACY) for call in calls if _LEGACY in call.extras]
        now["function_call"] = kept[0] if kept else None
    before = {field for part in _parse_reasoning(fields) for field in part.extras}
    after = {field for part in parts if isinstance(part, Reasoning) for field in part.extras}
    now |= dict.fromkeys(before - after)
    now = {key: value for key, value in now.items() if value or not additional[key]}
    return additional if _are_identical([*now.values()], [*additional.values()]) else now


def _adopt(messages: tuple[Message, ...]) -> Iterator[Message]:
    """Yield the messages in this dialect; a message of another one may become several, or none.

    The first of several messages has the id.
    """
    if all(message.dialect == NAME for message in messages):
        yield from messages
        return
    for message, paired in zip(messages, pair_calls(messages), strict=True):
        if message.dialect == NAME:
            yield message
            continue
        pieces = with_results_apart(paired, without_extras(paired, NAME))
        for index, piece in enumerate(pieces):
            yield replace(piece, id=None if index else paired.id)


def _parse_tools(body: Mapping[str, Any]) -> tuple[Tool, ...]:
    """Return the tools of a state in the Chat Completions form, in which LangChain binds them."""
    tools = body.get("tools")
    if not isinstance(tools, list):
        return ()
    if not all(isinstance(tool, dict) and isinstance(tool.get("function"), dict) for tool in tools):
        return ()
    return openai.parse({"messages": [], "tools": tools}).tools


def _render_state(conversation: Conversation) -> Mapping[str, Any] | None:
    """Return the other fields of a state, and its new tools."""
    body, tools = conversation.extras, conversation.tools
    is_own = conversation.dialect == NAME
    before = _parse_tools(body or {})
    if is_own and tools == before:
        return body
    if is_own and body and body.get("tools") and not before:
        raise DialectError("the state has `tools` of another form; none can be added to them")
    dialect = openai.NAME if is_own else NAME
    rendered = openai.render(Conversation((), dialect, tools=tools, extras=body))
    return rendered if isinstance(rendered, dict) else None
