"""Layout: chosen units as Markdown, section by section, in each in the conversation's order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from enfold.messages import Role
from enfold.summaries.local.lexicon import PAUSES, UNSPACED_ENDS, Cue, Lexicon
from enfold.summaries.local.sentences import Form, Piece, phrases
from enfold.summaries.local.units import LAST_GENERATION, SPEAKERS, UNNAMED, Origin, Unit, read

CONTEXT = "Context"
KEY_POINTS = "Key Points"
TECHNICAL = "Technical Details"
TOOLS = "Tool Invocations"
DECISIONS = "Decisions and Outcomes"
QUESTIONS = "Unresolved Questions"
ORDER = (CONTEXT, KEY_POINTS, TECHNICAL, TOOLS, DECISIONS, QUESTIONS)

_LATE = 0.8
"""From this share of the conversation on, what was to be done next is still to be done."""


def section_of(unit: Unit, last: int) -> str:
    """The heading under which a unit belongs; `last` is the index of the last message."""
    cues = unit.reading.cues
    if unit.origin.section:
        return unit.origin.section
    if unit.form is Form.TOOL:
        return TOOLS
    if cues & Cue.OPEN and not cues & Cue.DECISION:
        return QUESTIONS
    is_next = cues & Cue.NEXT and unit.origin.message > last * _LATE
    if cues & (Cue.DECISION | Cue.OUTCOME) or is_next:
        return DECISIONS
    is_technical = unit.form in {Form.CODE, Form.LISTING} or unit.reading.technical > 1
    return TECHNICAL if is_technical or cues & Cue.FAULT else KEY_POINTS


GAP = " … "
"""Between two pieces of one message with something left out in between."""
ITEM_JOINT = "; "
"""Between two neighbouring items of a list."""
PEOPLE = "Participants"
"""How the line begins that names who took part."""
INDEX = "Mentioned"
"""How the line begins that lists exact items without their sentences."""
JOINT = ", "
_SOON = 3
"""Messages apart, at most, for a speaker's words to stand in one line."""
_LONG_LINE = 240
"""Characters after which a line takes no more of other messages."""


def lay_out(
    chosen: Iterable[tuple[str, Unit]],
    *,
    people: Sequence[str] = (),
    index: Sequence[str] = (),
    headings: bool = True,
) -> str:
    """The summary's text: units with their sections, who took part, and the index of items."""
    lines: dict[str, list[str]] = {}
    if people:
        lines[CONTEXT] = [f"- {PEOPLE}: {JOINT.join(people)}"]
    by_section: dict[str, list[Unit]] = {}
    for section, unit in chosen:
        by_section.setdefault(section, []).append(unit)
    for section, units in by_section.items():
        lines.setdefault(section, []).extend(_lines(units))
    if index:
        lines.setdefault(TECHNICAL, []).append(f"- {INDEX}: {JOINT.join(index)}")
    if not headings:
        return "\n".join(line for section in ORDER for line in lines.get(section, ()))
    blocks = ("\n".join((f"## {name}", *lines[name])) for name in ORDER if name in lines)
    return "\n\n".join(blocks)


def _lines(units: list[Unit]) -> Iterator[str]:
    ordered = sorted(units, key=lambda unit: (unit.origin.message, unit.place))
    line: list[Unit] = []
    for unit in ordered:
        if line and not _goes_on(line, unit):
            yield _line(line)
            if unit.origin.generation != line[-1].origin.generation:
                yield ""
            line = []
        line.append(unit)
    if line:
        yield _line(line)


def _goes_on(line: list[Unit], unit: Unit) -> bool:
    """Whether a unit shares the line: the same message, or somebody goes on after a short while."""
    if unit.form is Form.TOOL:
        return False
    before, origin = line[-1].origin, unit.origin
    if origin.message == before.message:
        return True
    if origin.speaker != before.speaker or origin.speaker in UNNAMED or before.message < 0:
        return False
    length = sum(len(each.reading.text) for each in line)
    return origin.message - before.message <= _SOON and length < _LONG_LINE


def _line(units: list[Unit]) -> str:
    speaker = units[0].origin.speaker
    return f"- {speaker}: {_joined(units)}" if speaker else f"- {_joined(units)}"


def _joined(units: list[Unit]) -> str:
    """Pieces in one line, with a gap wherever something was left out."""
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
"""The factor of a question that was answered."""
_ABOUT_IT = 0.5
"""The share of a question's concepts that its answer repeats."""


def mark_open(units: Iterable[Unit], last: int | None) -> list[Unit]:
    """The units, with the cue of openness on what is open.

    `last` is the index of the message after which nobody spoke; None where others follow.
    """
    units = list(units)
    asked = {unit.origin.message for unit in units if unit.reading.cues & Cue.QUESTION}
    doubted = {unit.origin.message for unit in units if unit.reading.cues & (Cue.DOUBT | Cue.OPEN)}
    return [_marked(unit) if _is_open(unit, asked, doubted, last) else unit for unit in units]


def settled(units: Sequence[Unit]) -> list[int]:
    """Open questions of the earlier summary that a decision or an outcome among the new answers."""
    answers = [
        set(unit.reading.concepts)
        for unit in units
        if not unit.is_earlier and unit.reading.cues & (Cue.DECISION | Cue.OUTCOME)
    ]
    return [
        index
        for index, unit in enumerate(units)
        if unit.is_earlier and unit.origin.section == QUESTIONS and _is_among(unit, answers)
    ]


def _is_among(question: Unit, answers: Iterable[set[str]]) -> bool:
    about = question.reading.concepts
    return any(len(answer.intersection(about)) > _ABOUT_IT * len(about) for answer in answers)


def _is_open(unit: Unit, asked: set[int], doubted: set[int], last: int | None) -> bool:
    message, cues = unit.origin.message, unit.reading.cues
    if message < 0:
        return False
    if cues & Cue.QUESTION:
        return message == last or message + 1 in doubted
    return bool(cues & Cue.DOUBT) and message - 1 in asked


def _marked(unit: Unit) -> Unit:
    return unit._replace(reading=unit.reading._replace(cues=unit.reading.cues | Cue.OPEN))


_ROLES: dict[str, Role] = {shown: role for role, shown in SPEAKERS.items()} | {"": "assistant"}
_HEADING = re.compile(r"^\s*#{1,6}\s+(.*?)\s*:?\s*$")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_SPEAKER = re.compile(r"^([^:\s][^:]{0,39}): (?=\S)")


def read_earlier(summary: str, lexicon: Lexicon) -> list[Unit]:
    """The units of a summary, whoever wrote it: this summarizer, a model, or a person.

    Each line counts as a message of its own, with a negative index: before all the others.
    """
    units: list[Unit] = []
    lines = list(_earlier_lines(summary))
    place = 0
    for number, (section, generation, line) in enumerate(lines):
        speaker, runs = _runs(line, section)
        role = "tool" if section == TOOLS else _ROLES.get(speaker, "user")
        origin = Origin(number - len(lines), speaker, role, section, generation)
        for run in runs:
            place += 1
            for piece in run:
                place += 1
                reading = read(piece.text.split(), lexicon, trim=False)
                if reading.text:
                    units.append(Unit(reading, origin, piece.form, place, piece.begins_line))
    return units


def _earlier_lines(summary: str) -> Iterator[tuple[str, int, str]]:
    """Section, generation and text of each line; without headings, the first line is the context.

    Empty lines inside a section divide what was added to it at different times.
    """
    section, headed = CONTEXT, False
    generation, ended = 0, False
    for raw in summary.splitlines():
        line = _BULLET.sub("", raw).strip()
        heading = _HEADING.match(line)
        if heading:
            section = heading[1] if heading[1] in ORDER else KEY_POINTS
            headed, generation, ended = True, 0, False
        elif line:
            yield section, min(generation + ended, LAST_GENERATION), line
            generation, ended = generation + ended, False
            section = section if headed else KEY_POINTS
        else:
            ended = True


def _runs(line: str, section: str) -> tuple[str, Iterator[Iterable[Piece]]]:
    """The speaker of a line, and its pieces in runs with something left out in between."""
    if line.startswith(f"{INDEX}: "):
        items = line.removeprefix(f"{INDEX}: ").split(JOINT)
        return "", ((Piece(Form.ITEM, item, begins_line=True),) for item in items)
    if section == TOOLS:
        return "", iter([(Piece(Form.TOOL, line, begins_line=True),)])
    named = _SPEAKER.match(line)
    speaker, text = (named[1], line[named.end() :]) if named else ("", line)
    return speaker, (_pieces(run) for run in text.split(GAP))


def _pieces(run: str) -> Iterator[Piece]:
    """List items that were joined into one line come apart again."""
    for item in run.split(ITEM_JOINT):
        yield from phrases(item)


def ages(units: Sequence[Unit]) -> list[float]:
    """How old each unit is: 1 for what was in the first summary, 0 for what is new.

    Listed items have no generations; the list grows at its end, so the place in it tells.
    """
    listed = [index for index, unit in enumerate(units) if unit.form is Form.ITEM]
    found = [
        1 - unit.origin.generation / (LAST_GENERATION + 1) if unit.is_earlier else 0.0
        for unit in units
    ]
    for place, index in enumerate(listed):
        found[index] = 1 - place / len(listed)
    return found
