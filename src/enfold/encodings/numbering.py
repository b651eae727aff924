"""Line numbers: which lines of a text are numbered, and the numbers without their padding.

Tools write an arrow, a tab (cat -n), a colon, a bar or a hyphen (grep) after a line's number, and
often pad it. A tab takes fewest tokens, so that a run of lines numbered with arrows is shown as cat
would number it, less the padding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

_PREFIX = re.compile(r"( *)(\d{1,9})([→\t|:-])")
_SOMEWHERE = re.compile(r"^ *\d{1,9}[→\t|:-]", re.MULTILINE)
_ARROW = "→"
_TAB = "\t"


@dataclass(frozen=True, slots=True)
class Run:
    """Lines numbered one after the other, all in one style."""

    start: int
    stop: int
    """Indexes of the lines: `lines[start:stop]`."""
    first: int
    """The number of the first line."""
    width: int
    """How wide the numbers are, padded with blanks on the left. 0: no wider than their digits."""
    separator: str
    """What stands between the number and the line."""


def is_numbered(text: str) -> bool:
    """Whether any line may have a number; a quick look before a thorough one."""
    return _SOMEWHERE.search(text) is not None


def prefix(number: int, width: int, separator: str) -> str:
    """What stands before a line of that number."""
    return f"{number:>{width}}{separator}"


def runs(lines: Sequence[str]) -> Iterator[Run]:
    """All runs of numbered lines, in order.

    One line alone is a run only with an arrow: other signs follow a number for other reasons.
    """
    at, size = 0, len(lines)
    while at < size:
        found = _PREFIX.match(lines[at])
        if found is None:
            at += 1
            continue
        padding, digits, separator = found.groups()
        following = lines[at + 1] if at + 1 < size else ""
        if separator != _ARROW and not following.lstrip(" ").startswith(str(int(digits) + 1)):
            at += 1
            continue
        run = Run(at, at + 1, int(digits), len(found[0]) - 1 if padding else 0, separator)
        if prefix(run.first, run.width, separator) != found[0]:  # a leading zero
            at += 1
            continue
        at = _end_of_run(lines, run)
        if at - run.start > 1 or separator == _ARROW:
            yield replace(run, stop=at)


def bodies(lines: Sequence[str], run: Run) -> list[str]:
    """The lines of a run without their numbers."""
    own = lines[run.start : run.stop]
    if run.width and run.first + len(own) <= 10**run.width:
        cut = run.width + 1
        return [line[cut:] for line in own]
    return [line.split(run.separator, 1)[1] for line in own]


def encode(text: str) -> tuple[str, Any] | None:
    """The text with bare numbers, and per run where it is and how it was."""
    if not is_numbered(text):
        return None
    lines = text.split("\n")
    changed: list[list[Any]] = []
    for run in runs(lines):
        shown = _TAB if run.separator == _ARROW else run.separator
        if run.width or shown != run.separator:
            changed.append([run.start, run.stop - run.start, run.width, run.separator])
            numbered = enumerate(bodies(lines, run), run.first)
            lines[run.start : run.stop] = [f"{number}{shown}{body}" for number, body in numbered]
    return ("\n".join(lines), changed) if changed else None


def decode(text: str, how: Any) -> str:
    """The text with its numbers as they were."""
    lines = text.split("\n")
    for start, size, width, separator in how:
        shown = _TAB if separator == _ARROW else separator
        parted = [line.partition(shown) for line in lines[start : start + size]]
        lines[start : start + size] = [
            f"{number:>{width}}{separator}{body}" for number, _, body in parted
        ]
    return "\n".join(lines)


def _end_of_run(lines: Sequence[str], run: Run) -> int:
    """Where the numbers stop counting; more lines at a time the longer they have gone on."""
    prefixes = map(f"%{run.width or ''}d{run.separator}".__mod__, count(run.first + 1))
    at = run.stop
    while at < len(lines):
        some = lines[at : 2 * at - run.start]
        going_on = list(map(str.startswith, some, prefixes))
        if not all(going_on):
            return at + going_on.index(False)
        at += len(some)
    return len(lines)
