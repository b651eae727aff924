"""Lines: one that is repeated is shown once; blanks at the end of lines are not shown."""

from __future__ import annotations

import re
from itertools import groupby
from operator import eq
from typing import Any

_FEWEST = 3
_LEAST_CHARACTERS = 60
"""So much must go before a marker pays."""
_BLANKS = re.compile(r"[ \t]+$", re.MULTILINE)


def encode_runs(text: str) -> tuple[str, Any] | None:
    """The text with a marker after each line that was repeated; where the markers are."""
    lines = text.split("\n")
    if not any(map(eq, lines, lines[1:])):
        return None
    shown: list[str] = []
    markers: list[list[int]] = []
    for line, group in groupby(lines):
        again = sum(1 for _ in group) - 1
        shown.append(line)
        if again + 1 >= _FEWEST and again * (len(line) + 1) >= _LEAST_CHARACTERS and line.strip():
            markers.append([len(shown), again])
            shown.append(f"⟨ the line above {again} more times ⟩")
        else:
            shown += [line] * again
    return ("\n".join(shown), markers) if markers else None


def decode_runs(text: str, how: Any) -> str:
    """The text with every line as often as it stood there."""
    lines = text.split("\n")
    was: list[str] = []
    at = 0
    for marker, again in how:
        was += lines[at:marker]
        was += [lines[marker - 1]] * again
        at = marker + 1
    return "\n".join([*was, *lines[at:]])


def encode_blanks(text: str) -> tuple[str, Any] | None:
    """The text without blanks at the end of lines; where they were, counted from the last ones."""
    if " \n" not in text and "\t\n" not in text and not text.endswith((" ", "\t")):
        return None
    cuts: list[list[Any]] = []
    end = 0
    for found in _BLANKS.finditer(text):
        cuts.append([found.start() - end, found[0]])
        end = found.end()
    return (_BLANKS.sub("", text), cuts) if cuts else None


def decode_blanks(text: str, how: Any) -> str:
    """The text with its blanks."""
    was: list[str] = []
    at = 0
    for distance, blanks in how:
        was += (text[at : at + distance], blanks)
        at += distance
    return "".join([*was, text[at:]])
