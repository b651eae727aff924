"""Wire formats: one module for each, with everything that is particular to its provider.

`parse` turns a JSON value into a `Conversation`, `render` turns it back; what was not changed in
between stays the same. A conversation can be rendered in another dialect: its typed fields are
translated, and fields that only its own dialect has are left out.

`WIRES` holds the providers that the proxy can stand in front of. A new one is a module here and a
row in the tables below.
"""

from __future__ import annotations

import binascii
import re
import struct
from collections.abc import Iterable
from math import ceil
from typing import Any

from enfold.errors import ConfigError
from enfold.messages import Attachment, Conversation, Message, Part, Reasoning, ToolResult
from enfold.wire import anthropic, enfold, gemini, langchain, openai, openai_responses
from enfold.wire.contract import Dialect, Wire
from enfold.wire.detection import detect

__all__ = [
    "AUTO",
    "CHAT_COMPLETIONS",
    "DIALECTS",
    "MESSAGES",
    "RESPONSES",
    "UPSTREAMS",
    "WIRES",
    "Dialect",
    "Wire",
    "detect",
    "find_upstream",
    "get",
    "has_inline_system",
    "image_tokens",
    "match_count_path",
    "match_path",
    "overflow_limit",
    "parse",
    "render",
    "says_overflow",
]

_MODULES: tuple[Dialect, ...] = (
    openai,
    openai_responses,
    anthropic,
    gemini,
    langchain,
    enfold,
)
DIALECTS: dict[str, Dialect] = {module.NAME: module for module in _MODULES}
"""All dialects by name; the first one that fits a value is used."""
WIRES: dict[str, Wire] = {
    wire.dialect: wire for wire in (openai.WIRE, openai_responses.WIRE, anthropic.WIRE, gemini.WIRE)
}
"""The wires that the proxy serves, by dialect; the first is the default for other requests."""
UPSTREAMS: dict[str, Wire] = {wire.upstream: wire for wire in reversed(WIRES.values())}
"""One wire for each upstream server, by the server's name."""
CHAT_COMPLETIONS = openai.NAME
RESPONSES = openai_responses.NAME
MESSAGES = anthropic.NAME
"""Names of dialects, after the API whose messages they hold."""
AUTO = "auto"
"""In place of a dialect's name: the dialect is detected."""
_DEFAULT = openai.WIRE
_OVERFLOW = "|".join(
    wording for module in (openai, anthropic, gemini) for wording in module.OVERFLOW_WORDINGS
)
"""A pattern, compiled for the first error: that takes some milliseconds."""


def get(name: str) -> Dialect:
    """Return the dialect with that name."""
    if name in DIALECTS:
        return DIALECTS[name]
    raise ConfigError(f"no dialect {name!r}; available: {', '.join(DIALECTS)}")


def parse(value: Any, dialect: str = AUTO) -> Conversation:
    """Return the conversation of a request body or an array of messages."""
    return get(detect(value) if dialect == AUTO else dialect).parse(value)


def render(conversation: Conversation, dialect: str | None = None) -> Any:
    """Return the conversation as a JSON value, in its own dialect unless another is named."""
    return get(dialect or conversation.dialect).render(conversation)


def match_path(path: str) -> tuple[Wire, str | None] | None:
    """Return the wire of a conversation request, and the model if the path names it."""
    for wire in WIRES.values():
        if found := wire.path.fullmatch(path):
            return wire, found.groupdict().get("model")
    return None


def match_count_path(path: str) -> tuple[Wire, str | None] | None:
    """Return the same for a request to count the tokens of a conversation."""
    for wire in WIRES.values():
        if wire.count_path is not None and (found := wire.count_path.fullmatch(path)):
            return wire, found.groupdict().get("model")
    return None


def find_upstream(path: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the name of the upstream server for a request that is not a conversation."""
    for wire in UPSTREAMS.values():
        if wire.path_prefix is not None and path.startswith(wire.path_prefix):
            return wire.upstream
    names = {name for name, _ in headers}
    clients = (wire.upstream for wire in UPSTREAMS.values() if wire.client_headers & names)
    return next(clients, _DEFAULT.upstream)


def says_overflow(text: str) -> bool:
    """Return True if a provider's error says that the request is too long for the model."""
    return re.search(_OVERFLOW, text, re.IGNORECASE) is not None


_NAMED_LIMITS = (
    r"maximum context length (?:is|of) (?:only )?([\d,]+)",
    r"tokens > ([\d,]+) maximum",
    r"number of tokens allowed \(?([\d,]+)",
    r"maximum prompt length is ([\d,]+)",
    r"context (?:length|window|size|limit) (?:of|is) (?:only )?([\d,]+)",
    r"exceed context limit: [^.]* > ([\d,]+)",
    r"available context size \(?([\d,]+)",
    r"context (?:length|window|size) \(([\d,]+)",
    r'"n_ctx": ?([\d,]+)',
    r"model'?s? max(?:imum)? (?:length|limit)[^\d]{0,20}([\d,]+)",
)
"""Patterns in which errors name the model's window, in tokens."""
_SMALLEST_WINDOW = 1_000
"""A smaller number is not a window."""


def overflow_limit(text: str) -> int | None:
    """Return the window that a provider's error names, in tokens; None if it names none."""
    for pattern in _NAMED_LIMITS:
        if found := re.search(pattern, text, re.IGNORECASE | re.DOTALL):
            window = int(found[1].replace(",", ""))
            return window if window >= _SMALLEST_WINDOW else None
    return None


def has_inline_system(dialect: str) -> bool:
    """Return True if a system message may stand inside a conversation of that dialect."""
    wire = WIRES.get(dialect)
    return wire is None or wire.has_inline_system


def image_tokens(dialect: str, width: int, height: int) -> int:
    """Estimate the tokens of an image of that size, in pixels."""
    wire = WIRES.get(dialect, _DEFAULT)
    return (wire.image_tokens or openai.image_tokens)(width, height)


# Estimated tokens of attachments.


_LARGE_IMAGE = (1_568, 1_568)
_PAGE_TOKENS = 2_000
_PAGE_BYTES = 60_000
_SECOND_TOKENS = 32
_SECOND_BYTES = 16_000
_CHARACTERS_PER_TOKEN = 4
_OPAQUE_FIELDS = ("encrypted_content", "data", "signature", "thoughtSignature")


def estimate(message: Message) -> int:
    """Return the tokens that a message takes beyond its exact count."""
    return sum(_estimate(part, message.dialect) for part in message.parts)


def _estimate(part: Part, dialect: str) -> int:
    if isinstance(part, ToolResult):
        return sum(_estimate(inner, dialect) for inner in part.parts)
    if isinstance(part, Reasoning) and not part.text:
        opaque = sum(
            len(value)
            for field in _OPAQUE_FIELDS
            if isinstance(value := part.extras.get(field), str)
        )
        return ceil(opaque / _CHARACTERS_PER_TOKEN)
    if not isinstance(part, Attachment):
        return 0
    kind = part.mime.partition("/")[0]
    if kind in ("audio", "video"):
        return _SECOND_TOKENS * ceil((part.size or _SECOND_BYTES) / _SECOND_BYTES)
    if kind == "image" or not part.mime:
        return image_tokens(dialect, *_pixels(part))
    return _PAGE_TOKENS * ceil((part.size or _PAGE_BYTES) / _PAGE_BYTES)


_HEADERS = (
    (b"\x89PNG\r\n\x1a\n", ">16xII"),
    (b"GIF87a", "<6xHH"),
    (b"GIF89a", "<6xHH"),
)
"""The first bytes of image formats, and the layout of width and height."""


def _pixels(image: Attachment) -> tuple[int, int]:
    """Return width and height of a PNG or GIF; of a large image for other data."""
    try:
        head = binascii.a2b_base64((image.data or "")[:64])
    except binascii.Error:
        return _LARGE_IMAGE
    for start, layout in _HEADERS:
        if head.startswith(start) and len(head) >= struct.calcsize(layout):
            width, height = struct.unpack_from(layout, head)
            return (width, height) if width and height else _LARGE_IMAGE
    return _LARGE_IMAGE
