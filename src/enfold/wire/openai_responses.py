"""The `openai-responses` dialect: Responses.

`input` is a text or an array of items, and `instructions` is the system prompt beside it. Calls,
results and reasoning are items of their own, so one message is one item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from enfold.amounts import CallUsage
from enfold.errors import DialectError
from enfold.messages import (
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
from enfold.wire.fields import (
    arguments_field,
    arguments_text,
    as_object,
    choice_field,
    each,
    list_field,
    parse_content,
    put_back,
    put_back_list,
    render_content,
    split_body,
    text_field,
)
from enfold.wire.openai import lay_definition_over, read_definition
from enfold.wire.openai_shared import (
    adopt,
    offered,
    parse_block,
    render_input_block,
    render_output_block,
    the_only,
)
from enfold.wire.replies import (
    Called,
    Event,
    Kind,
    Places,
    Reply,
    added,
    mapping,
    mappings,
    number,
    text,
    visible,
)

NAME = "openai-responses"

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}
"""The field of a call's arguments, by the item's type."""
_RESULTS = ("function_call_output", "custom_tool_call_output")
_HISTORY_ELSEWHERE = ("previous_response_id", "conversation", "prompt")
"""What a request may continue from; only then may it have no `input`."""


def parse(value: Any) -> Conversation:
    """A request body, or the bare array of its items."""
    body, raw_input = _split(value)
    instructions = text_field(body or {}, "instructions", default="")
    return Conversation(
        messages=_parse_input(raw_input),
        dialect=NAME,
        system=_said_by("system", instructions) if instructions else None,
        tools=list_field(body or {}, "tools", _parse_tool),
        extras=body,
    )


def render(conversation: Conversation) -> Any:
    """What `parse` read, with the messages as they are now; another dialect's is translated."""
    if conversation.extras is None and not conversation.tools:
        system = () if conversation.system is None else (conversation.system,)
        return _render_all((*system, *conversation.messages))
    is_own = conversation.dialect == NAME
    body = dict((is_own and conversation.extras) or {"input": []})
    items = _render_all(conversation.messages)
    if items or body.get("input"):
        body["input"] = _render_input(items, body.get("input"))
    _put_back_instructions(body, conversation.system)
    tools = conversation.tools if is_own else offered(conversation.tools)
    put_back_list(body, "tools", [_render_tool(tool) for tool in tools])
    return body


def parse_message(raw: Any) -> Message:
    """One item of `input`."""
    raw = as_object(raw)
    kind = _kind(raw)
    parts: tuple[Part, ...]
    if kind == "message":
        role = choice_field(raw, "role", _ROLES)
        parts = parse_content(raw.get("content"), parse_block)
    else:
        role = "tool" if kind in _RESULTS else "assistant"
        parts = (_ITEMS.get(kind, Unknown)(raw),)
    item_id = text_field(raw, "id", default="")
    return Message(role, parts, id=item_id or None, dialect=NAME, extras=raw)


def render_message(message: Message) -> dict[str, Any]:
    """One item of `input` again; another dialect's message must be one item here too."""
    return the_only(_render_all((message,)), NAME)


def _split(value: Any) -> tuple[dict[str, Any] | None, Any]:
    """The body and its input, of which there is none where a request only goes on elsewhere."""
    is_without_input = isinstance(value, dict) and value.get("input") is None
    if is_without_input and any(value.get(field) for field in _HISTORY_ELSEWHERE):
        return value, []
    return split_body(value, "input")


def _parse_input(raw: Any) -> tuple[Message, ...]:
    if isinstance(raw, str):
        return (_said_by("user", raw),)
    return each(raw, parse_message, "input")


def _render_input(items: list[dict[str, Any]], before: Any) -> str | list[dict[str, Any]]:
    """A text as long as it was one and is one plain text of the user."""
    match items:
        case [{"type": "message", "role": "user", "content": str(text), **rest}] if not rest:
            return text if isinstance(before, str) else items
    return items


def _said_by(role: Role, text: str) -> Message:
    return Message(role, (Text(text),) if text else (), dialect=NAME)


def _put_back_instructions(body: dict[str, Any], system: Message | None) -> None:
    text = "" if system is None else text_of(system.parts)
    if text:
        body["instructions"] = text
    elif body.get("instructions"):
        del body["instructions"]


def _kind(raw: Mapping[str, Any]) -> str:
    """The item's type, which messages and references to stored items may leave out."""
    if raw.get("type") is not None:
        return text_field(raw, "type")
    return "item_reference" if "id" in raw and "role" not in raw else "message"


def _render_all(messages: Iterable[Message]) -> list[dict[str, Any]]:
    return [item for message in adopt(messages, NAME) for item in _render(message)]


def _render(message: Message) -> list[dict[str, Any]]:
    """The message's items: what is said, then each call, result or reasoning.

    An item that is one part goes when the part does. What an assistant says anew are plain texts,
    one in an item, because blocks of output need the id that only the provider can give.
    """
    if _kind(message.extras) != "message":
        return [_render_item(part) for part in message.parts]
    content = [part for part in message.parts if not _is_item(part)]
    items = [_render_item(part) for part in message.parts if _is_item(part)]
    if message.role == "assistant" and not message.extras and content:
        return [*(_render_spoken(message, [part]) for part in content), *items]
    return [_render_spoken(message, content), *items] if content or not items else items


def _is_item(part: Part) -> bool:
    return isinstance(part, ToolCall | ToolResult | Reasoning)


def _render_spoken(message: Message, content: list[Part]) -> dict[str, Any]:
    raw = dict(message.extras) or {"type": "message", "role": message.role}
    if _ROLES.get(raw.get("role", "")) != message.role:
        raw["role"] = message.role
    if content or "content" in raw or not message.extras:
        block = render_output_block if message.role == "assistant" else render_input_block
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
    raise DialectError(f"a {type(part).__name__} part without extras is no item")


def _parse_call(raw: dict[str, Any]) -> ToolCall:
    return ToolCall(
        text_field(raw, "call_id", default=""),
        text_field(raw, "name", default=""),
        arguments_field(raw, _ARGUMENTS[raw["type"]]),
        raw,
    )


def _render_call(call: ToolCall) -> dict[str, Any]:
    if not call.extras:
        named = {"type": "function_call", "call_id": call.id, "name": call.name}
        return {**named, "arguments": arguments_text(call)}
    raw = dict(call.extras)
    put_back(raw, "call_id", call.id, absent="")
    put_back(raw, "name", call.name, absent="")
    put_back(raw, _ARGUMENTS[raw["type"]], call.arguments, absent="")
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
    put_back(raw, "call_id", result.call_id, absent="")
    put_back(raw, "name", result.name, absent="")
    if result.parts or "output" in raw:
        raw["output"] = render_content(result.parts, render_input_block, raw.get("output"), "")
    return raw


def _parse_reasoning(raw: dict[str, Any]) -> Reasoning:
    """What can be read of it is its summary and, from open models, the thinking itself."""
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
"""The items that are one part each; all others but messages are unknown parts."""


def _parse_tool(raw: Any) -> Tool:
    raw = as_object(raw)
    return read_definition(raw, raw, is_function=raw.get("type") == "function")


def _render_tool(tool: Tool) -> dict[str, Any]:
    """A tool; one made by hand is not strict, which would make all its parameters required."""
    if tool.extras:
        return lay_definition_over(tool.extras, tool)
    new = {"type": "function", "name": tool.name, "parameters": tool.parameters, "strict": False}
    return lay_definition_over(new, tool)


ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""Events that bring the whole answer."""


class ResponsesGathering:
    """A reply of Responses."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._usage = CallUsage()
        self._finish: str | None = None
        self._items: dict[int, dict[str, Any]] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """One event."""
        kind = text(event.get("type"))
        if kind == "response.output_item.done":
            at = number(event.get("output_index"))
            self._items[len(self._items) if at is None else at] = mapping(event.get("item"))
        elif kind in ENDS:
            self.take_whole(event.get("response"))
        elif kind == "response.created":
            self._id = text(mapping(event.get("response")).get("id")) or None

    def take_whole(self, body: Any) -> None:
        """The answer that is no stream."""
        body = mapping(body)
        self._id = text(body.get("id")) or self._id
        self._finish = text(body.get("status")) or None
        if isinstance(body.get("usage"), dict):
            self._usage = _usage(body["usage"])
        if items := mappings(body.get("output")):
            self._items = dict(enumerate(items))

    def reply(self) -> Reply:
        """What there is by now."""
        items = tuple(self._items[index] for index in sorted(self._items))
        return Reply(
            id=self._id,
            usage=self._usage,
            calls=tuple(_called(item) for item in items if text(item.get("type")) in _ARGUMENTS),
            finish=self._finish,
            messages=items,
        )


def _called(item: Mapping[str, Any]) -> Called:
    arguments = text(item.get(_ARGUMENTS[item["type"]]))
    return Called(text(item.get("call_id")), text(item.get("name")), arguments)


def _usage(used: Mapping[str, Any]) -> CallUsage:
    details = mapping(used.get("input_tokens_details"))
    return CallUsage(
        input_tokens=number(used.get("input_tokens")),
        output_tokens=number(used.get("output_tokens")),
        cache_read_tokens=number(details.get("cached_tokens")),
        cache_write_tokens=number(details.get("cache_write_tokens")),
    )


GOES_ON = frozenset({"completed"})
"""How a reply ends whose calls are whole."""
_BEGINS = frozenset({"response.created", "response.in_progress", "response.queued"})


def results(answers: Sequence[tuple[Called, str]]) -> list[dict[str, Any]]:
    """The items that answer the calls."""
    return [
        {"type": "function_call_output", "call_id": call.id, "output": text}
        for call, text in answers
    ]


def without(items: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """The items without calls of that tool, and without reasoning that led to nothing else."""
    return visible([dict(item) for item in items], lambda item: _responses_kind(item, name))


def joined(bodies: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """The answers of a turn as one. It has the id of the last, from which a client can go on."""
    output = [item for body in bodies for item in without(mappings(body.get("output")), name)]
    used: dict[str, Any] = {}
    for body in bodies:
        used = added(used, mapping(body.get("usage")))
    last = _without_tool(bodies[-1], name)
    return {**last, "output": output, "usage": used or last.get("usage")}


class ResponsesJoin:
    """The streams of a turn as one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._places: Places[tuple[Event, dict[str, Any]]] = Places()
        self._is_first = True
        self._id: Any = None
        self._sequence = 0
        self._before: dict[str, Any] = {}
        self._shown: list[dict[str, Any]] = []
        self._done: dict[int, dict[str, Any]] = {}
        self._end: tuple[Event, dict[str, Any]] | None = None

    def take(self, event: Event, said: dict[str, Any] | None) -> list[Event]:
        """What of the event the client sees now."""
        if said is None:
            return [event]
        kind, at = text(said.get("type")), number(said.get("output_index"))
        if kind in ENDS:
            self._end = (event, said)
            return []
        if kind in _BEGINS:
            whole = _without_tool(mapping(said.get("response")), self._name)
            self._id = self._id or whole.get("id")
            began = (event, {**said, "response": whole})
            return self._numbered([(0, began)]) if self._is_first else []
        if at is None:
            return self._numbered([(0, (event, said))])
        if kind == "response.output_item.added":
            of_item = _responses_kind(mapping(said.get("item")), self._name)
            return self._numbered(self._places.open(at, of_item, (event, said)))
        if kind == "response.output_item.done":
            self._done[at] = mapping(said.get("item"))
        return self._numbered(self._places.more(at, (event, said)))

    def close(self, *, goes_on: bool) -> list[Event]:
        """What the client sees at the end of a reply; nothing of an end that is not the last."""
        shown = self._numbered(self._places.close())
        self._shown += [self._done[at] for at in sorted(self._done) if self._places.is_shown(at)]
        if self._end is not None:
            event, said = self._end
            whole = _without_tool(mapping(said.get("response")), self._name)
            self._before = added(self._before, mapping(whole.get("usage")))
            if not goes_on:
                whole |= {"output": self._shown, "usage": self._before or whole.get("usage")}
                # The library refuses a stream that ends under another name than it began.
                whole["id"] = self._id or whole.get("id")
                shown += self._numbered([(0, (event, {**said, "response": whole}))])
        self._places.begin()
        self._is_first = False
        self._done, self._end = {}, None
        return shown

    def _numbered(self, placed: Iterable[tuple[int, tuple[Event, dict[str, Any]]]]) -> list[Event]:
        """The events under the client's indexes, one number after the other."""
        shown: list[Event] = []
        for place, (event, said) in placed:
            now = dict(said)
            if "sequence_number" in said:
                now["sequence_number"] = self._sequence
                self._sequence += 1
            if "output_index" in said:
                now["output_index"] = place
            is_same = now == said and said.get("type") not in _BEGINS | ENDS
            shown.append(event if is_same else event.with_json(now))
        return shown


def _responses_kind(item: Mapping[str, Any], name: str) -> Kind:
    if item.get("type") == "function_call" and item.get("name") == name:
        return "hidden"
    return "reasoning" if item.get("type") == "reasoning" else "shown"


def _without_tool(response: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The answer without the tool that the client did not offer, which providers repeat."""
    tools = response.get("tools")
    if not isinstance(tools, list):
        return dict(response)
    return {**response, "tools": [each for each in tools if mapping(each).get("name") != name]}
