"""Content blocks of the two OpenAI dialects: texts, refusals, images, sounds and files.

Their types have different names, so that one reader serves both. What came off the wire is written
back as it was; only a new block has to know its dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from typing import Any

from enfold.errors import DialectError
from enfold.jsontext import dump_text
from enfold.messages import (
    NOTHING,
    Attachment,
    Data,
    Extras,
    Message,
    Part,
    ResultPart,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)
from enfold.wire.fields import (
    as_object,
    data_url,
    file_from_base64,
    file_from_url,
    pair_calls,
    parse_field,
    text_field,
    without_extras,
)

_LONGEST_ID = 40
"""Of a call, in Chat Completions; Responses takes a little more."""
_FAILURE = "Error: "
_FILES_FOLLOW = "[attachments of the tool results above]"


def adopt(messages: Iterable[Message], dialect: str) -> list[Message]:
    """The messages as the dialect has them; a foreign one may become several, or none."""
    given = tuple(messages)
    if all(message.dialect == dialect for message in given):
        return list(given)
    adopted: list[Message] = []
    for message, paired in zip(given, pair_calls(given), strict=True):
        adopted += [message] if message.dialect == dialect else _translate(paired, dialect)
    return adopted


def offered(tools: Iterable[Tool]) -> list[Tool]:
    """Another dialect's tools by their typed fields; a provider's built-in ones stay behind."""
    return [
        replace(tool, extras=NOTHING)
        for tool in tools
        if tool.parameters is not None or not tool.extras
    ]


def join_calls(messages: Iterable[Message]) -> list[Message]:
    """Neighbouring adopted messages of the assistant as one, where one of them calls a tool.

    For a wire that wants all the calls of a turn in one message.
    """
    joined: list[Message] = []
    for message in messages:
        if joined and _are_one_turn(joined[-1], message):
            joined[-1] = replace(joined[-1], parts=joined[-1].parts + message.parts)
        else:
            joined.append(message)
    return joined


def files_after_results(messages: Iterable[Message]) -> list[Message]:
    """The files of adopted tool results as a user's message, after the run of results.

    For a wire that takes nothing but text from a tool.
    """
    moved: list[Message] = []
    for _, run in groupby(messages, lambda message: message.role == "tool"):
        files: list[Part] = []
        for message in run:
            words, attached = _take_files(message)
            moved.append(words)
            files += attached
        if files:
            said = Text(_FILES_FOLLOW)
            moved.append(Message("user", (said, *files), dialect=moved[-1].dialect))
    return moved


def note_of(file: Attachment) -> Text:
    """Words in the place of a file that the dialect cannot carry there."""
    known = ", ".join(fact for fact in (file.name, file.mime, file.url) if fact)
    return Text(f"[attachment: {known}]" if known else "[attachment]")


def the_only(entries: list[dict[str, Any]], dialect: str) -> dict[str, Any]:
    """The one entry that a message became."""
    if len(entries) == 1:
        return entries[0]
    raise DialectError(
        f"the message becomes {len(entries)} entries in {dialect}; render its conversation instead"
    )


def _are_one_turn(before: Message, after: Message) -> bool:
    return (
        before.role == after.role == "assistant"
        and not (before.extras or after.extras)
        and any(isinstance(part, ToolCall) for part in (*before.parts, *after.parts))
    )


def _take_files(message: Message) -> tuple[Message, list[Attachment]]:
    match message.parts:
        case (ToolResult(parts=parts) as result,) if not message.extras:
            words = tuple(note_of(part) if isinstance(part, Attachment) else part for part in parts)
            files = [part for part in parts if isinstance(part, Attachment)]
            return replace(message, parts=(replace(result, parts=words),)), files
    return message, []


def _translate(message: Message, dialect: str) -> list[Message]:
    """The entries of a message; none for one of reasoning or unknown parts alone.

    A user's words come after the tool results beside them: results must follow their calls.
    """
    plain = without_extras(message, dialect)
    plain = replace(plain, role="user" if plain.role == "tool" else plain.role)
    if not plain.parts:
        return [] if message.parts else [plain]
    parts = [_translate_part(part, is_user=plain.role == "user") for part in plain.parts]
    if plain.role != "assistant":
        parts.sort(key=lambda part: not isinstance(part, ToolResult))
    entries: list[Message] = []
    for is_result, group in groupby(parts, lambda part: isinstance(part, ToolResult)):
        if is_result:
            entries += [Message("tool", (result,), dialect=dialect) for result in group]
        else:
            entries.append(replace(plain, parts=tuple(group)))
    return entries


def _translate_part(part: Part, *, is_user: bool) -> Part:
    """The part as both dialects can say it; a result's name is already in its call."""
    match part:
        case ToolCall(id=call_id):
            return replace(part, id=_fitting(call_id))
        case ToolResult(call_id, inner, is_error):
            said = tuple(_in_words(inner_part) for inner_part in inner)
            words = _as_failure(said) if is_error else said
            return replace(part, call_id=_fitting(call_id), parts=words, name="")
        case Attachment() if not is_user:
            return note_of(part)
        case Data() | Attachment():
            return _in_words(part)
    return part


def _fitting(call_id: str) -> str:
    """The id, or one made from it where other providers' are too long; the same for the result."""
    if len(call_id) <= _LONGEST_ID:
        return call_id
    return f"call_{sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _in_words(part: ResultPart) -> ResultPart:
    """Structured output as JSON text, and a note for a file that only its own provider has."""
    match part:
        case Data(value):
            return Text(dump_text(value))
        case Attachment(data=data, url=url) if not (data or url):
            return note_of(part)
    return part


def _as_failure(parts: tuple[ResultPart, ...]) -> tuple[ResultPart, ...]:
    match parts:
        case (Text(text), *_) if text.startswith(_FAILURE):
            return parts
        case (Text(text), *rest):
            return (Text(_FAILURE + text), *rest)
    return (Text(_FAILURE), *parts)


_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
"""The formats that Chat Completions takes, by media type."""


def parse_block(raw: Any) -> Text | Attachment | Unknown:
    """One block of a message's content or a tool's output."""
    raw = as_object(raw)
    match raw.get("type"):
        case "text" | "input_text" | "output_text" | "refusal":
            return Text(text_field(raw, _text_key(raw)), raw)
        case "image_url":
            return _parse_image(raw)
        case "input_image":
            return _parse_image(raw) if raw.get("image_url") else Attachment(extras=raw)
        case "input_audio":
            return parse_field(raw, "input_audio", lambda sound: _parse_sound(sound, raw))
        case "file":
            return parse_field(raw, "file", lambda file: _parse_file(file, raw))
        case "input_file":
            return _parse_file(raw, raw)
    return Unknown(raw)


def render_chat_block(part: Part) -> dict[str, Any]:
    """A block of Chat Completions."""
    match part:
        case Text(text, extras) if not extras:
            return {"type": "text", "text": text}
        case Attachment(extras=extras) if not extras:
            return _new_chat_file(part)
    return _known_block(part)


def render_input_block(part: Part) -> dict[str, Any]:
    """A block of Responses, in what is said to the model."""
    match part:
        case Text(text, extras) if not extras:
            return {"type": "input_text", "text": text}
        case Attachment(extras=extras) if not extras:
            return _new_input_file(part)
    return _known_block(part)


def render_output_block(part: Part) -> dict[str, Any]:
    """A block of Responses, in what the model said."""
    match part:
        case Text(text, extras) if not extras:
            return {"type": "output_text", "text": text, "annotations": []}
    return render_input_block(part)


def _known_block(part: Part) -> dict[str, Any]:
    match part:
        case Text(text, extras):
            return {**extras, _text_key(extras): text}
        case Attachment(extras=extras) | Unknown(extras):
            return dict(extras)
    raise DialectError(f"a {type(part).__name__} part has no place in a message's content")


def _text_key(raw: Mapping[str, Any]) -> str:
    return "refusal" if raw.get("type") == "refusal" else "text"


def _parse_image(raw: dict[str, Any]) -> Attachment:
    """An image by its address, which some servers take without the object around it."""
    if isinstance(raw.get("image_url"), str):
        return file_from_url(raw["image_url"], extras=raw)
    return parse_field(
        raw, "image_url", lambda image: file_from_url(text_field(image, "url"), extras=raw)
    )


def _parse_sound(sound: Mapping[str, Any], extras: Extras) -> Attachment:
    mime = f"audio/{text_field(sound, 'format', default='')}"
    return file_from_base64(text_field(sound, "data"), mime, extras=extras)


def _parse_file(file: Mapping[str, Any], extras: Extras) -> Attachment:
    """A file by its content, bare or as an address, by its address, or by an id alone."""
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
        case Attachment(mime=mime, data=str(data)) if mime in _SOUNDS:
            return {"type": "input_audio", "input_audio": {"data": data, "format": _SOUNDS[mime]}}
        case Attachment(mime=mime) if not mime or mime.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": data_url(file)}}
        case Attachment(data=None):
            return render_chat_block(note_of(file))
    content = {"filename": file.name or "file", "file_data": data_url(file)}
    return {"type": "file", "file": content}


def _new_input_file(file: Attachment) -> dict[str, Any]:
    match file:
        case Attachment(mime=mime) if not mime or mime.startswith("image/"):
            return {"type": "input_image", "detail": "auto", "image_url": data_url(file)}
        case Attachment(data=None):
            return {"type": "input_file", "file_url": data_url(file)}
    return {"type": "input_file", "filename": file.name or "file", "file_data": data_url(file)}
