"""The view: the messages that the model is sent, from the snapshot and after it.

It shows at most one summary. Where it stands depends on what a dialect can say: a system message
in its place for most, or a user message if the settings say so; for providers that have no system
role inside a conversation a fenced block of a user's message, after any tool result, because those
must come first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

from enfold.messages import Message, Role, Text, ToolResult
from enfold.summaries import fence
from enfold.wire import has_inline_system


class ShownMessage(NamedTuple):
    """A message in the view."""

    id: str
    message: Message
    tokens: int
    estimate: int = 0
    edit: str | None = None
    """The id of the edit that is shown in place of the message's own content."""
    depth: int = 0
    """Its place on its branch; the first is 1. 0 where there is no branch."""
    points_to: tuple[str, ...] = ()
    """The ids of the messages that the edit points to for the content that it leaves out."""


@dataclass(frozen=True)
class View:
    """Messages, and the summary of those that are not shown."""

    shown: tuple[ShownMessage, ...]
    tokenizer: str
    tip: str | None = None
    """The last message of the branch, shown or not. None for an empty branch."""
    snapshot: str | None = None
    """The id of the snapshot that applies. None if none does."""
    summary: str | None = None
    summary_tokens: int = 0
    summary_at: int = 0
    """The summary stands before the message of this index."""
    settled: int = 0
    """Shown messages that the last compression left; compressing them again saves nothing."""
    covered: int = 0
    """Number of shown messages at or before the snapshot's cutoff."""
    cutoff: str | None = None
    """The last message that the snapshot covers, shown or not."""
    summary_role: Role = "system"
    """The summary's role in dialects that have a system role inside a conversation."""

    @classmethod
    def of(cls, messages: Sequence[Message], counts: Sequence[int], tokenizer: str) -> View:
        """Return the view of messages that are not stored, with their token counts."""
        depths = range(1, len(messages) + 1)
        fields = zip(
            map(str, depths),
            messages,
            counts,
            repeat(0, len(messages)),
            repeat(None, len(messages)),
            depths,
            repeat((), len(messages)),
            strict=True,
        )
        return cls(tuple(map(ShownMessage._make, fields)), tokenizer)

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The messages shown, without the summary."""
        return tuple([shown.message for shown in self.shown])

    @cached_property
    def tokens(self) -> int:
        """Exact tokens of messages and summary."""
        return self.summary_tokens + sum([shown.tokens for shown in self.shown])

    @cached_property
    def estimate(self) -> int:
        """Tokens of content without an exact count."""
        return sum([shown.estimate for shown in self.shown])

    def messages_for(self, dialect: str) -> tuple[Message, ...]:
        """The messages with the summary among them, as the dialect places it."""
        if self.summary is None:
            return self.messages
        at = self.summary_at
        summary = summary_message(self.summary, dialect, role=self.summary_role)
        messages = (*self.messages[:at], summary, *self.messages[at:])
        if not puts_summary_in_user_message(dialect):
            return messages
        return join_user_messages(messages, joints([shown.depth for shown in self.shown], at))


def puts_summary_in_user_message(dialect: str) -> bool:
    """Return True if a summary must be part of a user's message in that dialect."""
    return not has_inline_system(dialect)


def summary_message(
    summary: str, dialect: str, *, role: Role = "system", note: str = ""
) -> Message:
    """Return the fenced summary as a message; `note` tells the model how to use it."""
    if puts_summary_in_user_message(dialect):
        role = "user"
    return Message(role, (Text(fence(summary, note=note)),))


def joints(places: Sequence[int], at: int) -> list[int]:
    """Return the indexes at which a view with a summary joins messages that were apart.

    `places` are those of the messages in the history; the summary stands before message `at`.
    """
    gaps = (i for i in range(1, len(places)) if places[i] != places[i - 1] + 1)
    return sorted({at, at + 1, *(index if index < at else index + 1 for index in gaps)})


def join_user_messages(messages: Sequence[Message], joints: Collection[int]) -> tuple[Message, ...]:
    """Join user messages that follow each other only because messages between them left the view.

    `joints` are the indexes of messages that may join the one before them. The provider wants the
    roles to alternate. Tool results come first in a message, and the last message's fields stay.
    """
    joined: list[Message] = []
    for index, message in enumerate(messages):
        if index in joints and joined and message.role == joined[-1].role == "user":
            parts = (*joined.pop().parts, *message.parts)
            results = tuple(part for part in parts if isinstance(part, ToolResult))
            rest = tuple(part for part in parts if not isinstance(part, ToolResult))
            joined.append(replace(message, parts=(*results, *rest)))
        else:
            joined.append(message)
    return tuple(joined)
