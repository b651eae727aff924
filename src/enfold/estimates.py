"""Estimated tokens of content that has no exact count. They are shown separately from counts.

Providers turn images, documents and sound into tokens by rules of their own, and send reasoning
back as an opaque text. A decision adds these figures to the exact count, so that a history full of
screenshots does not overflow:

- images: by the provider's rule, which its wire has. A large image is assumed if the size in
  pixels cannot be read from the data.
- documents: 2,000 tokens for every page; a page for every 60 kB where pages can't be told.
- sound and film: 32 tokens a second, a second for every 16 kB.
- opaque reasoning: a token for every 4 characters.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Iterable
from math import ceil

from enfold.messages import Attachment, Message, Part, Reasoning, ToolResult
from enfold.wire import image_tokens

_LARGE_IMAGE = (1_568, 1_568)
_PAGE_TOKENS = 2_000
_PAGE_BYTES = 60_000
_SECOND_TOKENS = 32
_SECOND_BYTES = 16_000
_CHARACTERS_PER_TOKEN = 4
_OPAQUE_FIELDS = ("encrypted_content", "data", "signature", "thoughtSignature")


def estimate(message: Message) -> int:
    """Return the tokens that a message takes beyond its exact count."""
    return sum(_estimate(part, message.dialect) for part in _all_parts(message.parts))


def _all_parts(parts: Iterable[Part]) -> Iterable[Part]:
    for part in parts:
        yield part
        if isinstance(part, ToolResult):
            yield from part.parts


def _estimate(part: Part, dialect: str) -> int:
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
