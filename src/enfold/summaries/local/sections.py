"""Sections: the headings of a summary in their order, and what belongs under which."""

from __future__ import annotations

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
