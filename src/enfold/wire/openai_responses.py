"""The `openai-responses` dialect: OpenAI's Responses.

`input` is a text or an array of items; `instructions` is the system prompt. Calls, results and
reasoning are items of their own, so one message is one item.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from enfold.amounts import CallUsage
from enfold.errors import DialectError
from enfold.jsontext import dumps, loads
from enfold.messages import (
    Attachment,
    Conversation,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
    text_of,
)
from enfold.wire.contract import RawMessages, RecallFormat, StoredResponses, Wire
from enfold.wire.fields import (
    arguments_field,
    arguments_text,
    as_object,
    choice_field,
    data_url,
    each,
    list_field,
    parse_content,
    put_back,
    put_back_list,
    render_content,
    split_body,
    text_field,
)
from enfold.wire.openai import WIRE as CHAT
from enfold.wire.openai import (
    parse_block,
    parse_definition,
    render_definition,
    render_parsed_block,
    usage_of,
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
    visible_blocks,
)
from enfold.wire.request_additions import (
    DESCRIPTION,
    append_tool,
    declared_names,
    parameters_schema,
)
from enfold.wire.translation import portable_tools, single_entry, translate_to_items

NAME = "openai-responses"

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}
"""The field that holds a call's arguments, by the item's type."""
_RESULT_ITEMS = ("function_call_output", "custom_tool_call_output")
_ITEM_ROLES: Mapping[str, Role] = {
    **dict.fromkeys(_RESULT_ITEMS, "tool"),
    # The provider's own summary stands for all that came before it. It must stay as it is.
    "compaction": "system",
    "compaction_summary": "system",
    "context_compaction": "system",
    "compaction_trigger": "user",
}
"""The roles of items whose type decides it."""
_HISTORY_KEYS = ("previous_response_id", "conversation", "prompt")
"""The fields that refer to earlier history; a request with one of them needs no `input`."""
_LONGEST_REFERENCE = 400
"""Bytes of an item that can be a reference to another item."""


# Messages


def parse(value: Any) -> Conversation:
    """Return the conversation of a request body or of a bare array of items."""
    body, raw_input = _split(value)
    instructions = text_field(body or {}, "instructions", default="")
    return Conversation(
        messages=_parse_input(raw_input),
        dialect=NAME,
        system=_text_message("system", instructions) if instructions else None,
        tools=list_field(body or {}, "tools", _parse_tool),
        extras=body,
    )


def render(conversation: Conversation) -> Any:
    """Return the conversation as it was parsed, with its current messages."""
    if conversation.extras is None and not conversation.tools:
        system = () if conversation.system is None else (conversation.system,)
        return _render_all((*system, *conversation.messages))
    is_native = conversation.dialect == NAME
    body = dict((is_native and conversation.extras) or {"input": []})
    items = _render_all(conversation.messages)
    if items or body.get("input"):
        body["input"] = _render_input(items, body.get("input"))
    _put_back_instructions(body, conversation.system)
    tools = conversation.tools if is_native else portable_tools(conversation.tools)
    put_back_list(body, "tools", [_render_tool(tool) for tool in tools])
    return body


def parse_message(raw: Any) -> Message:
    """Return one item of `input`."""
    raw = as_object(raw)
    kind = _kind(raw)
    parts: tuple[Part, ...]
    if kind == "message":
        role = choice_field(raw, "role", _ROLES)
        parts = parse_content(raw.get("content"), parse_block)
    else:
        # Codex declares tools in an item of the developer's.
        given = _ROLES.get(as_text(raw.get("role")), "assistant")
        role = _ITEM_ROLES.get(kind, given)
        parts = (_ITEMS.get(kind, Unknown)(raw),)
    item_id = text_field(raw, "id", default="")
    return Message(role, parts, id=item_id or None, dialect=NAME, extras=raw)


def render_message(message: Message) -> dict[str, Any]:
    """Return one item of `input`; a message of another dialect must become one item."""
    return single_entry(_render_all((message,)), NAME)


def _split(value: Any) -> tuple[dict[str, Any] | None, Any]:
    """Return the body and its input, which may be missing if the body refers to history."""
    has_no_input = isinstance(value, dict) and value.get("input") is None
    if has_no_input and any(value.get(field) for field in _HISTORY_KEYS):
        return value, []
    return split_body(value, "input")


def _parse_input(raw: Any) -> tuple[Message, ...]:
    if isinstance(raw, str):
        return (_text_message("user", raw),)
    return each(raw, parse_message, "input")


def _render_input(items: list[dict[str, Any]], before: Any) -> str | list[dict[str, Any]]:
    """Return the items; a text if it was one and still is a single text of the user."""
    match items:
        case [{"type": "message", "role": "user", "content": str(text), **rest}] if not rest:
            return text if isinstance(before, str) else items
    return items


def _text_message(role: Role, text: str) -> Message:
    return Message(role, (Text(text),) if text else (), dialect=NAME)


def _put_back_instructions(body: dict[str, Any], system: Message | None) -> None:
    text = "" if system is None else text_of(system.parts)
    if text:
        body["instructions"] = text
    elif body.get("instructions"):
        del body["instructions"]


def _kind(raw: Mapping[str, Any]) -> str:
    """Return the item's type, which messages and references to stored items may leave out."""
    if raw.get("type") is not None:
        return text_field(raw, "type")
    return "item_reference" if "id" in raw and "role" not in raw else "message"


def _render_all(messages: Iterable[Message]) -> list[dict[str, Any]]:
    return [item for message in translate_to_items(messages, NAME) for item in _render(message)]


def _render(message: Message) -> list[dict[str, Any]]:
    """Return the message's items: its content, then each call, result or reasoning.

    An item of one part is removed with the part. New content of an assistant is written as plain
    texts, one per item, because output blocks need an id that only the provider can give.
    """
    if _kind(message.extras) != "message":
        return [_render_item(part) for part in message.parts]
    content = [part for part in message.parts if not _is_item(part)]
    items = [_render_item(part) for part in message.parts if _is_item(part)]
    if message.role == "assistant" and not message.extras and content:
        return [*(_render_content(message, [part]) for part in content), *items]
    return [_render_content(message, content), *items] if content or not items else items


def _is_item(part: Part) -> bool:
    return isinstance(part, ToolCall | ToolResult | Reasoning)


def _render_content(message: Message, content: list[Part]) -> dict[str, Any]:
    raw = dict(message.extras) or {"type": "message", "role": message.role}
    if _ROLES.get(raw.get("role", "")) != message.role:
        raw["role"] = message.role
    if content or "content" in raw or not message.extras:
        block = _render_output_block if message.role == "assistant" else _render_input_block
        raw["content"] = render_content(content, block, raw.get("content", ""), "")
    return raw


def _render_item(part: Part) -> dict[str, Any]:
    match part:
        case ToolCall():
            return _render_call(part)
        case ToolResult():
            return _render_result(part)
        case Reasoning(extras=extras) | Unknown(extras) if extras:
            return dict(extras)
    raise DialectError(f"a {type(part).__name__} part without extras is not an item")


# Content blocks


def _render_input_block(part: Part) -> dict[str, Any]:
    match part:
        case Text(text, extras) if not extras:
            return {"type": "input_text", "text": text}
        case Attachment(extras=extras) if not extras:
            return _new_file(part)
    return render_parsed_block(part)


def _render_output_block(part: Part) -> dict[str, Any]:
    match part:
        case Text(text, extras) if not extras:
            return {"type": "output_text", "text": text, "annotations": []}
    return _render_input_block(part)


def _new_file(file: Attachment) -> dict[str, Any]:
    match file:
        case Attachment(mime=mime) if not mime or mime.startswith("image/"):
            return {"type": "input_image", "detail": "auto", "image_url": data_url(file)}
        case Attachment(data=None):
            return {"type": "input_file", "file_url": data_url(file)}
    return {"type": "input_file", "filename": file.name or "file", "file_data": data_url(file)}


# Calls, results and reasoning


def _parse_call(raw: dict[str, Any]) -> ToolCall:
    return ToolCall(
        text_field(raw, "call_id", default=""),
        text_field(raw, "name", default=""),
        arguments_field(raw, _ARGUMENTS[raw["type"]]),
        raw,
    )


def _render_call(call: ToolCall) -> dict[str, Any]:
    if not call.extras:
        new = {"type": "function_call", "call_id": call.id, "name": call.name}
        return {**new, "arguments": arguments_text(call)}
    raw = dict(call.extras)
    arguments = {_ARGUMENTS[raw["type"]]: call.arguments}
    put_back(raw, absent="", call_id=call.id, name=call.name, **arguments)
    return raw


def _parse_result(raw: dict[str, Any]) -> ToolResult:
    return ToolResult(
        text_field(raw, "call_id", default=""),
        parse_content(raw.get("output"), parse_block, "output"),
        name=text_field(raw, "name", default=""),
        extras=raw,
    )


def _render_result(result: ToolResult) -> dict[str, Any]:
    raw = dict(result.extras) or {"type": "function_call_output", "call_id": "", "output": ""}
    put_back(raw, absent="", call_id=result.call_id, name=result.name)
    if result.parts or "output" in raw:
        raw["output"] = render_content(result.parts, _render_input_block, raw.get("output"), "")
    return raw


def _parse_reasoning(raw: dict[str, Any]) -> Reasoning:
    """Return reasoning; its text is the summary and, from open models, the content."""
    pieces = (*list_field(raw, "summary", _parse_piece), *list_field(raw, "content", _parse_piece))
    return Reasoning("\n\n".join(filter(None, pieces)), raw)


def _parse_piece(raw: Any) -> str:
    return text_field(as_object(raw), "text", default="")


_ITEMS: Mapping[str, Callable[[dict[str, Any]], Part]] = {
    "function_call": _parse_call,
    "custom_tool_call": _parse_call,
    "function_call_output": _parse_result,
    "custom_tool_call_output": _parse_result,
    "reasoning": _parse_reasoning,
}
"""The items that are one part each. Others, except messages, are unknown parts."""


# Tools


def _parse_tool(raw: Any) -> Tool:
    raw = as_object(raw)
    return parse_definition(raw, raw, is_function=raw.get("type") == "function")


def _render_tool(tool: Tool) -> dict[str, Any]:
    """Return a tool; a new one is not strict, which would make all its parameters required."""
    if tool.extras:
        return render_definition(tool.extras, tool)
    new = {"type": "function", "name": tool.name, "parameters": tool.parameters, "strict": False}
    return render_definition(new, tool)


# Replies

_LAST_EVENTS = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""The events that hold the complete response."""
_FIRST_EVENTS = frozenset({"response.created", "response.in_progress", "response.queued"})


class ResponsesReplyParser:
    """Builds the reply of Responses."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._usage = CallUsage()
        self._finish: str | None = None
        self._items: dict[int, dict[str, Any]] = {}

    def add_event(self, event: Mapping[str, Any]) -> None:
        """Read one event."""
        kind = as_text(event.get("type"))
        if kind == "response.output_item.done":
            index = as_integer(event.get("output_index"))
            position = len(self._items) if index is None else index
            self._items[position] = as_mapping(event.get("item"))
        elif kind in _LAST_EVENTS:
            self.read_body(event.get("response"))
        elif kind == "response.created":
            self._id = as_text(as_mapping(event.get("response")).get("id")) or None

    def read_body(self, body: Any) -> None:
        """Read a reply that is not streamed."""
        body = as_mapping(body)
        self._id = as_text(body.get("id")) or self._id
        self._finish = as_text(body.get("status")) or None
        if isinstance(body.get("usage"), dict):
            self._usage = usage_of(body["usage"], "input", "output")
        if items := mappings_in(body.get("output")):
            self._items = dict(enumerate(items))

    def reply(self) -> Reply:
        """Return what has been read so far."""
        items = tuple(self._items[index] for index in sorted(self._items))
        calls = (item for item in items if as_text(item.get("type")) in _ARGUMENTS)
        return Reply(
            id=self._id,
            usage=self._usage,
            calls=tuple(
                CalledTool(
                    as_text(item.get("call_id")),
                    as_text(item.get("name")),
                    as_text(item.get(_ARGUMENTS[item["type"]])),
                )
                for item in calls
            ),
            finish=self._finish,
            messages=items,
        )


# Recall


def _declare_recall(name: str) -> dict[str, Any]:
    # Tools are strict by default, which would make every parameter required.
    definition = {"name": name, "description": DESCRIPTION, "parameters": parameters_schema()}
    return {"type": "function", **definition, "strict": False}


def _tools_in(item: bytes) -> Sequence[dict[str, Any]]:
    """Return the tools that an item of Codex declares."""
    if b'"additional_tools"' not in item:
        return ()
    found = as_mapping(loads(item))
    return mappings_in(found.get("tools")) if found.get("type") == "additional_tools" else ()


def _add_to_item(item: bytes, name: str) -> bytes:
    """Add the recall tool as Codex declares its own there: in a group."""
    group = {"type": "namespace", "name": "enfold", "description": "The history of this session."}
    declared = [*_tools_in(item), {**group, "tools": [_declare_recall(name)]}]
    return dumps({**as_mapping(loads(item)), "tools": declared})


def _without_calls(items: RawMessages, name: str) -> list[dict[str, Any]]:
    """Return the items without the named tool's calls and the reasoning that led only to them."""
    return visible_blocks([dict(item) for item in items], lambda item: _visibility(item, name))


def _join_bodies(bodies: RawMessages, name: str) -> dict[str, Any]:
    """Return one body, with the id of the last, from which the client can continue."""
    outputs = [mappings_in(body.get("output")) for body in bodies]
    output = [item for items in outputs for item in _without_calls(items, name)]
    last = _without_tool(bodies[-1], name)
    return {**last, "output": output, "usage": joined_usage(bodies) or last.get("usage")}


def _visibility(item: Mapping[str, Any], name: str) -> Visibility:
    if item.get("type") == "function_call" and item.get("name") == name:
        return "hidden"
    return "reasoning" if item.get("type") == "reasoning" else "shown"


def _without_tool(response: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the response, which repeats the request's tools, without the recall tool."""
    tools = response.get("tools")
    if not isinstance(tools, list):
        return dict(response)
    return {**response, "tools": [tool for tool in tools if as_mapping(tool).get("name") != name]}


class ResponsesStreamJoiner(StreamJoiner):
    """Joins the streams of one turn."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._positions: BlockPositions[tuple[ServerSentEvent, dict[str, Any]]] = BlockPositions()
        self._sequence = 0
        self._shown: list[dict[str, Any]] = []
        self._done: dict[int, dict[str, Any]] = {}

    def add(self, event: ServerSentEvent, data: dict[str, Any] | None) -> list[ServerSentEvent]:
        """Return the events that the client receives now; the end of a reply is held back."""
        if data is None:
            return [event]
        kind, index = as_text(data.get("type")), as_integer(data.get("output_index"))
        if kind in _LAST_EVENTS:
            self._closing = [(event, data)]
            return []
        if kind in _FIRST_EVENTS:
            response = _without_tool(as_mapping(data.get("response")), self._name)
            self._id = self._id or response.get("id")
            first = (event, {**data, "response": response})
            return self._renumber([(0, first)]) if self._is_first else []
        if index is None:
            return self._renumber([(0, (event, data))])
        if kind == "response.output_item.added":
            visibility = _visibility(as_mapping(data.get("item")), self._name)
            return self._renumber(self._positions.open(index, visibility, (event, data)))
        if kind == "response.output_item.done":
            self._done[index] = as_mapping(data.get("item"))
        return self._renumber(self._positions.extend(index, (event, data)))

    def end_reply(self, *, is_last: bool) -> list[ServerSentEvent]:
        """Return the end of the last reply; the other ends are not shown."""
        shown = self._renumber(self._positions.close())
        done = sorted(index for index in self._done if self._positions.is_shown(index))
        self._shown += [self._done[index] for index in done]
        for event, data in self._closing:
            response = _without_tool(as_mapping(data.get("response")), self._name)
            self._usage = as_mapping(response.get("usage"))
            if is_last:
                response |= {
                    "output": self._shown,
                    "usage": join_usage(self._usage_before, self._usage) or response.get("usage"),
                    # The client library refuses a stream that ends with another id.
                    "id": self._id or response.get("id"),
                }
                shown += self._renumber([(0, (event, {**data, "response": response}))])
        self._positions.begin_reply()
        self._done = {}
        self._begin_next()
        return shown

    def _renumber(
        self, placed: Iterable[tuple[int, tuple[ServerSentEvent, dict[str, Any]]]]
    ) -> list[ServerSentEvent]:
        """Return the events with the indexes and sequence numbers of the client's stream."""
        shown: list[ServerSentEvent] = []
        for position, (event, data) in placed:
            new = dict(data)
            if "sequence_number" in data:
                new["sequence_number"] = self._sequence
                self._sequence += 1
            if "output_index" in data:
                new["output_index"] = position
            is_same = new == data and data.get("type") not in _FIRST_EVENTS | _LAST_EVENTS
            shown.append(event if is_same else event.with_json(new))
        return shown


# Stored responses


def _referenced_item(raw: bytes) -> str | None:
    """Return the id of the item that is referred to; None for an item with content."""
    if len(raw) > _LONGEST_REFERENCE or (b"item_reference" not in raw and b'"role"' in raw):
        return None
    item = loads(raw)
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        return None
    kind = item.get("type", "item_reference" if "role" not in item else None)
    return item["id"] if kind == "item_reference" else None


def _resendable(items: RawMessages) -> list[Mapping[str, Any]]:
    """Return the items without ids, and without reasoning of which only the id is known."""
    if not any(map(_is_lost, items)):
        return list(items)
    return [
        {key: value for key, value in item.items() if key != "id"}
        for item in items
        if not _is_lost(item)
    ]


def _is_lost(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "reasoning" and not item.get("encrypted_content")


WIRE = Wire(
    dialect=NAME,
    provider=CHAT.provider,
    upstream=CHAT.upstream,
    address=CHAT.address,
    path=re.compile("/v1/responses"),
    count_path=re.compile("/v1/responses/input_tokens"),
    messages_key="input",
    overhead_keys=("instructions", "tools"),
    max_output_paths=("max_output_tokens",),
    error_body=CHAT.error_body,
    stream_error=CHAT.stream_error,
    reply_parser=ResponsesReplyParser,
    text_finish="completed",
    answers_in_text=lambda field: (
        as_mapping(as_mapping(field("text")).get("format")).get("type") in (None, "text")
    ),
    recall=RecallFormat(
        is_allowed=lambda field: (
            field("tool_choice") in (None, "auto")
            and not (field("background") or field("conversation"))
        ),
        tool_names=declared_names,
        add_tool=append_tool(_declare_recall),
        add_to_message=_add_to_item,
        complete_finishes=frozenset({"completed"}),
        results=lambda answers: [
            {"type": "function_call_output", "call_id": call.id, "output": text}
            for call, text in answers
        ],
        without_calls=_without_calls,
        join_bodies=_join_bodies,
        joiner=ResponsesStreamJoiner,
    ),
    external_history_keys=("conversation",),
    stored_responses=StoredResponses(
        previous_key="previous_response_id",
        referenced_item=_referenced_item,
        last_event=re.compile(
            rb'(?:^event:|"type"\s*:)\s*"?response\.(?:completed|incomplete|failed)', re.MULTILINE
        ),
        resendable=_resendable,
    ),
    library_path=CHAT.library_path,
    compacts_itself=lambda field: any(
        each.get("type") == "compaction" for each in mappings_in(field("context_management"))
    ),
    tools_in=_tools_in,
    image_tokens=CHAT.image_tokens,
)
