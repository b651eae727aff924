"""Composition: the material of a summary, its index of exact items, and the text that fits exactly.

The previous summary comes first and may take most of the tokens: a fact that was kept once stays,
as a line or at least in the index, through ten compressions and more. Then come the messages, then
everything that still fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from enfold.messages import Message, text_of
from enfold.summaries.local.layout import (
    CONTEXT,
    GOAL,
    JOINT,
    PEOPLE,
    SETTLED,
    ages,
    in_style,
    lay_out,
    mark_open,
    read_earlier,
    section_of,
    settled,
)
from enfold.summaries.local.lexicon import NUMBERS, PLACES, Lexicon
from enfold.summaries.local.selection import (
    UnitCost,
    UnitSelection,
    concept_worths,
    is_aside,
    promising_drafts,
    unit_factors,
)
from enfold.summaries.local.state import StateLine, state_lines, superseded
from enfold.summaries.local.units import (
    Origin,
    SummaryUnit,
    draft_conversation,
    read,
    read_drafts,
    replaced,
)
from enfold.summaries.request import Style, SummaryRequest, day_of
from enfold.text.cues import Cue
from enfold.text.sentences import TextForm
from enfold.tokens import Tokenizer

# Material

_AGE = 3.0
"""The extra weight of the oldest lines of the previous summary. What is lost there is lost for
good, and without this every compression would lose some of them."""
_RECENT_LENGTH = 20_000
"""Characters of the recent messages that are read."""
_STATE_FACTOR = 2.5
_STATE_WORTH = 1.0
"""The factor of a line about the state of the work, and the worth of a word that only it has."""
_MEETING = 3
"""Named speakers that make a meeting, whose summary lists the participants."""


@dataclass(frozen=True, slots=True)
class Material:
    """Units with their worths and costs; lists are indexed like `units`."""

    units: list[SummaryUnit]
    last: int
    """The index of the last message."""
    costs: list[UnitCost]
    factors: list[float]
    worths: dict[str, float]
    """By concept."""
    replaced: dict[int, float]
    """Units that a correction made obsolete."""
    people: tuple[str, ...] = ()
    """The names of all speakers of a meeting."""
    style: Style = "default"

    @property
    def state(self) -> list[int]:
        """The units about the state of the work that are new."""
        return [i for i, u in enumerate(self.units) if u.origin.section and not u.is_earlier]

    @property
    def earlier(self) -> list[int]:
        """The units of the previous summary except listed items."""
        return [i for i, u in enumerate(self.units) if u.is_earlier and u.form is not TextForm.ITEM]

    @property
    def all_earlier(self) -> list[int]:
        """The units of the previous summary."""
        return [i for i, u in enumerate(self.units) if u.is_earlier]

    @property
    def new(self) -> list[int]:
        """The units of the messages."""
        return [i for i, u in enumerate(self.units) if not u.is_earlier and not u.origin.section]


def gather_material(request: SummaryRequest, tokenizer: Tokenizer) -> Material:
    """Return the material of a request."""
    lexicon = Lexicon()
    earlier = read_earlier(request.previous or "", lexicon)
    people = _people(earlier, request.messages)
    earlier = [unit for unit in earlier if unit.origin.speaker != PEOPLE]
    drafts = draft_conversation(request.messages)
    is_agent = request.style == "agent"
    state = state_lines(request.messages) if is_agent else []
    if is_agent:
        lines = [(unit.origin.section, unit.reading.text) for unit in earlier]
        gone = list(superseded(lines, state))
        earlier = [unit for unit, is_gone in zip(earlier, gone, strict=True) if not is_gone]
    texts = [draft.text.split() for draft in drafts]
    counts = lexicon.learn([*texts, *map(_tokens, earlier)])
    recent = "\n".join(text_of(message.parts)[:_RECENT_LENGTH] for message in request.recent)
    recent_tokens = recent[:_RECENT_LENGTH].split()
    recent_concepts = {concept for raw in recent_tokens for concept in lexicon[raw].concepts}
    worths = concept_worths(counts, len(texts) + len(earlier), lexicon, recent_concepts)
    chosen = promising_drafts(drafts, texts, worths, lexicon, request.target)
    units = [*earlier, *read_drafts(drafts, texts, chosen, lexicon)]
    units = [unit for unit in units if unit.reading.concepts] or units
    units += _state_units(state, request.messages, len(drafts), lexicon, worths)
    last = len(request.messages) - 1
    units = mark_open(units, None if request.recent else last)
    obsolete = replaced(units, lexicon) | dict.fromkeys(settled(units), SETTLED)
    factors = unit_factors(units, request.style)
    for index, age in enumerate(ages(units)):
        factors[index] *= obsolete.get(index, 1.0) * (1 + _AGE * age)
        if units[index].origin.section and not units[index].is_earlier:
            factors[index] = _STATE_FACTOR
    costs = _costs(units, tokenizer)
    return Material(units, last, costs, factors, worths, obsolete, people, request.style)


def _state_units(
    lines: Sequence[StateLine],
    messages: Sequence[Message],
    place: int,
    lexicon: Lexicon,
    worths: dict[str, float],
) -> Iterator[SummaryUnit]:
    """Yield a unit for each line about the state; its new concepts get the worth of a name."""
    for number, line in enumerate(lines):
        reading = read(line.text.split(), lexicon, trim=False, phrases=False)
        for concept in reading.concepts:
            worths.setdefault(concept, _STATE_WORTH)
        day = day_of(messages[line.message])
        origin = Origin(line.message, "", "tool", line.section, day=day)
        yield SummaryUnit(reading, origin, TextForm.TOOL, place + number)


def _tokens(unit: SummaryUnit) -> list[str]:
    """Return the tokens of a unit; a listed item does not begin a sentence, so a mark precedes."""
    tokens = unit.reading.text.split()
    return ["-", *tokens] if unit.form is TextForm.ITEM else tokens


def _people(earlier: Iterable[SummaryUnit], messages: Iterable[Message]) -> tuple[str, ...]:
    listed = " ".join(u.reading.text for u in earlier if u.origin.speaker == PEOPLE)
    names = dict.fromkeys(listed.split(JOINT) if listed else ())
    names.update(dict.fromkeys(message.name for message in messages if message.name))
    return tuple(names) if len(names) >= _MEETING else ()


def _costs(units: list[SummaryUnit], tokenizer: Tokenizer) -> list[UnitCost]:
    speakers = sorted({unit.origin.speaker for unit in units})
    labels = [f"- {speaker}: \n" if speaker else "- \n" for speaker in speakers]
    counts = tokenizer.count_many([*labels, *(unit.reading.text for unit in units)])
    lines = dict(zip(speakers, counts, strict=False))
    texts = counts[len(speakers) :]
    return [UnitCost(text, lines[u.origin.speaker]) for text, u in zip(texts, units, strict=True)]


# The index of exact items

_EARLIER_FACTOR = 3.0
_TOOL_FACTOR = 0.3
_REPLACED_FACTOR = 0.5
"""For items of an obsolete statement other than its number, which may still be valid."""
_WORTH_POWER = 1.5
_LENGTH_POWER = 0.4
"""A long path has more content than a short name, so its tokens count only in part."""
_MIN_LENGTH = 3
"""Characters. A shorter item means nothing on its own."""


class IndexEntry(NamedTuple):
    """One item of the index."""

    shown: str
    concepts: tuple[str, ...]
    unit: int
    """The index of its unit."""
    worth: float


def _index_entries(
    material: Material, units: Iterable[int], selection: UnitSelection
) -> list[IndexEntry]:
    """Return the distinct items of these units that no selected unit mentions."""
    found: dict[str, IndexEntry] = {}
    for index in units:
        unit = material.units[index]
        factor = material.factors[index] or _REPLACED_FACTOR
        if unit.is_earlier:
            factor *= _EARLIER_FACTOR
        elif unit.form is TextForm.TOOL:
            factor *= _TOOL_FACTOR
        for shown, concepts in _listed_items(material, index):
            if concepts and shown not in found and not all(map(selection.covers, concepts)):
                worth = max(material.worths[concept] for concept in concepts)
                found[shown] = IndexEntry(shown, concepts, index, worth * factor)
    return list(found.values())


def _listed_items(material: Material, index: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    unit = material.units[index]
    if unit.form is TextForm.ITEM:
        yield unit.reading.text, unit.reading.concepts
        return
    only_places = unit.form is TextForm.TOOL and not unit.is_earlier
    unwanted = NUMBERS | {"numeral"} if index in material.replaced else {"numeral"}
    for item in unit.reading.items:
        is_wanted = item.kind in PLACES if only_places else item.kind not in unwanted
        if is_wanted and len(item.shown) >= _MIN_LENGTH:
            yield item.shown, item.concepts


def _choose_entries(
    entries: list[IndexEntry], budget: int, tokenizer: Tokenizer
) -> tuple[list[IndexEntry], int]:
    """Return the entries with most worth for their tokens, and their tokens."""
    entries = sorted(entries, key=lambda entry: -entry.worth)[: max(0, budget)]
    counts = tokenizer.count_many([f", {entry.shown}" for entry in entries])

    def order(pair: tuple[IndexEntry, int]) -> tuple[float, int, str]:
        entry, tokens = pair
        return -(entry.worth**_WORTH_POWER / tokens**_LENGTH_POWER), entry.unit, entry.shown

    chosen: list[IndexEntry] = []
    used = 0
    for entry, count in sorted(zip(entries, counts, strict=True), key=order):
        if used + count <= budget:
            chosen.append(entry)
            used += count
    return chosen, used


# The text

_EARLIER_LINES = 0.7
_EARLIER_INDEX = 0.2
_NEW_INDEX = 0.2
_STATE_SHARE = 0.45
_OPENING = 0.15
_RULES_SHARE = 0.58
"""Shares of the limit, at most."""
_MAX_NEW_INDEX = 300
_MIN_OPENING = 25
_MAX_OPENING = 80
"""Tokens."""
_INDEX_FROM = 100
_HEADINGS_FROM = 400
_AGENT_HEADINGS_FROM = 120
"""Tokens from which a summary has an index, and headings."""
_HEADING_TOKENS = 30
_OPENING_UNITS = 6
_OPENING_MESSAGES = 0.08
"""The share of a meeting in which its purpose is stated."""
_SAME = 0.1
"""A line of the previous summary with less new content is a repetition."""
_MIN_WORTH_IF_SPACE = 1.0
_MIN_LEFT_TOKENS = 12
_MIN_LEFT_SHARE = 0.02
"""Tokens that are left over, and their share of the limit, for which more units are selected."""
_ATTEMPTS = 3


class Composition:
    """A summary that is being assembled."""

    def __init__(
        self, material: Material, limit: int, tokenizer: Tokenizer, *, headings: bool
    ) -> None:
        self._material = material
        self._limit = limit
        self._tokenizer = tokenizer
        least = _AGENT_HEADINGS_FROM if material.style == "agent" else _HEADINGS_FROM
        self._headings = headings and limit >= least
        self._people = material.people if self._headings else ()
        self._selection = UnitSelection(
            material.units, material.costs, material.worths, material.factors
        )
        self._context: set[int] = set()
        self._index: list[IndexEntry] = []
        self._index_tokens = 0

    def compose(self) -> str:
        """Return the text, within the limit."""
        material, selection = self._material, self._selection
        earlier, new = material.earlier, material.new
        budget = self._limit - (_HEADING_TOKENS if self._headings else 0)
        budget -= sum(self._tokenizer.count_many(self._people)) + len(self._people)
        if budget < _INDEX_FROM:
            # In so few tokens what the user rules and decides comes before the subject.
            rules = [i for i in new if material.units[i].reading.cues & Cue.RULE]
            selection.fill(rules, int(budget * _RULES_SHARE))
        opening = int(min(max(budget * _OPENING, _MIN_OPENING), _MAX_OPENING))
        self._select_context(min(budget, selection.tokens + opening))
        context_tokens = selection.tokens
        if material.state:
            most = context_tokens + int(budget * _STATE_SHARE)
            selection.take(material.state, most)
        state_tokens = selection.tokens - context_tokens
        if earlier:
            most = state_tokens + int(budget * _EARLIER_LINES)
            selection.fill(earlier, most, min_worth=0, min_new=_SAME)
            self._add_to_index(material.all_earlier, int(budget * _EARLIER_INDEX))
        reserve = 0
        if not earlier and budget >= _INDEX_FROM:
            reserve = int(min(budget * _NEW_INDEX, _MAX_NEW_INDEX))
        selection.fill(new, budget - self._index_tokens - reserve)
        selection.fill(earlier, budget - self._index_tokens, min_worth=0, min_new=_SAME)
        if budget >= _INDEX_FROM:
            left = budget - self._index_tokens - selection.tokens
            self._add_to_index(new, min(left, _MAX_NEW_INDEX))
        with_content = [i for i in new if _has_content(material.units[i])]
        return self._fit([*earlier, *with_content]) or self._shortened_best()

    def _select_context(self, budget: int) -> None:
        """Select the purpose of the conversation, from the previous summary or from its start."""
        units = self._material.units
        stated = [i for i in self._material.earlier if units[i].origin.section in {CONTEXT, GOAL}]
        if stated:
            self._selection.fill(stated, budget, min_worth=0, min_new=_SAME)
        else:
            self._selection.fill(self._opening(), budget, min_worth=_MIN_WORTH_IF_SPACE)
        self._context = set(self._selection.selected)

    def _opening(self) -> list[int]:
        units, is_meeting = self._material.units, bool(self._material.people)
        from_users = [i for i in self._material.new if units[i].origin.role == "user"]
        if not from_users:
            return []
        last = units[from_users[0]].origin.message
        if is_meeting:
            last = int(_OPENING_MESSAGES * units[from_users[-1]].origin.message)
        sentences = [
            i
            for i in from_users
            if units[i].origin.message <= last
            and units[i].form is TextForm.SENTENCE
            and _has_content(units[i])
            and i not in self._material.replaced
        ]
        return sentences if is_meeting else sentences[:_OPENING_UNITS]

    def _add_to_index(self, units: Iterable[int], budget: int) -> None:
        entries = _index_entries(self._material, units, self._selection)
        chosen, tokens = _choose_entries(entries, budget, self._tokenizer)
        self._index += chosen
        self._index_tokens += tokens

    def _fit(self, candidates: list[int]) -> str:
        """Return the text as long as the limit allows, and not longer.

        Costs are computed line by line, so lines that were joined leave tokens for more units. If
        the text is too long, the units that were selected last, which have the least worth, go.
        """
        selection = self._selection
        text = self._text()
        left = self._limit - self._tokenizer.count(text)
        for _ in range(_ATTEMPTS):
            before = len(selection.selected)
            if left >= max(_MIN_LEFT_TOKENS, self._limit * _MIN_LEFT_SHARE):
                selection.fill(candidates, selection.tokens + left, min_worth=_MIN_WORTH_IF_SPACE)
            if len(selection.selected) == before:
                break
            text = self._text()
            left = self._limit - self._tokenizer.count(text)
        while left < 0:
            if selection.selected:
                selection.drop_last(-left)
            else:
                self._index.pop()
            text = self._text()
            left = self._limit - self._tokenizer.count(text)
        return text

    def _text(self) -> str:
        material, selected = self._material, self._selection.selected
        chosen = (
            (
                in_style(CONTEXT, material.style)
                if i in self._context
                else section_of(material.units[i], material.last, material.style),
                material.units[i],
            )
            for i in selected
        )
        covers = self._selection.covers
        index = [entry for entry in self._index if not all(map(covers, entry.concepts))]
        # Items that were listed before stay in their place; the list grows at its end.
        index.sort(key=lambda e: (material.units[e.unit].form is not TextForm.ITEM, e.unit))
        listed = [entry.shown for entry in index]
        people = self._people if selected or listed else ()
        return lay_out(
            chosen, people=people, index=listed, headings=self._headings, style=material.style
        )

    def _shortened_best(self) -> str:
        """Return the beginning of the best unit, as long as the limit allows."""
        text = self._material.units[self._selection.best()].reading.text
        fits, too_long = 0, len(text) + 1
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            if self._tokenizer.count(text[:middle]) <= self._limit:
                fits = middle
            else:
                too_long = middle
        return text[:fits].strip()


def _has_content(unit: SummaryUnit) -> bool:
    return not unit.reading.cues & (Cue.PLEASANTRY | Cue.ANNOUNCEMENT) and not is_aside(unit)
