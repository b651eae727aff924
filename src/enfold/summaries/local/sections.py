"""Sections: the headings of a summary in their order, and what belongs under which."""

from __future__ import annotations

from collections.abc import Iterable

from enfold.summaries.local.cues import Cue
from enfold.summaries.local.splitting import Form
from enfold.summaries.local.units import Unit

CONTEXT = "Context"
KEY_POINTS = "Key Points"
TECHNICAL = "Technical Details"
TOOLS = "Tool Invocations"
DECISIONS = "Decisions and Outcomes"
QUESTIONS = "Unresolved Questions"
ORDER = (CONTEXT, KEY_POINTS, TECHNICAL, TOOLS, DECISIONS, QUESTIONS)

_LATE = 0.8
"""From this share of the conversation on, what was to be done next is still to be done."""


class Sections:
    """Tells the heading of a unit of a conversation."""

    def __init__(self, units: Iterable[Unit], last: int) -> None:
        self._last = last
        """The index of the last message."""
        self._doubtful = {
            unit.origin.message for unit in units if unit.reading.cues & (Cue.DOUBT | Cue.OPEN)
        }

    def heading(self, unit: Unit) -> str:
        """Where the unit belongs."""
        message, cues = unit.origin.message, unit.reading.cues
        if unit.origin.section:
            return unit.origin.section
        if unit.form is Form.TOOL:
            return TOOLS
        if self._is_open(message, cues):
            return QUESTIONS
        is_next = cues & Cue.NEXT and message > self._last * _LATE
        if cues & (Cue.DECISION | Cue.OUTCOME) or is_next:
            return DECISIONS
        if unit.form in {Form.CODE, Form.LISTING} or unit.reading.technical > 1:
            return TECHNICAL
        return TECHNICAL if cues & Cue.FAULT else KEY_POINTS

    def _is_open(self, message: int, cues: int) -> bool:
        """Said to be open, asked at the very end, or answered with a doubt."""
        if cues & Cue.OPEN:
            return not cues & Cue.DECISION
        asked = cues & Cue.QUESTION
        return bool(asked) and (message >= self._last or message + 1 in self._doubtful)
