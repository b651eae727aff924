"""The `gemini` dialect: the `contents` of Google's Gemini API.

A content is a role and its parts; a part is known by the field it has. Google reads every field in
camelCase and in snake_case, and one object where an array of one is meant; each comes back as it
came. Calls need no id: `pairing` gives them one that the wire never sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from enfold.amounts import CallUsage
from enfold.errors import DialectError
from enfold.jsontext import dump_text
from enfold.messages import (
    Attachment,
    Conversation,
    Data,
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
    object_field,
    pair_calls,
    parse_field,
    put_back,
    split_body,
    text_field,
)
from enfold.wire.openai import BETWEEN
from enfold.wire.replies import Called, Event, Reply, added, mapping, mappings, number, text, total
from enfold.wire.turns import adopt, adopt_message

NAME = "gemini"

Item = TypeVar("Item")

_ROLES: Mapping[str, Role] = {"user": "user", "model": "assistant", "function": "tool"}
_OWN_ROLES: Mapping[Role, str] = {
    "user": "user",
    "assistant": "model",
    "tool": "user",
    "system": "user",
}
_UNSIGNED = {"thoughtSignature": "skip_thought_signature_validator"}
"""Newer models refuse calls without a signature, except under these words, which Google documents
for calls that its models did not make."""


def parse(value: Any) -> Conversation:
    """A request body, or the bare array of its contents."""
    body, contents = split_body(value, "contents")
    beside = body or {}
    return Conversation(
        messages=pair_calls(_each_or_one(contents, _parse_content, "contents")),
        dialect=NAME,
        system=_parse_system(beside),
        tools=_parse_tools(beside),
        extras=body,
    )


def render(conversation: Conversation) -> Any:
    """What `parse` read, with the messages as they are now; another dialect's is translated."""
    own = adopt(conversation, NAME)
    contents = [render_message(message) for message in own.messages]
    body = dict(own.extras or {})
    body["contents"] = _like(body.get("contents"), contents)
    _put_back_system(body, own.system)
    _put_back_tools(body, own.tools)
    return contents if own.extras is None and len(body) == 1 else body


def parse_message(raw: Any) -> Message:
    """One entry of `contents`; calls without an id are counted within it."""
    return pair_calls((_parse_content(raw),))[0]


def render_message(message: Message) -> dict[str, Any]:
    """One entry of `contents` again; another dialect's is translated on its own."""
    own = adopt_message(message, NAME)
    raw: dict[str, Any] = dict(own.extras) or {"role": _OWN_ROLES[own.role], "parts": []}
    _put_back_parts(raw, own.parts)
    return raw


def _parse_content(raw: Any) -> Message:
    raw = as_object(raw)
    if "role" not in raw and "parts" not in raw:
        raise DialectError(f"expected a field 'parts', found only {', '.join(raw) or 'nothing'}")
    role = "user" if raw.get("role") is None else choice_field(raw, "role", _ROLES)
    return Message(role, _parse_parts(raw, _parse_part), dialect=NAME, extras=raw)


def _parse_parts(raw: Mapping[str, Any], parse_one: Callable[[Any], Item]) -> tuple[Item, ...]:
    parts = raw.get("parts")
    return () if parts is None else _each_or_one(parts, parse_one, "parts")


def _put_back_parts(raw: dict[str, Any], parts: tuple[Part, ...]) -> None:
    before = raw.get("parts")
    if parts or before:
        raw["parts"] = _like(before, [_render_part(part) for part in parts])


def _parse_system(body: Mapping[str, Any]) -> Message | None:
    key = _spelt(body, "systemInstruction")
    if body.get(key) is None:
        return None
    return parse_field(body, key, _parse_instruction)


def _parse_instruction(raw: dict[str, Any]) -> Message:
    """A content whose role, if it has one, means nothing."""
    return Message("system", _parse_parts(raw, _parse_part), dialect=NAME, extras=raw)


def _put_back_system(body: dict[str, Any], system: Message | None) -> None:
    key = _spelt(body, "systemInstruction")
    if system is not None:
        body[key] = dict(system.extras)
        _put_back_parts(body[key], system.parts)
    elif body.get(key) is not None:
        del body[key]


def _parse_part(raw: Any) -> Part:
    raw = as_object(raw)
    call, result = _spelt(raw, "functionCall"), _spelt(raw, "functionResponse")
    if raw.get(call) is not None:
        return parse_field(raw, call, lambda inner: _parse_call(inner, raw))
    if raw.get(result) is not None:
        return parse_field(raw, result, lambda inner: _parse_result(inner, raw))
    if flag_field(raw, "thought") or _is_bare_signature(raw):
        return Reasoning(text_field(raw, "text", default=""), raw)
    if raw.get("text") is not None:
        return Text(text_field(raw, "text"), raw)
    return _parse_file(raw)


def _is_bare_signature(raw: Mapping[str, Any]) -> bool:
    """True for a part that carries a signature of thoughts and says nothing else."""
    signature = _spelt(raw, "thoughtSignature")
    return bool(raw.get(signature)) and not any(raw[key] for key in raw if key != signature)


def _parse_file(raw: Any) -> Attachment | Unknown:
    raw = as_object(raw)
    inline, address = _spelt(raw, "inlineData"), _spelt(raw, "fileData")
    if raw.get(inline) is not None:
        return parse_field(raw, inline, lambda blob: _parse_blob(blob, raw))
    if raw.get(address) is not None:
        return parse_field(raw, address, lambda file: _parse_address(file, raw))
    return Unknown(raw)


def _parse_blob(blob: dict[str, Any], part: dict[str, Any]) -> Attachment:
    mime = text_field(blob, _spelt(blob, "mimeType"), default="")
    name = text_field(blob, _spelt(blob, "displayName"), default="")
    return file_from_base64(text_field(blob, "data"), mime, name, part)


def _parse_address(file: dict[str, Any], part: dict[str, Any]) -> Attachment:
    mime = text_field(file, _spelt(file, "mimeType"), default="")
    name = text_field(file, _spelt(file, "displayName"), default="")
    return file_from_url(text_field(file, _spelt(file, "fileUri")), mime, name, part)


def _parse_call(call: dict[str, Any], part: dict[str, Any]) -> ToolCall:
    arguments = {} if call.get("args") is None else object_field(call, "args")
    return ToolCall(text_field(call, "id", default=""), text_field(call, "name"), arguments, part)


def _parse_result(result: dict[str, Any], part: dict[str, Any]) -> ToolResult:
    """A failed tool says so under the key `error`: that is Google's convention, not a field."""
    response = None if result.get("response") is None else object_field(result, "response")
    said: tuple[ResultPart, ...] = () if response is None else (Data(response),)
    return ToolResult(
        text_field(result, "id", default=""),
        (*said, *_parse_parts(result, _parse_file)),
        is_error=bool(response and response.get("error")),
        name=text_field(result, "name"),
        extras=part,
    )


def _render_part(part: Part) -> dict[str, Any]:
    match part:
        case Text(text, extras):
            return {**extras, "text": text}
        case Data(value):
            return {"text": dump_text(value)}
        case ToolCall():
            return _render_call(part)
        case ToolResult():
            return _render_result(part)
        case Attachment(extras=extras) if not extras:
            return _render_file(part)
        case Reasoning(text, extras) if not extras:
            return {"text": text, "thought": True}
    return dict(part.extras)


def _render_file(file: Attachment) -> dict[str, Any]:
    """A file made by hand or elsewhere."""
    mime = {"mimeType": file.mime} if file.mime else {}
    if file.data is None:
        return {"fileData": {**mime, "fileUri": file.url or ""}}
    return {"inlineData": {**mime, "data": file.data}}


def _render_call(call: ToolCall) -> dict[str, Any]:
    key = _spelt(call.extras, "functionCall")
    inner = _with_id(call.extras.get(key), call.id)
    inner["name"] = call.name
    put_back(inner, "args", arguments_object(call), absent={})
    return {**(call.extras or _UNSIGNED), key: inner}


def _render_result(result: ToolResult) -> dict[str, Any]:
    key = _spelt(result.extras, "functionResponse")
    inner = _with_id(result.extras.get(key), result.call_id)
    inner["name"] = result.name or result.call_id
    said = [part for part in result.parts if isinstance(part, Text | Data)]
    if said or not result.extras or inner.get("response") is not None:
        inner["response"] = _render_response(said, "error" if result.is_error else "output")
    _put_back_parts(inner, tuple(part for part in result.parts if part not in said))
    return {**result.extras, key: inner}


def _with_id(before: Mapping[str, Any] | None, call_id: str) -> dict[str, Any]:
    """A call or result to write over; an id that `pairing` gave it stays off the wire."""
    if before is None:
        return {"id": call_id} if call_id else {}
    return {**before, "id": call_id} if before.get("id") else dict(before)


def _render_response(said: list[Text | Data], key: str) -> dict[str, Any]:
    match said:
        case [Data(value)]:
            return value if isinstance(value, dict) else {key: value}
    texts = (part.text if isinstance(part, Text) else dump_text(part.value) for part in said)
    return {key: "\n\n".join(texts)}


def _parse_tools(body: Mapping[str, Any]) -> tuple[Tool, ...]:
    groups = body.get("tools")
    parsed = () if groups is None else _each_or_one(groups, _parse_tool_group, "tools")
    return tuple(tool for group in parsed for tool in group)


def _parse_tool_group(raw: Any) -> tuple[Tool, ...]:
    """One entry of `tools`: declarations of functions, and built-in tools by their field."""
    raw = as_object(raw)
    key = _spelt(raw, "functionDeclarations")
    declared = () if raw.get(key) is None else each(raw[key], _parse_declaration, key)
    built_in = (name for name in raw if name != key and raw[name] is not None)
    return (*declared, *(Tool(name, extras={name: raw[name]}) for name in built_in))


def _parse_declaration(raw: Any) -> Tool:
    raw = as_object(raw)
    spelt = _spelt(raw, "parametersJsonSchema")
    key = "parameters" if raw.get(spelt) is None else spelt
    return Tool(
        text_field(raw, "name"),
        text_field(raw, "description", default=""),
        {} if raw.get(key) is None else object_field(raw, key),
        raw,
    )


def _put_back_tools(body: dict[str, Any], tools: tuple[Tool, ...]) -> None:
    """The body's own stay as they are; those made by hand or elsewhere are one more group."""
    added = [_render_tool(tool) for tool in tools if not tool.extras]
    if added:
        before = body.get("tools") or []
        groups = [before] if isinstance(before, dict) else before
        body["tools"] = [*groups, {"functionDeclarations": added}]


def _render_tool(tool: Tool) -> dict[str, Any]:
    """The schema goes into the newer field: `parameters` takes less than JSON schema has."""
    fields = {"description": tool.description, "parametersJsonSchema": tool.parameters}
    return {"name": tool.name, **{key: value for key, value in fields.items() if value}}


def _each_or_one(value: Any, parse_one: Callable[[Any], Item], place: str) -> tuple[Item, ...]:
    return each([value] if isinstance(value, dict) else value, parse_one, place)


def _like(before: Any, rendered: list[dict[str, Any]]) -> Any:
    """One object where there was one and still is; an array otherwise."""
    return rendered[0] if isinstance(before, dict) and len(rendered) == 1 else rendered


def _spelt(raw: Mapping[str, Any], name: str) -> str:
    """The field's name as this object spells it; camelCase, as in REST, where it has neither."""
    snake = _in_snake_case(name)
    return snake if raw.get(name) is None and snake in raw else name


@cache
def _in_snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


class GeminiGathering:
    """A reply of Gemini. Of several candidates it is the first."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._usage = CallUsage()
        self._finish: str | None = None
        self._parts: list[dict[str, Any]] = []

    def take(self, event: Mapping[str, Any]) -> None:
        """One piece."""
        self._id = text(event.get("responseId")) or self._id
        if isinstance(event.get("usageMetadata"), dict):
            self._usage = _usage(event["usageMetadata"])
        for candidate in mappings(event.get("candidates"))[:1]:
            for part in mappings(mapping(candidate.get("content")).get("parts")):
                self._add(part)
            self._finish = text(candidate.get("finishReason")) or self._finish

    def take_whole(self, body: Any) -> None:
        """The answer that is no stream of events: an object, or an array of the pieces."""
        for piece in mappings(body) or [mapping(body)]:
            self.take(piece)

    def reply(self) -> Reply:
        """What there is by now."""
        calls = (mapping(part.get("functionCall")) for part in self._parts)
        return Reply(
            id=self._id,
            usage=self._usage,
            calls=tuple(_called(call) for call in calls if call),
            finish=self._finish,
            messages=({"role": "model", "parts": list(self._parts)},) if self._parts else (),
        )

    def _add(self, part: dict[str, Any]) -> None:
        """Texts that follow each other are one, unless one of them is signed."""
        last = self._parts[-1] if self._parts else {}
        if _kind(part) is not None and _kind(part) == _kind(last):
            self._parts[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            self._parts.append(part)


def _kind(part: Mapping[str, Any]) -> bool | None:
    """For nothing but text, whether it is a thought; None for anything else."""
    is_text = isinstance(part.get("text"), str) and set(part) <= {"text", "thought"}
    return bool(part.get("thought")) if is_text else None


def _called(call: Mapping[str, Any]) -> Called:
    arguments = dump_text(mapping(call.get("args")))
    return Called(text(call.get("id")), text(call.get("name")), arguments)


def _usage(used: Mapping[str, Any]) -> CallUsage:
    return CallUsage(
        input_tokens=total(used.get("promptTokenCount"), used.get("toolUsePromptTokenCount")),
        output_tokens=total(used.get("candidatesTokenCount"), used.get("thoughtsTokenCount")),
        cache_read_tokens=number(used.get("cachedContentTokenCount")),
    )


GOES_ON = frozenset({"STOP"})
"""How a reply ends whose calls are whole."""


def results(answers: Sequence[tuple[Called, str]]) -> list[dict[str, Any]]:
    """The content that answers the calls."""
    parts = [
        {
            "functionResponse": {
                **({"id": call.id} if call.id else {}),
                "name": call.name,
                "response": {"result": text},
            }
        }
        for call, text in answers
    ]
    return [{"role": "user", "parts": parts}]


def merged(held: Sequence[Mapping[str, Any]], message: Mapping[str, Any]) -> dict[str, Any]:
    """The client's own results with the held ones before them."""
    ours = [part for each in held for part in each["parts"]]
    return {**message, "parts": [*ours, *mappings(message.get("parts"))]}


def without(messages: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """The contents without calls of that tool."""
    return [{**each, "parts": _seen(mappings(each.get("parts")), name)} for each in messages]


def joined(bodies: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """The answers of a turn as one."""
    parts: list[dict[str, Any]] = []
    used: dict[str, Any] = {}
    for body in bodies:
        seen = _seen(_parts(body), name)
        parts += _spaced(seen) if any(map(_is_text, parts)) else seen
        used = added(used, mapping(body.get("usageMetadata")))
    last = _with_parts(bodies[-1], parts)
    return {**last, "usageMetadata": used} if used else last


class GeminiJoin:
    """The streams of a turn as one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._id: Any = None
        self._is_first = True
        self._spoke = False
        self._is_between = False
        self._before: dict[str, Any] = {}
        self._used: dict[str, Any] = {}
        self._closing: list[tuple[Event, dict[str, Any]]] = []

    def take(self, event: Event, said: dict[str, Any] | None) -> list[Event]:
        """What of the event the client sees now."""
        if said is None or "error" in said:
            return [event]
        if self._is_first and self._id is None:
            self._id = said.get("responseId")
        self._used = mapping(said.get("usageMetadata")) or self._used
        parts = _parts(said)
        now = self._with(said, self._seen_parts(parts))
        ends = any(each.get("finishReason") for each in mappings(said.get("candidates")))
        if ends or self._closing:
            self._closing.append((event, now))
            return []
        if parts and not _parts(now):
            return []
        return [event if now == said else event.with_json(now)]

    def close(self, *, goes_on: bool) -> list[Event]:
        """What the client sees at the end of a reply; of an end that is not the last, its parts."""
        closing = self._closing
        if goes_on:
            closing = [(event, _unended(said)) for event, said in closing if _parts(said)]
        shown = [
            event if said == event.json() else event.with_json(said) for event, said in closing
        ]
        self._is_first = False
        self._is_between = self._spoke
        self._before, self._used = added(self._before, self._used), {}
        self._closing = []
        return shown

    def _with(self, said: dict[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
        now = _with_parts(said, parts) if _parts(said) else dict(said)
        if not self._is_first:
            if self._id is not None:
                now["responseId"] = self._id
            if used := mapping(said.get("usageMetadata")):
                now["usageMetadata"] = added(self._before, used)
        return now

    def _seen_parts(self, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        seen = _seen(parts, self._name)
        if any(map(_is_text, seen)):
            seen = _spaced(seen) if self._is_between else seen
            self._spoke, self._is_between = True, False
        return seen


def _parts(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    candidate = (mappings(body.get("candidates")) or [{}])[0]
    return mappings(mapping(candidate.get("content")).get("parts"))


def _with_parts(body: Mapping[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    candidate = (mappings(body.get("candidates")) or [{}])[0]
    content = {**mapping(candidate.get("content")), "parts": parts}
    return {**body, "candidates": [{**candidate, "content": content}]}


def _unended(body: Mapping[str, Any]) -> dict[str, Any]:
    """A piece that is not the last after all."""
    candidate = mappings(body.get("candidates"))[0]
    left = {key: value for key, value in candidate.items() if key != "finishReason"}
    return {**body, "candidates": [left]}


def _seen(parts: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [part for part in parts if mapping(part.get("functionCall")).get("name") != name]


def _is_text(part: Mapping[str, Any]) -> bool:
    return bool(text(part.get("text"))) and not part.get("thought")


def _spaced(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts with a gap before their first text."""
    at = next((place for place, part in enumerate(parts) if _is_text(part)), None)
    if at is None:
        return parts
    return [*parts[:at], {**parts[at], "text": BETWEEN + parts[at]["text"]}, *parts[at + 1 :]]
