"""Blocks: runs of lines that another text in view shows already become one marker each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from enfold.recipes import BARE, Form
from enfold.strategies.lossless import markers
from enfold.strategies.lossless.drafts import Draft, Hole
from enfold.strategies.lossless.matching import Match, Shelf
from enfold.strategies.lossless.texts import Right
from enfold.strategies.lossless.units import Units, units_of
from enfold.tokens import Tokenizer

_SHORTEST = 40
"""Characters that a marker takes; to replace fewer never pays."""
_ENOUGH = 600
"""Characters of a block that are counted: what they save, the whole saves too."""
_DIGITS = re.compile(r" *(\d+)")


@dataclass(frozen=True, slots=True)
class Names:
    """How markers call the places that they point to."""

    numbers: Sequence[int]
    """The number of every message in the view."""
    texts: Sequence[int]
    """For every draft which of several results of its message it is; 0 for an only one."""


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
            shelf.add(Units())
            continue
        shelf.add(units_of(draft.text))
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
        if stop - start < _SHORTEST:
            return False
        hole = self._hole(match, number, start, stop)
        counted = draft.text[start : min(stop, start + _ENOUGH)]
        here, marker = self.tokenizer.count_many((counted, hole.marker))
        if here - marker < self.least:
            return False
        draft.holes.append(hole)
        return True

    def _hole(self, match: Match, number: int, start: int, stop: int) -> Hole:
        shelf = self.shelf
        source = self.entered[match.source]
        at = shelf.range_of(match.source, match.at, match.at + match.stop - match.start)
        to = shelf.form_of(number, match.start)
        of = shelf.form_of(match.source, match.at)
        text = self.drafts[self.index].text
        first = _number_at(text, start, to)
        place = self._place(source)
        size = match.stop - match.start
        if shelf.is_piece(number, match.start):
            marker = markers.characters(stop - start, place)
        else:
            there = self._lines(source, at[0], of, size)
            marker = (
                markers.lines(_range(first, size), there, place)
                if to.separator
                else markers.bare_lines(to.sign, there, place)
            )
        if match.is_raw:
            of = to = BARE
        return Hole(start, stop, marker, source, at, of, to, first if to.separator else 0)

    def _lines(self, source: int, at: int, form: Form, size: int) -> str:
        """The numbers of the source's lines: those it shows, else counted from its first line."""
        draft = self.drafts[source]
        if form.separator:
            return _range(_number_at(draft.text, at, form), size)
        return _range(draft.line_at(at), size)

    def _place(self, source: int) -> str:
        if source == self.index:
            return "above"
        number = self.names.numbers[self.drafts[source].was.message]
        which = self.names.texts[source]
        return f"in message #{number}.{which}" if which else f"in message #{number}"


def _number_at(text: str, at: int, form: Form) -> int:
    found = _DIGITS.match(text, at) if form.separator else None
    return int(found[1]) if found else 0


def _range(first: int, size: int) -> str:
    return f"{first}-{first + size - 1}" if size > 1 else str(first)
