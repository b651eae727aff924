"""Blocks: runs of lines that another text in view shows already become one marker each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from enfold.recipes import Form
from enfold.strategies.lossless import markers
from enfold.strategies.lossless.drafts import Draft, Hole
from enfold.strategies.lossless.matching import Match, Shelf
from enfold.strategies.lossless.texts import SHORTEST, Right
from enfold.strategies.lossless.units import Units, units_of
from enfold.tokens import Tokenizer

_ENOUGH = 600
"""Characters of a block that are counted first: what they save, the whole saves too."""
_FOREIGN = 2
"""How many times as much a marker must save that points to another file, or within the same text:
those make a text harder to read."""
_DIGITS = re.compile(r" *(\d+)")


@dataclass(frozen=True, slots=True)
class Names:
    """How markers call the places that they point to."""

    numbers: Sequence[int]
    """The number of every message in the view."""
    texts: Sequence[int]
    """For every draft which of several results of its message it is; 0 for an only one."""
    files: Sequence[str | None]
    """For every draft the file that it shows, or was written to."""


def fold_blocks(
    drafts: Sequence[Draft],
    order: Iterable[int],
    names: Names,
    tokenizer: Tokenizer,
    least: int,
) -> None:
    """Cut a hole into every draft that may have one, wherever a marker saves enough tokens.

    `order` is the order of the drafts in which each may point only to those before it.
    """
    shelf = Shelf()
    entered: list[int] = []
    for index in order:
        draft = drafts[index]
        entered.append(index)
        if draft.is_replaced:
            shelf.add("", Units())
            continue
        shelf.add(draft.text, units_of(draft.text))
        if draft.right is Right.NOTHING or draft.is_whole:
            shelf.enter()
            continue
        claim = _Claim(drafts, index, entered, shelf, names, tokenizer, least)
        shelf.match(claim, first=1 if draft.was.is_error else 0)


@dataclass(frozen=True, slots=True)
class _Claim:
    """Decides about the matches of one draft."""

    drafts: Sequence[Draft]
    index: int
    entered: Sequence[int]
    """The draft of every text on the shelf."""
    shelf: Shelf
    names: Names
    tokenizer: Tokenizer
    least: int

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
        count = self.tokenizer.count
        beginning = count(block[:_ENOUGH]) - count(marker)
        is_known = len(block) <= _ENOUGH or beginning >= _FOREIGN * self.least
        return beginning if is_known else count(block) - count(marker)

    def _least_for(self, hole: Hole) -> int:
        return self.least if self._is_kin(hole) else _FOREIGN * self.least

    def _hole(self, match: Match, number: int, start: int, stop: int) -> Hole:
        shelf = self.shelf
        source = self.entered[match.source]
        at = shelf.range_of(match.source, match.at, match.at + match.stop - match.start)
        to = shelf.form_of(number, match.start)
        of = shelf.form_of(match.source, match.at)
        text = self.drafts[self.index].text
        place = self._place(source)
        if shelf.is_piece(number, match.start):
            marker = markers.characters(text[start:stop], stop - start, place)
        else:
            there = _number_at(self.drafts[source].text, at[0], of)
            marker = _marker(text[start:stop], to, there, match.stop - match.start, place)
            if to.escaped:
                marker = Form(escaped=True).text([marker])
        first = _number_at(text, start, to) or 0
        if match.is_raw:
            return Hole(start, stop, marker, source, at)
        return Hole(start, stop, marker, source, at, of, to, first)

    def _is_kin(self, hole: Hole) -> bool:
        """Whether a marker points to another look at the same thing."""
        if hole.source is None or hole.source == self.index:
            return False
        return self.names.files[hole.source] == self.names.files[self.index]

    def _place(self, source: int) -> str:
        if source == self.index:
            return "above"
        number = self.names.numbers[self.drafts[source].was.message]
        which = self.names.texts[source]
        return f"in message #{number}.{which}" if which else f"in message #{number}"


def _marker(block: str, form: Form, there: int | None, size: int, place: str) -> str:
    """The marker for lines: by the numbers they have here or there, else by how they begin."""
    first = _number_at(block, 0, form)
    if first is not None:
        return markers.numbered_lines(first, there, size, place)
    sign = form.sign.strip()
    if there is not None:
        return markers.lines(sign, there, size, place)
    return markers.bare_lines(sign, block.lstrip(), size, place)


def _number_at(text: str, at: int, form: Form) -> int | None:
    """The number of the line that begins there; None where lines have none."""
    found = _DIGITS.match(text, at) if form.separator else None
    return int(found[1]) if found else None
