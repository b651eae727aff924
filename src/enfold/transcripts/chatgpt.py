"""The `chatgpt` format: `conversations.json` out of a ChatGPT data export.

Each conversation is a `mapping` of nodes that name their parent; every regenerated answer and
edited question is a branch, and `current_node` ends the active one. A node that was hidden from the
person is kept, because the model received it. An empty node is left out and counted under
`skipped`; its children follow its parent.

The export has no call ids. A message of the assistant to a tool is a call with the id of its node;
the tool's nodes after it are its result. A tool's message without a call, such as the text of an
uploaded file, is context from the service: a system message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from enfold.errors import DialectError
from enfold.messages import (
    Attachment,
    Message,
    Reasoning,
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    text_of,
)
from enfold.transcripts.source import TranscriptSource, within
from enfold.transcripts.transcript import Transcript, TranscriptEntry, parents_first
from enfold.wire.fields import (
    as_object,
    as_time,
    choice_field,
    each,
    list_field,
    object_field,
    text_field,
)

ContentPart: TypeAlias = ResultPart | Reasoning

_Files: TypeAlias = dict[str, dict[str, Any]]
"""The uploads that a message names, by id; removed when its content refers to them."""
_Content: TypeAlias = Callable[[dict[str, Any], _Files], tuple[ContentPart, ...]]


def content_parts(message: Mapping[str, Any]) -> tuple[ContentPart, ...]:
    """Return the parts of a node's message; none if its texts are empty and it has no files."""
    content = object_field(message, "content")
    metadata = message.get("metadata")
    uploads = metadata.get("attachments") if isinstance(metadata, dict) else None
    named = each(uploads or [], as_object, "metadata.attachments")
    files = {text_field(file, "id", default=""): file for file in named}
    kind = text_field(content, "content_type", default="text")
    try:
        parts = _CONTENT[kind](content, files) if kind in _CONTENT else (Unknown(content),)
    except DialectError as error:
        raise error.at("content") from None
    rest = tuple(_attachment(file, "") for file in files.values())
    return (*(part for part in parts if part != Text("")), *rest)


def _texts(*keys: str) -> _Content:
    """Return a parser for contents with texts in these fields."""
    return lambda content, _: tuple(Text(text_field(content, key, default="")) for key in keys)


def _joined_texts(separator: str, *keys: str) -> _Content:
    """Return a parser for contents with one text in several fields."""
    return lambda content, _: (Text(_join(separator, content, *keys)),)


def _join(separator: str, content: Mapping[str, Any], *keys: str) -> str:
    return separator.join(filter(None, (text_field(content, key, default="") for key in keys)))


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
    texts = list_field(
        content, "thoughts", lambda raw: _join("\n", as_object(raw), "summary", "content")
    )
    return tuple(Reasoning(text) for text in texts if text)


def _recap(content: dict[str, Any], _files: _Files) -> tuple[Reasoning, ...]:
    text = text_field(content, "content", default="")
    return (Reasoning(text),) if text else ()


_CONTENT: dict[str, _Content] = {
    "text": _mixed,
    "multimodal_text": _mixed,
    "code": _texts("text"),
    "execution_output": _texts("text"),
    "system_error": _joined_texts(": ", "name", "text"),
    "tether_quote": _joined_texts("\n", "title", "url", "text"),
    "sonic_webpage": _joined_texts("\n", "title", "url", "text"),
    "tether_browsing_display": _texts("result", "summary"),
    "thoughts": _thoughts,
    "reasoning_recap": _recap,
    "user_editable_context": _texts("user_profile", "user_instructions"),
    "model_editable_context": _texts("model_set_context"),
}


NAME = "chatgpt"
DIALECT = "enfold"

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_NOT_A_TOOL = {"", "all", "assistant", "user"}


def fits(value: Any) -> bool:
    """Return True if a record is a conversation of an export."""
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def read(source: TranscriptSource, _dialect: str) -> Iterator[Transcript]:
    """Yield one transcript per conversation."""
    return source.parsed(lambda value: _transcript(as_object(value)))


def _transcript(raw: dict[str, Any]) -> Transcript:
    mapping = object_field(raw, "mapping")
    parents: dict[str, str | None] = {}
    for own, node in mapping.items():
        with within(f"mapping.{own}"):
            parent = text_field(as_object(node), "parent", default="")
        parents[own] = parent if parent in mapping else None  # not in the export: a root
    tree = _Tree(parents)
    for own in parents_first(tree.parents):
        with within(f"mapping.{own}"):
            tree.add(own, mapping[own])
    current = tree.stands_for.get(text_field(raw, "current_node", default=""))
    about = {key: value for key, value in raw.items() if key != "mapping"}
    notes = {"skipped": {"empty": tree.empty}} if tree.empty else {}
    return Transcript(
        tuple(tree.entries.values()),
        DIALECT,
        id=text_field(raw, "conversation_id", default="") or text_field(raw, "id", default=""),
        title=text_field(raw, "title", default=""),
        tip=current or next(reversed(tree.entries), None),
        format=NAME,
        extras={**about, **notes},
    )


class _Tree:
    """The nodes of a conversation that have been read so far, parents first."""

    def __init__(self, parents: dict[str, str | None]) -> None:
        self.parents = parents
        self.entries: dict[str, TranscriptEntry] = {}
        self.stands_for: dict[str | None, str | None] = {None: None}
        """Node id -> the id of its entry, or of the nearest entry before it."""
        self.empty = 0
        self._children = Counter(parents.values())
        self._call_of: dict[str | None, str] = {}
        """Entry id -> the id of the call that it makes or answers."""

    def add(self, own: str, node: dict[str, Any]) -> None:
        """Read a node whose parent has been read."""
        before = self.stands_for[self.parents[own]]
        self.stands_for[own] = before
        if node.get("message") is None:
            return
        raw = object_field(node, "message")
        with within("message"):
            message = self._message(own, raw, before)
        if message is None:
            self.empty += 1
        elif before is not None and self._is_more_of(before, own, message):
            self.entries[before] = _joined(self.entries[before], message, node)
        else:
            message = replace(message, at=as_time(raw.get("create_time")))
            self.entries[own] = TranscriptEntry(message, own, before, {"nodes": [node]})
            self.stands_for[own] = own

    def _message(self, own: str, raw: dict[str, Any], before: str | None) -> Message | None:
        author = object_field(raw, "author")
        with within("author"):
            role = choice_field(author, "role", _ROLES)
            name = text_field(author, "name", default="")
        parts = content_parts(raw)
        tool = text_field(raw, "recipient", default="")
        call = self._call_of.get(before)
        if role == "tool" and call is not None:
            self._call_of[own] = call
            plain = tuple(Text(p.text) if isinstance(p, Reasoning) else p for p in parts)
            is_error = raw["content"].get("content_type") == "system_error"
            return Message("tool", (ToolResult(call, plain, is_error, name),), id=own)
        if not parts:
            return None
        is_text = all(isinstance(part, Text) for part in parts)
        if role == "assistant" and tool not in _NOT_A_TOOL and is_text:
            self._call_of[own] = own
            return Message("assistant", (ToolCall(own, tool, text_of(parts)),), id=own)
        return Message("system" if role == "tool" else role, parts, id=own, name=name or None)

    def _is_more_of(self, before: str, own: str, message: Message) -> bool:
        """Return True if a tool continues its answer, which belongs to this branch only."""
        return (
            message.role == "tool"
            and self.entries[before].message.role == "tool"
            and self._children[self.parents[own]] == 1
        )


def _joined(entry: TranscriptEntry, message: Message, node: dict[str, Any]) -> TranscriptEntry:
    """Return the entry with the rest of its result, because a call has one result."""
    match entry.message.parts, message.parts:
        case (ToolResult() as result,), (ToolResult() as more,):
            is_error = result.is_error or more.is_error
            whole = replace(result, parts=(*result.parts, *more.parts), is_error=is_error)
    nodes = [*entry.extras["nodes"], node]
    return replace(entry, message=replace(entry.message, parts=(whole,)), extras={"nodes": nodes})
