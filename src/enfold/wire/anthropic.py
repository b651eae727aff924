"""The `anthropic` dialect: the Messages API.

Everything a message says is a block of its `content`; a text alone may stand without one. Calls
are blocks of the assistant, results blocks of the user who speaks next. The system prompt stands
beside the messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from enfold.amounts import CallUsage
from enfold.errors import DialectError, InputError
from enfold.jsontext import dump_text, loads
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
from enfold.wire.openai_shared import note_of
from enfold.wire.replies import (
    Called,
    Event,
    Places,
    Reply,
    added,
    mapping,
    mappings,
    number,
    text,
    total,
    visible,
)
from enfold.wire.replies import Kind as replies_Kind
from enfold.wire.turns import adopt, adopt_message

NAME = "anthropic"

Kind = TypeVar("Kind")
_BlockParser: TypeAlias = Callable[[dict[str, Any]], Kind]

_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_NO_PARAMETERS = {"type": "object", "properties": {}}


def parse(value: Any) -> Conversation:
    """A request body, or the bare array of its messages."""
    body, raw_messages = split_body(value, "messages")
    beside = body or {}
    return Conversation(
        messages=each(raw_messages, parse_message, "messages"),
        dialect=NAME,
        system=_parse_system(beside.get("system")),
        tools=list_field(beside, "tools", _parse_tool),
        extras=body,
    )


def render(conversation: Conversation) -> Any:
    """What `parse` read, with the messages as they are now; another dialect's is translated."""
    own = adopt(conversation, NAME)
    messages = [render_message(message) for message in own.messages]
    body: dict[str, Any] = {**(own.extras or {}), "messages": messages}
    _put_back_system(body, own.system)
    put_back_list(body, "tools", [_render_tool(tool) for tool in own.tools])
    return messages if own.extras is None and len(body) == 1 else body


def parse_message(raw: Any) -> Message:
    """One entry of `messages`."""
    raw = as_object(raw)
    role = choice_field(raw, "role", _ROLES)
    content = raw.get("content")
    if content is None:
        raise DialectError("expected text or an array, found nothing", place="content")
    given_id = raw.get("id")
    return Message(
        role,
        parse_content(content, partial(_parse_block, _BLOCKS)),
        id=given_id if isinstance(given_id, str) else None,
        dialect=NAME,
        extras=raw,
    )


def render_message(message: Message) -> dict[str, Any]:
    """One entry of `messages` again; another dialect's is translated on its own."""
    own = adopt_message(message, NAME)
    role = "user" if own.role == "tool" else own.role
    before = own.extras.get("content", "")
    content = render_content(own.parts, _render_block, before, "")
    return {**own.extras, "role": role, "content": content}


def _parse_system(content: Any) -> Message | None:
    parts = parse_content(content, partial(_parse_block, _SYSTEM_BLOCKS), "system")
    return Message("system", parts, dialect=NAME) if parts else None


def _put_back_system(body: dict[str, Any], system: Message | None) -> None:
    before = body.get("system")
    if system is not None and system.parts:
        body["system"] = render_content(system.parts, _render_block, before, "")
    elif before:
        del body["system"]


def _parse_block(parsers: Mapping[str, _BlockParser[Kind]], raw: Any) -> Kind | Unknown:
    raw = as_object(raw)
    kind = text_field(raw, "type")
    return parsers[kind](raw) if kind in parsers else Unknown(raw)


def _parse_text(raw: dict[str, Any]) -> Text:
    return Text(text_field(raw, "text"), raw)


def _parse_image(raw: dict[str, Any]) -> ResultPart:
    return parse_field(raw, "source", partial(_parse_source, raw, ""))


def _parse_document(raw: dict[str, Any]) -> ResultPart:
    name = text_field(raw, "title", default="")
    return parse_field(raw, "source", partial(_parse_source, raw, name))


def _parse_source(block: dict[str, Any], name: str, source: dict[str, Any]) -> ResultPart:
    """A file by its source.

    Plain text is a `Text`: the model reads every word of it, so it counts and can be condensed.
    Blocks inside a document have no counterpart here.
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


def _parse_thinking(raw: dict[str, Any]) -> Reasoning:
    return Reasoning(text_field(raw, "thinking"), raw)


def _parse_redacted(raw: dict[str, Any]) -> Reasoning:
    return Reasoning(extras=raw)


def _parse_call(raw: dict[str, Any]) -> ToolCall:
    return ToolCall(text_field(raw, "id"), text_field(raw, "name"), object_field(raw, "input"), raw)


def _parse_result(raw: dict[str, Any]) -> ToolResult:
    return ToolResult(
        text_field(raw, "tool_use_id"),
        parse_content(raw.get("content"), partial(_parse_block, _RESULT_BLOCKS)),
        flag_field(raw, "is_error"),
        extras=raw,
    )


_SYSTEM_BLOCKS: Mapping[str, _BlockParser[Text]] = {"text": _parse_text}
_RESULT_BLOCKS: Mapping[str, _BlockParser[ResultPart]] = {
    "text": _parse_text,
    "image": _parse_image,
    "document": _parse_document,
}
_BLOCKS: Mapping[str, _BlockParser[Part]] = {
    **_RESULT_BLOCKS,
    "thinking": _parse_thinking,
    "redacted_thinking": _parse_redacted,
    "tool_use": _parse_call,
    "tool_result": _parse_result,
}
"""The blocks that enfold knows, by type. Providers add types often; all others are kept as they
are, the provider's own tools and their results included."""


def _render_block(part: Part) -> dict[str, Any]:
    match part:
        case Text(text, extras) if extras.get("type", "text") == "text":
            return {**with_defaults(extras, type="text"), "text": text}
        case Text(text, extras):
            return {**extras, "source": {**extras["source"], "data": text}}
        case Data(value):
            return {"type": "text", "text": dump_text(value)}
        case ToolCall():
            return _render_call(part)
        case ToolResult():
            return _render_result(part)
        case Attachment(extras=extras) if not extras:
            return _render_file(part)
        case Reasoning(text, extras) if not extras:
            return {"type": "thinking", "thinking": text}
    return dict(part.extras)


def _render_file(file: Attachment) -> dict[str, Any]:
    """A file made by hand or elsewhere: images and PDFs have a block, others only a mention."""
    source = _render_source(file)
    if source and (file.mime.startswith("image/") or not file.mime):
        return {"type": "image", "source": source}
    if source and file.mime == "application/pdf":
        return {"type": "document", "source": source}
    return {"type": "text", "text": note_of(file).text}


def _render_source(file: Attachment) -> dict[str, Any] | None:
    """None for what Anthropic cannot fetch, or would refuse because its type is not known."""
    if file.data and file.mime:
        return {"type": "base64", "media_type": file.mime, "data": file.data}
    if file.url and file.url.startswith(("https:", "http:")):
        return {"type": "url", "url": file.url}
    return None


def _render_call(call: ToolCall) -> dict[str, Any]:
    typed = {"id": _own_id(call.id, call.extras), "name": call.name}
    raw = with_defaults(call.extras, type="tool_use")
    return {**raw, **typed, "input": arguments_object(call)}


def _render_result(result: ToolResult) -> dict[str, Any]:
    raw = with_defaults(result.extras, type="tool_result")
    raw["tool_use_id"] = _own_id(result.call_id, result.extras)
    if result.parts or "content" in raw:
        raw["content"] = render_content(result.parts, _render_block, raw.get("content"), "")
    put_back(raw, "is_error", result.is_error, absent=False)
    return raw


def _own_id(call_id: str, extras: Extras) -> str:
    """The id as the wire has it; another provider's without what Anthropic refuses in an id."""
    return call_id if extras else re.sub(r"[^a-zA-Z0-9_-]", _spell_out, call_id)


def _spell_out(refused: re.Match[str]) -> str:
    """By its number, so that ids that differ still do."""
    return f"_{ord(refused[0]):x}"


def _parse_tool(raw: Any) -> Tool:
    """A client's tool, or one of the provider's: that has a type and may have no name."""
    raw = as_object(raw)
    return Tool(
        text_field(raw, "name", default="" if "type" in raw else None),
        text_field(raw, "description", default=""),
        None if raw.get("input_schema") is None else object_field(raw, "input_schema"),
        raw,
    )


def _render_tool(tool: Tool) -> dict[str, Any]:
    raw = dict(tool.extras)
    put_back(raw, "name", tool.name, absent="")
    put_back(raw, "description", tool.description, absent="")
    schema = tool.parameters if tool.extras else tool.parameters or _NO_PARAMETERS
    put_back(raw, "input_schema", schema, absent=None)
    return raw


_TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""What each kind of piece adds to, under the same name."""


class MessagesGathering:
    """A reply of Messages."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._used: dict[str, Any] = {}
        self._finish: str | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """One event."""
        at = number(event.get("index")) or 0
        match event.get("type"):
            case "message_start":
                message = mapping(event.get("message"))
                self._id = text(message.get("id")) or None
                self._use(message)
            case "content_block_start":
                self._blocks[at] = dict(mapping(event.get("content_block")))
            case "content_block_delta":
                self._take_delta(at, mapping(event.get("delta")))
            case "message_delta":
                self._finish = text(mapping(event.get("delta")).get("stop_reason")) or self._finish
                self._use(event)

    def take_whole(self, body: Any) -> None:
        """The answer that is no stream."""
        body = mapping(body)
        self._id = text(body.get("id")) or None
        self._finish = text(body.get("stop_reason")) or None
        self._blocks = dict(enumerate(mappings(body.get("content"))))
        self._use(body)

    def reply(self) -> Reply:
        """What there is by now."""
        blocks = [self._block(index) for index in sorted(self._blocks)]
        return Reply(
            id=self._id,
            usage=_usage(self._used),
            calls=tuple(_called(block) for block in blocks if block.get("type") == "tool_use"),
            finish=self._finish,
            messages=({"role": "assistant", "content": blocks},) if blocks else (),
        )

    def _use(self, said: Mapping[str, Any]) -> None:
        """Counts grow while a reply is written, and the later are right."""
        given = mapping(said.get("usage"))
        self._used |= {key: value for key, value in given.items() if value is not None}

    def _take_delta(self, at: int, delta: Mapping[str, Any]) -> None:
        kind = text(delta.get("type"))
        if name := _TEXTS.get(kind):
            self._pieces.setdefault((at, name), []).append(text(delta.get(name)))
        elif kind == "input_json_delta":
            self._pieces.setdefault((at, "input"), []).append(text(delta.get("partial_json")))
        elif kind == "citations_delta":
            block = self._blocks.setdefault(at, {})
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]

    def _block(self, index: int) -> dict[str, Any]:
        block = dict(self._blocks[index])
        for (at, name), pieces in self._pieces.items():
            if at == index:
                said = "".join(pieces)
                block[name] = _input(said) if name == "input" else text(block.get(name)) + said
        return block


def _input(said: str) -> Any:
    """A call's input; as text where the model did not get to its end."""
    try:
        return loads(said) if said else {}
    except InputError:
        return said


def _called(block: Mapping[str, Any]) -> Called:
    given = block.get("input")
    arguments = given if isinstance(given, str) else dump_text(given)
    return Called(text(block.get("id")), text(block.get("name")), arguments)


def _usage(used: Mapping[str, Any]) -> CallUsage:
    read, written = used.get("cache_read_input_tokens"), used.get("cache_creation_input_tokens")
    return CallUsage(
        input_tokens=total(used.get("input_tokens"), read, written),
        output_tokens=number(used.get("output_tokens")),
        cache_read_tokens=number(read),
        cache_write_tokens=number(written),
    )


GOES_ON = frozenset({"tool_use"})
"""How a reply ends whose calls are whole."""


def results(answers: Sequence[tuple[Called, str]]) -> list[dict[str, Any]]:
    """The message that answers the calls."""
    blocks = [
        {"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in answers
    ]
    return [{"role": "user", "content": blocks}]


def merged(held: Sequence[Mapping[str, Any]], message: Mapping[str, Any]) -> dict[str, Any]:
    """The client's own results with the held ones before them."""
    ours = [block for each in held for block in each["content"]]
    theirs = message.get("content")
    said = [{"type": "text", "text": theirs}] if isinstance(theirs, str) else theirs or []
    return {**message, "content": [*ours, *said]}


def without(messages: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """The messages without calls of that tool."""
    return [
        {**message, "content": [b for b in mappings(message["content"]) if not _calls(b, name)]}
        for message in messages
    ]


def joined(bodies: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """The answers of a turn as one."""
    content = [
        block
        for body in bodies
        for block in visible(mappings(body.get("content")), lambda b: _kind(b, name))
    ]
    used: dict[str, Any] = {}
    for body in bodies:
        used = added(used, mapping(body.get("usage")))
    calls = any(block.get("type") == "tool_use" for block in content)
    reason = _reason(bodies[-1].get("stop_reason"), calls=calls)
    return {**bodies[-1], "content": content, "stop_reason": reason, "usage": used}


class MessagesJoin:
    """The streams of a turn as one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._places: Places[tuple[Event, dict[str, Any]]] = Places()
        self._is_first = True
        self._calls = False
        self._before: dict[str, Any] = {}
        self._used: dict[str, Any] = {}
        self._closing: list[tuple[Event, dict[str, Any]]] = []

    def take(self, event: Event, said: dict[str, Any] | None) -> list[Event]:
        """What of the event the client sees now."""
        if said is None:
            return [event]
        at = number(said.get("index")) or 0
        match said.get("type"):
            case "message_start":
                self._use(mapping(said.get("message")))
                return [event] if self._is_first else []
            case "content_block_start":
                kind = _kind(mapping(said.get("content_block")), self._name)
                self._calls |= kind == "shown" and said["content_block"].get("type") == "tool_use"
                return _numbered(self._places.open(at, kind, (event, said)))
            case "content_block_delta" | "content_block_stop":
                return _numbered(self._places.more(at, (event, said)))
            case "message_delta" | "message_stop":
                self._use(said)
                self._closing.append((event, said))
                return []
        return [event]

    def close(self, *, goes_on: bool) -> list[Event]:
        """What the client sees at the end of a reply; nothing of an end that is not the last."""
        shown = _numbered(self._places.close())
        if not goes_on:
            shown += [self._closed(event, said) for event, said in self._closing]
        self._places.begin()
        self._is_first = False
        self._before, self._used = added(self._before, self._used), {}
        self._closing = []
        return shown

    def _use(self, said: Mapping[str, Any]) -> None:
        given = mapping(said.get("usage"))
        self._used |= {key: value for key, value in given.items() if value is not None}

    def _closed(self, event: Event, said: dict[str, Any]) -> Event:
        if said.get("type") != "message_delta":
            return event
        delta = mapping(said.get("delta"))
        now = {**delta, "stop_reason": _reason(delta.get("stop_reason"), calls=self._calls)}
        if self._is_first and now == delta:
            return event
        usage = added(self._before, {**mapping(said.get("usage")), **self._used})
        return event.with_json({**said, "delta": now, "usage": usage})


def _kind(block: Mapping[str, Any], name: str) -> replies_Kind:
    if _calls(block, name):
        return "hidden"
    return "reasoning" if block.get("type") in ("thinking", "redacted_thinking") else "shown"


def _calls(block: Mapping[str, Any], name: str) -> bool:
    return block.get("type") == "tool_use" and block.get("name") == name


def _reason(reason: Any, *, calls: bool) -> Any:
    """No reply ends for calls that the client does not see."""
    return "end_turn" if reason == "tool_use" and not calls else reason


def _numbered(placed: Iterable[tuple[int, tuple[Event, dict[str, Any]]]]) -> list[Event]:
    return [
        event if said.get("index") == place else event.with_json({**said, "index": place})
        for place, (event, said) in placed
    ]
