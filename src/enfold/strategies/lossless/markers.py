"""Markers: what stands in place of a text that is elsewhere. Short, and says where it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from enfold.errors import InputError
from enfold.jsontext import loads
from enfold.messages import ToolCall

_LONGEST = 48
_QUOTE = 20
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


def numbered_lines(first: int, there: int | None, size: int, place: str) -> str:
    """For lines with numbers; `there` is the number that the first has elsewhere, if it has one."""
    wanted = _range(first, size)
    if there is None or there == first:
        return f"⟨ {wanted} as {place} ⟩"
    return f"⟨ {wanted} as {_range(there, size, name='')} {place} ⟩"


def lines(sign: str, there: int, size: int, place: str) -> str:
    """For lines without numbers that have numbers elsewhere; a patch's sign says what they are."""
    return f"⟨ {_range(there, size, name=f'{sign}line')} {place} ⟩"


def bare_lines(sign: str, beginning: str, size: int, place: str) -> str:
    """For lines that have numbers nowhere: how they begin tells where they are."""
    name = f"{sign}line" if size == 1 else f"{sign}lines"
    return f"⟨ {size} {name} from {_quoted(beginning)} as {place} ⟩"


def characters(beginning: str, size: int, place: str) -> str:
    """For a part of a line."""
    return f"⟨ {size} characters from {_quoted(beginning)} as {place} ⟩"


def describe(call: ToolCall | None) -> str:
    """What a call was about, on one short line."""
    if call is None:
        return "its result"
    return _shortened(_on_one_line(f"{call.name} {_telling(call.arguments)}"))


def _quoted(beginning: str) -> str:
    words = _on_one_line(beginning.lstrip()[: 4 * _QUOTE])
    return f'"{words}"' if len(words) <= _QUOTE else f'"{words[:_QUOTE].rstrip()}…"'


def _on_one_line(text: str) -> str:
    """Words without what would end a line, or the marker."""
    return " ".join(re.sub(r"[⟨⟩]", " ", text).split())


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


def _range(first: int, size: int, *, name: str = "line") -> str:
    if size == 1:
        return f"{name} {first}".strip()
    return f"{name}s {first}-{first + size - 1}" if name else f"{first}-{first + size - 1}"
