"""Standing messages: the messages that every compression leaves in the view, word for word.

These are system and developer messages anywhere in the history, the context block of a coding
agent, messages that a person pinned, and what people typed. A person can release any of them.
Text inside tool results, quoted files and summaries never stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from enfold.messages import Message, Text
from enfold.summaries import HEADING

Why: TypeAlias = Literal["system", "context", "pinned", "rule", "words"]
"""The reason why a message stands."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A message that stays in the view, and the reason."""

    index: int
    why: Why
    tokens: int


def find_standing(
    messages: Sequence[Message], counts: Sequence[int], pins: Mapping[int, bool] | None = None
) -> tuple[Standing, ...]:
    """Return the standing messages in order.

    `pins` has the indexes of pinned messages (True) and of released ones (False).
    """
    marked = pins or {}
    found = [
        Standing(index, why, counts[index])
        for index, message in enumerate(messages)
        if (why := _why(message, marked.get(index))) is not None
    ]
    return tuple(found)


def _why(message: Message, is_pinned: bool | None) -> Why | None:  # noqa: FBT001 - a value
    if is_pinned is not None:
        return "pinned" if is_pinned else None
    return "system" if is_instruction(message) else None


def is_instruction(message: Message) -> bool:
    """Return True for a system message that is no summary."""
    return message.role == "system" and not has_summary(message)


def has_summary(message: Message) -> bool:
    """Return True if the message begins with a summary of ours."""
    first = next((part.text for part in message.parts if isinstance(part, Text)), "")
    return first.startswith(HEADING)
