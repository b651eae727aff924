"""The content of a ChatGPT node as parts, by its `content_type`.

Files are not in an export, only pointers that the service alone can follow: an attachment has
their name, type and size where the node gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from enfold.dialects.fields import as_object, each, list_field, object_field, text_field
from enfold.errors import DialectError
from enfold.messages import Attachment, Reasoning, ResultPart, Text, Unknown

ContentPart: TypeAlias = ResultPart | Reasoning

_Files: TypeAlias = dict[str, dict[str, Any]]
"""The uploads that a message names, by their id; taken out as they are met in its content."""


def content_parts(message: Mapping[str, Any]) -> tuple[ContentPart, ...]:
    """What a node's message says; nothing where its texts are empty and there are no files."""
    content = object_field(message, "content")
    files = _files(message)
    kind = text_field(content, "content_type", default="text")
    try:
        said = _CONTENT.get(kind, _unknown)(content, files)
    except DialectError as error:
        raise error.at("content") from None
    rest = tuple(_attachment(file, "") for file in files.values())
    return (*(part for part in said if part != Text("")), *rest)


def _files(message: Mapping[str, Any]) -> _Files:
    metadata = message.get("metadata")
    given = metadata.get("attachments") if isinstance(metadata, dict) else None
    files = each(given or [], as_object, "metadata.attachments")
    return {text_field(file, "id", default=""): file for file in files}


def _texts(*keys: str) -> Callable[[dict[str, Any], _Files], tuple[ContentPart, ...]]:
    """Contents that are texts in these fields."""

    def parse(content: dict[str, Any], _files: _Files) -> tuple[ContentPart, ...]:
        return tuple(Text(text_field(content, key, default="")) for key in keys)

    return parse


def _joined(separator: str, *keys: str) -> Callable[[dict[str, Any], _Files], tuple[Text]]:
    """Contents that are one text out of several fields."""

    def parse(content: dict[str, Any], _files: _Files) -> tuple[Text]:
        texts = (text_field(content, key, default="") for key in keys)
        return (Text(separator.join(text for text in texts if text)),)

    return parse


def _mixed(content: dict[str, Any], files: _Files) -> tuple[ContentPart, ...]:
    return list_field(content, "parts", lambda part: _part(part, files))


def _part(part: Any, files: _Files) -> ContentPart:
    if isinstance(part, str):
        return Text(part)
    raw = as_object(part)
    match raw.get("content_type"):
        case "audio_transcription":
            return Text(text_field(raw, "text", default=""))
        case "image_asset_pointer" | "audio_asset_pointer":
            return _pointed_at(raw, files)
        case "real_time_user_audio_video_asset_pointer":
            return _pointed_at(object_field(raw, "audio_asset_pointer"), files)
    return Unknown(raw)


def _pointed_at(raw: dict[str, Any], files: _Files) -> Attachment:
    pointer = text_field(raw, "asset_pointer", default="")
    named = files.pop(pointer.partition("://")[2], {})
    sound = text_field(raw, "format", default="")
    mime = f"audio/{sound}" if sound else ""
    return _attachment({"size": raw.get("size_bytes"), "mime_type": mime, **named}, pointer)


def _attachment(file: Mapping[str, Any], pointer: str) -> Attachment:
    size = file.get("size")
    return Attachment(
        name=text_field(file, "name", default=""),
        mime=text_field(file, "mime_type", default=""),
        size=size if isinstance(size, int) else None,
        extras={"type": "attachment", "asset_pointer": pointer or file.get("id")},
    )


def _thoughts(content: dict[str, Any], _files: _Files) -> tuple[Reasoning, ...]:
    return tuple(thought for thought in list_field(content, "thoughts", _thought) if thought.text)


def _thought(raw: Any) -> Reasoning:
    raw = as_object(raw)
    texts = (text_field(raw, key, default="") for key in ("summary", "content"))
    return Reasoning("\n".join(text for text in texts if text))


def _recap(content: dict[str, Any], _files: _Files) -> tuple[Reasoning, ...]:
    text = text_field(content, "content", default="")
    return (Reasoning(text),) if text else ()


def _unknown(content: dict[str, Any], _files: _Files) -> tuple[Unknown]:
    return (Unknown(content),)


_CONTENT: dict[str, Callable[[dict[str, Any], _Files], tuple[ContentPart, ...]]] = {
    "text": _mixed,
    "multimodal_text": _mixed,
    "code": _texts("text"),
    "execution_output": _texts("text"),
    "system_error": _joined(": ", "name", "text"),
    "tether_quote": _joined("\n", "title", "url", "text"),
    "sonic_webpage": _joined("\n", "title", "url", "text"),
    "tether_browsing_display": _texts("result", "summary"),
    "thoughts": _thoughts,
    "reasoning_recap": _recap,
    "user_editable_context": _texts("user_profile", "user_instructions"),
    "model_editable_context": _texts("model_set_context"),
}
