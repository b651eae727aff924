"""Composition: which material goes into the summary, and how it is made to fit exactly.

The earlier summary comes first and may take most of the room: a fact that was kept once is kept
on, as a line or at least in the index, through ten folds and more. Then the messages; then whatever
still fits.
"""

from __future__ import annotations

from collections.abc import Iterable

from enfold.summaries.local import index
from enfold.summaries.local.choice import Choice
from enfold.summaries.local.cues import Cue
from enfold.summaries.local.index import Entry
from enfold.summaries.local.layout import lay_out
from enfold.summaries.local.material import Material
from enfold.summaries.local.sections import CONTEXT, section_of
from enfold.summaries.local.splitting import Form
from enfold.summaries.local.units import Unit
from enfold.tokens import Tokenizer

EARLIER_LINES = 0.7
EARLIER_INDEX = 0.2
NEW_INDEX = 0.2
OPENING = 0.15
"""Shares of the limit, at most."""
LARGEST_NEW_INDEX = 300
SMALLEST_OPENING = 25
LARGEST_OPENING = 80
"""In tokens: a shorter introduction says nothing, a longer list or introduction helps nobody."""
INDEX_FROM = 100
"""Tokens below which there is no room for a list of what is not told."""
HEADINGS_FROM = 400
"""Tokens from which headings pay their way."""
_HEADINGS = 30
"""What the headings take, about."""
_OPENING_UNITS = 6
_OPENING_MESSAGES = 0.08
"""Where the purpose of a meeting is said, if it is."""
SAME = 0.1
"""A line of the earlier summary of which no more than this is new has been said again."""
LEAST_IF_ROOM = 1.0
"""What a unit must be worth when there is room to spare."""
_WORTH_A_TRY = 12
_SHARE_WORTH_A_TRY = 0.02
"""Tokens left over, and their share of the limit, for which more units are looked for."""
_TRIES = 3


class Composition:
    """A summary being put together."""

    def __init__(
        self, material: Material, limit: int, tokenizer: Tokenizer, *, headings: bool
    ) -> None:
        self._material = material
        self._limit = limit
        self._tokenizer = tokenizer
        self._headings = headings and limit >= HEADINGS_FROM
        self._people = material.people if self._headings else ()
        self._choice = Choice(material.units, material.costs, material.worths, material.factors)
        self._context: set[int] = set()
        self._index: list[Entry] = []
        self._index_tokens = 0
        overhead = sum(tokenizer.count_many(self._people)) + len(self._people)
        self._overhead = overhead + (_HEADINGS if self._headings else 0)

    def compose(self) -> str:
        """The text, within the limit."""
        earlier, new = self._material.earlier, self._material.new
        room = self._limit - self._overhead
        self._take_context(int(min(max(room * OPENING, SMALLEST_OPENING), LARGEST_OPENING)))
        if earlier:
            self._keep_on(earlier, int(room * EARLIER_LINES))
            self._add_to_index(self._material.all_earlier, int(room * EARLIER_INDEX))
        kept_back = 0 if earlier else int(min(room * NEW_INDEX, LARGEST_NEW_INDEX))
        kept_back = kept_back if room >= INDEX_FROM else 0
        self._choice.fill(new, room - self._index_tokens - kept_back)
        self._keep_on(earlier, room - self._index_tokens)
        left = room - self._index_tokens - self._choice.spent
        if room >= INDEX_FROM:
            self._add_to_index(new, min(left, LARGEST_NEW_INDEX))
        telling = [i for i in new if _tells_something(self._material.units[i])]
        return self._fitted([*earlier, *telling]) or self._best_cut_short()

    def _keep_on(self, earlier: list[int], budget: int) -> None:
        """What was kept once is kept as long as there is room, unless something says the same."""
        self._choice.fill(earlier, budget, least=0, repetition=SAME)

    def _take_context(self, budget: int) -> None:
        """What the conversation is for: as it was said before, or as it is said at the start."""
        units = self._material.units
        known = [i for i in self._material.earlier if units[i].origin.section == CONTEXT]
        if known:
            self._keep_on(known, budget)
        else:
            self._choice.fill(self._opening(), budget, least=LEAST_IF_ROOM)
        self._context = set(self._choice.taken)

    def _opening(self) -> list[int]:
        units = self._material.units
        asked = [i for i in self._material.new if units[i].origin.role == "user"]
        if not asked:
            return []
        last = units[asked[0]].origin.message
        if self._material.people:
            last = int(_OPENING_MESSAGES * units[asked[-1]].origin.message)
        opening = (i for i in asked if units[i].origin.message <= last)
        sentences = [
            i
            for i in opening
            if units[i].form is Form.SENTENCE
            and _tells_something(units[i])
            and i not in self._material.replaced
        ]
        return sentences if self._material.people else sentences[:_OPENING_UNITS]

    def _add_to_index(self, units: Iterable[int], budget: int) -> None:
        entries = index.entries(self._material, units, self._choice.covers)
        chosen, tokens = index.choose(entries, budget, self._tokenizer)
        self._index += chosen
        self._index_tokens += tokens

    def _is_covered(self, entry: Entry) -> bool:
        return all(map(self._choice.covers, entry.concepts))

    def _fitted(self, candidates: list[int]) -> str:
        """The text as long as the limit allows, and not longer.

        Costs are reckoned line by line: lines that were joined leave something over, which is used
        for more. What was taken last was worth least, and goes first where it was too much.
        """
        text = self._text()
        left = self._limit - self._tokenizer.count(text)
        for _ in range(_TRIES):
            before = len(self._choice.taken)
            if left >= max(_WORTH_A_TRY, self._limit * _SHARE_WORTH_A_TRY):
                self._choice.fill(candidates, self._choice.spent + left, least=LEAST_IF_ROOM)
            if len(self._choice.taken) == before:
                break
            text = self._text()
            left = self._limit - self._tokenizer.count(text)
        while left < 0:
            self._drop(-left)
            text = self._text()
            left = self._limit - self._tokenizer.count(text)
        return text

    def _drop(self, tokens: int) -> None:
        if self._choice.taken:
            self._choice.drop_last(tokens)
        else:
            self._index.pop()

    def _text(self) -> str:
        material, taken = self._material, self._choice.taken
        chosen = (
            (
                CONTEXT if i in self._context else section_of(material.units[i], material.last),
                material.units[i],
            )
            for i in taken
        )
        index = (entry for entry in self._index if not self._is_covered(entry))
        listed = [entry.shown for entry in sorted(index, key=self._place_in_index)]
        people = self._people if taken or listed else ()
        return lay_out(chosen, people=people, index=listed, headings=self._headings)

    def _place_in_index(self, entry: Entry) -> tuple[bool, int]:
        """What was listed before stays where it was; the list grows at its end."""
        return self._material.units[entry.unit].form is not Form.ITEM, entry.unit

    def _best_cut_short(self) -> str:
        """The beginning of the best unit, as much of it as the limit allows."""
        text = self._material.units[self._choice.best()].reading.text
        fits, too_long = 0, len(text) + 1
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            if self._tokenizer.count(text[:middle]) <= self._limit:
                fits = middle
            else:
                too_long = middle
        return text[:fits].strip()


def _tells_something(unit: Unit) -> bool:
    return not unit.reading.cues & (Cue.PLEASANTRY | Cue.ANNOUNCEMENT)
