"""Shortening: the beginning of a text, or a marker in its place, and how much is missing.

Markers are for the model to read. One never takes more tokens than what it replaces, and what was
shortened before is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from enfold.errors import InputError
from enfold.jsontext import dump_text, loads
from enfold.messages import ToolCall
from enfold.tokens import Tokenizer

SUPPRESSED = "⟨ Content suppressed ⟩"
_TRUNCATED = "⟨ ... truncated, {missing} of {total} {unit} ⟩"
_MARKER = re.compile(r"[\n ]?⟨ \.\.\. truncated, \d+ of \d+ (?:lines|characters|items) ⟩[\n ]?")
_MARKER_START = "⟨ ... truncated"
_LONGEST_MARKER = 80
_MOST_MARKER_TOKENS = 24
_ERROR = re.compile(
    r"\b(?:error|errors|failed|failure|failures|fatal|panic|exception|traceback|assert\w*"
    r"|not found|denied)\b|\w(?:error|exception)\b|^e\s"
)
"""Finds reports of errors in a line in lower case."""
_ERROR_WORDS = (
    *("error", "fail", "fatal", "panic", "exception", "traceback", "assert"),
    *("not found", "denied"),
)
"""A line that the pattern finds has one of them, or begins with an E; they are found faster."""
_MOST_ERRORS = 5
_LONGEST_ERROR = 200
_FEW_CHARACTERS = 400
"""Characters that are counted first to decide if a marker saves tokens."""

Edit: TypeAlias = Callable[[str], str]
"""Returns the text to show; the same object if nothing changes."""


@dataclass(frozen=True, slots=True)
class TextLimits:
    """The part of a text that stays. None is no limit."""

    lines: int | None = None
    chars: int | None = None
    head_and_tail: bool = False
    """Keep two thirds at the beginning and a third at the end, instead of the beginning alone."""
    with_marker: bool = True
    keep_errors: bool = False
    """Keep a few lines of the removed part that report errors."""

    def allow(self, text: str) -> bool:
        """Return True if the whole text is within the limits."""
        return (self.chars is None or len(text) <= self.chars) and (
            self.lines is None or not text or text.count("\n", 0, -1) < self.lines
        )


def suppress(text: str, tokenizer: Tokenizer) -> str:
    """A marker in place of the text, if it is shorter."""
    if len(text) <= len(SUPPRESSED) or _MARKER.fullmatch(text):
        return text
    return SUPPRESSED if _pays(text, SUPPRESSED, tokenizer) else text


def truncate(text: str, limits: TextLimits, tokenizer: Tokenizer) -> str:
    """Return the text cut to the limits, with a marker that states the size of the cut."""
    if limits.allow(text) or _is_truncated_already(text, limits):
        return text
    start, end = _gap(text, limits)
    if start >= end:
        return text
    head, tail = text[:start], text[end:]
    if not limits.with_marker:
        return head + tail
    marker, joint = _describe(text, start, end)
    errors = _error_lines(text[start:end]) if limits.keep_errors and joint == "\n" else ""
    if not _pays(text[start:end], f"{marker}\n{errors}", tokenizer):
        return text
    return joint.join(piece for piece in (head.removesuffix(joint), marker, errors, tail) if piece)


def _error_lines(removed: str) -> str:
    """Return the lines that report errors, the first of them if there are many."""
    lower = removed.lower()
    words = [word for word in _ERROR_WORDS if word in lower]
    lowered = lower.split("\n")
    marked = [at for at, line in enumerate(lowered) if line[:1] == "e" and line[1:2].isspace()]
    places = set(marked).union(
        *([at for at, line in enumerate(lowered) if word in line] for word in words)
    )
    if not places:
        return ""
    lines = removed.split("\n")
    found = (lines[at] for at in sorted(places) if _ERROR.search(lowered[at]))
    return "\n".join(line[:_LONGEST_ERROR] for line in islice(found, _MOST_ERRORS))


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
        return _map_items(value, edit, most_items)
    return value


def map_arguments(call: ToolCall, edit: Edit) -> ToolCall | None:
    """The call with the texts in its arguments edited; None if nothing changed.

    Arguments stay an object, and JSON text where they were one. What is no object is left alone:
    nothing in it can be cut safely.
    """
    given: Any = call.arguments
    if isinstance(given, str):
        try:
            given = loads(given)
        except InputError:
            return None
    smaller = map_texts(given, edit) if isinstance(given, Mapping) else given
    if smaller is given:
        return None
    arguments = dump_text(smaller) if isinstance(call.arguments, str) else smaller
    return ToolCall(call.id, call.name, arguments, call.extras)


def _map_items(items: list[Any], edit: Edit, most: int | None) -> list[Any]:
    shown = items if most is None or len(items) <= most + 1 else items[:most]
    edited = [map_texts(item, edit, most_items=most) for item in shown]
    if len(shown) < len(items):
        missing = len(items) - len(shown)
        return [*edited, _TRUNCATED.format(missing=missing, total=len(items), unit="items")]
    return edited if any(a is not b for a, b in zip(edited, items, strict=True)) else items


def _gap(text: str, limits: TextLimits) -> tuple[int, int]:
    """Return the start and the end of the part that is left out."""
    tail_lines = (limits.lines or 0) // 3 if limits.head_and_tail else 0
    tail_chars = (limits.chars or 0) // 3 if limits.head_and_tail else 0
    start = _head_end(
        text,
        None if limits.lines is None else limits.lines - tail_lines,
        None if limits.chars is None else limits.chars - tail_chars,
    )
    if not limits.head_and_tail:
        return start, len(text)
    end = _tail_start(
        text,
        None if limits.lines is None else tail_lines,
        None if limits.chars is None else tail_chars,
    )
    return start, end


def _head_end(text: str, lines: int | None, chars: int | None) -> int:
    """Return the end of a head with these limits."""
    end = len(text) if chars is None else min(len(text), chars)
    at = 0
    for _ in range(0 if lines is None else lines):
        newline = text.find("\n", at, end)
        if newline < 0:
            return end
        at = newline + 1
    return end if lines is None else at


def _tail_start(text: str, lines: int | None, chars: int | None) -> int:
    """Return the start of a tail with these limits."""
    start = 0 if chars is None else len(text) - chars
    if lines is None:
        return start
    at = len(text) - text.endswith("\n")
    for _ in range(lines):
        newline = text.rfind("\n", start, at)
        if newline < 0:
            return start
        at = newline
    return at + 1 if lines else len(text)


def _is_truncated_already(text: str, limits: TextLimits) -> bool:
    """Return True if the text without its marker is within the limits."""
    if _MARKER_START not in text or not _looser(limits).allow(text):
        return False
    if limits.keep_errors:
        return True
    return any(
        limits.allow(text[: found.start()] + text[found.end() :])
        for found in _MARKER.finditer(text)
    )


def _looser(limits: TextLimits) -> TextLimits:
    """The limits, with room for a marker."""
    errors = _MOST_ERRORS if limits.keep_errors else 0
    return TextLimits(
        None if limits.lines is None else limits.lines + 2 + errors,
        None
        if limits.chars is None
        else limits.chars + _LONGEST_MARKER + errors * (_LONGEST_ERROR + 1),
    )


def _describe(text: str, start: int, end: int) -> tuple[str, str]:
    """The marker for a gap, and what joins it to the text around it."""
    from_line = not start or text[start - 1] == "\n"
    to_line = end == len(text) or text[end - 1] == "\n"
    if not (from_line and to_line):
        marker = _TRUNCATED.format(missing=end - start, total=len(text), unit="characters")
        return marker, " "
    missing, total = _lines(text[start:end]), _lines(text)
    return _TRUNCATED.format(missing=missing, total=total, unit="lines"), "\n"


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _pays(removed: str, marker: str, tokenizer: Tokenizer) -> bool:
    """Return True if the marker takes fewer tokens than the text it replaces.

    The first few characters are nearly always enough to see that: a word is at least one token.
    """
    few = removed[:_FEW_CHARACTERS]
    if len(few.split()) > _MOST_MARKER_TOKENS or tokenizer.count(few) > _MOST_MARKER_TOKENS:
        return True
    return tokenizer.count(removed) > tokenizer.count(marker)
