"""What of a message is counted: the texts of its parts, the same on every wire.

- Text counts as it is, and so does reasoning as far as it can be read. Opaque reasoning counts
  nothing here: `estimates` has a figure for it.
- A tool call counts as compact JSON, `{"name":…,"arguments":…}`, key order kept, nothing escaped
  that need not be. Arguments that a wire carries as text are parsed first, so that a wire which
  carries the object counts the same; text that is not JSON counts as a JSON string. Ids do not
  count.
- A tool result's text counts as it is, not quoted; structured output counts as compact JSON.
- An attachment counts by its name, MIME type and size in bytes, a space between them. Never by its
  content.
- A part of an unknown kind counts as compact JSON, all of it.
- A tool's definition counts as `{"name":…,"description":…,"parameters":…}`, a provider's built-in
  tool as the JSON that describes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from enfold.errors import InputError
from enfold.jsontext import dump_text, loads
from enfold.messages import (
    Attachment,
    Data,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)

PartKind: TypeAlias = Literal["text", "tool_call", "tool_result", "attachment"]
PART_KINDS: tuple[PartKind, ...] = ("text", "tool_call", "tool_result", "attachment")

_SHORT = 2_000


def collect(parts: tuple[Part, ...], into: Mapping[PartKind, list[str]]) -> None:
    """Add the texts of a message's parts to the lists of their kinds.

    All that is within a tool result is the result's, except attachments.
    """
    for part in parts:
        if type(part) is ToolResult:
            for inner in part.parts:
                kind, write = _WRITERS[type(inner)]
                into["attachment" if kind == "attachment" else "tool_result"].append(write(inner))
        else:
            kind, write = _WRITERS[type(part)]
            into[kind].append(write(part))


def tool_text(tool: Tool) -> str:
    """A tool's definition."""
    if tool.parameters is None and tool.extras:
        return dump_text(tool.extras)
    return dump_text(
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters or {}}
    )


def _call_text(call: ToolCall) -> str:
    if isinstance(call.arguments, str) and len(call.arguments) <= _SHORT:
        return _short_call_text(call.name, call.arguments)
    return _call_json(call.name, call.arguments)


@lru_cache(maxsize=8_192)  # of short calls, so that it is bounded in bytes too
def _short_call_text(name: str, arguments: str) -> str:
    """Kept, because to write a call takes longer than to find its count."""
    return _call_json(name, arguments)


def _call_json(name: str, arguments: str | Mapping[str, Any]) -> str:
    value: Any = arguments
    if isinstance(arguments, str):
        try:
            value = loads(arguments or "{}")
        except InputError:
            value = arguments
    return dump_text({"name": name, "arguments": value})


def _attachment_text(file: Attachment) -> str:
    size = "" if file.size is None else str(file.size)
    return " ".join(word for word in (file.name, file.mime, size) if word)


_WRITERS: Mapping[type, tuple[PartKind, Callable[[Any], str]]] = {
    Text: ("text", attrgetter("text")),
    Reasoning: ("text", attrgetter("text")),
    ToolCall: ("tool_call", _call_text),
    Data: ("tool_result", lambda data: dump_text(data.value)),
    Attachment: ("attachment", _attachment_text),
    Unknown: ("text", lambda unknown: dump_text(unknown.extras)),
}
"""The kind that a part counts as, and what writes its text."""
