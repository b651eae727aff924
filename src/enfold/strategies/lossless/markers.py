"""Markers: what stands in place of a text that is elsewhere. Short, and says where it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from enfold.errors import InputError
from enfold.jsontext import loads
from enfold.messages import ToolCall

_LONGEST = 48
_TELLING = ("file_path", "path", "command", "cmd", "pattern", "query", "url", "file", "name")
"""Arguments that say what a call was about, the best first."""


def reference(number: int, description: str) -> str:
    """For a result that another message shows in full."""
    return f"⟨ Reference: See message #{number} for {description} ⟩"


def file_reference(number: int, description: str, *, above: bool) -> str:
    """For a file that was read before, or is read again later."""
    where = "above" if above else "below"
    return f"⟨ File content already provided {where}: see message #{number} for {description} ⟩"


def consolidated(operations: int, number: int, description: str) -> str:
    """For one of several operations with the same outcome."""
    return f"⟨ Consolidated {operations} operations: {description}, see message #{number} ⟩"


def superseded(number: int, description: str) -> str:
    """For state that a later message shows as it became."""
    return f"⟨ Superseded by message #{number}: {description} ⟩"


def lines(wanted: str, there: str, place: str) -> str:
    """For lines with numbers that stand elsewhere, under the same numbers or others."""
    if wanted == there:
        return f"⟨ lines {wanted} as {place} ⟩"
    return f"⟨ lines {wanted} as {there} {place} ⟩"


def bare_lines(sign: str, there: str, place: str) -> str:
    """For lines without numbers; a patch's sign says what they are here."""
    return f"⟨ {sign}lines {there} {place} ⟩"


def characters(size: int, place: str) -> str:
    """For a part of a line."""
    return f"⟨ {size} characters as {place} ⟩"


def describe(call: ToolCall | None) -> str:
    """What a call was about, on one short line."""
    if call is None:
        return "its result"
    words = f"{call.name} {_telling(call.arguments)}".split()
    return re.sub(r"[⟨⟩]", "", _shortened(" ".join(words)))


def _telling(arguments: str | Mapping[str, Any]) -> str:
    value: Any = arguments
    if isinstance(arguments, str):
        try:
            value = loads(arguments)
        except InputError:
            return arguments
    if not isinstance(value, Mapping):
        return str(value)
    texts = {key: item for key, item in value.items() if isinstance(item, str) and item}
    best = next((texts[key] for key in _TELLING if key in texts), None)
    return best if best is not None else next(iter(texts.values()), "")


def _shortened(text: str) -> str:
    """At most a few words: of a path its end, of a command its beginning."""
    if len(text) <= _LONGEST:
        return text
    name, _, rest = text.partition(" ")
    if "/" in rest and " " not in rest:
        end = rest[-(_LONGEST - len(name) - 3) :]
        return f"{name} …/{end.partition('/')[2] or end}"
    return f"{text[: _LONGEST - 1].rstrip()}…"
