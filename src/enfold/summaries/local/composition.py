"""Composition: the material of a summary, its index of exact items, and the text that fits exactly.

The previous summary comes first and may take most of the tokens: a fact that was kept once stays,
as a line or at least in the index, through ten compressions and more. Then come the messages, then
everything that still fits. A summary is laid out as Markdown sections, written from units and read
back into units.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from enfold.messages import Message, Role, text_of
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
    LAST_GENERATION,
    SPEAKERS,
    UNNAMED,
    Origin,
    SummaryUnit,
    UnitDraft,
    correction_topics,
    draft_conversation,
    read,
    read_drafts,
    replaced,
)
from enfold.summaries.request import AGENT_SECTIONS, Style, SummaryRequest, day_of
from enfold.text.sentences import Cue, TextForm, TextPiece, in_runs, phrases
from enfold.text.words import PAUSES, UNSPACED_ENDS
from enfold.tokens import Tokenizer

CONTEXT = "Context"
KEY_POINTS = "Key Points"
TECHNICAL = "Technical Details"
TOOLS = "Tool Invocations"
DECISIONS = "Decisions and Outcomes"
QUESTIONS = "Unresolved Questions"
SECTIONS = (CONTEXT, KEY_POINTS, TECHNICAL, TOOLS, DECISIONS, QUESTIONS)
GOAL, CONSTRAINTS, STATE, _, AGENT_DECISIONS, ERRORS, TRIED, NEXT, OPEN_QUESTIONS, _ = (
    AGENT_SECTIONS
)
_AS_AGENT = {
    CONTEXT: GOAL,
    TECHNICAL: KEY_POINTS,
    TOOLS: STATE,
    DECISIONS: AGENT_DECISIONS,
    QUESTIONS: OPEN_QUESTIONS,
}
"""The sections of the style `agent` that take the place of others."""
_AS_DEFAULT = {
    **{agent: default for default, agent in _AS_AGENT.items() if agent != KEY_POINTS},
    CONSTRAINTS: KEY_POINTS,
    ERRORS: KEY_POINTS,
    TRIED: KEY_POINTS,
    NEXT: DECISIONS,
}

_LATE = 0.8
"""A next step that is announced after this share of the conversation is still to be done."""


def sections_of(style: Style) -> tuple[str, ...]:
    """Return the sections of a style."""
    return AGENT_SECTIONS if style == "agent" else SECTIONS


def in_style(section: str, style: Style) -> str:
    """Return the section of a style that takes the place of a section of another."""
    return (_AS_AGENT if style == "agent" else _AS_DEFAULT).get(section, section)


def section_of(unit: SummaryUnit, last: int, style: Style = "default") -> str:
    """Return the section of a unit; `last` is the index of the last message."""
    section = unit.origin.section or _section_of(unit, last)
    if style == "agent" and not unit.origin.section:
        section = _agent_section(unit, section, last)
    return in_style(section, style)


def _agent_section(unit: SummaryUnit, section: str, last: int) -> str:
    cues = unit.cues
    if unit.form is TextForm.TOOL or section == QUESTIONS:
        return section
    if unit.origin.role == "user" and cues & Cue.DEMAND:
        return CONSTRAINTS
    if cues & Cue.NEXT and unit.origin.message > last * _LATE:
        return NEXT
    return ERRORS if cues & Cue.FAULT and section != DECISIONS else section


def _section_of(unit: SummaryUnit, last: int) -> str:
    cues = unit.cues
    if unit.form is TextForm.TOOL:
        return TOOLS
    if cues & Cue.OPEN and not cues & Cue.DECISION:
        return QUESTIONS
    is_next = cues & Cue.NEXT and unit.origin.message > last * _LATE
    if cues & (Cue.DECISION | Cue.OUTCOME) or is_next:
        return DECISIONS
    is_technical = unit.form in {TextForm.CODE, TextForm.LISTING} or unit.technical > 1
    return TECHNICAL if is_technical or cues & Cue.FAULT else KEY_POINTS


GAP = " … "
"""Between two pieces of one message if text between them is left out."""
ITEM_JOINT = "; "
"""Between two neighbouring items of a list."""
PEOPLE = "Participants"
"""Begins the line with the names of the speakers."""
INDEX = "Mentioned"
"""Begins the line that lists exact items without their sentences."""
JOINT = ", "
_MAX_DISTANCE = 40
"""Messages between two statements of a speaker that share a line, at most."""
_LINE_LENGTH = 240
"""Characters. A longer line gets no text of other messages."""


def lay_out(
    chosen: Iterable[tuple[str, SummaryUnit]],
    *,
    people: Sequence[str] = (),
    index: Sequence[str] = (),
    headings: bool = True,
    style: Style = "default",
) -> str:
    """Return the summary: units by section, the participants, and the index of items."""
    lines: dict[str, list[str]] = {}
    if people:
        lines[in_style(CONTEXT, style)] = [f"- {PEOPLE}: {JOINT.join(people)}"]
    by_section: dict[str, list[SummaryUnit]] = {}
    for section, unit in chosen:
        by_section.setdefault(section, []).append(unit)
    sections = sections_of(style)
    if not headings:  # then the sentences of a message share a line
        by_section = {sections[0]: [unit for each in by_section.values() for unit in each]}
    day = ""
    for section in sections:
        for line_day, line in _lines(by_section.get(section, [])):
            dated = f"- [{line_day}] {line[2:]}" if line and line_day not in {"", day} else line
            day = line_day or day
            lines.setdefault(section, []).append(dated)
    if index:
        last = in_style(TECHNICAL, "default") if style != "agent" else sections[-1]
        lines.setdefault(last, []).append(f"- {INDEX}: {JOINT.join(index)}")
    if not headings:
        return "\n".join(line for section in sections for line in lines.get(section, ()))
    blocks = ("\n".join((f"## {name}", *lines[name])) for name in sections if name in lines)
    return "\n\n".join(blocks)


def _lines(units: list[SummaryUnit]) -> Iterator[tuple[str, str]]:
    """Yield the lines of a section, each with its day."""
    ordered = sorted(units, key=lambda unit: (unit.origin.message, unit.place))
    line: list[SummaryUnit] = []
    for unit in ordered:
        if line and not _shares_line(line, unit):
            yield line[0].origin.day, _line(line)
            if unit.origin.generation != line[-1].origin.generation:
                yield "", ""
            line = []
        line.append(unit)
    if line:
        yield line[0].origin.day, _line(line)


def _shares_line(line: list[SummaryUnit], unit: SummaryUnit) -> bool:
    """Return True if a unit shares the line: the same message, or the speaker goes on later."""
    if unit.form is TextForm.TOOL or line[-1].form is TextForm.TOOL:
        return False
    before, origin = line[-1].origin, unit.origin
    if origin.day != before.day or origin.role != before.role:
        return False
    if origin.message == before.message:
        return True
    if origin.speaker != before.speaker or origin.speaker in UNNAMED or before.message < 0:
        return False
    length = sum(len(each.text) for each in line)
    return origin.message - before.message <= _MAX_DISTANCE and length < _LINE_LENGTH


def _line(units: list[SummaryUnit]) -> str:
    speaker = units[0].origin.speaker
    return f"- {speaker}: {_joined(units)}" if speaker else f"- {_joined(units)}"


def _joined(units: list[SummaryUnit]) -> str:
    """Return the pieces in one line, with a gap wherever text is left out."""
    text, before = units[0].text, units[0]
    for unit in units[1:]:
        if unit.is_trimmed or unit.place != before.place + 1 or unit.origin != before.origin:
            joint = GAP
        elif unit.begins_line and not text.endswith(PAUSES):
            joint = ITEM_JOINT
        else:
            joint = "" if text.endswith(UNSPACED_ENDS) else " "
        text += joint + unit.text
        before = unit
    return text


SETTLED = 0.0
"""The factor of a question that is answered."""
_ANSWERED = 0.5
"""The share of a question's concepts that an answer repeats."""


def mark_open(units: Iterable[SummaryUnit], last: int | None) -> list[SummaryUnit]:
    """Return the units, with the cue OPEN on unanswered questions and on doubts about them.

    `last` is the index of the conversation's last message; None if other messages follow.
    """
    units = list(units)
    questions = {unit.origin.message for unit in units if unit.cues & Cue.QUESTION}
    doubts = {unit.origin.message for unit in units if unit.cues & (Cue.DOUBT | Cue.OPEN)}

    def is_open(unit: SummaryUnit) -> bool:
        message, cues = unit.origin.message, unit.cues
        if message < 0 or unit.origin.role == "tool":
            return False
        if cues & Cue.QUESTION:
            return message == last or message + 1 in doubts
        return bool(cues & Cue.DOUBT) and message - 1 in questions

    return [unit._replace(cues=unit.cues | Cue.OPEN) if is_open(unit) else unit for unit in units]


def settled(units: Sequence[SummaryUnit]) -> list[int]:
    """Return the questions of the previous summary that a new decision or outcome answers."""
    questions = [
        index
        for index, unit in enumerate(units)
        if unit.is_earlier and unit.origin.section in {QUESTIONS, OPEN_QUESTIONS}
    ]
    if not questions:
        return []
    answers = [
        set(unit.concepts)
        for unit in units
        if not unit.is_earlier and unit.cues & (Cue.DECISION | Cue.OUTCOME)
    ]
    return [
        index
        for index in questions
        if any(
            len(answer.intersection(units[index].concepts)) > _ANSWERED * len(units[index].concepts)
            for answer in answers
        )
    ]


_ROLES: dict[str, Role] = {shown: role for role, shown in SPEAKERS.items()} | {"": "assistant"}
_HEADING = re.compile(r"^\s*#{1,6}\s+(.*?)\s*:?\s*$")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_DAY = re.compile(r"^\[(\d{4}-\d\d-\d\d)\] ")
_TOOL_SECTIONS = frozenset({TOOLS, STATE, ERRORS, TRIED})
_KNOWN_SECTIONS = frozenset((*SECTIONS, *AGENT_SECTIONS))
_SPEAKER = re.compile(r"^([^:\s][^:]{0,39}): (?=\S)")


def read_earlier(summary: str, lexicon: Lexicon) -> list[SummaryUnit]:
    """Return the units of a summary by this summarizer, a model or a person.

    Each line counts as a message with a negative index, because it precedes all messages.
    """
    units: list[SummaryUnit] = []
    lines = list(_earlier_lines(summary))
    place = 0
    day = ""
    for number, (section, generation, raw) in enumerate(lines):
        dated = _DAY.match(raw)
        line = raw[dated.end() :] if dated else raw
        day = dated[1] if dated else day
        speaker, runs = _runs(line, section)
        role = "tool" if section in _TOOL_SECTIONS else _ROLES.get(speaker, "user")
        origin = Origin(number - len(lines), speaker, role, section, generation, day)
        for run in runs:
            place += 1
            for piece in run:
                place += 1
                reading = read(piece.text, lexicon, trim=False)
                if reading.text:
                    units.append(
                        SummaryUnit.of(
                            reading, origin, piece.form, place, begins_line=piece.begins_line
                        )
                    )
    return units


def _earlier_lines(summary: str) -> Iterator[tuple[str, int, str]]:
    """Yield section, generation and text of each line; without headings, the first is context.

    Empty lines inside a section separate the lines of different compressions.
    """
    section, headed = CONTEXT, False
    generation, ended = 0, False
    for raw in summary.splitlines():
        line = _BULLET.sub("", raw).strip()
        heading = _HEADING.match(line)
        if heading:
            section = heading[1] if heading[1] in _KNOWN_SECTIONS else KEY_POINTS
            headed, generation, ended = True, 0, False
        elif line:
            yield section, min(generation + ended, LAST_GENERATION), line
            generation, ended = generation + ended, False
            section = section if headed else KEY_POINTS
        else:
            ended = True


def _runs(line: str, section: str) -> tuple[str, Iterator[Iterable[TextPiece]]]:
    """Return the speaker of a line, and its pieces in runs between which text is left out."""
    if line.startswith(f"{INDEX}: "):
        items = line.removeprefix(f"{INDEX}: ").split(JOINT)
        return "", ((TextPiece(TextForm.ITEM, item, begins_line=True),) for item in items)
    if section in _TOOL_SECTIONS:
        return "", iter([(TextPiece(TextForm.TOOL, line, begins_line=True),)])
    named = _SPEAKER.match(line)
    speaker, text = (named[1], line[named.end() :]) if named else ("", line)
    runs = (_pieces(run) for run in text.split(GAP))
    return speaker, runs if speaker in UNNAMED else map(in_runs, runs)


def _pieces(run: str) -> Iterator[TextPiece]:
    """Yield the phrases of a run; list items that were joined are separated again."""
    for item in run.split(ITEM_JOINT):
        yield from phrases(item)


def ages(units: Sequence[SummaryUnit]) -> list[float]:
    """Return the age of each unit: 1 for the first summary, 0 for new messages.

    Listed items have no generation; the list grows at its end, so their place is their age.
    """
    listed = [index for index, unit in enumerate(units) if unit.form is TextForm.ITEM]
    found = [
        1 - unit.origin.generation / (LAST_GENERATION + 1) if unit.is_earlier else 0.0
        for unit in units
    ]
    for place, index in enumerate(listed):
        found[index] = 1 - place / len(listed)
    return found


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
    """By concept. The composition lowers the worths of concepts that the summary has."""
    replaced: dict[int, float]
    """Units that a correction made obsolete."""
    people: tuple[str, ...] = ()
    """The names of all speakers of a meeting."""
    style: Style = "default"
    follows_opening: bool = False
    """True if a message before these states the purpose."""

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
    def new(self) -> Sequence[int]:
        """The units of the messages."""
        units = enumerate(self.units)
        return array("I", (i for i, u in units if not u.is_earlier and not u.origin.section))


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
        lines = [(unit.origin.section, unit.text) for unit in earlier]
        gone = list(superseded(lines, state))
        earlier = [unit for unit, is_gone in zip(earlier, gone, strict=True) if not is_gone]
    # Count a sentence that is repeated word for word only once. Tokens are not held: all of them
    # take several times the memory of the text.
    distinct = dict.fromkeys(draft.text for draft in drafts)
    counts = lexicon.learn(chain(map(str.split, distinct), map(_tokens, earlier)))
    number = len(distinct) + len(earlier)
    del distinct
    recent = "\n".join(text_of(message.parts)[:_RECENT_LENGTH] for message in request.recent)
    recent_tokens = recent[:_RECENT_LENGTH].split()
    recent_concepts = {concept for raw in recent_tokens for concept in lexicon[raw].concepts}
    worths = concept_worths(counts, number, lexicon, recent_concepts)
    chosen = promising_drafts(drafts, worths, lexicon, request.target)
    lengths, place = _turn_lengths(drafts), len(drafts)
    units = [*earlier, *read_drafts(drafts, chosen, lexicon)]
    units = [unit for unit in units if unit.concepts] or units
    units += _state_units(state, request.messages, place, lexicon, worths)
    topics = correction_topics(units, lexicon)
    del lexicon
    last = len(request.messages) - 1
    units = mark_open(units, None if request.recent else last)
    obsolete = replaced(units, topics) | dict.fromkeys(settled(units), SETTLED)
    factors = unit_factors(units, lengths, request.style)
    for index, age in enumerate(ages(units)):
        if age or index in obsolete:
            factors[index] *= obsolete.get(index, 1.0) * (1 + _AGE * age)
        if units[index].origin.section and not units[index].is_earlier:
            factors[index] = _STATE_FACTOR
    costs = _costs(units, tokenizer)
    return Material(
        units,
        last,
        costs,
        factors,
        worths,
        obsolete,
        people,
        request.style,
        request.follows_opening,
    )


def _turn_lengths(drafts: Iterable[UnitDraft]) -> Counter[int]:
    """Return the words of each turn of a person with a name, by the index of its message."""
    lengths = Counter[int]()
    for draft in drafts:
        if draft.origin.speaker not in UNNAMED:
            lengths[draft.origin.message] += len(draft.text.split())
    return lengths


def _state_units(
    lines: Sequence[StateLine],
    messages: Sequence[Message],
    place: int,
    lexicon: Lexicon,
    worths: dict[str, float],
) -> Iterator[SummaryUnit]:
    """Yield a unit for each line about the state; its new concepts get the worth of a name."""
    for number, line in enumerate(lines):
        reading = read(line.text, lexicon, trim=False, phrases=False)
        for concept in reading.concepts:
            worths.setdefault(concept, _STATE_WORTH)
        day = day_of(messages[line.message])
        origin = Origin(line.message, "", "tool", line.section, day=day)
        yield SummaryUnit.of(reading, origin, TextForm.TOOL, place + number)


def _tokens(unit: SummaryUnit) -> list[str]:
    """Return the tokens of a unit; a listed item does not begin a sentence, so a mark precedes."""
    tokens = unit.text.split()
    return ["-", *tokens] if unit.form is TextForm.ITEM else tokens


def _people(earlier: Iterable[SummaryUnit], messages: Iterable[Message]) -> tuple[str, ...]:
    listed = " ".join(u.text for u in earlier if u.origin.speaker == PEOPLE)
    names = dict.fromkeys(listed.split(JOINT) if listed else ())
    names.update(dict.fromkeys(message.name for message in messages if message.name))
    return tuple(names) if len(names) >= _MEETING else ()


_COUNTED_AT_ONCE = 4_096
"""Units. The texts and counts of all units at once would be held several times."""


def _costs(units: list[SummaryUnit], tokenizer: Tokenizer) -> list[UnitCost]:
    speakers = sorted({unit.origin.speaker for unit in units})
    labels = [f"- {speaker}: \n" if speaker else "- \n" for speaker in speakers]
    lines = dict(zip(speakers, tokenizer.count_many(labels), strict=True))
    # Most units have the cost of another one, whose value they share.
    equal: dict[tuple[int, int], UnitCost] = {}
    costs: list[UnitCost] = []
    for at in range(0, len(units), _COUNTED_AT_ONCE):
        some = units[at : at + _COUNTED_AT_ONCE]
        counts = tokenizer.count_many([unit.text for unit in some])
        for tokens, unit in zip(counts, some, strict=True):
            cost = UnitCost(tokens, lines[unit.origin.speaker])
            costs.append(equal.setdefault(cost, cost))
    return costs


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
                worth = max(map(selection.full_worth, concepts))
                found[shown] = IndexEntry(shown, concepts, index, worth * factor)
    return list(found.values())


def _listed_items(material: Material, index: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    unit = material.units[index]
    if unit.form is TextForm.ITEM:
        yield unit.text, unit.concepts
        return
    only_places = unit.form is TextForm.TOOL and not unit.is_earlier
    unwanted = NUMBERS | {"numeral"} if index in material.replaced else {"numeral"}
    for item in unit.items:
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
_NEW_INDEX, _NEW_INDEX_OF_MEETING = 0.2, 0.25
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
_MIN_LEFT_TOKENS = 10
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
            rules = [i for i in new if material.units[i].cues & Cue.RULE]
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
            share = _NEW_INDEX_OF_MEETING if material.people else _NEW_INDEX
            reserve = int(min(budget * share, _MAX_NEW_INDEX))
        selection.fill(new, budget - self._index_tokens - reserve)
        selection.fill(earlier, budget - self._index_tokens, min_worth=0, min_new=_SAME)
        if budget >= _INDEX_FROM:
            left = budget - self._index_tokens - selection.tokens
            self._add_to_index(new, min(left, _MAX_NEW_INDEX))
        with_content = (i for i in new if _has_content(material.units[i]))
        return self._fit(array("I", chain(earlier, with_content))) or self._shortened_best()

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
        if not from_users or (self._material.follows_opening and not is_meeting):
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

    def _fit(self, candidates: Sequence[int]) -> str:
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
        text = self._material.units[self._selection.best()].text
        fits, too_long = 0, len(text) + 1
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            if self._tokenizer.count(text[:middle]) <= self._limit:
                fits = middle
            else:
                too_long = middle
        return text[:fits].strip()


def _has_content(unit: SummaryUnit) -> bool:
    return not unit.cues & (Cue.PLEASANTRY | Cue.ANNOUNCEMENT) and not is_aside(unit)
