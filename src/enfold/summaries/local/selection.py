"""Selection: the units that together have most content within a number of tokens.

The worth of a unit is the sum of the worths of its concepts, times factors for its speaker, form
and cues. It falls as units selected before it cover its concepts, so repetition does not pay. The
best ratio of worth to tokens is selected next. Because worth only falls, a unit is evaluated again
only when its last computed worth makes it the best (lazy greedy), which is nearly linear.
"""

from __future__ import annotations

import heapq
import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import compress, islice
from typing import NamedTuple

from enfold.messages import Role
from enfold.summaries.local.lexicon import NUMBERS, PLACES, TECHNICAL, Lexicon, TokenKind
from enfold.summaries.local.units import UNNAMED, SummaryUnit, UnitDraft
from enfold.summaries.request import Style
from enfold.text.sentences import RUN_WORDS, Cue, TextForm, telling_words
from enfold.text.words import COLONS

# The constants were tuned on the first half of recorded meetings and agent sessions, those about
# turns of meetings on further meetings (`qmsum_train`) and on one that the tests have.

_KIND_WORTHS: dict[TokenKind, float] = {
    "mark": 0.0,
    "word": 1.0,
    "capitalized": 1.6,
    "numeral": 0.9,
    "acronym": 1.3,
    **dict.fromkeys(NUMBERS | TECHNICAL, 2.2),
    **dict.fromkeys(PLACES, 2.6),
}
_ROLE_FACTORS: dict[Role, float] = {"user": 1.8, "assistant": 1.0, "system": 0.2, "tool": 0.6}
_FORM_FACTORS = {
    TextForm.SENTENCE: 1.0,
    TextForm.HEADING: 0.6,
    TextForm.LISTING: 0.45,
    TextForm.CODE: 0.45,
    TextForm.TOOL: 1.0,
    TextForm.ITEM: 1.0,
}
_CUE_FACTORS = (
    (Cue.RULE, 2.5),
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
_CUE_POWER_IN_MEETINGS = 0.25
"""Cues mean less where several people talk and often use words such as "actually"."""
_TURN_POWER = 0.4
"""Long turns of a meeting have its substance: their worth grows with their length by this power."""
_NUMBER_POWER = 0.7
"""The same for its numbers, dates and amounts."""
_FRAGMENT = 0.1
"""A few words of a long turn, which are hard to understand without their neighbours."""
_EMPTY_TURN = 0.01
"""A short turn such as "Sorry, go ahead."."""
_TELLING = 3
"""Telling words of a turn that is not empty, at least."""
_FIRST_MESSAGE = 1.3
_LAST_MESSAGE = 1.2
_TECHNICAL_IN_CODE_STYLE = 1.4
_ENDS_IN_COLON = 0.5
"""A sentence that introduces something, without it."""
_SINGLE_WORD = 0.3
_ASIDE = 0.1
_IN_RECENT = 1.25
"""For concepts of the messages that stay, because these show the current subject."""
_RARE_WORD = 0.6
_FREQUENT_WORD = 1.8
_FREQUENT = 13
"""Occurrences."""
_STEADY = 0.35
"""The part of an exact item's worth that does not depend on its rarity."""
_REPEATED = 0.15
"""The largest gain of an exact item that occurs often."""
_SHORT_NUMBER = 0.5
"""For numbers of one or two digits, which can count anything."""
_SHORT_NUMBER_LENGTH = 2


def concept_worths(
    counts: dict[str, float], pieces: int, lexicon: Lexicon, recent: AbstractSet[str]
) -> dict[str, float]:
    """Return the worth of each concept, by its kind, its frequency and its rarity.

    `pieces` is the number of pieces of text in which the concepts were counted. The worths take the
    place of the counts, because a long conversation has many concepts.
    """
    marked: dict[str, float] = {}
    for concept in counts.keys() & lexicon.marked:
        kind = lexicon.kind(concept)
        marked[concept] = _worth(kind, counts[concept], pieces)
        if kind in NUMBERS and len(concept) <= _SHORT_NUMBER_LENGTH:
            marked[concept] *= _SHORT_NUMBER
    by_count = {count: _worth("word", count, pieces) for count in set(counts.values())}
    worths = counts
    for concept, count in counts.items():
        worths[concept] = by_count[count]
    for concept, worth in marked.items():
        worths[concept] = worth
    for concept in recent & worths.keys():
        worths[concept] *= _IN_RECENT
    return worths


def _worth(kind: TokenKind, count: float, pieces: int) -> float:
    rarity = max(0.0, math.log((pieces + 1) / count)) / math.log(pieces + 2)
    frequency = min(1.0, math.log(count) / math.log(_FREQUENT))
    if kind == "word":
        return rarity * (_RARE_WORD + (_FREQUENT_WORD - _RARE_WORD) * frequency)
    return _KIND_WORTHS[kind] * (_STEADY + (1 - _STEADY) * rarity) * (1 + _REPEATED * frequency)


_MIN_READ = 600
_READ_PER_TOKEN = 0.25
"""Drafts that are read: a minimum, and more for a longer summary; about ten for each one used."""
_LENGTH_POWER = 0.9
"""Below 1, so that longer units are preferred to what the ratio alone would select."""
_LENGTH_POWER_IN_MEETINGS = 2.0
"""Above 1: a few words of many turns tell more of a meeting than many words of a few."""
_SAME_TURN = 0.1
"""The rank of a further piece of a turn of a meeting."""
_LINE_LENGTH = 16
"""Characters of a line besides its text."""
_LAST_MESSAGES = 2
"""These are read entirely, like the first message of a user."""


def promising_drafts(
    drafts: Sequence[UnitDraft],
    worths: Mapping[str, float],
    lexicon: Lexicon,
    limit: int,
) -> Sequence[int]:
    """Return the indexes of the drafts that are worth reading for a summary of `limit` tokens."""
    most = _MIN_READ + int(_READ_PER_TOKEN * limit)
    if len(drafts) <= most:
        return range(len(drafts))
    ranks = _draft_ranks(drafts, worths, lexicon)
    first = next((draft.origin.message for draft in drafts if draft.origin.role == "user"), 0)
    last = max(draft.origin.message for draft in drafts)
    ends = (
        index
        for index, draft in enumerate(drafts)
        if draft.origin.message == first or draft.origin.message > last - _LAST_MESSAGES
    )
    chosen = _highest(ranks, most)
    for index in islice(ends, _MIN_READ):
        chosen[index] = True
    return array("I", compress(range(len(drafts)), chosen))


def _draft_ranks(
    drafts: Sequence[UnitDraft], worths: Mapping[str, float], lexicon: Lexicon
) -> array[float]:
    """Return the rank of each draft: its worth for its length."""
    token_worths = {
        raw: sum([worths.get(concept, 0.0) for concept in token.concepts])
        for raw, token in lexicon.items()
    }
    worth_of = token_worths.__getitem__
    ranks = array(
        "d",
        (
            sum(map(worth_of, draft.text.split()))
            * _FORM_FACTORS[draft.form]
            / (len(draft.text) + _LINE_LENGTH) ** _LENGTH_POWER
            for draft in drafts
        ),
    )
    if all(draft.origin.speaker in UNNAMED for draft in drafts):
        for index, draft in enumerate(drafts):
            ranks[index] *= _ROLE_FACTORS[draft.origin.role]
    return ranks


def _highest(ranks: Sequence[float], number: int) -> bytearray:
    """Return a flag for each rank: 1 for the `number` highest; of equal ranks for the first."""
    threshold = sorted(ranks)[-number]
    flags = bytearray(rank > threshold for rank in ranks)
    equal = (index for index, rank in enumerate(ranks) if rank == threshold)
    for index in islice(equal, number - sum(flags)):
        flags[index] = True
    return flags


def unit_factors(
    units: Sequence[SummaryUnit], lengths: Mapping[int, int], style: Style = "default"
) -> list[float]:
    """Return the factor of each unit: by its speaker, form, cues and position.

    `lengths` are the words of each turn of a meeting.
    """
    is_meeting = any(u.origin.speaker not in UNNAMED for u in units if not u.is_earlier)
    users = [u.origin.message for u in units if u.origin.role == "user" and not u.is_earlier]
    first, last = (users[0], users[-1]) if users else (None, None)
    factors: list[float] = []
    equal: dict[float, float] = {}
    for unit in units:
        message = unit.origin.message
        factor = _FORM_FACTORS[unit.form]
        if is_meeting:
            factor *= _cue_factor(unit.cues) ** _CUE_POWER_IN_MEETINGS
            if not unit.is_earlier:
                factor *= _turn_factor(unit, lengths[message])
        else:
            factor *= _ROLE_FACTORS[unit.origin.role] * _cue_factor(unit.cues)
        if message == first:
            factor *= _FIRST_MESSAGE
        elif message == last:
            factor *= _LAST_MESSAGE
        if unit.text.endswith(COLONS):
            factor *= _ENDS_IN_COLON
        if is_aside(unit):
            factor *= _ASIDE
        if unit.form is TextForm.SENTENCE and len(unit.concepts) == 1 and not unit.items:
            factor *= _SINGLE_WORD
        if style == "code" and unit.technical:
            factor *= _TECHNICAL_IN_CODE_STYLE
        factors.append(equal.setdefault(factor, factor))
    return factors


def _turn_factor(unit: SummaryUnit, length: int) -> float:
    """Return the factor of a piece of a turn of a meeting that has `length` words."""
    if len(telling_words(unit.text)) < _TELLING:
        return _EMPTY_TURN
    numbers = sum(item.kind in NUMBERS for item in unit.items)
    factor = math.pow(max(1.0, length / RUN_WORDS), _TURN_POWER)
    factor *= math.pow(1 + numbers, _NUMBER_POWER)
    is_fragment = len(unit.text.split()) < min(RUN_WORDS, length / 2)
    return factor * _FRAGMENT if is_fragment else factor


def is_aside(unit: SummaryUnit) -> bool:
    """Return True for a unit that its speaker marks as off the subject, without an exact item."""
    return bool(unit.cues & Cue.ASIDE) and not unit.items and not unit.cues & _DECISIVE


@cache
def _cue_factor(cues: int) -> float:
    return math.prod(factor for cue, factor in _CUE_FACTORS if cues & cue)


MIN_WORTH = 3.0
"""A unit of less worth is not worth a line."""
_COVERED = 0.15
"""Factor of a concept's worth for each selected unit that has it."""
_MIN_NEW = 0.4
"""The least share of new content of a selected unit."""
_DECISIVE = Cue.DECISION | Cue.CORRECTION | Cue.RULE
_MIN_DECISION = 0.6
"""The share of its worth that a decision keeps even if all its words occur elsewhere."""
_JOIN_TOKENS = 2
"""Tokens between two pieces in one line."""
_MIN_LINE_TOKENS = 5


class UnitCost(NamedTuple):
    """The tokens of a unit."""

    text: int
    line: int
    """The bullet, the speaker and the end of a line of its own."""


class _Queue:
    """Indexes of units in the order of their ranks, which may change.

    The first ranks are sorted once and held in arrays, which take less memory than a heap of
    tuples. A unit that gets another rank is pushed on a small heap. Its earlier place remains, so
    it may come twice; the caller skips a unit that it has selected.
    """

    def __init__(self, indexes: Iterable[int]) -> None:
        self._indexes = array("I", indexes)
        self._members = bytearray(max(self._indexes, default=-1) + 1)
        for index in self._indexes:
            self._members[index] = True
        self._ranks = array("d")
        self._at = 0
        self._pushed: list[tuple[float, int]] = []

    def __contains__(self, index: int) -> bool:
        return index < len(self._members) and bool(self._members[index])

    def sort(self, rank_of: Callable[[int], float]) -> None:
        """Sort by rank; of equal ranks the lower index is the first."""
        ranks = array("d", map(rank_of, self._indexes))
        order = sorted(range(len(ranks)), key=ranks.__getitem__)
        self._ranks = array("d", map(ranks.__getitem__, order))
        self._indexes = array("I", map(self._indexes.__getitem__, order))

    def push(self, rank: float, index: int) -> None:
        """Add an index with another rank."""
        heapq.heappush(self._pushed, (rank, index))

    def pop(self) -> int | None:
        """Remove the first index and return it. None if there is none."""
        first = self._first()
        if first is None:
            return None
        if self._pushed and first is self._pushed[0]:
            heapq.heappop(self._pushed)
        else:
            self._at += 1
        return first[1]

    def is_first(self, rank: float, index: int) -> bool:
        """Return True if an index of that rank would be the first, or is."""
        first = self._first()
        return first is None or first[1] == index or (rank, index) < first

    def _first(self) -> tuple[float, int] | None:
        pushed = self._pushed[0] if self._pushed else None
        if self._at == len(self._ranks):
            return pushed
        sorted_first = self._ranks[self._at], self._indexes[self._at]
        return sorted_first if pushed is None or sorted_first < pushed else pushed


class UnitSelection:
    """The units selected so far, their tokens, and the worth of what is not selected."""

    def __init__(
        self,
        units: Sequence[SummaryUnit],
        costs: Sequence[UnitCost],
        worths: dict[str, float],
        factors: Sequence[float],
    ) -> None:
        """Start without a unit; a selection lowers the values of `worths`, by concept."""
        self.selected: list[int] = []
        self.tokens = 0
        self._units = units
        self._costs = costs
        self._factors = factors
        self._left = worths
        self._full_worths: dict[str, float] = {}
        """The worths of covered concepts as they were."""
        self._messages: set[int] = set()
        """Messages that have a line."""
        # Arrays, because a long conversation has many units and a float takes three times as much.
        self._initial_worths = array("d", map(self._current_worth, range(len(units))))
        self._last_worths = array("d", self._initial_worths)
        self._by_message = array("I", sorted(range(len(units)), key=self._message))

    def fill(
        self,
        candidates: Iterable[int],
        budget: int,
        *,
        min_worth: float = MIN_WORTH,
        min_new: float = _MIN_NEW,
    ) -> None:
        """Select the best candidates until the budget is used or the rest has little content."""
        selected = set(self.selected)
        queue = _Queue(
            index
            for index in candidates
            if index not in selected and self._initial_worths[index] > min_worth
        )
        queue.sort(self._rank)
        joined: set[int] = set()
        while budget - self.tokens >= _MIN_LINE_TOKENS and (index := queue.pop()) is not None:
            if index in selected or self._cost(index) > budget - self.tokens:
                continue
            worth = self._current_worth(index)
            if worth <= min_new * self._initial_worths[index]:
                continue
            self._last_worths[index] = max(worth, self._min_worth(index))
            rank = self._rank(index)
            if not queue.is_first(rank, index):
                queue.push(rank, index)
                continue
            self._select(index)
            selected.add(index)
            message = self._message(index)
            if message not in joined:
                # Other sentences of this message can now share its line.
                joined.add(message)
                for other in self._units_of(message):
                    if other in queue:
                        queue.push(self._rank(other), other)

    def take(self, candidates: Iterable[int], budget: int) -> None:
        """Select the candidates in their order, as far as they fit the budget."""
        for index in candidates:
            if self.tokens + self._cost(index) <= budget:
                self._select(index)

    def drop_last(self, tokens: int) -> None:
        """Remove the units that were selected last, until that many tokens are free."""
        freed = 0
        while self.selected and freed < tokens:
            freed += self._costs[self.selected.pop()].text
        self.tokens -= freed

    def best(self) -> int:
        """Return the unit of the highest worth, regardless of its cost."""
        return max(range(len(self._initial_worths)), key=self._initial_worths.__getitem__)

    def covers(self, concept: str) -> bool:
        """Return True if a selected unit has the concept."""
        return concept in self._full_worths

    def full_worth(self, concept: str) -> float:
        """Return the worth of a concept, whether a selected unit has it or not."""
        return self._full_worths.get(concept, self._left[concept])

    def _select(self, index: int) -> None:
        self.tokens += self._cost(index)
        self.selected.append(index)
        unit = self._units[index]
        self._messages.add(unit.origin.message)
        for concept in unit.concepts:
            self._full_worths.setdefault(concept, self._left[concept])
            self._left[concept] *= _COVERED

    def _units_of(self, message: int) -> Iterator[int]:
        """Yield the units of a message."""
        order = self._by_message
        for at in range(bisect_left(order, message, key=self._message), len(order)):
            if self._message(order[at]) != message:
                break
            yield order[at]

    def _message(self, index: int) -> int:
        return self._units[index].origin.message

    def _rank(self, index: int) -> float:
        """Return the place of a unit in the order of selection; the smallest is the first."""
        return -self._last_worths[index] / self._length(index)

    def _min_worth(self, index: int) -> float:
        """Return the worth that a unit keeps, however many of its concepts are covered."""
        is_decision = self._units[index].cues & _DECISIVE
        return _MIN_DECISION * self._initial_worths[index] if is_decision else 0.0

    def _current_worth(self, index: int) -> float:
        concepts = self._units[index].concepts
        return self._factors[index] * sum(map(self._left.__getitem__, concepts))

    def _length(self, index: int) -> float:
        """Return the divisor of a unit's worth in the order of selection."""
        unit = self._units[index]
        if unit.is_earlier or unit.origin.speaker in UNNAMED:
            return float(self._cost(index) ** _LENGTH_POWER)
        length = float(self._cost(index) ** _LENGTH_POWER_IN_MEETINGS)
        return length / _SAME_TURN if unit.origin.message in self._messages else length

    def _cost(self, index: int) -> int:
        """Return the tokens of a unit; one that joins others of its message needs no new line."""
        unit, cost = self._units[index], self._costs[index]
        joins = unit.origin.message in self._messages and unit.form is not TextForm.TOOL
        return cost.text + (_JOIN_TOKENS if joins else cost.line)
