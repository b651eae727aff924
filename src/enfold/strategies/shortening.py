"""Shortening: the beginning of a text, or a marker in its place, and how much is missing.

Markers are for the model to read. One never takes more tokens than what it replaces, and what was
shortened before is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from enfold.tokens import Tokenizer

SUPPRESSED = "⟨ Content suppressed ⟩"
_TRUNCATED = "⟨ ... truncated, {missing} of {total} {unit} ⟩"
_MARKER = re.compile(r"[\n ]?⟨ \.\.\. truncated, \d+ of \d+ (?:lines|characters|items) ⟩[\n ]?")
_MARKER_START = "⟨ ... truncated"
_PROBE = 120
"""So many characters are counted first to see whether a marker pays."""

Edit: TypeAlias = Callable[[str], str]
"""What becomes of a text; the very same text if nothing does."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a text stays. None is no limit."""

    lines: int | None = None
    chars: int | None = None
    head_and_tail: bool = False
    """Keep two thirds at the beginning and a third at the end, instead of the beginning alone."""
    with_marker: bool = True

    @property
    def head(self) -> Limits:
        """What of it is for the beginning."""
        return self if not self.head_and_tail else self._share(lambda all_: all_ - all_ // 3)

    @property
    def tail(self) -> Limits:
        """What of it is for the end."""
        return self._share(lambda all_: all_ // 3 if self.head_and_tail else 0)

    def _share(self, part: Callable[[int], int]) -> Limits:
        lines = None if self.lines is None else part(self.lines)
        return Limits(lines, None if self.chars is None else part(self.chars))


def suppress(text: str, tokenizer: Tokenizer) -> str:
    """A marker in place of the text, if it is shorter."""
    if text == SUPPRESSED or not _pays(text, SUPPRESSED, tokenizer):
        return text
    return SUPPRESSED


def truncate(text: str, limits: Limits, tokenizer: Tokenizer) -> str:
    """What the limits leave of the text, and a marker that says how much is missing."""
    start, end = _head_end(text, limits.head), _tail_start(text, limits)
    if start >= end or _is_truncated_already(text, limits):
        return text
    head, tail = text[:start], text[end:]
    if not limits.with_marker:
        return head + tail
    marker, joint = _describe(text, start, end)
    if not _pays(text[start:end], marker, tokenizer):
        return text
    return f"{head.removesuffix(joint)}{joint}{marker}" + (f"{joint}{tail}" if tail else "")


def map_texts(value: Any, edit: Edit, *, most_items: int | None = None) -> Any:
    """A JSON value with its texts edited, and arrays cut; the very same value if nothing changed.

    Keys, numbers and the shape of objects stay, so what was an object still is one.
    """
    if isinstance(value, str):
        return edit(value)
    if isinstance(value, Mapping):
        changed = {key: map_texts(item, edit, most_items=most_items) for key, item in value.items()}
        return changed if any(changed[key] is not value[key] for key in changed) else value
    if isinstance(value, list):
        items = value if most_items is None else value[:most_items]
        edited = [map_texts(item, edit, most_items=most_items) for item in items]
        missing = len(value) - len(items)
        if missing > 1:  # the marker is an item too
            edited.append(_TRUNCATED.format(missing=missing, total=len(value), unit="items"))
            return edited
        edited += value[len(items) :]
        return edited if any(a is not b for a, b in zip(edited, value, strict=True)) else value
    return value


def _head_end(text: str, limits: Limits) -> int:
    """Where the beginning that may stay ends."""
    end = len(text) if limits.chars is None else min(len(text), limits.chars)
    if limits.lines is None:
        return end
    at = 0
    for _ in range(limits.lines):
        newline = text.find("\n", at, end)
        if newline < 0:
            return end
        at = newline + 1
    return at


def _tail_start(text: str, limits: Limits) -> int:
    """Where the end that may stay begins."""
    tail, size = limits.tail, len(text)
    start = 0 if tail.chars is None else max(0, size - tail.chars)
    if tail.lines is None:
        return start
    at = size - 1 if text.endswith("\n") else size
    for _ in range(tail.lines):
        newline = text.rfind("\n", start, at)
        if newline < 0:
            return start
        at = newline
    return size if not tail.lines else at + 1


def _is_truncated_already(text: str, limits: Limits) -> bool:
    """Whether the text is within the limits but for the marker in it."""
    if _MARKER_START not in text:
        return False
    bare = _MARKER.sub("", text, count=1)
    return bare != text and _head_end(bare, limits.head) >= _tail_start(bare, limits)


def _describe(text: str, start: int, end: int) -> tuple[str, str]:
    """The marker for a gap, and what joins it to the text around it."""
    at_lines = (not start or text[start - 1] == "\n") and (
        end == len(text) or text[end - 1] == "\n"
    )
    if not at_lines:
        marker = _TRUNCATED.format(missing=end - start, total=len(text), unit="characters")
        return marker, " "
    missing, total = _lines(text[start:end]), _lines(text)
    return _TRUNCATED.format(missing=missing, total=total, unit="lines"), "\n"


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _pays(removed: str, marker: str, tokenizer: Tokenizer) -> bool:
    """Whether the marker takes fewer tokens than what it replaces.

    A few characters of it are nearly always enough to see that.
    """
    cost = tokenizer.count(marker)
    if len(removed) > _PROBE and tokenizer.count(removed[:_PROBE]) > cost + 1:
        return True
    return tokenizer.count(removed) > cost
