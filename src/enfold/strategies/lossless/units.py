"""Units: a text as a sequence of lines that can be compared with those of other texts.

Lines are compared without their numbers or the sign of a patch, so that the same line counts as the
same wherever a tool shows it. A line that is very long is divided into pieces: into the lines that
it holds where it holds escaped ones, as JSON does, else wherever the text itself suggests it.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from operator import add

from enfold.encodings.numbering import bodies, is_numbered, runs
from enfold.recipes import BARE, Form

JOINED, LINKED, ANCHOR, PIECE = 1, 2, 4, 8
"""Flags of a unit: stands next to the one before it; continues it, in the same form; is worth
looking for; is not a whole line."""

_OF_PIECE = 0x2545F4914F6CDD1D
"""What keys of pieces are changed by, so that they are not taken for those of lines."""
_LONG = 300
"""Characters from which on a line is divided."""
_SHORTEST_ANCHOR = 6
_ESCAPED_LINE = re.compile(r"([^\\]*(?:\\[^n][^\\]*)*)(\\n|$)")
_QUOTE = re.compile(r"\\.|\"")
"""An escape, or a quote that is none: it begins or ends a string."""
_PIECE = re.compile(r".{16,}?[\s,;{}()\[\]<>=&/0aZ]|.+", re.DOTALL)
"""Where a long line is divided depends only on what stands there, so that the same text inside two
lines is divided alike; at the latest after a few pieces."""
_PATCH = ("@@ ", "*** Begin Patch")
_SIGNS = "+- "
_FILE_NAMES = ("+++ ", "--- ")
_MARKER = re.compile(r"⟨ .* ⟩")


@dataclass(slots=True)
class Units:
    """The units of one text, each a range of it, a key to compare by, a form and flags."""

    starts: array[int] = field(default_factory=lambda: array("I"))
    stops: array[int] = field(default_factory=lambda: array("I"))
    keys: array[int] = field(default_factory=lambda: array("q"))
    """What is the same for units that say the same, whatever their forms add."""
    forms: array[int] = field(default_factory=lambda: array("H"))
    """Each unit's form: its place in `kinds`."""
    flags: bytearray = field(default_factory=bytearray)
    kinds: list[Form] = field(default_factory=lambda: [BARE])

    def __len__(self) -> int:
        return len(self.keys)

    def number_of(self, form: Form) -> int:
        """The form's place in `kinds`."""
        if form not in self.kinds:
            self.kinds.append(form)
        return self.kinds.index(form)


def units_of(text: str) -> Units:
    """The text, divided."""
    units = Units()
    lines = text.split("\n")
    sizes = list(map(len, lines))
    if max(sizes) <= _LONG:
        _add_lines(units, lines, sizes, 0)
    else:
        _add_mixed(units, lines, sizes)
    if "⟨ " in text:
        _cut_out_markers(units, text)
    units.flags[0] &= ~(JOINED | LINKED)
    return units


def _add_mixed(units: Units, lines: list[str], sizes: list[int]) -> None:
    """Lines, and pieces of those that are long."""
    at = first = offset = 0
    for index, size in enumerate(sizes):
        if size > _LONG:
            _add_lines(units, lines[first:index], sizes[first:index], at)
            _add_long(units, lines[index], offset)
            first, at = index + 1, offset + size + 1
        offset += size + 1
    _add_lines(units, lines[first:], sizes[first:], at)


def _add_lines(units: Units, lines: list[str], sizes: list[int], at: int) -> None:
    """Lines that stand one after the other from a place in the text on."""
    if not lines:
        return
    bare, forms, flags = _bare(units, lines)
    starts = array("I", accumulate(sizes[:-1], lambda place, size: place + size + 1, initial=at))
    units.starts += starts
    units.stops.extend(map(add, starts, sizes))
    units.keys.extend(map(hash, bare))
    units.forms += forms
    units.flags += flags


def _bare(units: Units, lines: list[str]) -> tuple[list[str], array[int], bytearray]:
    """The lines without numbers and signs, the form of each, and its flags."""
    bare = lines
    forms = array("H", bytes(2 * len(lines)))
    text = "\n".join(lines)
    breaks: list[int] = []
    if is_numbered(text):
        bare = list(bare)
        for run in runs(lines):
            bare[run.start : run.stop] = bodies(lines, run)
            form = units.number_of(Form(separator=run.separator, width=run.width))
            forms[run.start : run.stop] = array("H", [form]) * (run.stop - run.start)
            breaks += (run.start, run.stop)
    if any(sign in text for sign in _PATCH):
        bare = _take_off_signs(units, bare, forms)
        breaks += (at for at, (one, two) in enumerate(pairwise(forms), 1) if one != two)
    joined = JOINED | LINKED
    flags = bytearray(
        [
            joined | ANCHOR if len(body) >= _SHORTEST_ANCHOR and not body.isspace() else joined
            for body in bare
        ]
    )
    flags[0] &= ~LINKED
    for at in breaks:
        if at < len(flags):
            flags[at] &= ~LINKED
    return bare, forms, flags


def _take_off_signs(units: Units, lines: list[str], forms: array[int]) -> list[str]:
    """Lines of a patch without the sign before them; the forms of the others stay."""
    signs = {sign: units.number_of(Form(sign=sign)) for sign in _SIGNS}
    bare = list(lines)
    for at, line in enumerate(lines):
        if not forms[at] and line[:1] in signs and not line.startswith(_FILE_NAMES):
            bare[at] = line[1:]
            forms[at] = signs[line[0]]
    return bare


def _add_long(units: Units, line: str, offset: int) -> None:
    if line.count("\\n") > 1 and _add_escaped(units, line, offset):
        return
    for found in _PIECE.finditer(line):
        units.starts.append(offset + found.start())
        units.stops.append(offset + found.end())
        units.keys.append(hash(found[0]) ^ _OF_PIECE)
        units.forms.append(0)
        units.flags.append(PIECE | ANCHOR | JOINED | (LINKED if found.start() else 0))


def _add_escaped(units: Units, line: str, offset: int) -> bool:
    """The lines that a long one holds in escaped form; what is around them are pieces."""
    spans = list(_escaped_spans(line))
    texts = [line[start:stop] for start, stop in spans]
    outer = Form(escaped=True, is_ascii=line.isascii() and "\\u" in line)
    inner = [_unescaped(text, outer) for text in texts]
    if sum(text is not None for text in inner) <= 1:
        return False
    bare, forms, flags = _bare(units, [text or "" for text in inner])
    for at, (start, stop) in enumerate(spans):
        units.starts.append(offset + start)
        units.stops.append(offset + stop)
        if inner[at] is None:
            units.keys.append(hash(texts[at]) ^ _OF_PIECE)
            units.forms.append(0)
            is_anchor = len(texts[at]) >= _SHORTEST_ANCHOR
            units.flags.append(PIECE | JOINED | (ANCHOR if is_anchor else 0))
        else:
            form = replace(units.kinds[forms[at]], escaped=True, is_ascii=outer.is_ascii)
            follows = at > 0 and inner[at - 1] is not None
            units.keys.append(hash(bare[at]))
            units.forms.append(units.number_of(form))
            units.flags.append(flags[at] if follows else flags[at] & ~LINKED)
    return True


def _escaped_spans(line: str) -> Iterator[tuple[int, int]]:
    """What stands between escaped line ends; where strings begin or end there, that is cut off."""
    for found in _ESCAPED_LINE.finditer(line):
        start, stop = found.span(1)
        quotes = [q.start() for q in _QUOTE.finditer(line, start, stop) if q[0] == '"']
        if not quotes:
            if found[0]:
                yield start, stop
            continue
        first = quotes[0] if start else 0
        last = quotes[-1] + 1 if found[2] else stop
        yield from ((a, b) for a, b in ((start, first), (first, last), (last, stop)) if a < b)


def _unescaped(text: str, form: Form) -> str | None:
    """The line that an escaped one stands for, if escaping it gives the same again."""
    if "\\" not in text and '"' not in text:
        return text if text.isascii() or not form.is_ascii else None
    try:
        line = json.loads(f'"{text}"')
    except ValueError:
        return None
    return line if isinstance(line, str) and form.text([line]) == text else None


def _cut_out_markers(units: Units, text: str) -> None:
    """A marker is no content: nothing may be matched with it or across it."""
    for found in _MARKER.finditer(text):
        at = bisect_right(units.stops, found.start())
        while at < len(units) and units.starts[at] < found.end():
            units.flags[at] = 0
            at += 1
        if at < len(units):
            units.flags[at] &= ~(JOINED | LINKED)
