"""Choice: the units that together say most within a number of tokens.

What a unit is worth falls as its concepts are covered by units chosen before it, so repetition
does not pay. The best ratio of worth to tokens is taken next. Because worth only ever falls, a
unit is looked at again only when its last known worth makes it the best (lazy greedy), which keeps
this near-linear.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from enfold.summaries.local.cues import Cue
from enfold.summaries.local.splitting import Form
from enfold.summaries.local.units import Unit

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
