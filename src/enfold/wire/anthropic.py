"""The `anthropic` dialect: Anthropic's Messages.

`content` is a text or an array of blocks. Calls are blocks of the assistant, results are blocks of
the user's next message. The system prompt is a field of the body.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any

from enfold.amounts import CallUsage
from enfold.errors import DialectError, InputError
from enfold.jsontext import dump_text, dumps, loads
from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Extras,
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
from enfold.wire.contract import RawMessages, RecallFormat, Wire
from enfold.wire.fields import (
    arguments_object,
    as_object,
    choice_field,
    each,
    file_from_base64,
    file_from_url,
    flag_field,
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
    BlockPositions,
    CalledTool,
    Reply,
    ServerSentEvent,
    StreamJoiner,
    Visibility,
    as_integer,
    as_mapping,
    as_text,
    join_usage,
    joined_usage,
    mappings_in,
    sum_integers,
    visible_blocks,
)
from enfold.wire.request_additions import (
    DESCRIPTION,
    append_tool,
    declared_names,
    parameters_schema,
)
from enfold.wire.translation import describe_file, translate_to_turn, translate_to_turns

NAME = "anthropic"

_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_NO_PARAMETERS = {"type": "object", "properties": {}}
_SYSTEM_BLOCKS = frozenset({"text"})
_RESULT_BLOCKS = frozenset({"text", "image", "document"})
_BLOCKS = _RESULT_BLOCKS | {"thinking", "redacted_thinking", "tool_use", "tool_result"}
"""The block types that are parsed. All others are kept as they are, such as the provider's own
tools and their results."""


# Messages


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
    """Return the conversation as it was parsed, with its current messages."""
    translated = translate_to_turns(conversation, NAME)
    messages = [render_message(message) for message in translated.messages]
    body: dict[str, Any] = {**(translated.extras or {}), "messages": messages}
    _put_back_system(body, translated.system)
    put_back_list(body, "tools", [_render_tool(tool) for tool in translated.tools])
    return messages if translated.extras is None and len(body) == 1 else body


def parse_message(raw: Any) -> Message:
    """Return one entry of `messages`."""
    raw = as_object(raw)
    role = choice_field(raw, "role", _ROLES)
    content = raw.get("content")
    if content is None:
        raise DialectError("expected text or an array, found nothing", place="content")
    message_id = raw.get("id")
    return Message(
        role,
        parse_content(content, partial(_parse_block, _BLOCKS)),
        id=message_id if isinstance(message_id, str) else None,
        dialect=NAME,
        extras=raw,
    )


def render_message(message: Message) -> dict[str, Any]:
    """Return one entry of `messages`; a message of another dialect is translated."""
    translated = translate_to_turn(message, NAME)
    role = "user" if translated.role == "tool" else translated.role
    before = translated.extras.get("content", "")
    content = render_content(translated.parts, _render_block, before, "")
    return {**translated.extras, "role": role, "content": content}


def _parse_system(content: Any) -> Message | None:
    parts = parse_content(content, partial(_parse_block, _SYSTEM_BLOCKS), "system")
    return Message("system", parts, dialect=NAME) if parts else None


def _put_back_system(body: dict[str, Any], system: Message | None) -> None:
    before = body.get("system")
    if system is not None and system.parts:
        body["system"] = render_content(system.parts, _render_block, before, "")
    elif before:
        del body["system"]


def _parse_block(kinds: Collection[str], raw: Any) -> Any:
    """Return the part of a block; a block of another kind is kept as it is."""
    raw = as_object(raw)
    kind = text_field(raw, "type")
    if kind not in kinds:
        return Unknown(raw)
    match kind:
        case "text":
            return Text(text_field(raw, "text"), raw)
        case "image" | "document":
            name = text_field(raw, "title", default="") if kind == "document" else ""
            return parse_field(raw, "source", partial(_parse_source, raw, name))
        case "thinking":
            return Reasoning(text_field(raw, "thinking"), raw)
        case "redacted_thinking":
            return Reasoning(extras=raw)
        case "tool_use":
            arguments = object_field(raw, "input")
            return ToolCall(text_field(raw, "id"), text_field(raw, "name"), arguments, raw)
        case "tool_result":
            return ToolResult(
                text_field(raw, "tool_use_id"),
                parse_content(raw.get("content"), partial(_parse_block, _RESULT_BLOCKS)),
                flag_field(raw, "is_error"),
                extras=raw,
            )
    return Unknown(raw)


def _parse_source(block: dict[str, Any], name: str, source: dict[str, Any]) -> ResultPart:
    """Return a file by its source.

    Plain text becomes a `Text`: the model reads all of it, so it is counted and can be condensed.
    A document made of blocks stays an unknown part.
    """
    match text_field(source, "type"):
        case "base64":
            mime = text_field(source, "media_type", default="")
            return file_from_base64(text_field(source, "data"), mime, name, block)
        case "url":
            return file_from_url(text_field(source, "url"), name=name, extras=block)
        case "text":
            return Text(text_field(source, "data"), block)
        case "content":
            return Unknown(block)
    return Attachment(name=name, extras=block)


def _render_block(part: Part) -> dict[str, Any]:
    match part:
        case Text(text, extras) if extras.get("type", "text") == "text":
            return {**with_defaults(extras, type="text"), "text": text}
        case Text(text, extras):
            return {**extras, "source": {**extras["source"], "data": text}}
        case Data(value):
            return {"type": "text", "text": dump_text(value)}
        case ToolCall(call_id, name, extras=extras):
            raw = with_defaults(extras, type="tool_use")
            typed = {"id": _valid_id(call_id, extras), "name": name}
            return {**raw, **typed, "input": arguments_object(part)}
        case ToolResult():
            return _render_result(part)
        case Attachment(extras=extras) if not extras:
            return _render_file(part)
        case Reasoning(text, extras) if not extras:
            return {"type": "thinking", "thinking": text}
    return dict(part.extras)


def _render_file(file: Attachment) -> dict[str, Any]:
    """Return a new file: images and PDFs have a block, others become a text.

    So does a file that the provider cannot fetch or would refuse.
    """
    source = None
    if file.data and file.mime:
        source = {"type": "base64", "media_type": file.mime, "data": file.data}
    elif file.url and file.url.startswith(("https:", "http:")):
        source = {"type": "url", "url": file.url}
    if source and (file.mime.startswith("image/") or not file.mime):
        return {"type": "image", "source": source}
    if source and file.mime == "application/pdf":
        return {"type": "document", "source": source}
    return {"type": "text", "text": describe_file(file).text}


def _render_result(result: ToolResult) -> dict[str, Any]:
    raw = with_defaults(result.extras, type="tool_result")
    raw["tool_use_id"] = _valid_id(result.call_id, result.extras)
    if result.parts or "content" in raw:
        raw["content"] = render_content(result.parts, _render_block, raw.get("content"), "")
    put_back(raw, absent=False, is_error=result.is_error)
    return raw


def _valid_id(call_id: str, extras: Extras) -> str:
    """Return the id; characters of another provider's id that are invalid here become codes.

    Different ids stay different.
    """
    if extras:
        return call_id
    return re.sub(r"[^a-zA-Z0-9_-]", lambda invalid: f"_{ord(invalid[0]):x}", call_id)


# Tools


def _parse_tool(raw: Any) -> Tool:
    """Return a client's tool, or one of the provider's, which has a type and may have no name."""
    raw = as_object(raw)
    return Tool(
        text_field(raw, "name", default="" if "type" in raw else None),
        text_field(raw, "description", default=""),
        None if raw.get("input_schema") is None else object_field(raw, "input_schema"),
        raw,
    )


def _render_tool(tool: Tool) -> dict[str, Any]:
    raw = dict(tool.extras)
    put_back(raw, absent="", name=tool.name, description=tool.description)
    schema = tool.parameters if tool.extras else tool.parameters or _NO_PARAMETERS
    put_back(raw, absent=None, input_schema=schema)
    return raw


# Replies

_DELTA_FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""The field that each kind of delta extends; the delta holds it under the same name."""


class MessagesReplyParser:
    """Builds the reply of Messages."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._usage: dict[str, Any] = {}
        self._finish: str | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}

    def add_event(self, event: Mapping[str, Any]) -> None:
        """Read one event."""
        index = as_integer(event.get("index")) or 0
        match event.get("type"):
            case "message_start":
                message = as_mapping(event.get("message"))
                self._id = as_text(message.get("id")) or None
                self._usage |= _usage_in(message)
            case "content_block_start":
                self._blocks[index] = dict(as_mapping(event.get("content_block")))
            case "content_block_delta":
                self._add_delta(index, as_mapping(event.get("delta")))
            case "message_delta":
                reason = as_text(as_mapping(event.get("delta")).get("stop_reason"))
                self._finish = reason or self._finish
                self._usage |= _usage_in(event)

    def read_body(self, body: Any) -> None:
        """Read a reply that is not streamed."""
        body = as_mapping(body)
        self._id = as_text(body.get("id")) or None
        self._finish = as_text(body.get("stop_reason")) or None
        self._blocks = dict(enumerate(mappings_in(body.get("content"))))
        self._usage |= _usage_in(body)

    def reply(self) -> Reply:
        """Return what has been read so far."""
        blocks = [self._block(index) for index in sorted(self._blocks)]
        calls = (block for block in blocks if block.get("type") == "tool_use")
        read = self._usage.get("cache_read_input_tokens")
        written = self._usage.get("cache_creation_input_tokens")
        return Reply(
            id=self._id,
            usage=CallUsage(
                input_tokens=sum_integers(self._usage.get("input_tokens"), read, written),
                output_tokens=as_integer(self._usage.get("output_tokens")),
                cache_read_tokens=as_integer(read),
                cache_write_tokens=as_integer(written),
            ),
            calls=tuple(map(_called_tool, calls)),
            finish=self._finish,
            messages=({"role": "assistant", "content": blocks},) if blocks else (),
        )

    def _add_delta(self, index: int, delta: Mapping[str, Any]) -> None:
        kind = as_text(delta.get("type"))
        if name := _DELTA_FIELDS.get(kind):
            self._pieces.setdefault((index, name), []).append(as_text(delta.get(name)))
        elif kind == "input_json_delta":
            self._pieces.setdefault((index, "input"), []).append(as_text(delta.get("partial_json")))
        elif kind == "citations_delta":
            block = self._blocks.setdefault(index, {})
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]

    def _block(self, index: int) -> dict[str, Any]:
        block = dict(self._blocks[index])
        for (at, name), pieces in self._pieces.items():
            if at == index:
                text = "".join(pieces)
                block[name] = _input(text) if name == "input" else as_text(block.get(name)) + text
        return block


def _usage_in(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts; they grow while a reply is written, so the latest replace the others."""
    usage = as_mapping(body.get("usage"))
    return {key: value for key, value in usage.items() if value is not None}


def _input(text: str) -> Any:
    """Return a call's input; its text if the model did not complete it."""
    try:
        return loads(text) if text else {}
    except InputError:
        return text


def _called_tool(block: Mapping[str, Any]) -> CalledTool:
    given = block.get("input")
    arguments = given if isinstance(given, str) else dump_text(given)
    return CalledTool(as_text(block.get("id")), as_text(block.get("name")), arguments)


# Recall


def _results(answers: Sequence[tuple[CalledTool, str]]) -> list[dict[str, Any]]:
    blocks = [
        {"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in answers
    ]
    return [{"role": "user", "content": blocks}]


def _merge_results(held: RawMessages, message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the client's message with the held results before its own."""
    blocks = [block for each in held for block in each["content"]]
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return {**message, "content": [*blocks, *(content or [])]}


def _without_calls(messages: RawMessages, name: str) -> list[dict[str, Any]]:
    return [
        {
            **message,
            "content": [
                block for block in mappings_in(message["content"]) if not _calls(block, name)
            ],
        }
        for message in messages
    ]


def _join_bodies(bodies: RawMessages, name: str) -> dict[str, Any]:
    content = [
        block
        for body in bodies
        for block in visible_blocks(
            mappings_in(body.get("content")), lambda block: _visibility(block, name)
        )
    ]
    has_calls = any(block.get("type") == "tool_use" for block in content)
    reason = _visible_reason(bodies[-1].get("stop_reason"), has_calls=has_calls)
    usage = joined_usage(bodies)
    return {**bodies[-1], "content": content, "stop_reason": reason, "usage": usage}


def _calls(block: Mapping[str, Any], name: str) -> bool:
    return block.get("type") == "tool_use" and block.get("name") == name


def _visibility(block: Mapping[str, Any], name: str) -> Visibility:
    if _calls(block, name):
        return "hidden"
    return "reasoning" if block.get("type") in ("thinking", "redacted_thinking") else "shown"


def _visible_reason(reason: Any, *, has_calls: bool) -> Any:
    """Return the stop reason; not `tool_use` if the client sees no call."""
    return "end_turn" if reason == "tool_use" and not has_calls else reason


class MessagesStreamJoiner(StreamJoiner):
    """Joins the streams of one turn."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._positions: BlockPositions[tuple[ServerSentEvent, dict[str, Any]]] = BlockPositions()

    def add(self, event: ServerSentEvent, data: dict[str, Any] | None) -> list[ServerSentEvent]:
        """Return the events that the client receives now; the end of a reply is held back."""
        if data is None:
            return [event]
        index = as_integer(data.get("index")) or 0
        match data.get("type"):
            case "message_start":
                self._usage |= _usage_in(as_mapping(data.get("message")))
                return [event] if self._is_first else []
            case "content_block_start":
                block = as_mapping(data.get("content_block"))
                visibility = _visibility(block, self._name)
                self._has_calls |= visibility == "shown" and block.get("type") == "tool_use"
                return _renumber(self._positions.open(index, visibility, (event, data)))
            case "content_block_delta" | "content_block_stop":
                return _renumber(self._positions.extend(index, (event, data)))
            case "message_delta" | "message_stop":
                self._usage |= _usage_in(data)
                self._closing.append((event, data))
                return []
        return [event]

    def end_reply(self, *, is_last: bool) -> list[ServerSentEvent]:
        """Return the end of the last reply; the other ends are not shown."""
        shown = _renumber(self._positions.close())
        if is_last:
            shown += [self._closed(event, data) for event, data in self._closing]
        self._positions.begin_reply()
        self._begin_next()
        return shown

    def _closed(self, event: ServerSentEvent, data: dict[str, Any]) -> ServerSentEvent:
        if data.get("type") != "message_delta":
            return event
        delta = as_mapping(data.get("delta"))
        reason = _visible_reason(delta.get("stop_reason"), has_calls=self._has_calls)
        new = {**delta, "stop_reason": reason}
        if self._is_first and new == delta:
            return event
        usage = join_usage(self._usage_before, {**as_mapping(data.get("usage")), **self._usage})
        return event.with_json({**data, "delta": new, "usage": usage})


def _renumber(
    placed: Iterable[tuple[int, tuple[ServerSentEvent, dict[str, Any]]]],
) -> list[ServerSentEvent]:
    """Return the events with the indexes of the client's stream."""
    return [
        event if data.get("index") == position else event.with_json({**data, "index": position})
        for position, (event, data) in placed
    ]


# The wire


OVERFLOW_WORDINGS = (
    r"(prompt|input) is too long",
    r"request_too_large",
    r"input length and `max_tokens` exceed",
    r"dimensions exceed max allowed size",
)
"""The provider's wordings for a request that is too long for the model."""

WIRE = Wire(
    dialect=NAME,
    provider="anthropic",
    upstream="anthropic",
    address="https://api.anthropic.com",
    path=re.compile("/v1/messages"),
    count_path=re.compile("/v1/messages/count_tokens"),
    messages_key="messages",
    overhead_keys=("system", "tools"),
    max_output_paths=("max_tokens",),
    error_body=lambda code, _status, message: {
        "type": "error",
        "error": {"type": code, "message": message},
    },
    stream_error=lambda body: b"event: error\ndata: " + dumps(body) + b"\n\n",
    reply_parser=MessagesReplyParser,
    text_finish="end_turn",
    answers_in_text=lambda field: (
        not field("stop_sequences")
        and not field("output_format")
        and not as_mapping(field("output_config")).get("format")
    ),
    recall=RecallFormat(
        is_allowed=lambda field: (
            field("tool_choice") is None or as_mapping(field("tool_choice")).get("type") == "auto"
        ),
        tool_names=declared_names,
        add_tool=append_tool(
            lambda name: {
                "name": name,
                "description": DESCRIPTION,
                "input_schema": parameters_schema(),
            }
        ),
        complete_finishes=frozenset({"tool_use"}),
        results=_results,
        without_calls=_without_calls,
        join_bodies=_join_bodies,
        joiner=MessagesStreamJoiner,
        merge_results=_merge_results,
    ),
    # Reasoning cannot carry a mark.
    cache_mark_blocks=frozenset({"text", "image", "document", "tool_use", "tool_result"}),
    has_inline_system=False,
    compacts_itself=lambda field: any(
        as_text(each.get("type")).startswith("compact")
        for each in mappings_in(as_mapping(field("context_management")).get("edits"))
    ),
    client_headers=frozenset({b"anthropic-version"}),
    image_tokens=lambda width, height: min(1_600, ceil(width * height / 750)),
)
