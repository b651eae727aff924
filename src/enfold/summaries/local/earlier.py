"""Reading the earlier summary back: its lines compete with the new messages for a place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from enfold.messages import Role
from enfold.summaries.local import sections
from enfold.summaries.local.layout import GAP, INDEX, ITEM_JOINT, JOINT
from enfold.summaries.local.lexicon import Lexicon
from enfold.summaries.local.splitting import Form, Piece, sentences
from enfold.summaries.local.units import SPEAKERS, Origin, Unit, read

_ROLES: dict[str, Role] = {shown: role for role, shown in SPEAKERS.items()} | {"": "assistant"}
_HEADING = re.compile(r"^\s*#{1,6}\s+(.*?)\s*:?\s*$")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_SPEAKER = re.compile(r"^([^:\s][^:]{0,39}): (?=\S)")


def read_earlier(summary: str, lexicon: Lexicon) -> list[Unit]:
    """The units of a summary, whoever wrote it: this summarizer, a model, or a person.

    Each line counts as a message of its own, with a negative index: before all the others.
    """
    units: list[Unit] = []
    lines = summary.splitlines()
    section = sections.CONTEXT
    headed = False
    place = 0
    for number, line in enumerate(lines):
        heading = _HEADING.match(line)
        if heading:
            headed = True
            section = heading[1] if heading[1] in sections.ORDER else sections.KEY_POINTS
            continue
        speaker, run_of_pieces = _parts(_BULLET.sub("", line).strip(), section)
        role = _ROLES.get(speaker, "user")
        origin = Origin(number - len(lines), speaker, role, section)
        section = section if headed else sections.KEY_POINTS
        for pieces in run_of_pieces:
            place += 1
            for piece in pieces:
                place += 1
                reading = read(piece.text, lexicon)
                if reading.text:
                    units.append(Unit(reading, origin, piece.form, place, piece.begins_line))
    return units


def _parts(line: str, section: str) -> tuple[str, Iterator[Iterator[Piece]]]:
    """The speaker of a line, and its pieces in runs with something left out in between."""
    if line.startswith(f"{INDEX}: "):
        items = line.removeprefix(f"{INDEX}: ").split(JOINT)
        return "", (iter((Piece(Form.ITEM, item, begins_line=True),)) for item in items)
    if section == sections.TOOLS:
        return "", iter((iter((Piece(Form.TOOL, line, begins_line=True),)),))
    named = _SPEAKER.match(line)
    speaker, text = (named[1], line[named.end() :]) if named else ("", line)
    return speaker, (_pieces(run) for run in text.split(GAP))


def _pieces(run: str) -> Iterator[Piece]:
    """List items that were joined into one line come apart again."""
    for item in run.split(ITEM_JOINT):
        yield from sentences(item)
