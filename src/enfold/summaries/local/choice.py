"""Choice: the units that together say most within a number of tokens.

What a unit is worth falls as its concepts are covered by units chosen before it, so repetition
does not pay. The best ratio of worth to tokens is taken next. Because worth only ever falls, a
unit is looked at again only when its last known worth makes it the best (lazy greedy), which keeps
this near-linear.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import NamedTuple

from enfold.messages import Role
from enfold.summaries.local.lexicon import COLONS, Cue, Kind, Lexicon
from enfold.summaries.local.sentences import Form
from enfold.summaries.local.units import UNNAMED, Draft, Unit
from enfold.summaries.request import Style

COVERED = 0.15
"""What is left of a concept's worth each time a chosen unit has it."""
REPETITION = 0.4
"""A unit of which less than this share is new is not taken."""
LEAST = 3.0
"""A unit that is worth less says too little for a line of its own."""
DECISIVE = Cue.DECISION | Cue.CORRECTION
LASTING = 0.6
"""The share of its worth that a decision keeps though all its words were said elsewhere."""
JOINING = 2
"""Tokens between two pieces in one line."""
SHORTEST = 5
"""No line takes fewer tokens."""
LENGTH_POWER = 0.9
"""Below 1, longer units are preferred to what the ratio alone would take."""


class Cost(NamedTuple):
    """What a unit takes, in tokens."""

    text: int
    line: int
    """The bullet, the speaker and the end of a line of its own."""


class Choice:
    """The units taken so far, what they cost, and what is still worth saying."""

    def __init__(
        self,
        units: Sequence[Unit],
        costs: Sequence[Cost],
        worths: Mapping[str, float],
        factors: Sequence[float],
    ) -> None:
        self.taken: list[int] = []
        self.spent = 0
        self._units = units
        self._costs = costs
        self._lengths = [(cost.text + cost.line) ** LENGTH_POWER for cost in costs]
        self._factors = factors
        self._left = dict(worths)
        self._covered: set[str] = set()
        self._begun: set[int] = set()
        """Messages that have a line."""
        self._at_first = [self._worth(index) for index in range(len(units))]
        self._last_known = list(self._at_first)
        self._lasting = [
            LASTING * worth if unit.reading.cues & DECISIVE else 0.0
            for unit, worth in zip(units, self._at_first, strict=True)
        ]

    def fill(
        self,
        candidates: Iterable[int],
        budget: int,
        *,
        least: float = LEAST,
        repetition: float = REPETITION,
    ) -> None:
        """Take the best of the candidates while the budget lasts and they say enough."""
        taken = set(self.taken)
        worths, lengths = self._last_known, self._lengths
        heap = [
            (-worths[i] / lengths[i], i)
            for i in candidates
            if i not in taken and self._at_first[i] > least
        ]
        heapq.heapify(heap)
        while heap and budget - self.spent >= SHORTEST:
            index = heap[0][1]
            if self._cost(index) > budget - self.spent:
                heapq.heappop(heap)
                continue
            worth = self._worth(index)
            if worth <= repetition * self._at_first[index]:
                heapq.heappop(heap)
                continue
            worth = worths[index] = max(worth, self._lasting[index])
            heapq.heapreplace(heap, (-worth / lengths[index], index))
            if heap[0][1] == index:
                heapq.heappop(heap)
                self.take(index)

    def take(self, index: int) -> None:
        """Take this one."""
        self.spent += self._cost(index)
        self.taken.append(index)
        unit = self._units[index]
        self._begun.add(unit.origin.message)
        self._covered.update(unit.reading.concepts)
        for concept in unit.reading.concepts:
            self._left[concept] *= COVERED

    def drop_last(self, tokens: int) -> None:
        """Give back what was taken last, until it makes up that many tokens."""
        freed = 0
        while self.taken and freed < tokens:
            freed += self._costs[self.taken.pop()].text
        self.spent -= freed

    def best(self) -> int:
        """The one unit that is worth most, whatever it costs."""
        return max(range(len(self._at_first)), key=self._at_first.__getitem__)

    def covers(self, concept: str) -> bool:
        """Whether a unit that was taken has the concept."""
        return concept in self._covered

    def _worth(self, index: int) -> float:
        concepts = self._units[index].reading.concepts
        return self._factors[index] * sum(map(self._left.__getitem__, concepts))

    def _cost(self, index: int) -> int:
        """A piece that joins others of its message in a line takes only a joint besides."""
        unit, cost = self._units[index], self._costs[index]
        joins = unit.origin.message in self._begun and unit.form is not Form.TOOL
        return cost.text + (JOINING if joins else cost.line)


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
