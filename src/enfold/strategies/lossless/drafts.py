"""Drafts: texts of a view while they are shortened, and the recipes that restore them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from enfold.ledger import (
    BARE,
    ITSELF,
    CopiedPiece,
    Form,
    Piece,
    PieceSource,
    Recipe,
    Shortening,
    StoredPiece,
    VisiblePiece,
    digest,
)
from enfold.strategies.lossless.markers import Names
from enfold.strategies.lossless.texts import EditRight, ResultText
from enfold.tokens import Tokenizer

ENOUGH = 600
"""Characters of a text that are counted first: if they save enough, the whole does too."""


@dataclass(frozen=True, slots=True)
class StepContext:
    """The values that every step uses."""

    tokenizer: Tokenizer
    least: int
    """Tokens that a marker must save."""
    names: Names
    """The names of the texts for markers."""
    keep_last: bool = False
    """True if the last of several equal texts stays in view, not the first."""

    def pays(self, text: str, marker: str) -> bool:
        """Return True if a marker in place of the text saves enough tokens."""
        beginning, cost = self.tokenizer.count_many((text[:ENOUGH], marker))
        if beginning - cost >= self.least + 1:  # the cut may divide a token
            return True
        return self.tokenizer.count(text) - cost >= self.least


@dataclass(frozen=True, slots=True)
class Replacement:
    """Characters `[start, stop)` of a draft, replaced by a marker."""

    start: int
    stop: int
    marker: str
    source: int | None
    """The draft that shows what was there. None: nothing in view does."""
    at: tuple[int, int] = (0, 0)
    """The characters of the source that say it."""
    of: Form = BARE
    to: Form = BARE
    first: int = 0


@dataclass(slots=True)
class TextDraft:
    """One text in view."""

    was: ResultText
    text: str
    """The text that holes are cut into: the original, or another encoding of it."""
    right: EditRight
    encodings: Sequence[tuple[str, Any]] = ()
    holes: list[Replacement] | tuple[Replacement, ...] = ()
    """In order. Most texts have none."""
    is_whole: bool = False
    """True if others point to all of it, so that it must be shown in full."""
    is_named: bool = False
    """True if it supersedes others, so that it must be shown."""
    superseded_by: int | None = None
    """The draft that supersedes it."""

    @classmethod
    def of(cls, shown: ResultText) -> TextDraft:
        """A draft of which nothing is taken out yet."""
        return cls(shown, shown.text, shown.right)

    def replace_by(self, marker: str, source: int | None, at: tuple[int, int] = (0, 0)) -> None:
        """Put a marker in place of all of it; a source shows it at those characters."""
        self.add_hole(Replacement(0, len(self.text), marker, source, at))

    def add_hole(self, hole: Replacement) -> None:
        """Put a marker in place of characters after all earlier holes."""
        if isinstance(self.holes, tuple):
            self.holes = [hole]
        else:
            self.holes.append(hole)

    @property
    def is_changed(self) -> bool:
        """True if the shown text differs from the original."""
        return bool(self.holes or self.encodings)

    @property
    def is_replaced(self) -> bool:
        """True if a marker replaces all of it."""
        return bool(self.holes) and self.holes[0].stop - self.holes[0].start == len(self.text)

    def shown(self) -> str:
        """The text with markers in its holes."""
        if not self.holes:
            return self.text
        pieces: list[str] = []
        at = 0
        for hole in self.holes:
            pieces += (self.text[at : hole.start], hole.marker)
            at = hole.stop
        return "".join([*pieces, self.text[at:]])

    def shown_at(self, place: int) -> int:
        """Return the place that shows a character that is in no hole."""
        before = self.holes[: bisect_right(self.holes, place, key=lambda hole: hole.start)]
        return place - sum(hole.stop - hole.start - len(hole.marker) for hole in before)


def shortening(drafts: Sequence[TextDraft], index: int, shown: Sequence[str]) -> Shortening:
    """Return the recipe for a draft's original; `shown` are the final texts of all drafts."""
    draft = drafts[index]
    sources: dict[int, int] = {}
    pieces: list[Piece] = []
    at = place = 0
    for hole in draft.holes:
        if hole.start > at:
            pieces.append(VisiblePiece(place, place + hole.start - at))
        place += hole.start - at + len(hole.marker)
        at = hole.stop
        pieces.append(_filling(drafts, index, hole, sources))
    if at < len(draft.text):
        pieces.append(VisiblePiece(place, place + len(draft.text) - at))
    recipe = Recipe(tuple(pieces), digest(draft.was.text), tuple(draft.encodings))
    if draft.superseded_by is not None:
        sources.setdefault(draft.superseded_by, len(sources))  # the marker names it
    used = tuple(PieceSource(drafts[source].was.message, shown[source]) for source in sources)
    return Shortening(draft.was.text, shown[index], recipe, used)


def _filling(
    drafts: Sequence[TextDraft], index: int, hole: Replacement, sources: dict[int, int]
) -> Piece:
    """Return the piece that restores a replacement; sources are numbered in order of use."""
    if hole.source is None:
        return StoredPiece(drafts[index].text[hole.start : hole.stop])
    source = drafts[hole.source]
    first, last = hole.at
    start = source.shown_at(first)
    number = ITSELF if hole.source == index else sources.setdefault(hole.source, len(sources))
    return CopiedPiece(number, start, start + last - first, hole.of, hole.to, hole.first)
