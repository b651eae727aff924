"""Reading the earlier summary back: its lines compete with the new messages for a place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from enfold.messages import Role
from enfold.summaries.local.layout import GAP, INDEX, ITEM_JOINT, JOINT
from enfold.summaries.local.lexicon import Lexicon
from enfold.summaries.local.sections import CONTEXT, KEY_POINTS, ORDER, TOOLS
from enfold.summaries.local.splitting import Form, Piece, phrases
from enfold.summaries.local.units import LAST_GENERATION, SPEAKERS, Origin, Unit, read

_ROLES: dict[str, Role] = {shown: role for role, shown in SPEAKERS.items()} | {"": "assistant"}
_HEADING = re.compile(r"^\s*#{1,6}\s+(.*?)\s*:?\s*$")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_SPEAKER = re.compile(r"^([^:\s][^:]{0,39}): (?=\S)")


def read_earlier(summary: str, lexicon: Lexicon) -> list[Unit]:
    """The units of a summary, whoever wrote it: this summarizer, a model, or a person.

    Each line counts as a message of its own, with a negative index: before all the others.
    """
    units: list[Unit] = []
    lines = list(_lines(summary))
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


def _lines(summary: str) -> Iterator[tuple[str, int, str]]:
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
