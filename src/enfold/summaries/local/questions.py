"""Questions: which of them were left open, and which open ones have been settled since.

A question is open if nobody spoke after it, or if the next to speak had no answer either; then
their doubt belongs to it. Most questions in a conversation are answered at once and say little.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from enfold.summaries.local.cues import Cue
from enfold.summaries.local.sections import QUESTIONS
from enfold.summaries.local.units import Unit

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
