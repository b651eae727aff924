"""Blocks: runs of lines that another text in view shows already become one marker each."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from enfold.ledger import Form
from enfold.strategies.lossless import markers
from enfold.strategies.lossless.config import path_of
from enfold.strategies.lossless.drafts import ENOUGH, Replacement, StepContext, TextDraft
from enfold.strategies.lossless.texts import EditRight
from enfold.strategies.lossless.units import (
    SHORTEST,
    BlockMatch,
    UnitIndex,
    Units,
    bare_lines,
    is_anchor,
    units_of,
)

_FOREIGN = 2
"""How many times as much a marker must save that points to another file, or within the same text:
those make a text harder to read."""
_MARKER_TOKENS = 22
"""Tokens of a marker, about."""
_DIGITS = re.compile(r" *(\d+)")


def replace_blocks(drafts: Sequence[TextDraft], terms: StepContext) -> None:
    """Cut a hole into every draft that may have one, wherever a marker saves enough tokens."""
    unit_index = UnitIndex()
    entered: list[int] = []
    calls = (draft.was.call for draft in drafts)
    files = [None if call is None else path_of(call) for call in calls]
    order = range(len(drafts))[::-1] if terms.keep_last else range(len(drafts))
    # A text after the last one that may have a hole is neither cut nor pointed to.
    last = max((at for at, index in enumerate(order) if _may_have_hole(drafts[index])), default=-1)
    for index in order[: last + 1]:
        draft = drafts[index]
        entered.append(index)
        if draft.is_replaced:
            unit_index.add("", Units())
            continue
        unit_index.add(draft.text, units_of(draft.text))
        if not _may_have_hole(draft):
            unit_index.enter()
            continue
        claim = _Claim(drafts, index, entered, unit_index, files, terms)
        unit_index.match(claim, first=1 if draft.was.is_error else 0)


def _may_have_hole(draft: TextDraft) -> bool:
    """Return True if a marker may take the place of a part of the text."""
    is_fixed = draft.right is EditRight.NOTHING or draft.is_whole
    return not (is_fixed or draft.is_replaced)


@dataclass(slots=True)
class CalculatedSaving:
    """About what markers would save in one message."""

    tokens: int = 0
    sources: set[int] = field(default_factory=set)
    """The drafts that the markers would point to."""


def calculate_savings(
    drafts: Sequence[TextDraft], terms: StepContext, counts: Sequence[int]
) -> dict[int, CalculatedSaving]:
    """Return about what `replace_blocks` would save, by the index of the message.

    Whole lines are compared, and tokens are calculated from characters; `counts` are the tokens of
    each message now. That takes a tenth of the time.
    """
    sizes: dict[int, int] = {}
    for draft in drafts:
        sizes[draft.was.message] = sizes.get(draft.was.message, 0) + len(draft.text)
    earlier = _EarlierLines()
    found: dict[int, CalculatedSaving] = {}
    for index in reversed(range(len(drafts))) if terms.keep_last else range(len(drafts)):
        draft, message = drafts[index], drafts[index].was.message
        if draft.is_replaced:
            continue
        lines = bare_lines(draft.text)
        if draft.right is not EditRight.NOTHING and not draft.is_whole:
            density = counts[message] / max(1, sizes[message])
            for size, source in earlier.repeats(lines):
                saved = int(density * size) - _MARKER_TOKENS
                if saved >= _FOREIGN * terms.least:
                    saving = found.setdefault(message, CalculatedSaving())
                    saving.tokens += saved
                    saving.sources.add(source)
        earlier.add(index, lines)
    return found


class _EarlierLines:
    """Lines of texts, and the last place of each."""

    def __init__(self) -> None:
        self._lines: list[str | None] = []
        self._places: dict[str, int] = {}
        self._starts: list[int] = []
        self._drafts: list[int] = []

    def add(self, draft: int, lines: Sequence[str]) -> None:
        """Add the lines of a draft."""
        self._starts.append(len(self._lines))
        self._drafts.append(draft)
        self._places.update(zip(lines, count(len(self._lines)), strict=False))
        self._lines += (*lines, None)  # no run of lines goes beyond the text

    def repeats(self, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the characters of each run of lines that was seen before, and its draft."""
        end = 0
        for start, line in enumerate(lines):
            if start >= end and line in self._places and is_anchor(line):
                place = self._places[line]
                source = self._drafts[bisect_right(self._starts, place) - 1]
                end, place = start + 1, place + 1
                while end < len(lines) and lines[end] == self._lines[place]:
                    end, place = end + 1, place + 1
                yield sum(map(len, lines[start:end])) + end - start, source


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
        block = draft.text[start:stop]
        hole = self._hole(match, number, start, stop, markers.QUOTES[0])
        if self._saving(block, hole.marker) < self._least_for(hole):
            return False
        true = self._with_true_marker(hole, match, number)
        if true is None or self._saving(block, true.marker) < self._least_for(true):
            return False
        draft.add_hole(true)
        return True

    def _with_true_marker(
        self, hole: Replacement, match: BlockMatch, number: int
    ) -> Replacement | None:
        """Return the hole with the shortest marker by which a reader finds its lines.

        None if the marker leads to other lines; if several places fit, the marker stays short.
        """
        source = self.drafts[hole.source or 0]
        shown, start = source.shown(), source.shown_at(hole.at[0])
        place = (start, start + hole.at[1] - hole.at[0])
        leads_elsewhere = False
        for quote in markers.QUOTES:
            tried = self._hole(match, number, hole.start, hole.stop, quote)
            marker = next(markers.find_markers(tried.marker), None)
            found = None if marker is None else markers.locate(marker, shown)
            if found == place:
                return tried
            leads_elsewhere = leads_elsewhere or found is not None
            if marker is None or not marker.fields["quote"]:
                break
        return None if leads_elsewhere and hole.source != self.index else hole

    def _saving(self, block: str, marker: str) -> int:
        """Return the tokens that a marker saves, or a lower bound that is enough."""
        count = self.terms.tokenizer.count
        beginning = count(block[:ENOUGH]) - count(marker)
        is_known = len(block) <= ENOUGH or beginning >= _FOREIGN * self.terms.least
        return beginning if is_known else count(block) - count(marker)

    def _least_for(self, hole: Replacement) -> int:
        """Return the tokens that a marker must save: fewer if it points to the same file."""
        files = self.files
        is_kin = hole.source != self.index and files[hole.source or 0] == files[self.index]
        return self.terms.least * (1 if is_kin else _FOREIGN)

    def _hole(
        self, match: BlockMatch, number: int, start: int, stop: int, quote: int
    ) -> Replacement:
        unit_index = self.unit_index
        source = self.entered[match.source]
        at = unit_index.range_of(match.source, match.at, match.at + match.stop - match.start)
        to = unit_index.form_of(number, match.start)
        of = unit_index.form_of(match.source, match.at)
        text = self.drafts[self.index].text
        place = self.terms.names.place(source, self.index)
        if unit_index.is_piece(number, match.start):
            marker = markers.characters(text[start:stop], stop - start, place, quote)
        elif not unit_index.is_one_run(number, match.start, match.stop):
            size = text.count("\n", start, stop) + 1
            marker = markers.bare_lines("", text[start:stop], size, place, quote)
        else:
            there = _number_at(self.drafts[source].text, at[0], of)
            size = match.stop - match.start
            here = _number_at(text, start, to)
            marker = _marker(text[start:stop], to.sign, here, there, size, place, quote)
        if to.escaped:
            marker = Form(escaped=True).text([marker])
        first = _number_at(text, start, to) or 0
        if match.is_raw:
            return Replacement(start, stop, marker, source, at)
        return Replacement(start, stop, marker, source, at, of, to, first)


def _marker(
    block: str,
    sign: str,
    here: int | None,
    there: int | None,
    size: int,
    place: str,
    quote: int,
) -> str:
    """The marker for lines: by the numbers they have here or there, else by how they begin."""
    if here is not None:
        return markers.numbered_lines(here, there, size, place)
    sign = sign.strip()
    if there is not None:
        return markers.lines(sign, there, size, place)
    return markers.bare_lines(sign, block, size, place, quote)


def _number_at(text: str, at: int, form: Form) -> int | None:
    """The number of the line that begins there; None where lines have none."""
    for lines in range(form.every) if form.separator else ():
        found = _DIGITS.match(text, at)
        if found and text.startswith(form.separator, found.end()):
            return int(found[1]) + lines
        at = text.rfind("\n", 0, max(at - 1, 0)) + 1
    return None
