"""Matching: which runs of units another text in view shows already.

All texts in view are entered in the order in which they may be pointed to. Of every unit that is
worth it the latest place is remembered; a match begins at such a place and is extended in both
directions as far as the units are the same. So the work grows with the text and no faster.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from enfold.recipes import Form
from enfold.strategies.lossless.units import ANCHOR, JOINED, LINKED, PIECE, Units

_LAG = 16
"""How many units a text may look back at before they are entered; until then a match that begins
later can still claim them."""


@dataclass(frozen=True, slots=True)
class Match:
    """Units `[start, stop)` of a text are the same as those of a source from `at` on."""

    start: int
    stop: int
    source: int
    at: int
    is_raw: bool
    """Whether they are the same as they stand there, and not only without numbers and signs."""


class Shelf:
    """The units of all texts so far, and where each was seen last."""

    def __init__(self) -> None:
        self._keys = array("q")
        self._raws = array("q")
        self._starts = array("L")
        self._stops = array("L")
        self._form_numbers = array("H")
        self._flags = bytearray()
        self._numbers: dict[Form, int] = {}
        self._bases: list[int] = []
        self._latest: dict[int, int] = {}

    def add(self, units: Units) -> None:
        """Put a text on the shelf; it can be found only after `enter` or `match`."""
        self._bases.append(len(self._keys))
        self._keys.extend(units.keys)
        self._raws.extend(units.raws)
        self._starts.extend(units.starts)
        self._stops.extend(units.stops)
        self._flags += units.flags
        numbers = [self._numbers.setdefault(form, len(self._numbers)) for form in units.kinds]
        self._form_numbers.extend(map(numbers.__getitem__, units.forms))

    def enter(self) -> None:
        """Let the last text be found, all of it."""
        self._enter(self._bases[-1], len(self._keys))

    def match(self, claim: Callable[[Match], bool], first: int = 0) -> None:
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
            if place is not None:
                found = self._longest(at, place, entered)
                if claim(found):
                    self._enter(entered, base + found.start)
                    self._hide(base + found.start, base + found.stop)
                    entered = at = base + found.stop
                    continue
            at += 1
            if at - entered > _LAG:
                self._enter(entered, at - _LAG)
                entered = at - _LAG
        self._enter(entered, end)

    def range_of(self, text: int, start: int, stop: int) -> tuple[int, int]:
        """The characters that units `[start, stop)` of a text are."""
        base = self._bases[text]
        return self._starts[base + start], self._stops[base + stop - 1]

    def form_of(self, text: int, unit: int) -> Form:
        """The form of a unit."""
        number = self._form_numbers[self._bases[text] + unit]
        return next(form for form, known in self._numbers.items() if known == number)

    def is_piece(self, text: int, unit: int) -> bool:
        """Whether a unit is not a whole line."""
        return bool(self._flags[self._bases[text] + unit] & PIECE)

    def _longest(self, at: int, place: int, lowest: int) -> Match:
        """The longest match through a unit and the place where it was seen."""
        start, stop = self._extend(at, place, lowest, self._keys, LINKED)
        is_raw = False
        if self._raws[at] == self._raws[place]:
            raw = self._extend(at, place, lowest, self._raws, JOINED)
            if raw[1] - raw[0] >= stop - start:
                (start, stop), is_raw = raw, True
        base, first = self._bases[-1], place - at + start
        source = bisect_right(self._bases, first) - 1
        return Match(start - base, stop - base, source, first - self._bases[source], is_raw)

    def _extend(
        self, at: int, place: int, lowest: int, keys: array[int], flag: int
    ) -> tuple[int, int]:
        """How far units from `at` are those from `place`; what is copied never overlaps itself."""
        flags = self._flags
        start, back = at, place
        while (
            start > lowest
            and flags[start] & flags[back] & flag
            and keys[start - 1] == keys[back - 1]
        ):
            start -= 1
            back -= 1
        stop, forth, end = at + 1, place + 1, min(len(keys), at + start - place)
        while stop < end and flags[stop] & flags[forth] & flag and keys[stop] == keys[forth]:
            stop += 1
            forth += 1
        return start, stop

    def _enter(self, start: int, stop: int) -> None:
        keys, flags, latest = self._keys, self._flags, self._latest
        for at in range(start, stop):
            if flags[at] & ANCHOR:
                latest[keys[at]] = at

    def _hide(self, start: int, stop: int) -> None:
        """A match is replaced by a marker: its units are no longer there to be found."""
        flags = self._flags
        for at in range(start, stop):
            flags[at] = 0
        if stop < len(flags):
            flags[stop] &= ~(JOINED | LINKED)
