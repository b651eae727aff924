"""Blocks: runs of lines that another text in view shows already become one marker each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from enfold.ledger import Form
from enfold.strategies.lossless import markers
from enfold.strategies.lossless.config import path_of
from enfold.strategies.lossless.drafts import Replacement, StepContext, TextDraft
from enfold.strategies.lossless.texts import EditRight
from enfold.strategies.lossless.units import SHORTEST, BlockMatch, UnitIndex, Units, units_of

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
    calls = (draft.was.call for draft in drafts)
    files = [None if call is None else path_of(call) for call in calls]
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
        claim = _Claim(drafts, index, entered, unit_index, files, terms)
        unit_index.match(claim, first=1 if draft.was.is_error else 0)


@dataclass(frozen=True, slots=True)
class _Claim:
    """Decides about the matches of one draft."""

    drafts: Sequence[TextDraft]
    index: int
    entered: Sequence[int]
    """The draft of every text in the index."""
    unit_index: UnitIndex
    files: Sequence[str | None]
    """The file that each draft shows, or was written to."""
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
        if not self._is_true(hole):
            return False
        draft.holes.append(hole)
        return True

    def _is_true(self, hole: Replacement) -> bool:
        """Return False if a reader who looks for the marker's lines would find others."""
        source = self.drafts[hole.source or 0]
        marker = next(markers.find_markers(hole.marker), None)
        if marker is None or marker.name is None:
            return True
        found = markers.locate(marker, source.shown())
        first, last = hole.at
        start = source.shown_at(first)
        return found is None or found == (start, start + last - first)

    def _saving(self, block: str, marker: str) -> int:
        """Return the tokens that a marker saves, or a lower bound that is enough."""
        count = self.terms.tokenizer.count
        beginning = count(block[:_ENOUGH]) - count(marker)
        is_known = len(block) <= _ENOUGH or beginning >= _FOREIGN * self.terms.least
        return beginning if is_known else count(block) - count(marker)

    def _least_for(self, hole: Replacement) -> int:
        """Return the tokens that a marker must save: fewer if it points to the same file."""
        files = self.files
        is_kin = hole.source != self.index and files[hole.source or 0] == files[self.index]
        return self.terms.least * (1 if is_kin else _FOREIGN)

    def _hole(self, match: BlockMatch, number: int, start: int, stop: int) -> Replacement:
        unit_index = self.unit_index
        source = self.entered[match.source]
        at = unit_index.range_of(match.source, match.at, match.at + match.stop - match.start)
        to = unit_index.form_of(number, match.start)
        of = unit_index.form_of(match.source, match.at)
        text = self.drafts[self.index].text
        place = self.terms.names.place(source, self.index)
        if unit_index.is_piece(number, match.start):
            marker = markers.characters(text[start:stop], stop - start, place)
        elif not unit_index.is_one_run(number, match.start, match.stop):
            size = text.count("\n", start, stop) + 1
            marker = markers.bare_lines("", text[start:stop], size, place)
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
        return markers.numbered_lines(first, there, size, place)
    sign = form.sign.strip()
    if there is not None:
        return markers.lines(sign, there, size, place)
    return markers.bare_lines(sign, block, size, place)


def _number_at(text: str, at: int, form: Form) -> int | None:
    """The number of the line that begins there; None where lines have none."""
    found = _DIGITS.match(text, at) if form.separator else None
    return int(found[1]) if found else None
