"""The `gemini` dialect: the `contents` of Google's Gemini API.

A content is a role and its parts; the type of a part follows from the field it has. Google accepts
every field in camelCase and in snake_case, and an object in place of an array of one; each is
written back as it came. Calls need no id; `pair_calls` gives them one that is not written back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import ceil
from typing import Any, TypeVar

from enfold.amounts import CallUsage
from enfold.errors import DialectError
from enfold.jsontext import dump_text, dumps, fields, items
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
from enfold.wire.contract import FieldReader, RawMessages, RecallFormat, Wire
from enfold.wire.fields import (
    arguments_object,
    as_object,
    choice_field,
    each,
    file_from_base64,
    file_from_url,
    flag_field,
    object_field,
    parse_field,
    put_back,
    split_body,
    text_field,
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
    sum_integers,
)
from enfold.wire.request_additions import DESCRIPTION, parameters_schema
from enfold.wire.translation import pair_calls, translate_to_turn, translate_to_turns

NAME = "gemini"

Item = TypeVar("Item")

_ROLES: Mapping[str, Role] = {"user": "user", "model": "assistant", "function": "tool"}
_UNSIGNED = {"thoughtSignature": "skip_thought_signature_validator"}
"""The value that Google documents for calls of other models; newer models refuse calls without a
signature."""
_DECLARATIONS = ("functionDeclarations", "function_declarations")
_SMALL_IMAGE = 384
"""Pixels. Images up to this size take the tokens of one tile."""
_TILE_TOKENS = 258


# Messages


def parse(value: Any) -> Conversation:
    """Return the conversation of a request body or of a bare array of contents."""
    body, contents = split_body(value, "contents")
    return Conversation(
        messages=pair_calls(_each_or_one(contents, _parse_content, "contents")),
        dialect=NAME,
        system=_parse_system(body or {}),
        tools=_parse_tools(body or {}),
        extras=body,
    )


def render(conversation: Conversation) -> Any:
    """Return the conversation as it was parsed, with its current messages."""
    translated = translate_to_turns(conversation, NAME)
    contents = [render_message(message) for message in translated.messages]
    body = dict(translated.extras or {})
    body["contents"] = _like(body.get("contents"), contents)
    _put_back_system(body, translated.system)
    _put_back_tools(body, translated.tools)
    return contents if translated.extras is None and len(body) == 1 else body


def parse_message(raw: Any) -> Message:
    """Return one entry of `contents`; calls without an id are numbered within it."""
    return pair_calls((_parse_content(raw),))[0]


def render_message(message: Message) -> dict[str, Any]:
    """Return one entry of `contents`; a message of another dialect is translated."""
    translated = translate_to_turn(message, NAME)
    role = "model" if translated.role == "assistant" else "user"
    raw: dict[str, Any] = dict(translated.extras) or {"role": role, "parts": []}
    _put_back_parts(raw, translated.parts)
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
    key = _key(body, "systemInstruction")
    if body.get(key) is None:
        return None
    # It is a content whose role has no meaning.
    return parse_field(
        body,
        key,
        lambda raw: Message("system", _parse_parts(raw, _parse_part), dialect=NAME, extras=raw),
    )


def _put_back_system(body: dict[str, Any], system: Message | None) -> None:
    key = _key(body, "systemInstruction")
    if system is not None:
        body[key] = dict(system.extras)
        _put_back_parts(body[key], system.parts)
    elif body.get(key) is not None:
        del body[key]


def _parse_part(raw: Any) -> Part:
    raw = as_object(raw)
    call, result = _key(raw, "functionCall"), _key(raw, "functionResponse")
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
    """Return True for a part that has a signature of thoughts and no content."""
    signature = _key(raw, "thoughtSignature")
    return bool(raw.get(signature)) and not any(raw[key] for key in raw if key != signature)


def _parse_file(raw: Any) -> Attachment | Unknown:
    raw = as_object(raw)
    inline, address = _key(raw, "inlineData"), _key(raw, "fileData")
    if raw.get(inline) is not None:
        return parse_field(raw, inline, lambda file: _parse_source(file, raw, is_inline=True))
    if raw.get(address) is not None:
        return parse_field(raw, address, lambda file: _parse_source(file, raw, is_inline=False))
    return Unknown(raw)


def _parse_source(file: dict[str, Any], part: dict[str, Any], *, is_inline: bool) -> Attachment:
    mime = text_field(file, _key(file, "mimeType"), default="")
    name = text_field(file, _key(file, "displayName"), default="")
    if is_inline:
        return file_from_base64(text_field(file, "data"), mime, name, part)
    return file_from_url(text_field(file, _key(file, "fileUri")), mime, name, part)


def _parse_call(call: dict[str, Any], part: dict[str, Any]) -> ToolCall:
    arguments = {} if call.get("args") is None else object_field(call, "args")
    return ToolCall(text_field(call, "id", default=""), text_field(call, "name"), arguments, part)


def _parse_result(result: dict[str, Any], part: dict[str, Any]) -> ToolResult:
    """Return a result; the key `error` in a response marks a failure by Google's convention."""
    response = None if result.get("response") is None else object_field(result, "response")
    output: tuple[ResultPart, ...] = () if response is None else (Data(response),)
    return ToolResult(
        text_field(result, "id", default=""),
        (*output, *_parse_parts(result, _parse_file)),
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
    """Return a new file."""
    mime = {"mimeType": file.mime} if file.mime else {}
    if file.data is None:
        return {"fileData": {**mime, "fileUri": file.url or ""}}
    return {"inlineData": {**mime, "data": file.data}}


def _render_call(call: ToolCall) -> dict[str, Any]:
    key = _key(call.extras, "functionCall")
    inner = _with_id(call.extras.get(key), call.id)
    inner["name"] = call.name
    put_back(inner, absent={}, args=arguments_object(call))
    return {**(call.extras or _UNSIGNED), key: inner}


def _render_result(result: ToolResult) -> dict[str, Any]:
    key = _key(result.extras, "functionResponse")
    inner = _with_id(result.extras.get(key), result.call_id)
    # A result from another dialect may have no name; one that was read here keeps its own.
    inner["name"] = result.name if "name" in inner else result.name or result.call_id
    output = [part for part in result.parts if isinstance(part, Text | Data)]
    if output or not result.extras or inner.get("response") is not None:
        inner["response"] = _render_response(output, "error" if result.is_error else "output")
    _put_back_parts(inner, tuple(part for part in result.parts if part not in output))
    return {**result.extras, key: inner}


def _with_id(before: Mapping[str, Any] | None, call_id: str) -> dict[str, Any]:
    """Return a call or result to write over, with its id unless `pair_calls` made it up."""
    if before is None:
        return {"id": call_id} if call_id else {}
    return {**before, "id": call_id} if before.get("id") else dict(before)


def _render_response(output: list[Text | Data], key: str) -> dict[str, Any]:
    match output:
        case [Data(value)]:
            return value if isinstance(value, dict) else {key: value}
    texts = (part.text if isinstance(part, Text) else dump_text(part.value) for part in output)
    return {key: "\n\n".join(texts)}


# Tools


def _parse_tools(body: Mapping[str, Any]) -> tuple[Tool, ...]:
    groups = body.get("tools")
    parsed = () if groups is None else _each_or_one(groups, _parse_tool_group, "tools")
    return tuple(tool for group in parsed for tool in group)


def _parse_tool_group(raw: Any) -> tuple[Tool, ...]:
    """Return the tools of one entry: declared functions, and built-in tools by their field."""
    raw = as_object(raw)
    key = _key(raw, "functionDeclarations")
    declared = () if raw.get(key) is None else each(raw[key], _parse_declaration, key)
    built_in = (name for name in raw if name != key and raw[name] is not None)
    return (*declared, *(Tool(name, extras={name: raw[name]}) for name in built_in))


def _parse_declaration(raw: Any) -> Tool:
    raw = as_object(raw)
    schema_key = _key(raw, "parametersJsonSchema")
    key = "parameters" if raw.get(schema_key) is None else schema_key
    return Tool(
        text_field(raw, "name"),
        text_field(raw, "description", default=""),
        {} if raw.get(key) is None else object_field(raw, key),
        raw,
    )


def _put_back_tools(body: dict[str, Any], tools: tuple[Tool, ...]) -> None:
    """Add new tools as one more entry; the tools that were parsed stay as they are."""
    new = [_render_tool(tool) for tool in tools if not tool.extras]
    if new:
        before = body.get("tools") or []
        groups = [before] if isinstance(before, dict) else before
        body["tools"] = [*groups, {"functionDeclarations": new}]


def _render_tool(tool: Tool) -> dict[str, Any]:
    """Return a new tool, with the newer field: `parameters` does not accept all of JSON schema."""
    optional = {"description": tool.description, "parametersJsonSchema": tool.parameters}
    return {"name": tool.name, **{key: value for key, value in optional.items() if value}}


def _each_or_one(value: Any, parse_one: Callable[[Any], Item], place: str) -> tuple[Item, ...]:
    return each([value] if isinstance(value, dict) else value, parse_one, place)


def _like(before: Any, rendered: list[dict[str, Any]]) -> Any:
    """Return one object if it was one and still is; else an array."""
    return rendered[0] if isinstance(before, dict) and len(rendered) == 1 else rendered


def _key(raw: Mapping[str, Any], name: str) -> str:
    """Return the field's name as this object spells it; camelCase if it has neither."""
    snake = _snake_case(name)
    return snake if raw.get(name) is None and snake in raw else name


@cache
def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


# Replies


class GeminiReplyParser:
    """Builds the reply of Gemini; the first one of several candidates."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._usage = CallUsage()
        self._finish: str | None = None
        self._parts: list[dict[str, Any]] = []

    def add_event(self, event: Mapping[str, Any]) -> None:
        """Read one piece."""
        self._id = as_text(event.get("responseId")) or self._id
        if isinstance(event.get("usageMetadata"), dict):
            self._usage = _usage(event["usageMetadata"])
        for candidate in mappings_in(event.get("candidates"))[:1]:
            for part in mappings_in(as_mapping(candidate.get("content")).get("parts")):
                self._add_part(part)
            self._finish = as_text(candidate.get("finishReason")) or self._finish

    def read_body(self, body: Any) -> None:
        """Read a reply that is not a stream of events: an object, or an array of pieces."""
        for piece in mappings_in(body) or [as_mapping(body)]:
            self.add_event(piece)

    def reply(self) -> Reply:
        """Return what has been read so far."""
        calls = (as_mapping(part.get("functionCall")) for part in self._parts)
        return Reply(
            id=self._id,
            usage=self._usage,
            calls=tuple(
                CalledTool(
                    as_text(call.get("id")),
                    as_text(call.get("name")),
                    dump_text(as_mapping(call.get("args"))),
                )
                for call in calls
                if call
            ),
            finish=self._finish,
            messages=({"role": "model", "parts": list(self._parts)},) if self._parts else (),
        )

    def _add_part(self, part: dict[str, Any]) -> None:
        """Add a part; consecutive texts become one, unless one of them is signed."""
        last = self._parts[-1] if self._parts else {}
        if _text_kind(part) is not None and _text_kind(part) == _text_kind(last):
            self._parts[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            self._parts.append(part)


def _text_kind(part: Mapping[str, Any]) -> bool | None:
    """Return True for a thought and False for other text; None for any other part."""
    is_text = isinstance(part.get("text"), str) and set(part) <= {"text", "thought"}
    return bool(part.get("thought")) if is_text else None


def _usage(usage: Mapping[str, Any]) -> CallUsage:
    return CallUsage(
        input_tokens=sum_integers(
            usage.get("promptTokenCount"), usage.get("toolUsePromptTokenCount")
        ),
        output_tokens=sum_integers(
            usage.get("candidatesTokenCount"), usage.get("thoughtsTokenCount")
        ),
        cache_read_tokens=as_integer(usage.get("cachedContentTokenCount")),
    )


# Recall


def _answers_in_text(field: FieldReader) -> bool:
    generation = as_mapping(field("generationConfig") or field("generation_config"))
    mime = generation.get("responseMimeType", generation.get("response_mime_type"))
    stops = generation.get("stopSequences", generation.get("stop_sequences"))
    return mime in (None, "text/plain") and not stops


def _is_recall_allowed(field: FieldReader) -> bool:
    config = as_mapping(field("toolConfig") or field("tool_config"))
    calling = as_mapping(
        config.get("functionCallingConfig") or config.get("function_calling_config")
    )
    generation = as_mapping(field("generationConfig") or field("generation_config"))
    count = generation.get("candidateCount", generation.get("candidate_count"))
    return calling.get("mode") in (None, "AUTO", "MODE_UNSPECIFIED") and count in (None, 1)


def _declared_names(tool: dict[str, Any]) -> list[str]:
    declarations = (mappings_in(tool.get(key)) for key in _DECLARATIONS)
    return [as_text(each.get("name")) for listed in declarations for each in listed]


def _add_recall(tools: bytes, name: str) -> bytes | None:
    """Add the tool to the other functions; beside tools of other kinds none can be declared."""
    parameters = parameters_schema(str.upper)
    declared = dumps({"name": name, "description": DESCRIPTION, "parameters": parameters})
    entries = list(items(tools))
    if not entries:
        return b'[{"functionDeclarations":[' + declared + b"]}]"
    for index, entry in enumerate(entries):
        group = fields(entry) if entry.lstrip().startswith(b"{") else {}
        for key in _DECLARATIONS:
            if key in group:
                group[key] = b"[" + b",".join([*items(group[key]), declared]) + b"]"
                members = b",".join(dumps(field) + b":" + raw for field, raw in group.items())
                entries[index] = b"{" + members + b"}"
                return b"[" + b",".join(entries) + b"]"
    return None


def _results(answers: Sequence[tuple[CalledTool, str]]) -> list[dict[str, Any]]:
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


def _merge_results(held: RawMessages, message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the client's message with the held results before its own."""
    parts = [part for each in held for part in each["parts"]]
    return {**message, "parts": [*parts, *mappings_in(message.get("parts"))]}


def _without_calls(parts: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [part for part in parts if as_mapping(part.get("functionCall")).get("name") != name]


def _join_bodies(bodies: RawMessages, name: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for body in bodies:
        visible = _without_calls(_parts(body), name)
        parts += _with_separator(visible) if any(map(_is_text, parts)) else visible
    last = _with_parts(bodies[-1], parts)
    usage = joined_usage(bodies, "usageMetadata")
    return {**last, "usageMetadata": usage} if usage else last


class GeminiStreamJoiner(StreamJoiner):
    """Joins the streams of one turn."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._has_text = False
        self._needs_separator = False

    def add(self, event: ServerSentEvent, data: dict[str, Any] | None) -> list[ServerSentEvent]:
        """Return the events that the client receives now; the end of a reply is held back."""
        if data is None or "error" in data:
            return [event]
        if self._is_first and self._id is None:
            self._id = data.get("responseId")
        self._usage = as_mapping(data.get("usageMetadata")) or self._usage
        parts = _parts(data)
        new = self._with_visible_parts(data, self._visible_parts(parts))
        is_end = any(each.get("finishReason") for each in mappings_in(data.get("candidates")))
        if is_end or self._closing:
            self._closing.append((event, new))
            return []
        if parts and not _parts(new):
            return []
        return [event if new == data else event.with_json(new)]

    def end_reply(self, *, is_last: bool) -> list[ServerSentEvent]:
        """Return the end of the last reply; of other ends only the parts are shown."""
        closing = self._closing
        if not is_last:
            closing = [(event, _without_finish(data)) for event, data in closing if _parts(data)]
        shown = [
            event if data == event.json() else event.with_json(data) for event, data in closing
        ]
        self._needs_separator = self._has_text
        self._begin_next()
        return shown

    def _with_visible_parts(
        self, data: dict[str, Any], parts: list[dict[str, Any]]
    ) -> dict[str, Any]:
        new = _with_parts(data, parts) if _parts(data) else dict(data)
        if not self._is_first:
            if self._id is not None:
                new["responseId"] = self._id
            if usage := as_mapping(data.get("usageMetadata")):
                new["usageMetadata"] = join_usage(self._usage_before, usage)
        return new

    def _visible_parts(self, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        visible = _without_calls(parts, self._name)
        if any(map(_is_text, visible)):
            visible = _with_separator(visible) if self._needs_separator else visible
            self._has_text, self._needs_separator = True, False
        return visible


def _parts(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = first_mapping(body.get("candidates")).get("content")
    return mappings_in(as_mapping(content).get("parts"))


def _with_parts(body: Mapping[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    candidate = first_mapping(body.get("candidates"))
    content = {**as_mapping(candidate.get("content")), "parts": parts}
    return {**body, "candidates": [{**candidate, "content": content}]}


def _without_finish(body: Mapping[str, Any]) -> dict[str, Any]:
    candidate = first_mapping(body.get("candidates"))
    kept = {key: value for key, value in candidate.items() if key != "finishReason"}
    return {**body, "candidates": [kept]}


def _is_text(part: Mapping[str, Any]) -> bool:
    return bool(as_text(part.get("text"))) and not part.get("thought")


def _with_separator(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts with a separator before their first text."""
    index = next((index for index, part in enumerate(parts) if _is_text(part)), None)
    if index is None:
        return parts
    first = {**parts[index], "text": TEXT_SEPARATOR + parts[index]["text"]}
    return [*parts[:index], first, *parts[index + 1 :]]


# The wire


def _image_tokens(width: int, height: int) -> int:
    """Return 258 for a small image, else 258 for each tile of 768 pixels."""
    if max(width, height) <= _SMALL_IMAGE:
        return _TILE_TOKENS
    return _TILE_TOKENS * ceil(width / 768) * ceil(height / 768)


OVERFLOW_WORDINGS = (
    r"number of tokens allowed",
    r"input token count",
    r"request payload size exceeds",
)
"""The provider's wordings for a request that is too long for the model."""

WIRE = Wire(
    dialect=NAME,
    provider="google",
    upstream="gemini",
    address="https://generativelanguage.googleapis.com",
    path=re.compile(
        r"/v1(?:beta|alpha)?/models/(?P<model>[^/:]+):(?:generateContent|streamGenerateContent)"
    ),
    count_path=re.compile(r"/v1(?:beta|alpha)?/models/(?P<model>[^/:]+):countTokens"),
    messages_key="contents",
    overhead_keys=("systemInstruction", "system_instruction", "tools"),
    max_output_paths=("generationConfig.maxOutputTokens",),
    error_body=lambda code, status, message: {
        "error": {"code": status, "message": message, "status": code.upper()}
    },
    stream_error=error_event,
    reply_parser=GeminiReplyParser,
    text_finish="STOP",
    answers_in_text=_answers_in_text,
    recall=RecallFormat(
        is_allowed=_is_recall_allowed,
        tool_names=_declared_names,
        add_tool=_add_recall,
        complete_finishes=frozenset({"STOP"}),
        results=_results,
        without_calls=lambda contents, name: [
            {**content, "parts": _without_calls(mappings_in(content.get("parts")), name)}
            for content in contents
        ],
        join_bodies=_join_bodies,
        joiner=GeminiStreamJoiner,
        merge_results=_merge_results,
    ),
    external_history_keys=("cachedContent", "cached_content"),
    has_inline_system=False,
    client_headers=frozenset({b"x-goog-api-key"}),
    path_prefix="/v1beta/",
    is_array_stream=lambda path: ":streamGenerateContent" in path and "alt=sse" not in path,
    image_tokens=_image_tokens,
)
