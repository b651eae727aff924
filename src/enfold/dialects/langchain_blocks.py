"""The content blocks of LangChain messages: LangChain's own, and those of the providers.

LangChain passes on whatever a provider takes, so OpenAI's, Anthropic's, Google's and both
generations of LangChain's own blocks are found side by side. Blocks that were not changed are
given back themselves, not copies: that is how a message is known to be untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from enfold.dialects.fields import (
    each,
    file_from_base64,
    file_from_url,
    flag_field,
    kind_of,
    text_field,
    with_defaults,
)
from enfold.errors import DialectError
from enfold.jsontext import dump_text
from enfold.messages import (
    Attachment,
    Data,
    Extras,
    Reasoning,
    Text,
    ToolResult,
    Unknown,
)

_Blocks: TypeAlias = Mapping[str, Callable[[dict[str, Any]], Any]]
"""How a block of each type is parsed."""

BARE: Extras = {"langchain": "bare text"}
"""The extras of a text that stands in an array without a block around it."""


def parse_content(content: Any, parse_block: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Parts of a content: a text, or an array of texts and blocks."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return () if content is None else each(content, parse_block, "content")


def render_content(parts: tuple[Any, ...], render_part: Callable[[Any], Any], before: Any) -> Any:
    """The content again; `before` itself if nothing in it changed."""
    if not parts:
        return "" if before else before
    match parts:
        case (Text(text, extras),) if not extras:
            return text
    now = [render_part(part) for part in parts]
    return before if are_the_same(now, before) else now


def parse_block(raw: Any) -> Any:
    """The part of one entry of a content array."""
    return _parse(raw, _BLOCKS)


def parse_result_block(raw: Any) -> Any:
    """The part of one entry of a tool result's content array."""
    return _parse(raw, _RESULT_BLOCKS)


def _parse(raw: Any, known: _Blocks) -> Any:
    if isinstance(raw, str):
        return Text(raw, BARE)
    if not isinstance(raw, dict):
        raise DialectError(f"expected text or an object, found {kind_of(raw)}")
    kind = raw.get("type")
    return known[kind](raw) if isinstance(kind, str) and kind in known else Unknown(raw)


def render_block(part: Any) -> Any:
    """The entry of a content array again; the very same one if it did not change."""
    match part:
        case Text(text, extras) if extras == BARE:
            return text
        case Text():
            return _render_text(part)
        case ToolResult() if part.extras:
            return _render_result(part)
        case Unknown(extras):
            return extras
        case Attachment(extras=extras) | Reasoning(extras=extras) if extras:
            return extras
        case Attachment():
            return _render_attachment(part)
        case Reasoning(text):
            return {"type": "reasoning", "reasoning": text}
        case Data(value):
            return {"type": "text", "text": dump_text(value)}
    raise DialectError(f"a {type(part).__name__} part has no place in a message's content")


def readable(raw: Any) -> str:
    """What can be read of a provider's reasoning."""
    if isinstance(raw, str):
        return raw
    if not isinstance(raw, dict):
        return ""
    inner = raw.get("reasoning_content")
    holder = inner if isinstance(inner, dict) else raw
    said = [holder.get(key) for key in ("reasoning", "thinking", "text")]
    for key in ("summary", "content"):
        items = holder.get(key)
        if isinstance(items, list):
            said += [item.get("text") for item in items if isinstance(item, dict)]
    return "\n\n".join(text for text in said if isinstance(text, str) and text)


def _parse_text(raw: dict[str, Any]) -> Text:
    return Text(text_field(raw, _text_key(raw)), raw)


def _text_key(raw: Mapping[str, Any]) -> str:
    return "refusal" if raw.get("type") == "refusal" else "text"


def _parse_reasoning(raw: dict[str, Any]) -> Reasoning:
    return Reasoning(readable(raw), raw)


def _parse_result(raw: dict[str, Any]) -> ToolResult:
    return ToolResult(
        call_id=text_field(raw, "tool_use_id", default=""),
        parts=parse_content(raw.get("content"), parse_result_block),
        is_error=flag_field(raw, "is_error"),
        extras=raw,
    )


def _render_result(result: ToolResult) -> Any:
    raw = result.extras
    content = render_content(result.parts, render_block, raw.get("content"))
    return raw if content is raw.get("content") else {**raw, "content": content}


def _parse_file(raw: dict[str, Any]) -> Text | Attachment:
    """A file; one of plain text is text, because the model reads it as such."""
    if _is_text_document(raw):
        return Text(raw["source"]["data"], raw)
    is_written = raw["type"] == "text-plain" or raw.get("source_type") == "text"
    if is_written and isinstance(raw.get("text"), str):
        return Text(raw["text"], raw)
    return _parse_attachment(raw)


def _is_text_document(raw: Mapping[str, Any]) -> bool:
    """Whether the block is Anthropic's document of plain text."""
    match raw:
        case {"type": "document", "source": {"type": "text", "data": str()}}:
            return True
    return False


def _render_text(part: Text) -> Any:
    raw = part.extras
    if not _is_text_document(raw):
        key = _text_key(raw)
        is_same = raw.get(key) is part.text
        return raw if is_same else {**with_defaults(raw, type="text"), key: part.text}
    source = raw["source"]
    if source["data"] is part.text:
        return raw
    return {**raw, "source": {**source, "data": part.text}}


def _parse_attachment(raw: dict[str, Any]) -> Attachment:
    """Its content is carried, not read, so what is written in another way is not an error."""
    fields = _with_inner_fields(raw)
    name = _first_text(fields, "filename", "title", "name")
    mime = _first_text(fields, "mime_type", "media_type")
    if not mime and (sound := _first_text(fields, "format")):
        mime = f"audio/{sound}"
    if data := _first_text(fields, "base64", "data", "file_data"):
        if data.startswith("data:"):
            return file_from_url(data, mime, name, raw)
        return file_from_base64(data, mime, name, raw)
    url = _first_text(fields, "url", "image_url", "file_url", "file_uri")
    return file_from_url(url, mime, name, raw) if url else Attachment(name, mime, extras=raw)


def _with_inner_fields(raw: dict[str, Any]) -> dict[str, Any]:
    """The block's fields, and those of the object in it that says where the content is."""
    inner = [value for key in _SOURCES if isinstance(value := raw.get(key), dict)]
    notes = [value for key in ("metadata", "extras") if isinstance(value := raw.get(key), dict)]
    return {key: value for fields in (*notes, raw, *inner) for key, value in fields.items()}


def _first_text(fields: Mapping[str, Any], *keys: str) -> str:
    texts = (fields.get(key) for key in keys)
    return next((text for text in texts if isinstance(text, str) and text), "")


def _render_attachment(file: Attachment) -> dict[str, Any]:
    """As LangChain's own block, which its integrations turn into what their provider takes."""
    kind = file.mime.partition("/")[0]
    raw = {
        "type": kind if kind in ("image", "audio", "video") else "file",
        "mime_type": file.mime,
        "base64": file.data,
        "url": file.url,
        "filename": file.name,
    }
    return {key: value for key, value in raw.items() if value}


def are_the_same(now: list[Any], before: Any) -> bool:
    """Whether the lists hold the very same values, not merely equal ones."""
    return (
        isinstance(before, list)
        and len(now) == len(before)
        and all(new is old for new, old in zip(now, before, strict=True))
    )


_SOURCES = ("source", "file", "image_url", "input_audio")
_RESULT_BLOCKS: _Blocks = {
    **dict.fromkeys(("text", "input_text", "output_text", "refusal"), _parse_text),
    **dict.fromkeys(("image", "audio", "video", "file", "text-plain"), _parse_file),
    **dict.fromkeys(("image_url", "input_audio"), _parse_file),
    **dict.fromkeys(("input_image", "input_file"), _parse_file),
    **dict.fromkeys(("document", "media"), _parse_file),
}
_BLOCKS: _Blocks = {
    **_RESULT_BLOCKS,
    **dict.fromkeys(("reasoning", "reasoning_content"), _parse_reasoning),
    **dict.fromkeys(("thinking", "redacted_thinking"), _parse_reasoning),
    "tool_result": _parse_result,
}
