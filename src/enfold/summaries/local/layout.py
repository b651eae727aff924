"""Layout: a summary as Markdown sections, written from units and read back into units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from enfold.messages import Role
from enfold.summaries.local.lexicon import Lexicon
from enfold.summaries.local.units import (
    LAST_GENERATION,
    SPEAKERS,
    UNNAMED,
    Origin,
    SummaryUnit,
    read,
)
from enfold.summaries.request import AGENT_SECTIONS, Style
from enfold.text.cues import Cue
from enfold.text.scripts import PAUSES, UNSPACED_ENDS
from enfold.text.sentences import TextForm, TextPiece, phrases

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
    cues = unit.reading.cues
    if unit.form is TextForm.TOOL or section == QUESTIONS:
        return section
    if unit.origin.role == "user" and cues & Cue.DEMAND:
        return CONSTRAINTS
    if cues & Cue.NEXT and unit.origin.message > last * _LATE:
        return NEXT
    return ERRORS if cues & Cue.FAULT and section != DECISIONS else section


def _section_of(unit: SummaryUnit, last: int) -> str:
    cues = unit.reading.cues
    if unit.form is TextForm.TOOL:
        return TOOLS
    if cues & Cue.OPEN and not cues & Cue.DECISION:
        return QUESTIONS
    is_next = cues & Cue.NEXT and unit.origin.message > last * _LATE
    if cues & (Cue.DECISION | Cue.OUTCOME) or is_next:
        return DECISIONS
    is_technical = unit.form in {TextForm.CODE, TextForm.LISTING} or unit.reading.technical > 1
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
_MAX_DISTANCE = 3
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
    """Return True if a unit shares the line: the same message, or the speaker soon continues."""
    if unit.form is TextForm.TOOL or line[-1].form is TextForm.TOOL:
        return False
    before, origin = line[-1].origin, unit.origin
    if origin.day != before.day or origin.role != before.role:
        return False
    if origin.message == before.message:
        return True
    if origin.speaker != before.speaker or origin.speaker in UNNAMED or before.message < 0:
        return False
    length = sum(len(each.reading.text) for each in line)
    return origin.message - before.message <= _MAX_DISTANCE and length < _LINE_LENGTH


def _line(units: list[SummaryUnit]) -> str:
    speaker = units[0].origin.speaker
    return f"- {speaker}: {_joined(units)}" if speaker else f"- {_joined(units)}"


def _joined(units: list[SummaryUnit]) -> str:
    """Return the pieces in one line, with a gap wherever text is left out."""
    text, before = units[0].reading.text, units[0]
    for unit in units[1:]:
        reading = unit.reading
        if reading.trimmed or unit.place != before.place + 1 or unit.origin != before.origin:
            joint = GAP
        elif unit.begins_line and not text.endswith(PAUSES):
            joint = ITEM_JOINT
        else:
            joint = "" if text.endswith(UNSPACED_ENDS) else " "
        text += joint + reading.text
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
    questions = {unit.origin.message for unit in units if unit.reading.cues & Cue.QUESTION}
    doubts = {unit.origin.message for unit in units if unit.reading.cues & (Cue.DOUBT | Cue.OPEN)}

    def is_open(unit: SummaryUnit) -> bool:
        message, cues = unit.origin.message, unit.reading.cues
        if message < 0 or unit.origin.role == "tool":
            return False
        if cues & Cue.QUESTION:
            return message == last or message + 1 in doubts
        return bool(cues & Cue.DOUBT) and message - 1 in questions

    return [
        unit._replace(reading=unit.reading._replace(cues=unit.reading.cues | Cue.OPEN))
        if is_open(unit)
        else unit
        for unit in units
    ]


def settled(units: Sequence[SummaryUnit]) -> list[int]:
    """Return the questions of the previous summary that a new decision or outcome answers."""
    answers = [
        set(unit.reading.concepts)
        for unit in units
        if not unit.is_earlier and unit.reading.cues & (Cue.DECISION | Cue.OUTCOME)
    ]
    return [
        index
        for index, unit in enumerate(units)
        if unit.is_earlier
        and unit.origin.section in {QUESTIONS, OPEN_QUESTIONS}
        and any(
            len(answer.intersection(unit.reading.concepts)) > _ANSWERED * len(unit.reading.concepts)
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
                reading = read(piece.text.split(), lexicon, trim=False)
                if reading.text:
                    units.append(SummaryUnit(reading, origin, piece.form, place, piece.begins_line))
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
    return speaker, (_pieces(run) for run in text.split(GAP))


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
