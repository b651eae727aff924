"""Worth: how much each concept, and each unit beyond its concepts, is worth keeping.

The figures were found by trial on recorded meetings and agents' sessions (benchmarks/summaries.py),
on one half of them; the other half is for reporting.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache

from enfold.messages import Role
from enfold.summaries.local.cues import Cue
from enfold.summaries.local.lexicon import Kind, Lexicon
from enfold.summaries.local.punctuation import COLONS
from enfold.summaries.local.splitting import Form
from enfold.summaries.local.units import UNNAMED, Unit
from enfold.summaries.request import Style

BY_KIND = {
    Kind.MARK: 0.0,
    Kind.WORD: 1.0,
    Kind.NAME: 1.6,
    Kind.COUNT: 0.9,
    Kind.ACRONYM: 1.3,
    Kind.NUMBER: 2.2,
    Kind.IDENTIFIER: 2.2,
    Kind.PLACE: 2.6,
}
BY_ROLE: dict[Role, float] = {"user": 1.8, "assistant": 1.0, "system": 0.2, "tool": 0.6}
BY_FORM = {
    Form.SENTENCE: 1.0,
    Form.HEADING: 0.6,
    Form.LISTING: 0.45,
    Form.CODE: 0.45,
    Form.TOOL: 1.0,
    Form.ITEM: 1.0,
}
BY_CUE = (
    (Cue.DECISION, 1.6),
    (Cue.CORRECTION, 1.5),
    (Cue.DEMAND, 1.25),
    (Cue.FAULT, 1.2),
    (Cue.OUTCOME, 1.3),
    (Cue.REASON, 1.1),
    (Cue.OPEN, 1.4),
    (Cue.POINTER, 0.75),
    (Cue.ANNOUNCEMENT, 0.3),
    (Cue.PLEASANTRY, 0.4),
)
CUES_IN_TALK = 0.25
"""The power of cues where several people talk, and say "actually" and "should" all the time."""
FIRST = 1.3
LAST = 1.2
TECHNICAL_IN_CODE = 1.4
"""For units that name code, in the style for code."""
INTRODUCES = 0.5
"""A sentence that ends in a colon, without what it introduces."""
ALONE = 0.3
"""A single word, however rare."""
NOW = 1.25
"""For concepts of the messages that stay: they show what matters now."""
RARE = 0.6
FREQUENT = 1.8
"""A word's worth when it comes up once, and when it comes up often."""
OFTEN = 13
"""How many times are often."""
STEADY = 0.35
"""The part of an exact item's worth that does not depend on how rare it is."""
AGAIN = 0.15
"""What an exact item gains by coming up often."""
SHORT_NUMBER = 0.5
"""For numbers of one or two digits, which count anything."""
_SHORT_NUMBER = 2


def concept_worths(
    counts: Mapping[str, int], total: int, lexicon: Lexicon, now: AbstractSet[str]
) -> dict[str, float]:
    """By how exactly it must be kept, how often it comes up, and how rare it is all the same.

    `total` is the number of pieces of text in which the concepts were counted.
    """
    by_count = {count: _worth(Kind.WORD, count, total) for count in set(counts.values())}
    worths = {concept: by_count[count] for concept, count in counts.items()}
    for concept in counts.keys() & lexicon.marked:
        kind = lexicon.kind(concept)
        worths[concept] = _worth(kind, counts[concept], total)
        if kind is Kind.NUMBER and len(concept) <= _SHORT_NUMBER:
            worths[concept] *= SHORT_NUMBER
    for concept in now & worths.keys():
        worths[concept] *= NOW
    return worths


def _worth(kind: Kind, count: int, total: int) -> float:
    rarity = max(0.0, math.log((total + 1) / count)) / math.log(total + 2)
    often = min(1.0, math.log(count) / math.log(OFTEN))
    if kind is Kind.WORD:
        return rarity * (RARE + (FREQUENT - RARE) * often)
    return BY_KIND[kind] * (STEADY + (1 - STEADY) * rarity) * (1 + AGAIN * often)


def unit_factors(units: Sequence[Unit], style: Style = "default") -> list[float]:
    """What makes a unit weigh more or less than the concepts in it."""
    named = any(u.origin.speaker not in UNNAMED for u in units if not u.is_earlier)
    asked = [u.origin.message for u in units if u.origin.role == "user" and not u.is_earlier]
    first, last = (asked[0], asked[-1]) if asked else (None, None)
    factors = [_factor(unit, first, last, named=named) for unit in units]
    if style == "code":
        for index, unit in enumerate(units):
            if unit.reading.technical:
                factors[index] *= TECHNICAL_IN_CODE
    return factors


@cache
def _factor_of_cues(cues: int) -> float:
    return math.prod(effect for cue, effect in BY_CUE if cues & cue)


def _factor(unit: Unit, first: int | None, last: int | None, *, named: bool) -> float:
    reading, message = unit.reading, unit.origin.message
    factor = BY_FORM[unit.form] * (1 if named else BY_ROLE[unit.origin.role])
    factor *= _factor_of_cues(reading.cues) ** (CUES_IN_TALK if named else 1)
    if message == first:
        factor *= FIRST
    elif message == last:
        factor *= LAST
    if reading.text.endswith(COLONS):
        factor *= INTRODUCES
    if unit.form is Form.SENTENCE and len(reading.concepts) == 1 and not reading.items:
        factor *= ALONE
    return factor
