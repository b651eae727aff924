"""Questions: which of them were left open.

A question is open if nobody spoke after it, or if the next to speak had no answer either; then
their doubt belongs to it. Most questions in a conversation are answered at once and say little.
"""

from __future__ import annotations

from collections.abc import Iterable

from enfold.summaries.local.cues import Cue
from enfold.summaries.local.units import Unit


def mark_open(units: Iterable[Unit], last: int) -> list[Unit]:
    """The units, with the cue of openness on those of them; `last` is the last message's index."""
    units = list(units)
    asked = {unit.origin.message for unit in units if unit.reading.cues & Cue.QUESTION}
    doubted = {unit.origin.message for unit in units if unit.reading.cues & (Cue.DOUBT | Cue.OPEN)}
    return [_marked(unit) if _is_open(unit, asked, doubted, last) else unit for unit in units]


def _is_open(unit: Unit, asked: set[int], doubted: set[int], last: int) -> bool:
    message, cues = unit.origin.message, unit.reading.cues
    if message < 0:
        return False
    if cues & Cue.QUESTION:
        return message == last or message + 1 in doubted
    return bool(cues & Cue.DOUBT) and message - 1 in asked


def _marked(unit: Unit) -> Unit:
    return unit._replace(reading=unit.reading._replace(cues=unit.reading.cues | Cue.OPEN))
