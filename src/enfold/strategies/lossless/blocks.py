"""Blocks: runs of lines that another text in view shows already become one marker each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from enfold.recipes import Form
from enfold.strategies.lossless import markers
from enfold.strategies.lossless.drafts import Draft, Hole, Terms
from enfold.strategies.lossless.matching import Match, Shelf
from enfold.strategies.lossless.operations import path_of
from enfold.strategies.lossless.texts import SHORTEST, Right
from enfold.strategies.lossless.units import Units, units_of

_ENOUGH = 600
"""Characters of a block that are counted first: what they save, the whole saves too."""
_FOREIGN = 2
"""How many times as much a marker must save that points to another file, or within the same text:
those make a text harder to read."""
_DIGITS = re.compile(r" *(\d+)")


def fold_blocks(drafts: Sequence[Draft], terms: Terms) -> None:
    """Cut a hole into every draft that may have one, wherever a marker saves enough tokens."""
    shelf = Shelf()
    entered: list[int] = []
    names = _Names.of(drafts, terms)
    for index in reversed(range(len(drafts))) if terms.keep_last else range(len(drafts)):
        draft = drafts[index]
        entered.append(index)
        if draft.is_replaced:
            shelf.add("", Units())
            continue
        shelf.add(draft.text, units_of(draft.text))
        if draft.right is Right.NOTHING or draft.is_whole:
            shelf.enter()
            continue
        claim = _Claim(drafts, index, entered, shelf, names, terms)
        shelf.match(claim, first=1 if draft.was.is_error else 0)


@dataclass(frozen=True, slots=True)
class _Names:
    """How markers call drafts."""

    places: Sequence[str]
    """Where each is: in which message and, where that has several results, in which of them."""
    files: Sequence[str | None]
    """The file that each shows, or was written to."""

    @classmethod
    def of(cls, drafts: Sequence[Draft], terms: Terms) -> _Names:
        results = [draft.was.message for draft in drafts if draft.was.is_result]
        sizes, seen = Counter(results), Counter[int]()
        places: list[str] = []
        for shown in (draft.was for draft in drafts):
            place = f"in message #{terms.numbers[shown.message]}"
            if shown.is_result and sizes[shown.message] > 1:
                seen[shown.message] += 1
                place += f".{seen[shown.message]}"
            places.append(place)
        calls = (draft.was.call for draft in drafts)
        return cls(places, [None if call is None else path_of(call) for call in calls])


@dataclass(frozen=True, slots=True)
class _Claim:
    """Decides about the matches of one draft."""

    drafts: Sequence[Draft]
    index: int
    entered: Sequence[int]
    """The draft of every text on the shelf."""
    shelf: Shelf
    names: _Names
    terms: Terms

    def __call__(self, match: Match) -> bool:
        number = len(self.entered) - 1
        draft = self.drafts[self.index]
        start, stop = self.shelf.range_of(number, match.start, match.stop)
        if stop - start < SHORTEST:
            return False
        hole = self._hole(match, number, start, stop)
        if self._saving(draft.text[start:stop], hole.marker) < self._least_for(hole):
            return False
        draft.holes.append(hole)
        return True

    def _saving(self, block: str, marker: str) -> int:
        """The tokens that a marker saves, or so many of them that it is enough."""
        count = self.terms.tokenizer.count
        beginning = count(block[:_ENOUGH]) - count(marker)
        is_known = len(block) <= _ENOUGH or beginning >= _FOREIGN * self.terms.least
        return beginning if is_known else count(block) - count(marker)

    def _least_for(self, hole: Hole) -> int:
        """What a marker must save: less if it points to another look at the same file."""
        files = self.names.files
        is_kin = hole.source != self.index and files[hole.source or 0] == files[self.index]
        return self.terms.least * (1 if is_kin else _FOREIGN)

    def _hole(self, match: Match, number: int, start: int, stop: int) -> Hole:
        shelf = self.shelf
        source = self.entered[match.source]
        at = shelf.range_of(match.source, match.at, match.at + match.stop - match.start)
        to = shelf.form_of(number, match.start)
        of = shelf.form_of(match.source, match.at)
        text = self.drafts[self.index].text
        place = "above" if source == self.index else self.names.places[source]
        if shelf.is_piece(number, match.start):
            marker = markers.characters(text[start:stop], stop - start, place)
        elif not shelf.is_one_run(number, match.start, match.stop):
            size = text.count("\n", start, stop) + 1
            marker = markers.bare_lines("", text[start:stop], size, place)
        else:
            there = _number_at(self.drafts[source].text, at[0], of)
            marker = _marker(text[start:stop], to, there, match.stop - match.start, place)
        if to.escaped:
            marker = Form(escaped=True).text([marker])
        first = _number_at(text, start, to) or 0
        if match.is_raw:
            return Hole(start, stop, marker, source, at)
        return Hole(start, stop, marker, source, at, of, to, first)


def _marker(block: str, form: Form, there: int | None, size: int, place: str) -> str:
    """The marker for lines: by the numbers they have here or there, else by how they begin."""
    first = _number_at(block, 0, form)
    if first is not None:
        return markers.numbered_lines(first, there, size, place)
    sign = form.sign.strip()
    if there is not None:
        return markers.lines(sign, there, size, place)
    return markers.bare_lines(sign, block, size, place)


def _number_at(text: str, at: int, form: Form) -> int | None:
    """The number of the line that begins there; None where lines have none."""
    found = _DIGITS.match(text, at) if form.separator else None
    return int(found[1]) if found else None
