"""Headers: as they came, in bytes. A request has few, and each layer asks for one or two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Header: TypeAlias = tuple[bytes, bytes]
"""Name and value; the names of a request are in small letters."""


def find(headers: Iterable[Header], name: bytes) -> bytes | None:
    """The first value of a header; None where there is none."""
    for key, value in headers:
        if key == name:
            return value
    return None
