"""Composition: which material goes into the summary, and how it is made to fit exactly.

The earlier summary comes first and may take most of the room: a fact that was kept once is kept
on, as a line or at least in the index, through ten folds and more. Then the messages; then whatever
still fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from enfold.messages import Message, text_of
from enfold.summaries.local.choice import Choice, Cost, concept_worths, sift, unit_factors
from enfold.summaries.local.layout import (
    CONTEXT,
    JOINT,
    PEOPLE,
    SETTLED,
    ages,
    lay_out,
    mark_open,
    read_earlier,
    section_of,
    settled,
)
from enfold.summaries.local.lexicon import Cue, Kind, Lexicon
from enfold.summaries.local.sentences import Form
from enfold.summaries.local.units import Unit, draft_conversation, read_drafts, replaced
from enfold.summaries.request import Style, SummaryRequest
from enfold.tokens import Tokenizer

AGE = 3.0
"""How much more the oldest lines of the earlier summary weigh than new ones: what was kept longest
is lost for good if it is lost, and without this every fold would wash some of it away."""
_RECENT_LENGTH = 20_000
"""Characters of the messages that stay that are looked at."""
_CROWD = 3
"""How many named speakers make a meeting, in which it helps to know who was there."""


@dataclass(frozen=True, slots=True)
class Material:
    """Units, with what each is worth and what it costs; lists go by the unit's index."""

    units: list[Unit]
    last: int
    """The index of the last message."""
    costs: list[Cost]
    factors: list[float]
    worths: dict[str, float]
    """By concept."""
    replaced: dict[int, float]
    """Units that a correction made stale."""
    people: tuple[str, ...] = field(default=())
    """Everybody who is named, in a conversation of several."""

    @property
    def earlier(self) -> list[int]:
        """The units of the earlier summary."""
        return [i for i, u in enumerate(self.units) if u.is_earlier and u.form is not Form.ITEM]

    @property
    def all_earlier(self) -> list[int]:
        """Those, and the items that it listed."""
        return [i for i, u in enumerate(self.units) if u.is_earlier]

    @property
    def new(self) -> list[int]:
        """The units of the messages."""
        return [i for i, u in enumerate(self.units) if not u.is_earlier]


def gather(request: SummaryRequest, tokenizer: Tokenizer) -> Material:
    """The material of a request."""
    lexicon = Lexicon()
    earlier = read_earlier(request.previous or "", lexicon)
    people = _people(earlier, request.messages)
    earlier = [unit for unit in earlier if unit.origin.speaker != PEOPLE]
    drafts = draft_conversation(request.messages)
    texts = [draft.text.split() for draft in drafts]
    counts = lexicon.learn([*texts, *map(_runs, earlier)])
    now = _concepts(request.recent, lexicon)
    worths = concept_worths(counts, len(texts) + len(earlier), lexicon, now)
    chosen = sift(drafts, texts, worths, lexicon, request.target)
    units = [*earlier, *read_drafts(drafts, texts, chosen, lexicon)]
    last = len(request.messages) - 1
    units = [unit for unit in units if unit.reading.concepts] or units
    units = mark_open(units, None if request.recent else last)
    stale = replaced(units, lexicon) | dict.fromkeys(settled(units), SETTLED)
    return Material(
        units=units,
        last=last,
        costs=_costs(units, tokenizer),
        factors=_factors(units, stale, request.style),
        worths=worths,
        replaced=stale,
        people=people,
    )


def _factors(units: list[Unit], stale: dict[int, float], style: Style) -> list[float]:
    return [
        factor * stale.get(index, 1.0) * (1 + AGE * age)
        for index, (factor, age) in enumerate(
            zip(unit_factors(units, style), ages(units), strict=True)
        )
    ]


def _runs(unit: Unit) -> list[str]:
    """What stands between blanks; a listed item begins no sentence, so that its capital tells."""
    runs = unit.reading.text.split()
    return ["-", *runs] if unit.form is Form.ITEM else runs


def _people(earlier: Iterable[Unit], messages: Iterable[Message]) -> tuple[str, ...]:
    known = " ".join(u.reading.text for u in earlier if u.origin.speaker == PEOPLE)
    names = dict.fromkeys(known.split(JOINT) if known else ())
    names.update(dict.fromkeys(message.name for message in messages if message.name))
    return tuple(names) if len(names) >= _CROWD else ()


def _concepts(recent: Iterable[Message], lexicon: Lexicon) -> set[str]:
    text = "\n".join(text_of(message.parts)[:_RECENT_LENGTH] for message in recent)
    return {concept for raw in text[:_RECENT_LENGTH].split() for concept in lexicon[raw].concepts}


def _costs(units: list[Unit], tokenizer: Tokenizer) -> list[Cost]:
    """Tokens by unit; what a line of each speaker takes besides is counted once."""
    speakers = sorted({unit.origin.speaker for unit in units})
    labels = [f"- {speaker}: \n" if speaker else "- \n" for speaker in speakers]
    counts = tokenizer.count_many([*labels, *(unit.reading.text for unit in units)])
    lines = dict(zip(speakers, counts, strict=False))
    texts = counts[len(speakers) :]
    return [Cost(text, lines[u.origin.speaker]) for text, u in zip(texts, units, strict=True)]


EARLIER = 3.0
"""What was kept once weighs more than what is new."""
FROM_TOOLS = 0.3
FROM_REPLACED = 0.5
"""What a stale statement named beside its number may still hold."""
WORTH_POWER = 1.5
LENGTH_POWER = 0.4
"""A long path says more than a short name, so its tokens count against it only in part."""
_SHORTEST = 3
"""Characters below which an item means nothing by itself."""


class Entry(NamedTuple):
    """One item of the index."""

    shown: str
    concepts: tuple[str, ...]
    unit: int
    """The index of its unit, which gives its place in the line."""
    worth: float


def index_entries(
    material: Material, units: Iterable[int], is_covered: Callable[[str], bool]
) -> list[Entry]:
    """The items of these units that nothing which was taken mentions; each once."""
    found: dict[str, Entry] = {}
    for index in units:
        for shown, concepts in _items(material, index):
            if concepts and not all(map(is_covered, concepts)) and shown not in found:
                worth = max(material.worths[concept] for concept in concepts)
                found[shown] = Entry(shown, concepts, index, worth * _factor(material, index))
    return list(found.values())


def choose(entries: list[Entry], budget: int, tokenizer: Tokenizer) -> tuple[list[Entry], int]:
    """Those that are worth most for their tokens, and the tokens they take."""
    entries = sorted(entries, key=lambda entry: -entry.worth)[: max(0, budget)]
    counts = tokenizer.count_many([f", {entry.shown}" for entry in entries])
    ranked = sorted(
        zip(entries, counts, strict=True),
        key=lambda pair: (-_rank(pair[0].worth, pair[1]), pair[0].unit, pair[0].shown),
    )
    chosen: list[Entry] = []
    spent = 0
    for entry, count in ranked:
        if spent + count <= budget:
            chosen.append(entry)
            spent += count
    return chosen, spent


def _rank(worth: float, tokens: int) -> float:
    return float(worth**WORTH_POWER / tokens**LENGTH_POWER)


def _items(material: Material, index: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    unit = material.units[index]
    if unit.form is Form.ITEM:
        yield unit.reading.text, unit.reading.concepts
        return
    least = Kind.PLACE if unit.form is Form.TOOL and not unit.is_earlier else Kind.NAME
    not_wanted = {Kind.COUNT, Kind.NUMBER} if index in material.replaced else {Kind.COUNT}
    for item in unit.reading.items:
        if least <= item.kind not in not_wanted and len(item.shown) >= _SHORTEST:
            yield item.shown, item.concepts


def _factor(material: Material, index: int) -> float:
    unit = material.units[index]
    factor = material.factors[index] or FROM_REPLACED
    if unit.is_earlier:
        return EARLIER * factor
    return factor * (FROM_TOOLS if unit.form is Form.TOOL else 1)


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
        entries = index_entries(self._material, units, self._choice.covers)
        chosen, tokens = choose(entries, budget, self._tokenizer)
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
