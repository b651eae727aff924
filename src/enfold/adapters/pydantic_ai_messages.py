"""Messages of Pydantic AI as enfold reads them, each with the parts that it stands for.

A request of theirs holds what a system prompt, tools and a user say, so it becomes several messages
of ours. Only what is said is translated: nothing is ever written back from it, because whatever is
kept is kept as the object it was. Parts are told apart by their kind, so nothing of Pydantic AI is
loaded for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from enfold.messages import (
    Attachment,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from enfold.summaries import HEADING

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

_ROLES: Mapping[str, Role] = {
    "system-prompt": "system",
    "user-prompt": "user",
    "retry-feedback": "user",
    "tool-return": "tool",
    "retry-prompt": "tool",
}
"""Who speaks in the parts of a request. Parts of other kinds say nothing to fold: they steer."""
_ERRORS = ("failed", "retried")


@dataclass(frozen=True, slots=True)
class Entry:
    """A message of ours for some parts of one of theirs."""

    owner: int
    """The index of their message."""
    parts: tuple[int, ...]
    """The indexes of its parts."""
    message: Message | None
    """None for what always stays."""


def translate(messages: Sequence[ModelMessage]) -> list[Entry]:
    """Every message in entries, which have their own numbers as ids.

    The last message is one entry: it is what the model is asked now, and stays as it is.
    """
    last = len(messages) - 1
    made = (
        entry
        for owner, message in enumerate(messages)
        for entry in (
            _request(owner, message.parts, whole=owner == last)
            if message.kind == "request"
            else [_response(owner, message.parts)]
        )
    )
    return [
        entry
        if entry.message is None
        else replace(entry, message=replace(entry.message, id=str(number)))
        for number, entry in enumerate(made)
    ]


def instructions_of(messages: Sequence[ModelMessage]) -> str:
    """The instructions that stand beside the messages."""
    asked = (each.instructions for each in reversed(messages) if each.kind == "request")
    return next(asked, None) or ""


def _request(owner: int, parts: Sequence[Any], *, whole: bool) -> Iterator[Entry]:
    roles = [_role(part) for part in parts]
    if whole or not parts:
        said = tuple(each for part in parts for each in _said(part))
        role: Role = "tool" if set(roles) == {"tool"} else "user"
        yield Entry(owner, tuple(range(len(parts))), Message(role, said) if said else None)
        return
    for role_or_none, run in groupby(range(len(parts)), roles.__getitem__):
        indexes = tuple(run)
        if role_or_none is None:
            yield Entry(owner, indexes, None)
        else:
            said = tuple(each for index in indexes for each in _said(parts[index]))
            yield Entry(owner, indexes, Message(role_or_none, said))


def _role(part: Any) -> Role | None:
    if part.part_kind == "user-prompt" and str(part.content).startswith(HEADING):
        return "system"
    if part.part_kind == "retry-prompt" and part.tool_name is None:
        return "user"
    return _ROLES.get(part.part_kind)


def _response(owner: int, parts: Sequence[Any]) -> Entry:
    said = tuple(each for part in parts for each in _said(part))
    return Entry(owner, tuple(range(len(parts))), Message("assistant", said))


def _said(part: Any) -> tuple[Part, ...]:
    read = _READERS.get(part.part_kind)
    return () if read is None else read(part)


def _text(part: Any) -> tuple[Part, ...]:
    return (Text(part.content or ""),)


def _prompt(part: Any) -> tuple[Part, ...]:
    content = [part.content] if isinstance(part.content, str) else part.content
    return tuple(each for item in content for each in _content(item))


def _content(item: Any) -> tuple[ResultPart, ...]:
    """One thing that a user shows: a text, or a file by what is known of it."""
    if isinstance(item, str):
        return (Text(item),)
    if isinstance(text := getattr(item, "content", None), str):
        return (Text(text),)
    if isinstance(data := getattr(item, "data", None), bytes):
        return (Attachment(mime=item.media_type, size=len(data)),)
    if hasattr(item, "url"):
        return (Attachment(mime=item.media_type, url=item.url),)
    if hasattr(item, "file_id"):
        return (Attachment(mime=item.media_type, name=item.file_id),)
    return ()


def _result(part: Any) -> tuple[Part, ...]:
    text, files = part.model_response_str_and_user_content()
    inner = (Text(text), *(each for file in files for each in _content(file)))
    is_error = part.outcome in _ERRORS
    return (ToolResult(part.tool_call_id, inner, is_error, part.tool_name),)


def _native_result(part: Any) -> tuple[Part, ...]:
    """Of a tool that the provider ran within its answer."""
    return (Text(part.model_response_str()),)


def _retry(part: Any) -> tuple[Part, ...]:
    said = Text(part.model_response())
    if getattr(part, "tool_name", None) is None:
        return (said,)
    return (ToolResult(part.tool_call_id, (said,), is_error=True, name=part.tool_name),)


def _call(part: Any) -> tuple[Part, ...]:
    return (ToolCall(part.tool_call_id, part.tool_name, part.args or {}),)


def _native_call(part: Any) -> tuple[Part, ...]:
    return (Text(f"{part.tool_name} {part.args_as_json_str()}"),)


def _thinking(part: Any) -> tuple[Part, ...]:
    return (Reasoning(part.content, {"signature": part.signature or ""}),)


_READERS: Mapping[str, Callable[[Any], tuple[Part, ...]]] = {
    "system-prompt": _text,
    "user-prompt": _prompt,
    "tool-return": _result,
    "retry-prompt": _retry,
    "retry-feedback": _retry,
    "text": _text,
    "compaction": _text,
    "thinking": _thinking,
    "tool-call": _call,
    "builtin-tool-call": _native_call,
    "builtin-tool-return": _native_result,
    "file": lambda part: _content(part.content),
    "speech": lambda part: (Text(part.transcript or ""),),
}
"""What a part of each kind says; nothing, if it has no row."""
