"""Blocks: runs of lines that another text in view shows already become one marker each."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from enfold.ledger import Form
from enfold.strategies.lossless import texts
from enfold.strategies.lossless.config import path_of
from enfold.strategies.lossless.texts import (
    ANCHOR,
    JOINED,
    LINKED,
    PIECE,
    SHORTEST,
    EditRight,
    Replacement,
    StepContext,
    TextDraft,
    Units,
    units_of,
)

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
    """Whether they are the same as they stand there, and not only without numbers and signs."""


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
        """Where in the last text the last new unit ends that is remembered."""

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


_ENOUGH = 600
"""Characters of a block that are counted first: what they save, the whole saves too."""
_FOREIGN = 2
"""How many times as much a marker must save that points to another file, or within the same text:
those make a text harder to read."""
_DIGITS = re.compile(r" *(\d+)")


def replace_blocks(drafts: Sequence[TextDraft], terms: StepContext) -> None:
    """Cut a hole into every draft that may have one, wherever a marker saves enough tokens."""
    unit_index = UnitIndex()
    entered: list[int] = []
    names = _Names.of(drafts, terms)
    for index in reversed(range(len(drafts))) if terms.keep_last else range(len(drafts)):
        draft = drafts[index]
        entered.append(index)
        if draft.is_replaced:
            unit_index.add("", Units())
            continue
        unit_index.add(draft.text, units_of(draft.text))
        if draft.right is EditRight.NOTHING or draft.is_whole:
            unit_index.enter()
            continue
        claim = _Claim(drafts, index, entered, unit_index, names, terms)
        unit_index.match(claim, first=1 if draft.was.is_error else 0)


@dataclass(frozen=True, slots=True)
class _Names:
    """How markers call drafts."""

    places: Sequence[str]
    """Where each is: in which message and, where that has several results, in which of them."""
    files: Sequence[str | None]
    """The file that each shows, or was written to."""

    @classmethod
    def of(cls, drafts: Sequence[TextDraft], terms: StepContext) -> _Names:
        results = [draft.was.message for draft in drafts if draft.was.is_result]
        sizes, counted = Counter(results), Counter[int]()
        places: list[str] = []
        for shown in (draft.was for draft in drafts):
            place = f"in message #{terms.numbers[shown.message]}"
            if shown.is_result and sizes[shown.message] > 1:
                counted[shown.message] += 1
                place += f".{counted[shown.message]}"
            places.append(place)
        calls = (draft.was.call for draft in drafts)
        return cls(places, [None if call is None else path_of(call) for call in calls])


@dataclass(frozen=True, slots=True)
class _Claim:
    """Decides about the matches of one draft."""

    drafts: Sequence[TextDraft]
    index: int
    entered: Sequence[int]
    """The draft of every text in the index."""
    unit_index: UnitIndex
    names: _Names
    terms: StepContext

    def __call__(self, match: BlockMatch) -> bool:
        number = len(self.entered) - 1
        draft = self.drafts[self.index]
        start, stop = self.unit_index.range_of(number, match.start, match.stop)
        if stop - start < SHORTEST:
            return False
        hole = self._hole(match, number, start, stop)
        if self._saving(draft.text[start:stop], hole.marker) < self._least_for(hole):
            return False
        draft.holes.append(hole)
        return True

    def _saving(self, block: str, marker: str) -> int:
        """Return the tokens that a marker saves, or a lower bound that is enough."""
        count = self.terms.tokenizer.count
        beginning = count(block[:_ENOUGH]) - count(marker)
        is_known = len(block) <= _ENOUGH or beginning >= _FOREIGN * self.terms.least
        return beginning if is_known else count(block) - count(marker)

    def _least_for(self, hole: Replacement) -> int:
        """Return the tokens that a marker must save: fewer if it points to the same file."""
        files = self.names.files
        is_kin = hole.source != self.index and files[hole.source or 0] == files[self.index]
        return self.terms.least * (1 if is_kin else _FOREIGN)

    def _hole(self, match: BlockMatch, number: int, start: int, stop: int) -> Replacement:
        unit_index = self.unit_index
        source = self.entered[match.source]
        at = unit_index.range_of(match.source, match.at, match.at + match.stop - match.start)
        to = unit_index.form_of(number, match.start)
        of = unit_index.form_of(match.source, match.at)
        text = self.drafts[self.index].text
        place = "above" if source == self.index else self.names.places[source]
        if unit_index.is_piece(number, match.start):
            marker = texts.characters(text[start:stop], stop - start, place)
        elif not unit_index.is_one_run(number, match.start, match.stop):
            size = text.count("\n", start, stop) + 1
            marker = texts.bare_lines("", text[start:stop], size, place)
        else:
            there = _number_at(self.drafts[source].text, at[0], of)
            marker = _marker(text[start:stop], to, there, match.stop - match.start, place)
        if to.escaped:
            marker = Form(escaped=True).text([marker])
        first = _number_at(text, start, to) or 0
        if match.is_raw:
            return Replacement(start, stop, marker, source, at)
        return Replacement(start, stop, marker, source, at, of, to, first)


def _marker(block: str, form: Form, there: int | None, size: int, place: str) -> str:
    """The marker for lines: by the numbers they have here or there, else by how they begin."""
    first = _number_at(block, 0, form)
    if first is not None:
        return texts.numbered_lines(first, there, size, place)
    sign = form.sign.strip()
    if there is not None:
        return texts.lines(sign, there, size, place)
    return texts.bare_lines(sign, block, size, place)


def _number_at(text: str, at: int, form: Form) -> int | None:
    """The number of the line that begins there; None where lines have none."""
    found = _DIGITS.match(text, at) if form.separator else None
    return int(found[1]) if found else None
