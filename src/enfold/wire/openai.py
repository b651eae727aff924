"""The `openai` dialect: Chat Completions.

Text and attachments are in `content`, calls in `tool_calls`, a refusal and readable reasoning in
fields of their own. A tool's result is a message of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from enfold.amounts import CallUsage
from enfold.messages import (
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
)
from enfold.wire.fields import (
    arguments_field,
    arguments_text,
    as_object,
    choice_field,
    each,
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
from enfold.wire.openai_shared import (
    adopt,
    files_after_results,
    join_calls,
    offered,
    parse_block,
    render_chat_block,
    the_only,
)
from enfold.wire.replies import Called, Event, Reply, added, mapping, mappings, number, text

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


NAME = "openai"

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_READABLE_REASONING = (
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "reasoning_details",
    "thinking_blocks",
)
"""What compatible servers call it; where a message has several, they say the same."""
_REASONING = (*_READABLE_REASONING, "reasoning_opaque")
_UNFIT_FOR_NAMES = re.compile(r"[\s<|\\/>]+")


def parse(value: Any) -> Conversation:
    """A request body, or the bare array of its messages."""
    body, raw_messages = split_body(value, "messages")
    return Conversation(
        messages=each(raw_messages, parse_message, "messages"),
        dialect=NAME,
        tools=parse_tools(body or {}),
        extras=body,
    )


def render(conversation: Conversation) -> Any:
    """What `parse` read, with the messages as they are now; another dialect's is translated."""
    system = () if conversation.system is None else (conversation.system,)
    messages = _render_all((*system, *conversation.messages))
    if conversation.extras is None and not conversation.tools:
        return messages
    if conversation.dialect != NAME:
        return put_back_tools({"messages": messages}, offered(conversation.tools))
    return put_back_tools({**(conversation.extras or {}), "messages": messages}, conversation.tools)


def parse_message(raw: Any) -> Message:
    """One entry of `messages`."""
    raw = as_object(raw)
    role = choice_field(raw, "role", _ROLES)
    name = text_field(raw, "name", default="")
    content = parse_content(raw.get("content"), parse_block)
    parts: tuple[Part, ...] = content
    if role == "tool":
        parts = (ToolResult(text_field(raw, "tool_call_id", default=""), content, name=name),)
    elif role == "assistant":
        parts = (*_parse_reasoning(raw), *content, *_parse_refusal(raw), *parse_calls(raw))
    own_id = raw.get("id")
    return Message(
        role,
        parts,
        id=own_id if isinstance(own_id, str) else None,
        name=None if role == "tool" else name or None,
        dialect=NAME,
        extras=raw,
    )


def render_message(message: Message) -> dict[str, Any]:
    """One entry of `messages` again; another dialect's message must be one entry here too."""
    return the_only(_render_all((message,)), NAME)


def _render_all(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Every message, and of foreign ones only what this wire takes in the order it takes it."""
    adopted = files_after_results(join_calls(adopt(messages, NAME)))
    return [_render(message) for message in adopted]


def _render(message: Message) -> dict[str, Any]:
    raw = with_defaults(message.extras, role=message.role)
    if _ROLES.get(raw["role"]) != message.role:
        raw["role"] = message.role
    parts: tuple[Part, ...] = message.parts
    match parts:
        case (ToolResult(call_id, inner, name=name),):
            put_back(raw, "tool_call_id", call_id, absent="")
            put_back(raw, "name", name, absent="")
            parts = inner
        case _ if message.name and message.name != raw.get("name"):
            raw["name"] = _UNFIT_FOR_NAMES.sub("_", message.name)[:64]
    is_assistant = message.role == "assistant"
    calls = [part for part in parts if is_assistant and isinstance(part, ToolCall)]
    content = [part for part in parts if not (is_assistant and _is_beside_content(part))]
    if content or "content" in raw or not message.extras:
        empty = None if calls else ""
        raw["content"] = render_content(
            content, render_chat_block, raw.get("content", empty), empty
        )
    if is_assistant:
        _put_back_reasoning(raw, parts)
        _put_back_refusal(raw, parts)
        put_back_calls(raw, calls)
    return raw


def _is_beside_content(part: Part) -> bool:
    """True for what an assistant's message has in other fields than `content`."""
    return isinstance(part, ToolCall | Reasoning) or _is_refusal(part)


def _parse_reasoning(raw: Mapping[str, Any]) -> tuple[Reasoning, ...]:
    """One part for all its fields, because it is kept or dropped as a whole."""
    fields = {field: raw[field] for field in _REASONING if raw.get(field)}
    texts = (_readable(fields.get(field)) for field in _READABLE_REASONING)
    return (Reasoning(next(filter(None, texts), ""), fields),) if fields else ()


def _readable(value: Any) -> str:
    """What can be read of a reasoning field: a text, or an array of pieces that hold some."""
    if isinstance(value, str):
        return value
    pieces = value if isinstance(value, list) else []
    objects = (piece for piece in pieces if isinstance(piece, dict))
    texts = (piece.get(key) for piece in objects for key in ("text", "summary", "thinking"))
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


class ChatGathering:
    """A reply of Chat Completions. Of several choices it is the first."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._usage = CallUsage()
        self._finish: str | None = None
        self._message: dict[str, Any] = {"role": "assistant"}
        self._pieces: dict[str, list[str]] = {}
        self._calls: dict[int, dict[str, Any]] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """One chunk."""
        self._take_beside(event)
        for choice in mappings(event.get("choices")):
            if choice.get("index", 0) == 0:
                self._take_delta(mapping(choice.get("delta")))
                self._finish = text(choice.get("finish_reason")) or self._finish

    def take_whole(self, body: Any) -> None:
        """The answer that is no stream."""
        self._take_beside(mapping(body))
        for choice in mappings(mapping(body).get("choices"))[:1]:
            said = dict(mapping(choice.get("message")))
            self._calls = dict(enumerate(mappings(said.pop("tool_calls", None))))
            self._message |= {key: value for key, value in said.items() if value not in (None, [])}
            self._finish = text(choice.get("finish_reason")) or None

    def reply(self) -> Reply:
        """What there is by now."""
        calls = [self._calls[index] for index in sorted(self._calls)]
        said = {key: "".join(pieces) for key, pieces in self._pieces.items()}
        message = {**self._message, **said}
        if calls:
            message["tool_calls"] = calls
        is_empty = set(message) == {"role"}
        return Reply(
            id=self._id,
            usage=self._usage,
            calls=tuple(map(_called, calls)),
            finish=self._finish,
            messages=() if is_empty else (message,),
        )

    def _take_beside(self, body: Mapping[str, Any]) -> None:
        self._id = text(body.get("id")) or self._id
        if isinstance(body.get("usage"), dict):
            self._usage = _usage(body["usage"])

    def _take_delta(self, delta: Mapping[str, Any]) -> None:
        for key, value in delta.items():
            if key == "tool_calls":
                for place, piece in enumerate(mappings(value)):
                    _put(self._calls.setdefault(number(piece.get("index", place)) or 0, {}), piece)
            elif key == "role":
                self._message["role"] = value
            elif isinstance(value, str):
                self._pieces.setdefault(key, []).append(value)
            elif isinstance(value, list):
                before = self._message.get(key)
                self._message[key] = [*before, *value] if isinstance(before, list) else value
            elif value is not None:
                self._message[key] = value


def _put(call: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """A piece of a call added to what came before; only arguments come in several."""
    for key, value in piece.items():
        if key == "index" or value is None:
            continue
        if not isinstance(value, dict):
            call[key] = value
            continue
        inner = call[key] = dict(mapping(call.get(key)))
        for name, part in value.items():
            is_more = name in {"arguments", "input"} and isinstance(part, str)
            inner[name] = text(inner.get(name)) + part if is_more else part


def _called(call: Mapping[str, Any]) -> Called:
    said = mapping(call.get("function")) or mapping(call.get("custom"))
    return Called(
        id=text(call.get("id")),
        name=text(said.get("name")),
        arguments=text(said.get("arguments")) or text(said.get("input")),
    )


def _usage(used: Mapping[str, Any]) -> CallUsage:
    details = mapping(used.get("prompt_tokens_details"))
    return CallUsage(
        input_tokens=number(used.get("prompt_tokens")),
        output_tokens=number(used.get("completion_tokens")),
        cache_read_tokens=number(details.get("cached_tokens")),
        cache_write_tokens=number(details.get("cache_write_tokens")),
    )


GOES_ON = frozenset({"tool_calls", "stop"})
"""How a reply ends whose calls are whole."""
BETWEEN = "\n\n"
"""What stands between the texts of two replies, where they become one text."""


def results(answers: Sequence[tuple[Called, str]]) -> list[dict[str, Any]]:
    """The messages that answer the calls."""
    return [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in answers]


def without(messages: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """The messages without calls of that tool."""
    return [_without(message, name) for message in messages]


def joined(bodies: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """The answers of a turn as one."""
    last = dict(bodies[-1])
    choice = (mappings(last.get("choices")) or [{}])[0]
    message = _without(mapping(choice.get("message")), name)
    if texts := [said for body in bodies if (said := _content(body))]:
        message["content"] = BETWEEN.join(texts)
    reason = _reason(choice.get("finish_reason"), calls="tool_calls" in message)
    used: dict[str, Any] = {}
    for body in bodies:
        used = added(used, mapping(body.get("usage")))
    last["choices"] = [{**choice, "message": message, "finish_reason": reason}]
    return {**last, "usage": used} if used else last


class ChatJoin:
    """The streams of a turn as one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._id: Any = None
        self._is_first = True
        self._spoke = False
        self._is_between = False
        self._calls = False
        self._hidden: set[int] = set()
        self._before: dict[str, Any] = {}
        self._used: dict[str, Any] = {}
        self._closing: list[tuple[Event, dict[str, Any] | None]] = []

    def take(self, event: Event, said: dict[str, Any] | None) -> list[Event]:
        """What of the event the client sees now."""
        if said is None:
            return self._kept(event) if event.data else [event]
        if self._is_first and self._id is None:
            self._id = said.get("id")
        self._used = mapping(said.get("usage")) or self._used
        choices = mappings(said.get("choices"))
        if not choices:
            return self._kept(event, said) if "usage" in said else [event]
        delta = mapping(choices[0].get("delta"))
        seen = self._seen(delta)
        now = self._with(said, {**choices[0], "delta": seen})
        if choices[0].get("finish_reason") is None:
            is_nothing = not seen and bool(delta)
            return [] if is_nothing else [event if now == said else event.with_json(now)]
        self._kept(event, self._with(said, {**choices[0], "delta": {}}))
        if not seen:
            return []
        first = {**now, "choices": [{**now["choices"][0], "finish_reason": None}]}
        return [event.with_json({key: first[key] for key in first if key != "usage"})]

    def close(self, *, goes_on: bool) -> list[Event]:
        """What the client sees at the end of a reply; nothing of an end that is not the last."""
        shown = [] if goes_on else [self._closed(event, said) for event, said in self._closing]
        self._is_first = False
        self._is_between = self._spoke
        self._hidden = set()
        self._before, self._used = added(self._before, self._used), {}
        self._closing = []
        return shown

    def _kept(self, event: Event, said: dict[str, Any] | None = None) -> list[Event]:
        self._closing.append((event, said))
        return []

    def _with(self, said: dict[str, Any], choice: dict[str, Any]) -> dict[str, Any]:
        now = {**said, "choices": [choice]}
        if not self._is_first:
            now["id"] = self._id
            if used := mapping(said.get("usage")):
                now["usage"] = added(self._before, used)
        return now

    def _seen(self, delta: dict[str, Any]) -> dict[str, Any]:
        """What of the piece the client sees."""
        seen = dict(delta)
        if not self._is_first:
            seen.pop("role", None)
        if text(seen.get("content")):
            if self._is_between:
                seen["content"] = BETWEEN + seen["content"]
                self._is_between = False
            self._spoke = True
        if "tool_calls" in seen:
            seen["tool_calls"] = self._seen_calls(mappings(seen["tool_calls"]))
            if not seen["tool_calls"]:
                del seen["tool_calls"]
        return seen

    def _seen_calls(self, pieces: list[dict[str, Any]]) -> list[dict[str, Any]]:
        seen = []
        for place, piece in enumerate(pieces):
            at = number(piece.get("index", place)) or 0
            if mapping(piece.get("function")).get("name") == self._name:
                self._hidden.add(at)
            if at not in self._hidden:
                self._calls = True
                before = sum(hidden < at for hidden in self._hidden)
                seen.append({**piece, "index": at - before} if before else piece)
        return seen

    def _closed(self, event: Event, said: dict[str, Any] | None) -> Event:
        if said is None:
            return event
        now = dict(said)
        if choices := mappings(said.get("choices")):
            reason = _reason(choices[0].get("finish_reason"), calls=self._calls)
            now["choices"] = [{**choices[0], "finish_reason": reason}]
        if not self._is_first:
            now["id"] = self._id
            if mapping(said.get("usage")):
                now["usage"] = added(self._before, self._used)
        return event if now == event.json() else event.with_json(now)


def _without(message: Mapping[str, Any], name: str) -> dict[str, Any]:
    left = dict(message)
    calls = [
        call
        for call in mappings(message.get("tool_calls"))
        if mapping(call.get("function")).get("name") != name
    ]
    if calls:
        left["tool_calls"] = calls
    else:
        left.pop("tool_calls", None)
    return left


def _content(body: Mapping[str, Any]) -> str:
    choice = (mappings(body.get("choices")) or [{}])[0]
    return text(mapping(choice.get("message")).get("content"))


def _reason(reason: Any, *, calls: bool) -> Any:
    """No reply ends for calls that the client does not see."""
    return "stop" if reason == "tool_calls" and not calls else reason
