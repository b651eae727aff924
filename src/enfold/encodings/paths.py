"""Paths: lines that begin with the same path show it once, above them.

Hits of a search, `path:12:text`, become what ripgrep prints under a heading: the path, then
`12:text` for each hit. A list of paths becomes folders, and under each what follows it, indented.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, TypeAlias

from enfold.encodings.numbering import is_numbered

_HIT = re.compile(r"^([^\s:]*[/.][^\s:]*):[0-9]+:", re.MULTILINE)
_BESIDE = re.compile(r"-(?=([0-9]{1,9})-)")
"""What follows the path of a line that a search shows beside a hit, and the line's number."""
_PATH = re.compile(r"(?:/|\./|~/|[\w.@-]+/)[^\s:*?\"'<>|()]*(?<!/)")
"""Of a file: what ends like a folder may be a heading."""
_FEWEST_PATHS = 3
_SHORTEST_FOLDER = 4
_INDENT = " "
_START = 40
"""Characters that tell a file with numbered lines, in which no line begins with a path."""

_Group: TypeAlias = tuple[int, int, str, bool]
"""Lines `[start, stop)` that begin with a path, and whether they are hits of a search."""


def encode(text: str) -> tuple[str, Any] | None:
    """The text with headings, and where they are: `[line, lines under it, is a search]`."""
    if "/" not in text or is_numbered(text[:_START]):
        return None
    lines = text.split("\n")
    shown: list[str] = []
    headings: list[list[Any]] = []
    at = 0
    for start, stop, path, is_search in _groups(lines, _searched(text, lines)):
        shown += lines[at:start]
        headings.append([len(shown), stop - start, is_search])
        cut, indent = (len(path) + 1, "") if is_search else (len(path), _INDENT)
        shown += [path, *(indent + line[cut:] for line in lines[start:stop])]
        at = stop
    return ("\n".join([*shown, *lines[at:]]), headings) if headings else None


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


def _searched(text: str, lines: Sequence[str]) -> set[str]:
    """The files that a search shows lines of: with hits, or with lines that count on."""
    found = set(_HIT.findall(text))
    for line, following in pairwise(lines):
        if _is_path(line) and _is_path(following):
            continue  # names with dates in them
        for sign in _BESIDE.finditer(line):
            path = line[: sign.start()]
            if following.startswith(f"{path}-{int(sign[1]) + 1}-") and _is_path(path):
                found.add(path)
    return found


def _groups(lines: Sequence[str], searched: set[str]) -> Iterator[_Group]:
    """All lines that a heading pays for; `searched` are the files that a search shows lines of."""
    start = 0
    for found, group in groupby(lines, lambda line: _file_of(line, searched)):
        stop = start + sum(1 for _ in group)
        if isinstance(found, str):
            if stop - start > 1:
                yield start, stop, found, True
        elif found:
            yield from _folders(lines, start, stop)
        start = stop


def _file_of(line: str, searched: set[str]) -> str | bool:
    """The file in which the line is a hit, or stands beside one; else whether it is a path."""
    if searched:
        hit = _HIT.match(line)
        if hit is not None:
            return hit[1]
        for sign in _BESIDE.finditer(line):
            if line[: sign.start()] in searched:
                return line[: sign.start()]
    return _is_path(line)


def _is_path(text: str) -> bool:
    return "/" in text and _PATH.fullmatch(text) is not None


def _sign_after_number(line: str) -> str:
    """A hit's sign is the same on both sides of its number."""
    return line.lstrip("0123456789")[0]


def _folders(lines: Sequence[str], start: int, stop: int) -> list[_Group]:
    """A list of paths, under the folder of all or under each one's own: whichever is shorter."""
    apart: list[_Group] = []
    alone = end = start
    for folder, group in groupby(lines[start:stop], _folder):
        begin, end = end, end + sum(1 for _ in group)
        if end - begin > 1 and len(folder) >= _SHORTEST_FOLDER:
            apart += [*_together(lines, alone, begin), (begin, end, folder, False)]
            alone = end
    apart += _together(lines, alone, stop)
    return max(_together(lines, start, stop), apart, key=_gain)


def _together(lines: Sequence[str], start: int, stop: int) -> list[_Group]:
    """Paths under the folder that all are in, if that is one."""
    if stop - start < _FEWEST_PATHS:
        return []
    first, last = min(lines[start:stop]), max(lines[start:stop])
    same = next((at for at, sign in enumerate(first) if last[at] != sign), len(first))
    folder = _folder(first[:same])
    return [(start, stop, folder, False)] if len(folder) >= _SHORTEST_FOLDER else []


def _folder(path: str) -> str:
    return path[: path.rfind("/") + 1]


def _gain(groups: Sequence[_Group]) -> int:
    """The characters that headings save."""
    return sum((stop - start - 1) * len(path) - 2 - stop + start for start, stop, path, _ in groups)
