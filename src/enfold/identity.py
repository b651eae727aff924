"""Hashes of a message: of its content, of its place in a conversation, and of its bytes.

Clients send a history again in other words than they got it: a text becomes a block, a cache mark
moves, keys change places, another dialect is spoken. `content_hash` is the same for all of these.
`identity` hashes it together with the identity of the message before, so one value stands for a
whole history up to there: a history that comes again is recognised by its last message, and one
that was edited parts from the known one exactly where it differs.

Left out, because it does not change what is said: cache marks, ids and states that a provider
gives to items, reasoning (clients drop it), the dialect. A system prompt that stands beside the
messages is no message and has no part in this. Reasoning that is a message of its own counts by
what its provider knows it by: it belongs to the one item that follows it, and no other may take its
place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from enfold.errors import InputError
from enfold.jsontext import dumps, loads
from enfold.messages import (
    Attachment,
    Data,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)

_BYTES = 16
_ITEM_FIELDS = frozenset({"cache_control", "id", "status"})
"""Fields that a client or provider adds to an item; they are not content."""


def content_hash(message: Message) -> str:
    """Return the hash of the message's content, the same in every dialect."""
    try:
        content = [normal for part in message.parts for normal in _normal_part(part)]
        content = content or [
            reference for part in message.parts for reference in _reasoning_reference(part)
        ]
    except RecursionError:
        raise InputError("nested too deeply") from None
    only_results = bool(content) and all(isinstance(part, ToolResult) for part in message.parts)
    role = "tool" if only_results else message.role
    # On a tool's message the name only repeats that of the call.
    name = "" if role == "tool" else message.name or ""
    return _hash(dumps([role, name, content]), b"enfold content")


@lru_cache(maxsize=8_192)  # clients send a history again with every request
def identity(parent: str | None, content: str) -> str:
    """Return the identity of a message, from its content hash and its parent's identity."""
    return _hash(f"{parent or ''} {content}".encode(), b"enfold identity")


def chain(contents: Iterable[str], parent: str | None = None) -> list[str]:
    """Return the identities of consecutive messages, from their content hashes."""
    identities: list[str] = []
    for content in contents:
        parent = identity(parent, content)
        identities.append(parent)
    return identities


def digest(body: bytes) -> str:
    """Return the hash of the exact bytes."""
    return _hash(body, b"enfold digest")


def _hash(data: bytes, purpose: bytes) -> str:
    return blake2b(data, digest_size=_BYTES, person=purpose).hexdigest()


def _normal_part(part: Part) -> list[Any]:
    """Return the part in a form that all dialects share; nothing for an empty part."""
    match part:
        case Text(text):
            return [["text", text]] if text else []
        case ToolCall(id, name, arguments):
            return [["call", id, name, _normal_arguments(arguments)]]
        case ToolResult(call_id, parts, is_error):
            inner = [normal for inside in parts for normal in _normal_part(inside)]
            return [["result", call_id, inner, is_error]]
        case Data(value):
            return [["data", _sorted(value)]]
        case Attachment(data=data, url=url) if data or url:
            return [["attachment", data or url]]
        case Attachment(name=name, extras=extras):
            return [["attachment", name, _without_marks(extras)]]
        case Unknown(extras):
            return [["unknown", _without_marks(extras)]]
        case Reasoning():
            return []


def _reasoning_reference(part: Part) -> list[Any]:
    """Return a reasoning item's encrypted content, else its id; nothing for other parts."""
    if not isinstance(part, Reasoning):
        return []
    reference = part.extras.get("encrypted_content") or part.extras.get("id")
    return [["reasoning", reference]] if reference else []


def _normal_arguments(arguments: str | Mapping[str, Any]) -> Any:
    """Return the value of the arguments; the text itself if it is not JSON."""
    if not isinstance(arguments, str):
        return ["json", _sorted(arguments)]
    try:
        return ["json", _sorted(loads(arguments or "{}"))]
    except InputError:
        return ["text", arguments]


def _without_marks(extras: Mapping[str, Any]) -> Any:
    return _sorted({key: value for key, value in extras.items() if key not in _ITEM_FIELDS})


def _sorted(value: Any) -> Any:
    """Return the JSON value with sorted keys and without cache marks, at every level."""
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value) if key != "cache_control"}
    if isinstance(value, list | tuple):
        return [_sorted(item) for item in value]
    return value
