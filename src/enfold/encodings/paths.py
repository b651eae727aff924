"""Paths: lines that begin with the same path show it once, above them.

Hits of a search, `path:12:text`, become what ripgrep prints under a heading: the path, then
`12:text` for each hit. A list of paths becomes their common folder, then what follows it, indented.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from enfold.encodings.numbering import is_numbered

_HIT = re.compile(r"([^\s:][^:\n]*?)([:-])(?=\d+\2)")
_PATH = re.compile(r"(?:/|\./|~/|[\w.@-]+/)[^\s:*?\"'<>|()]*")
_FEWEST_PATHS = 3
_SHORTEST_FOLDER = 4
_INDENT = " "
_START = 40
"""Characters that tell a file with numbered lines, in which no line begins with a path."""


def encode(text: str) -> tuple[str, Any] | None:
    """The text with headings, and where they are: `[line, lines under it, is a search]`."""
    if "/" not in text or is_numbered(text[:_START]):
        return None
    lines = text.split("\n")
    shown: list[str] = []
    headings: list[list[Any]] = []
    at = 0
    while at < len(lines):
        path, size = _hits(lines, at)
        if size > 1:
            headings.append([len(shown), size, True])
            shown += [path, *(line[len(path) + 1 :] for line in lines[at : at + size])]
        else:
            path, size = _listing(lines, at)
            if path:
                headings.append([len(shown), size, False])
                shown += [path, *(_INDENT + line[len(path) :] for line in lines[at : at + size])]
            else:
                shown += lines[at : at + size]
        at += size
    return ("\n".join(shown), headings) if headings else None


def decode(text: str, how: Any) -> str:
    """The text with the paths where they were."""
    lines = text.split("\n")
    was: list[str] = []
    at = 0
    for heading, size, is_search in how:
        was += lines[at:heading]
        path = lines[heading]
        at = heading + 1 + size
        under = lines[heading + 1 : at]
        if is_search:
            was += [f"{path}{_sign_after_number(line)}{line}" for line in under]
        else:
            was += [path + line[len(_INDENT) :] for line in under]
    return "\n".join([*was, *lines[at:]])


def _hits(lines: Sequence[str], at: int) -> tuple[str, int]:
    """The path of the hit at this line, and how many hits in a row are in that file."""
    found = _HIT.match(lines[at])
    if found is None:
        return "", 0
    path = found[1]
    size = 1
    while at + size < len(lines) and _is_hit_in(path, lines[at + size]):
        size += 1
    return path, size


def _is_hit_in(path: str, line: str) -> bool:
    found = _HIT.match(line)
    return found is not None and found[1] == path


def _sign_after_number(line: str) -> str:
    """A hit's sign is the same on both sides of its number."""
    return line.lstrip("0123456789")[0]


def _listing(lines: Sequence[str], at: int) -> tuple[str, int]:
    """The common folder of the paths from here on, and how many there are; no folder if none."""
    size = 0
    while at + size < len(lines) and _PATH.fullmatch(lines[at + size]):
        size += 1
    if size < _FEWEST_PATHS:
        return "", max(1, size)
    low, high = min(lines[at : at + size]), max(lines[at : at + size])
    shared = next((i for i, sign in enumerate(low) if not high.startswith(sign, i)), len(low))
    folder = low[: low.rfind("/", 0, shared) + 1]
    return (folder, size) if len(folder) >= _SHORTEST_FOLDER else ("", size)
