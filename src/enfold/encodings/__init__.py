"""Encodings: other ways to write the same text, each with the way back.

They take out what costs tokens and tells a model nothing. An encoding is used on a text only if
decoding gives back exactly what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from enfold.encodings import lines, numbering, paths, records, terminal
from enfold.errors import RestoreError

__all__ = ["ENCODINGS", "Encoding", "decode", "encode"]


@dataclass(frozen=True, slots=True)
class Encoding:
    """One way to write a text, and back."""

    encode: Callable[[str], tuple[str, Any] | None]
    """The text anew and what the way back needs, as JSON; None where there is nothing to gain."""
    decode: Callable[[str, Any], str]


ENCODINGS: Mapping[str, Encoding] = {
    "colours": Encoding(terminal.encode_colours, terminal.decode_colours),
    "progress": Encoding(terminal.encode_progress, terminal.decode_progress),
    "blanks": Encoding(lines.encode_blanks, lines.decode_blanks),
    "json": Encoding(records.encode_blanks, records.decode),
    "tables": Encoding(records.encode_tables, records.decode),
    "paths": Encoding(paths.encode, paths.decode),
    "line_numbers": Encoding(numbering.encode, numbering.decode),
    "runs": Encoding(lines.encode_runs, lines.decode_runs),
}
"""By name, in the order in which they are applied."""


def encode(name: str, text: str) -> tuple[str, Any] | None:
    """The text in that encoding and what `decode` needs; None where it does not help."""
    encoding = ENCODINGS[name]
    found = encoding.encode(text)
    if found is None or len(found[0]) >= len(text) or encoding.decode(*found) != text:
        return None
    return found if found[0].strip() else None  # wires have no way to say an empty text


def decode(name: str, text: str, how: Any) -> str:
    """The text as it was before; `RestoreError` if it cannot have been encoded so."""
    try:
        return ENCODINGS[name].decode(text, how)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise RestoreError(
            f"the encoding {name!r} cannot be undone ({type(error).__name__})"
        ) from None
