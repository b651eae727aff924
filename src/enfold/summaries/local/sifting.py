"""Sifting: which of very many drafts are worth a closer look.

A summary takes a few hundred pieces at most. Where a conversation has thousands, those that a rough
reckoning puts far behind are left out before they are read, so that the time goes to the others.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from enfold.summaries.local.lexicon import Lexicon
from enfold.summaries.local.units import UNNAMED, Draft
from enfold.summaries.local.worth import BY_FORM, BY_ROLE

FEWEST = 600
PER_TOKEN = 0.25
"""How many drafts are kept: some, and more for a longer summary; about ten for each one taken."""
_LENGTH_POWER = 0.9
_LINE = 16
"""Characters that a line takes besides its text."""
_ENDS = 2
"""Messages at the end of which everything is read, as of the first of a user."""


def sift(
    drafts: Sequence[Draft],
    texts: Sequence[list[str]],
    worths: Mapping[str, float],
    lexicon: Lexicon,
    limit: int,
) -> list[int]:
    """The indexes of the drafts to read, for a summary of so many tokens."""
    most = FEWEST + int(PER_TOKEN * limit)
    if len(drafts) <= most:
        return list(range(len(drafts)))
    said = {
        raw: sum([worths.get(concept, 0.0) for concept in chunk.concepts])
        for raw, chunk in lexicon.items()
    }
    named = any(draft.origin.speaker not in UNNAMED for draft in drafts)
    worth_of = said.__getitem__
    ranks = [
        sum(map(worth_of, raws)) * BY_FORM[draft.form] / (len(draft.text) + _LINE) ** _LENGTH_POWER
        for draft, raws in zip(drafts, texts, strict=True)
    ]
    if not named:
        for index, draft in enumerate(drafts):
            ranks[index] *= BY_ROLE[draft.origin.role]
    best = heapq.nlargest(most, range(len(drafts)), key=ranks.__getitem__)
    return sorted({*best, *_ends(drafts)})


def _ends(drafts: Sequence[Draft]) -> list[int]:
    first = next((draft.origin.message for draft in drafts if draft.origin.role == "user"), 0)
    last = max(draft.origin.message for draft in drafts)
    return [
        index
        for index, draft in enumerate(drafts)
        if draft.origin.message == first or draft.origin.message > last - _ENDS
    ][:FEWEST]
