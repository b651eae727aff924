"""Units: lines and pieces of lines, and an index that finds equal runs of them."""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from operator import add

from enfold.encodings import bodies, is_numbered, runs
from enfold.ledger import BARE, Form

SHORTEST = 40
"""Characters from which on a text is worth pointing to: a marker takes as many."""

JOINED, LINKED, ANCHOR, PIECE = 1, 2, 4, 8
"""Flags of a unit: stands next to the one before it; continues it, in the same form; is worth
looking for; is not a whole line."""

_OF_PIECE = 0x2545F4914F6CDD1D
"""Added to keys of pieces, so that they differ from those of lines."""
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
_UNITS_MARKER = re.compile(r"⟨ .* ⟩")


@dataclass(slots=True)
class Units:
    """The units of one text, each a range of it, a key to compare by, a form and flags."""

    starts: array[int] = field(default_factory=lambda: array("I"))
    stops: array[int] = field(default_factory=lambda: array("I"))
    keys: array[int] = field(default_factory=lambda: array("q"))
    """Equal for units with the same content, whatever their forms add."""
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
            numbered = Form("", run.separator, run.width, run.every, run.first % run.every)
            form = units.number_of(numbered)
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


def bare_lines(text: str) -> list[str]:
    """Return the lines of a text without their numbers."""
    lines = text.split("\n")
    for run in runs(lines) if is_numbered(text) else ():
        lines[run.start : run.stop] = bodies(lines, run)
    return lines


def is_anchor(line: str) -> bool:
    """Return True if a line is worth looking for."""
    return len(line) >= _SHORTEST_ANCHOR and not line.isspace()


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
    pieces = _PIECE.findall(line)
    ends = array("I", accumulate(map(len, pieces), initial=offset))
    units.starts += ends[:-1]
    units.stops += ends[1:]
    units.keys.extend(hash(piece) ^ _OF_PIECE for piece in pieces)
    units.forms.extend(bytes(len(pieces)))
    first = PIECE | ANCHOR | JOINED
    units.flags += bytes([first]) + bytes([first | LINKED]) * (len(pieces) - 1)


def _add_escaped(units: Units, line: str, offset: int) -> bool:
    """Add the escaped lines inside a long line; the text around them is added as pieces."""
    spans = list(_escaped_spans(line))
    texts = [line[start:stop] for start, stop in spans]
    outer = Form(escaped=True, is_ascii=line.isascii() and "\\u" in line)
    inner = [_unescaped(text, outer) for text in texts]
    if sum(text is not None for text in inner) <= 1:
        return False
    bare, forms, flags = _bare(units, [text or "" for text in inner])
    escaped: dict[int, int] = {}
    for at, (start, stop) in enumerate(spans):
        units.starts.append(offset + start)
        units.stops.append(offset + stop)
        if inner[at] is None:
            units.keys.append(hash(texts[at]) ^ _OF_PIECE)
            units.forms.append(0)
            is_anchor = len(texts[at]) >= _SHORTEST_ANCHOR
            units.flags.append(PIECE | JOINED | (ANCHOR if is_anchor else 0))
        else:
            form = forms[at]
            if form not in escaped:
                kind = replace(units.kinds[form], escaped=True, is_ascii=outer.is_ascii)
                escaped[form] = units.number_of(kind)
            follows = at > 0 and inner[at - 1] is not None
            units.keys.append(hash(bare[at]))
            units.forms.append(escaped[form])
            units.flags.append(flags[at] if follows else flags[at] & ~LINKED)
    return True


def _escaped_spans(line: str) -> Iterator[tuple[int, int]]:
    """Yield the spans between escaped line ends, split at the quotes of strings."""
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
    for found in _UNITS_MARKER.finditer(text):
        at = bisect_right(units.stops, found.start())
        while at < len(units) and units.starts[at] < found.end():
            units.flags[at] = 0
            at += 1
        if at < len(units):
            units.flags[at] &= ~(JOINED | LINKED)


_LAG = 16
"""How many units a text may look back at before they are entered; until then a match that begins
later can still claim them."""
_SPACING = 64
"""Characters between two new units that are remembered, at least. What is shorter saves less than a
marker takes, and a longer match is found by the one or the other unit in it."""


@dataclass(frozen=True, slots=True)
class BlockMatch:
    """Units `[start, stop)` of a text are the same as those of a source from `at` on."""

    start: int
    stop: int
    source: int
    at: int
    is_raw: bool
    """True if they are equal with their numbers and signs."""


class UnitIndex:
    """An index of the units of all texts so far, with the last place of each."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._bases: list[int] = []
        self._keys = array("q")
        self._starts = array("I")
        self._stops = array("I")
        self._forms = array("H")
        self._flags = bytearray()
        self._kinds: list[Form] = []
        self._latest: dict[int, int] = {}
        self._last_entered = 0
        """The end of the last remembered unit of the last text."""

    def add(self, text: str, units: Units) -> None:
        """Add a text; its units can be found only after `enter` or `match`."""
        self._last_entered = -_SPACING
        self._texts.append(text)
        self._bases.append(len(self._keys))
        self._keys += units.keys
        self._starts += units.starts
        self._stops += units.stops
        self._flags += units.flags
        self._kinds += (form for form in units.kinds if form not in self._kinds)
        kinds = [self._kinds.index(form) for form in units.kinds]
        self._forms.extend(map(kinds.__getitem__, units.forms))

    def enter(self) -> None:
        """Let the last text be found, all of it."""
        self._enter(self._bases[-1], len(self._keys))

    def match(self, claim: Callable[[BlockMatch], bool], first: int = 0) -> None:
        """Match the last text with what was entered before it, then enter what is left of it.

        `claim` is asked about every match, in order; units of one that it takes can no longer be
        found, because a marker replaces them. Units before `first` are not looked at.
        """
        keys, latest = self._keys, self._latest
        base, end = self._bases[-1], len(keys)
        entered = at = min(base + first, end)
        self._enter(base, at)
        while at < end:
            place = latest.get(keys[at])
            if place is not None and self._is_worth_it(at, place):
                found = self._longest(at, place, entered)
                if claim(found):
                    self._enter(entered, base + found.start)
                    self._hide(base + found.start, base + found.stop)
                    entered = at = base + found.stop
                    continue
            at += 1
            if at - entered > 2 * _LAG:
                self._enter(entered, at - _LAG)
                entered = at - _LAG
        self._enter(entered, end)

    def range_of(self, text: int, start: int, stop: int) -> tuple[int, int]:
        """The characters that units `[start, stop)` of a text are."""
        base = self._bases[text]
        return self._starts[base + start], self._stops[base + stop - 1]

    def form_of(self, text: int, unit: int) -> Form:
        """The form of a unit."""
        return self._kinds[self._forms[self._bases[text] + unit]]

    def is_piece(self, text: int, unit: int) -> bool:
        """Return True if a unit is not a whole line."""
        return bool(self._flags[self._bases[text] + unit] & PIECE)

    def is_one_run(self, text: int, start: int, stop: int) -> bool:
        """Return True if units have one form and consecutive numbers, if any."""
        base = self._bases[text]
        return all(flags & LINKED for flags in self._flags[base + start + 1 : base + stop])

    def _is_worth_it(self, at: int, place: int) -> bool:
        """A quick look: a short unit that is alone in what it shares is no match."""
        keys = self._keys
        return (
            self._stops[at] - self._starts[at] >= SHORTEST
            or keys[at - 1] == keys[place - 1]
            or (at + 1 < len(keys) and keys[at + 1] == keys[place + 1])
        )

    def _longest(self, at: int, place: int, lowest: int) -> BlockMatch:
        """The longest match through a unit and the place of its last occurrence."""
        keys = self._keys
        source = bisect_right(self._bases, place) - 1
        start, stop = self._extend(at, place, lowest, LINKED, lambda a, b, _: keys[a] == keys[b])
        is_raw = False
        if self._is_raw(at, place, source, 0):
            raw = self._extend(
                at,
                place,
                lowest,
                JOINED,
                lambda a, b, neighbour: self._is_raw(a, b, source, neighbour),
            )
            if raw[1] - raw[0] >= stop - start:
                (start, stop), is_raw = raw, True
        base = self._bases[-1]
        first = place - at + start - self._bases[source]
        return BlockMatch(start - base, stop - base, source, first, is_raw)

    def _extend(
        self, at: int, place: int, lowest: int, flag: int, is_same: Callable[[int, int, int], bool]
    ) -> tuple[int, int]:
        """How far units around `at` are the same as those around `place`, all of one flag.

        What is copied never overlaps the copy.
        """
        flags = self._flags
        back = place - at
        start = at
        while start > lowest and flags[start] & flags[start + back] & flag:
            if not is_same(start - 1, start - 1 + back, 1):
                break
            start -= 1
        stop, end = at + 1, min(len(flags), start - back)
        while stop < end and flags[stop] & flags[stop + back] & flag:
            if not is_same(stop, stop + back, -1):
                break
            stop += 1
        return start, stop

    def _is_raw(self, at: int, place: int, source: int, neighbour: int) -> bool:
        """Return True if two units are equal as written, with the text up to their neighbour."""
        if self._keys[at] != self._keys[place]:
            return False
        starts, stops = self._starts, self._stops
        before, after = min(neighbour, 0), max(neighbour, 0)
        ours = self._texts[-1][starts[at + before] : stops[at + after]]
        return ours == self._texts[source][starts[place + before] : stops[place + after]]

    def _enter(self, start: int, stop: int) -> None:
        keys, stops, flags, latest = self._keys, self._stops, self._flags, self._latest
        last = self._last_entered
        for at in range(start, stop):
            if flags[at] & ANCHOR:
                if keys[at] in latest:
                    latest[keys[at]] = at
                elif stops[at] - last >= _SPACING:
                    latest[keys[at]] = at
                    last = stops[at]
        self._last_entered = last

    def _hide(self, start: int, stop: int) -> None:
        """A match is replaced by a marker: its units are no longer there to be found."""
        flags = self._flags
        for at in range(start, stop):
            flags[at] = 0
        if stop < len(flags):
            flags[stop] &= ~(JOINED | LINKED)
