"""Instructions: system messages, which nobody folds or edits unasked.

A system message that is a summary of ours is none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import takewhile

from enfold.condensation import Task
from enfold.messages import Message, Text
from enfold.retention import Retention
from enfold.summaries import HEADING


def is_instruction(message: Message) -> bool:
    """True for a system message that is no summary."""
    return message.role == "system" and not _begins_as_summary(message)


def is_summary(message: Message) -> bool:
    """True for a message that is a summary of ours, and nothing else."""
    return len(message.parts) == 1 and _begins_as_summary(message)


def _begins_as_summary(message: Message) -> bool:
    first = next((part.text for part in message.parts if isinstance(part, Text)), "")
    return first.startswith(HEADING)


def keeping_instructions(retention: Retention, messages: Sequence[Message]) -> Retention:
    """The policy, with the instructions that the messages begin with among what stays."""
    leading = sum(1 for _ in takewhile(is_instruction, messages))
    return replace(retention, keep_first=max(retention.keep_first, leading))


def is_worth_folding(task: Task, indexes: Collection[int]) -> bool:
    """Whether these would bring anything new into a summary, or the target is still to reach.

    A summary of a summary alone says less and saves little.
    """
    is_over = task.target is not None and task.tokens > task.target
    return is_over or not all(is_summary(task.messages[index]) for index in indexes)
