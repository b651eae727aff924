"""Content blocks of the two OpenAI dialects: texts, refusals, images, sounds and files.

Their types have different names, so that one reader serves both. What came off the wire is written
back as it was; only a new block has to know its dialect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enfold.dialects.adoption import note_of
from enfold.dialects.fields import (
    as_object,
    data_url,
    file_from_base64,
    file_from_url,
    parse_field,
    text_field,
)
from enfold.errors import DialectError
from enfold.messages import Attachment, Extras, Part, Text, Unknown

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
