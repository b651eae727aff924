"""The `openai` dialect: OpenAI's Chat Completions, and servers that are compatible with it.

Text and attachments are in `content`, calls in `tool_calls`; a refusal and readable reasoning have
fields of their own. A tool result is a separate message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any, TypeGuard

from enfold.amounts import CallUsage
from enfold.errors import DialectError
from enfold.messages import (
    Attachment,
    Conversation,
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
from enfold.wire.contract import RawMessages, RecallFormat, Wire
from enfold.wire.fields import (
    arguments_field,
    arguments_text,
    as_object,
    choice_field,
    data_url,
    each,
    file_from_base64,
    file_from_url,
    list_field,
    object_field,
    parse_content,
    parse_field,
    put_back,
    put_back_list,
    render_content,
    split_body,
    text_field,
    with_defaults,
)
from enfold.wire.replies import (
    TEXT_SEPARATOR,
    CalledTool,
    Reply,
    ServerSentEvent,
    StreamJoiner,
    as_integer,
    as_mapping,
    as_text,
    error_event,
    first_mapping,
    join_usage,
    joined_usage,
    mappings_in,
)
from enfold.wire.request_additions import (
    DESCRIPTION,
    append_tool,
    declared_names,
    parameters_schema,
)
from enfold.wire.translation import (
    describe_file,
    files_after_results,
    join_calls,
    portable_tools,
    single_entry,
    translate_to_items,
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
_LEGACY_CALL = "function_call"
_LEGACY_TOOLS = "functions"
_ARGUMENTS = {"function": "arguments", "custom": "input", _LEGACY_CALL: "arguments"}
"""The field that holds a call's arguments, by the field that describes the call."""
_READABLE_REASONING = (
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "reasoning_details",
    "thinking_blocks",
)
"""The names that compatible servers use; several in one message have the same content."""
_REASONING = (*_READABLE_REASONING, "reasoning_opaque")
_INVALID_IN_NAMES = re.compile(r"[\s<|\\/>]+")
_PLAIN = frozenset({"role", "content"})
_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
"""The audio formats that Chat Completions accepts, by media type."""


# Messages


def parse(value: Any) -> Conversation:
    """Return the conversation of a request body or of a bare array of messages."""
    body, raw_messages = split_body(value, "messages")
    return Conversation(
        messages=each(raw_messages, parse_message, "messages"),
        dialect=NAME,
        tools=_parse_tools(body or {}),
        extras=body,
    )


def render(conversation: Conversation) -> Any:
    """Return the conversation as it was parsed, with its current messages."""
    system = () if conversation.system is None else (conversation.system,)
    messages = _render_all((*system, *conversation.messages))
    if conversation.extras is None and not conversation.tools:
        return messages
    if conversation.dialect != NAME:
        return _put_back_tools({"messages": messages}, portable_tools(conversation.tools))
    body = {**(conversation.extras or {}), "messages": messages}
    return _put_back_tools(body, conversation.tools)


def parse_message(raw: Any) -> Message:
    """Return one entry of `messages`."""
    raw = as_object(raw)
    if len(raw) == len(_PLAIN) and type(text := raw.get("content")) is str and text:
        # Nearly all messages of a chat: a role and a text.
        plain: Role = _ROLES.get(raw["role"], "tool") if type(raw.get("role")) is str else "tool"
        if plain != "tool":
            return Message(plain, (Text(text),), None, None, NAME, raw)
    role = choice_field(raw, "role", _ROLES)
    name = text_field(raw, "name", default="")
    content = parse_content(raw.get("content"), parse_block)
    parts: tuple[Part, ...] = content
    if role == "tool":
        parts = (ToolResult(text_field(raw, "tool_call_id", default=""), content, name=name),)
    elif role == "assistant":
        parts = (*_parse_reasoning(raw), *content, *_parse_refusal(raw), *_parse_calls(raw))
    message_id = raw.get("id")
    return Message(
        role,
        parts,
        id=message_id if isinstance(message_id, str) else None,
        name=None if role == "tool" else name or None,
        dialect=NAME,
        extras=raw,
    )


def render_message(message: Message) -> dict[str, Any]:
    """Return one entry of `messages`; a message of another dialect must become one entry."""
    return single_entry(_render_all((message,)), NAME)


def _render_all(messages: Iterable[Message]) -> list[dict[str, Any]]:
    translated = files_after_results(join_calls(translate_to_items(messages, NAME)))
    return [_render(message) for message in translated]


def _render(message: Message) -> dict[str, Any]:
    if _is_unchanged(message):
        return dict(message.extras)
    raw = with_defaults(message.extras, role=message.role)
    if _ROLES.get(raw["role"]) != message.role:
        raw["role"] = message.role
    parts: tuple[Part, ...] = message.parts
    match parts:
        case (ToolResult(call_id, inner, name=name),):
            put_back(raw, absent="", tool_call_id=call_id, name=name)
            parts = inner
        case _ if message.name and message.name != raw.get("name"):
            raw["name"] = _INVALID_IN_NAMES.sub("_", message.name)[:64]
    is_assistant = message.role == "assistant"
    calls = [part for part in parts if is_assistant and isinstance(part, ToolCall)]
    content = [part for part in parts if not (is_assistant and _has_separate_field(part))]
    if content or "content" in raw or not message.extras:
        empty = None if calls else ""
        raw["content"] = render_content(
            content, render_chat_block, raw.get("content", empty), empty
        )
    if is_assistant:
        _put_back_reasoning(raw, parts)
        _put_back_refusal(raw, parts)
        _put_back_calls(raw, calls)
    return raw


def _is_unchanged(message: Message) -> bool:
    """Return True for a text as it was parsed: nearly all messages of a chat."""
    extras = message.extras
    if extras.keys() != _PLAIN or message.name or _ROLES.get(extras["role"]) != message.role:
        return False
    part = message.parts[0] if len(message.parts) == 1 else None
    return isinstance(part, Text) and part.text is extras["content"]


def _has_separate_field(part: Part) -> bool:
    """Return True for parts that an assistant's message holds outside `content`."""
    return isinstance(part, ToolCall | Reasoning) or _is_refusal(part)


def _parse_reasoning(raw: Mapping[str, Any]) -> tuple[Reasoning, ...]:
    """Return one part for all reasoning fields, because they are kept or dropped together."""
    fields = {field: raw[field] for field in _REASONING if raw.get(field)}
    texts = (_readable_text(fields.get(field)) for field in _READABLE_REASONING)
    return (Reasoning(next(filter(None, texts), ""), fields),) if fields else ()


def _readable_text(value: Any) -> str:
    """Return the text of a reasoning field: a text, or an array of objects with texts."""
    if isinstance(value, str):
        return value
    pieces = mappings_in(value)
    texts = (piece.get(key) for piece in pieces for key in ("text", "summary", "thinking"))
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


# Content blocks, of Chat Completions and of Responses: their types have different names


def parse_block(raw: Any) -> Text | Attachment | Unknown:
    """Return one block of a message's content or a tool's output."""
    raw = as_object(raw)
    match raw.get("type"):
        case "text" | "input_text" | "output_text" | "refusal":
            return Text(text_field(raw, text_key(raw)), raw)
        case "image_url":
            return _parse_image(raw)
        case "input_image":
            return _parse_image(raw) if raw.get("image_url") else Attachment(extras=raw)
        case "input_audio":
            return parse_field(
                raw,
                "input_audio",
                lambda audio: file_from_base64(
                    text_field(audio, "data"),
                    f"audio/{text_field(audio, 'format', default='')}",
                    extras=raw,
                ),
            )
        case "file":
            return parse_field(raw, "file", lambda file: _parse_file(file, raw))
        case "input_file":
            return _parse_file(raw, raw)
    return Unknown(raw)


def render_chat_block(part: Part) -> dict[str, Any]:
    """Return a content block of Chat Completions."""
    match part:
        case Text(text, extras) if not extras:
            return {"type": "text", "text": text}
        case Attachment(extras=extras) if not extras:
            return _new_chat_file(part)
    return render_parsed_block(part)


def render_parsed_block(part: Part) -> dict[str, Any]:
    """Return a block that was parsed from either dialect."""
    match part:
        case Text(text, extras):
            return {**extras, text_key(extras): text}
        case Attachment(extras=extras) | Unknown(extras):
            return dict(extras)
    raise DialectError(f"a {type(part).__name__} part has no place in a message's content")


def text_key(raw: Mapping[str, Any]) -> str:
    """Return the field with the text of a block."""
    return "refusal" if raw.get("type") == "refusal" else "text"


def _parse_image(raw: dict[str, Any]) -> Attachment:
    """Return an image; some servers accept the address without the object around it."""
    if isinstance(raw.get("image_url"), str):
        return file_from_url(raw["image_url"], extras=raw)
    return parse_field(
        raw, "image_url", lambda image: file_from_url(text_field(image, "url"), extras=raw)
    )


def _parse_file(file: Mapping[str, Any], extras: Extras) -> Attachment:
    """Return a file that is given by its content, a data address, an address or an id."""
    name = text_field(file, "filename", default="")
    data = text_field(file, "file_data", default="")
    url = data or text_field(file, "file_url", default="")
    if not url:
        return Attachment(name, extras=extras)
    if data and not data.startswith("data:"):
        return file_from_base64(data, name=name, extras=extras)
    return file_from_url(url, name=name, extras=extras)


def _new_chat_file(file: Attachment) -> dict[str, Any]:
    match file:
        case Attachment(mime=mime, data=str(data)) if mime in _AUDIO_FORMATS:
            audio = {"data": data, "format": _AUDIO_FORMATS[mime]}
            return {"type": "input_audio", "input_audio": audio}
        case Attachment(mime=mime) if not mime or mime.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": data_url(file)}}
        case Attachment(data=None):
            return render_chat_block(describe_file(file))
    content = {"filename": file.name or "file", "file_data": data_url(file)}
    return {"type": "file", "file": content}


# Tool calls and tools


def _parse_calls(raw: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    calls = list_field(
        raw, "tool_calls", lambda call: _parse_call(as_object(call), _description_key(call))
    )
    if raw.get(_LEGACY_CALL) is None:
        return calls
    return (*calls, _parse_call({_LEGACY_CALL: raw[_LEGACY_CALL]}, _LEGACY_CALL))


def _put_back_calls(raw: dict[str, Any], calls: Sequence[ToolCall]) -> None:
    legacy = [call for call in calls if call.extras.keys() == {_LEGACY_CALL}]
    if legacy:
        raw[_LEGACY_CALL] = _render_call(legacy[0], _LEGACY_CALL)[_LEGACY_CALL]
    elif raw.get(_LEGACY_CALL) is not None:
        del raw[_LEGACY_CALL]
    others = [call for call in calls if call.extras.keys() != {_LEGACY_CALL}]
    rendered = [_render_call(call, _description_key(call.extras)) for call in others]
    put_back_list(raw, "tool_calls", rendered)


def _parse_call(raw: dict[str, Any], key: str | None) -> ToolCall:
    call_id = text_field(raw, "id", default="")
    if key is None:
        return ToolCall(call_id, "", "", raw)
    return parse_field(
        raw,
        key,
        lambda inner: ToolCall(
            call_id,
            text_field(inner, "name", default=""),
            arguments_field(inner, _ARGUMENTS[key]),
            raw,
        ),
    )


def _render_call(call: ToolCall, key: str | None) -> dict[str, Any]:
    if not call.extras:
        function = {"name": call.name, "arguments": arguments_text(call)}
        return {"id": call.id, "type": "function", "function": function}
    raw = dict(call.extras)
    put_back(raw, absent="", id=call.id)
    if key is not None:
        raw[key] = dict(raw[key])
        put_back(raw[key], absent="", **{"name": call.name, _ARGUMENTS[key]: call.arguments})
    return raw


def _description_key(raw: Mapping[str, Any]) -> str | None:
    """Return the field that describes a call or a tool; None for an unknown type."""
    key = "custom" if raw.get("type") == "custom" else "function"
    return key if key in raw or raw.get("type") in (None, key) else None


def _parse_tools(body: Mapping[str, Any]) -> tuple[Tool, ...]:
    return (
        *list_field(body, "tools", _parse_tool),
        *list_field(body, _LEGACY_TOOLS, _parse_legacy_tool),
    )


def _put_back_tools(body: dict[str, Any], tools: Sequence[Tool]) -> dict[str, Any]:
    legacy = [tool for tool in tools if tool.extras.keys() == {_LEGACY_TOOLS}]
    others = [tool for tool in tools if tool.extras.keys() != {_LEGACY_TOOLS}]
    functions = [render_definition(tool.extras[_LEGACY_TOOLS], tool) for tool in legacy]
    put_back_list(body, "tools", [_render_tool(tool) for tool in others])
    put_back_list(body, _LEGACY_TOOLS, functions)
    return body


def _parse_legacy_tool(raw: Any) -> Tool:
    return parse_definition(as_object(raw), {_LEGACY_TOOLS: raw}, is_function=True)


def _parse_tool(raw: Any) -> Tool:
    raw = as_object(raw)
    key = _description_key(raw)
    if key is None:
        return parse_definition(raw, raw, is_function=False)
    return parse_field(
        raw, key, lambda inner: parse_definition(inner, raw, is_function=key == "function")
    )


def _render_tool(tool: Tool) -> dict[str, Any]:
    raw = dict(tool.extras) or {"type": "function", "function": {}}
    key = _description_key(raw)
    if key is None:
        return render_definition(raw, tool)
    return {**raw, key: render_definition(raw[key], tool)}


def parse_definition(raw: Mapping[str, Any], extras: Extras, *, is_function: bool) -> Tool:
    """Return a tool from the object with its name, its description and its parameters."""
    parameters: dict[str, Any] | None = {} if is_function else None
    if is_function and raw.get("parameters") is not None:
        parameters = object_field(raw, "parameters")
    name = text_field(raw, "name", default="")
    return Tool(name, text_field(raw, "description", default=""), parameters, extras)


def render_definition(raw: Mapping[str, Any], tool: Tool) -> dict[str, Any]:
    """Return that object with the tool's current fields."""
    definition = dict(raw)
    put_back(definition, absent="", name=tool.name, description=tool.description)
    if tool.parameters is not None:
        put_back(definition, absent={}, parameters=tool.parameters)
    return definition


# Replies


class ChatReplyParser:
    """Builds the reply of Chat Completions; the first one of several choices."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._usage = CallUsage()
        self._finish: str | None = None
        self._message: dict[str, Any] = {"role": "assistant"}
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[int, dict[str, Any]] = {}

    def add_event(self, event: Mapping[str, Any]) -> None:
        """Read one chunk."""
        self._read_envelope(event)
        for choice in mappings_in(event.get("choices")):
            if choice.get("index", 0) == 0:
                self._add_delta(as_mapping(choice.get("delta")))
                self._finish = as_text(choice.get("finish_reason")) or self._finish

    def read_body(self, body: Any) -> None:
        """Read a reply that is not streamed."""
        self._read_envelope(as_mapping(body))
        for choice in mappings_in(as_mapping(body).get("choices"))[:1]:
            message = dict(as_mapping(choice.get("message")))
            self._calls = dict(enumerate(mappings_in(message.pop("tool_calls", None))))
            present = {key: value for key, value in message.items() if value not in (None, [])}
            self._message |= present
            self._finish = as_text(choice.get("finish_reason")) or None

    def reply(self) -> Reply:
        """Return what has been read so far."""
        calls = [self._calls[index] for index in sorted(self._calls)]
        texts = {key: "".join(pieces) for key, pieces in self._texts.items()}
        message = {**self._message, **texts}
        if calls:
            message["tool_calls"] = calls
        is_empty = set(message) == {"role"}
        return Reply(
            id=self._id,
            usage=self._usage,
            calls=tuple(map(_called_tool, calls)),
            finish=self._finish,
            messages=() if is_empty else (message,),
        )

    def _read_envelope(self, body: Mapping[str, Any]) -> None:
        self._id = as_text(body.get("id")) or self._id
        if isinstance(body.get("usage"), dict):
            self._usage = usage_of(body["usage"], "prompt", "completion")

    def _add_delta(self, delta: Mapping[str, Any]) -> None:
        for key, value in delta.items():
            if key == "tool_calls":
                for position, piece in enumerate(mappings_in(value)):
                    index = as_integer(piece.get("index", position)) or 0
                    _extend_call(self._calls.setdefault(index, {}), piece)
            elif key == "role":
                self._message["role"] = value
            elif isinstance(value, str):
                self._texts.setdefault(key, []).append(value)
            elif isinstance(value, list):
                before = self._message.get(key)
                self._message[key] = [*before, *value] if isinstance(before, list) else value
            elif value is not None:
                self._message[key] = value


def _extend_call(call: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a piece of a streamed call; only arguments come in several pieces."""
    for key, value in piece.items():
        if key == "index" or value is None:
            continue
        if not isinstance(value, dict):
            call[key] = value
            continue
        inner = call[key] = dict(as_mapping(call.get(key)))
        for name, part in value.items():
            is_continued = name in {"arguments", "input"} and isinstance(part, str)
            inner[name] = as_text(inner.get(name)) + part if is_continued else part


def _called_tool(call: Mapping[str, Any]) -> CalledTool:
    inner = as_mapping(call.get("function")) or as_mapping(call.get("custom"))
    return CalledTool(
        id=as_text(call.get("id")),
        name=as_text(inner.get("name")),
        arguments=as_text(inner.get("arguments")) or as_text(inner.get("input")),
    )


def usage_of(usage: Mapping[str, Any], sent: str, received: str) -> CallUsage:
    """Return the usage of a call, from fields that begin with these words."""
    details = as_mapping(usage.get(f"{sent}_tokens_details"))
    return CallUsage(
        input_tokens=as_integer(usage.get(f"{sent}_tokens")),
        output_tokens=as_integer(usage.get(f"{received}_tokens")),
        cache_read_tokens=as_integer(details.get("cached_tokens")),
        cache_write_tokens=as_integer(details.get("cache_write_tokens")),
    )


# Recall


def _declare_recall(name: str) -> dict[str, Any]:
    function = {"name": name, "description": DESCRIPTION, "parameters": parameters_schema()}
    return {"type": "function", "function": function}


def _without_calls(message: Mapping[str, Any], name: str) -> dict[str, Any]:
    kept = dict(message)
    calls = [
        call
        for call in mappings_in(message.get("tool_calls"))
        if as_mapping(call.get("function")).get("name") != name
    ]
    if calls:
        kept["tool_calls"] = calls
    else:
        kept.pop("tool_calls", None)
    return kept


def _join_bodies(bodies: RawMessages, name: str) -> dict[str, Any]:
    messages = [as_mapping(first_mapping(body.get("choices")).get("message")) for body in bodies]
    choice = first_mapping(bodies[-1].get("choices"))
    message = _without_calls(messages[-1], name)
    if texts := [text for each in messages if (text := as_text(each.get("content")))]:
        message["content"] = TEXT_SEPARATOR.join(texts)
    reason = _visible_reason(choice.get("finish_reason"), has_calls="tool_calls" in message)
    choices = [{**choice, "message": message, "finish_reason": reason}]
    usage = joined_usage(bodies)
    return {**bodies[-1], "choices": choices} | ({"usage": usage} if usage else {})


def _visible_reason(reason: Any, *, has_calls: bool) -> Any:
    """Return the finish reason; not `tool_calls` if the client sees no call."""
    return "stop" if reason == "tool_calls" and not has_calls else reason


class ChatStreamJoiner(StreamJoiner):
    """Joins the streams of one turn."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._has_text = False
        self._needs_separator = False
        self._hidden: set[int] = set()

    def add(self, event: ServerSentEvent, data: dict[str, Any] | None) -> list[ServerSentEvent]:
        """Return the events that the client receives now; the end of a reply is held back."""
        if data is None:
            return self._hold(event) if event.data else [event]
        if self._is_first and self._id is None:
            self._id = data.get("id")
        self._usage = as_mapping(data.get("usage")) or self._usage
        choices = mappings_in(data.get("choices"))
        if not choices:
            return self._hold(event, data) if "usage" in data else [event]
        delta = as_mapping(choices[0].get("delta"))
        visible = self._visible_delta(delta)
        new = self._with_choice(data, {**choices[0], "delta": visible})
        if choices[0].get("finish_reason") is None:
            is_hidden = not visible and bool(delta)
            return [] if is_hidden else [event if new == data else event.with_json(new)]
        self._hold(event, self._with_choice(data, {**choices[0], "delta": {}}))
        if not visible:
            return []
        # The last content goes out now, without the end that came with it.
        content = {**new, "choices": [{**new["choices"][0], "finish_reason": None}]}
        content.pop("usage", None)
        return [event.with_json(content)]

    def end_reply(self, *, is_last: bool) -> list[ServerSentEvent]:
        """Return the end of the last reply; the other ends are not shown."""
        shown = [self._closed(event, data) for event, data in self._closing] if is_last else []
        self._needs_separator = self._has_text
        self._hidden = set()
        self._begin_next()
        return shown

    def _hold(
        self, event: ServerSentEvent, data: dict[str, Any] | None = None
    ) -> list[ServerSentEvent]:
        self._closing.append((event, data))
        return []

    def _with_choice(self, data: dict[str, Any], choice: dict[str, Any]) -> dict[str, Any]:
        new = {**data, "choices": [choice]}
        if not self._is_first:
            new["id"] = self._id
            if usage := as_mapping(data.get("usage")):
                new["usage"] = join_usage(self._usage_before, usage)
        return new

    def _visible_delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        visible = dict(delta)
        if not self._is_first:
            visible.pop("role", None)
        if as_text(visible.get("content")):
            if self._needs_separator:
                visible["content"] = TEXT_SEPARATOR + visible["content"]
                self._needs_separator = False
            self._has_text = True
        if "tool_calls" in visible:
            visible["tool_calls"] = self._visible_calls(mappings_in(visible["tool_calls"]))
            if not visible["tool_calls"]:
                del visible["tool_calls"]
        return visible

    def _visible_calls(self, pieces: list[dict[str, Any]]) -> list[dict[str, Any]]:
        visible = []
        for position, piece in enumerate(pieces):
            index = as_integer(piece.get("index", position)) or 0
            if as_mapping(piece.get("function")).get("name") == self._name:
                self._hidden.add(index)
            if index not in self._hidden:
                self._has_calls = True
                hidden_before = sum(hidden < index for hidden in self._hidden)
                renumbered = {**piece, "index": index - hidden_before}
                visible.append(renumbered if hidden_before else piece)
        return visible

    def _closed(self, event: ServerSentEvent, data: dict[str, Any] | None) -> ServerSentEvent:
        if data is None:
            return event
        new = dict(data)
        if choices := mappings_in(data.get("choices")):
            reason = _visible_reason(choices[0].get("finish_reason"), has_calls=self._has_calls)
            new["choices"] = [{**choices[0], "finish_reason": reason}]
        if not self._is_first:
            new["id"] = self._id
            if as_mapping(data.get("usage")):
                new["usage"] = join_usage(self._usage_before, self._usage)
        return event if new == event.json() else event.with_json(new)


# The wire


def image_tokens(width: int, height: int) -> int:
    """Return the tokens of an image: 85, and 170 for each tile of 512 pixels."""
    scale = min(1.0, 2_048 / max(width, height), 768 / min(width, height))
    tiles = ceil(width * scale / 512) * ceil(height * scale / 512)
    return 85 + 170 * tiles


OVERFLOW_WORDINGS = (
    r"exceed_context_size",  # llama.cpp
    r"contextwindowexceeded",  # LiteLLM
    r"context[ _-]?(size|length|window|limit)",
    r"(prompt|input|request|messages?)( is| are|:)? too (long|large)",
    r"too many (input )?tokens",
    r"too large for model",
    r"maximum (prompt|input|sequence|model) (length|tokens)",
    r"(input|prompt).{0,60}(exceeds|longer than|larger than).{0,40}(token|length)",
    r"(token (limit|count)|tokens).{0,40}exceed",
    r"exceed.{0,60}(token limit|max_model_len|maximum.{0,20}tokens|n_ctx)",
    r"reduce the length of (the|your) (messages|prompt|input)",
    r"(string|array)_above_max_length",
    r"too many images",
    r"(image|file|attachment).{0,80}(exceeds|larger than|too large)",
    r"(request|payload|body|entity|content)( entity)?( is)? too large",
    r"(request|payload|body).{0,40}exceeds.{0,40}(size|limit|bytes|mb)\b",
)
"""Wordings of the provider and of compatible servers for a request that is too long."""
ADDRESS = "https://api.openai.com"

WIRE = Wire(
    dialect=NAME,
    provider="openai",
    upstream="openai",
    address=ADDRESS,
    path=re.compile("/v1/chat/completions"),
    count_path=None,
    messages_key="messages",
    overhead_keys=("tools", "functions"),
    max_output_paths=("max_completion_tokens", "max_tokens"),
    error_body=lambda code, _status, message: {
        "error": {"message": message, "type": "enfold_error", "param": None, "code": code}
    },
    stream_error=error_event,
    reply_parser=ChatReplyParser,
    text_finish="stop",
    answers_in_text=lambda field: (
        as_mapping(field("response_format")).get("type") in (None, "text") and not field("stop")
    ),
    recall=RecallFormat(
        is_allowed=lambda field: field("tool_choice") in (None, "auto") and field("n") in (None, 1),
        tool_names=declared_names,
        add_tool=append_tool(_declare_recall),
        complete_finishes=frozenset({"tool_calls", "stop"}),
        results=lambda answers: [
            {"role": "tool", "tool_call_id": call.id, "content": text} for call, text in answers
        ],
        without_calls=lambda messages, name: [_without_calls(each, name) for each in messages],
        join_bodies=_join_bodies,
        joiner=ChatStreamJoiner,
    ),
    cache_mark_blocks=frozenset({"text"}),
    library_path="/v1",
    image_tokens=image_tokens,
)
