"""The view: the messages that the model is sent, from the snapshot and after it.

It shows at most one summary. Where it stands depends on what a dialect can say: a system message
in its place for most; for providers that have no system role inside a conversation a fenced block
of a user's message, after any tool result, because those must come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from enfold.messages import Message, Text, ToolResult
from enfold.summaries import fence
from enfold.wire import has_inline_system


@dataclass(frozen=True, slots=True)
class ShownMessage:
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
    """The ids of the messages that the edit points to for what it leaves out."""


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
    """So many of the messages shown were left by the last fold: to fold them brings nothing new."""
    covered: int = 0
    """So many of the messages shown stand at or before the snapshot's cutoff."""
    cutoff: str | None = None
    """The last message that the snapshot covers, shown or not."""

    @classmethod
    def of(cls, messages: Sequence[Message], counts: Sequence[int], tokenizer: str) -> View:
        """Return the view of messages that are not stored, with their token counts."""
        shown = (
            ShownMessage("", message, tokens)
            for message, tokens in zip(messages, counts, strict=True)
        )
        return cls(tuple(shown), tokenizer)

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The messages shown, without the summary."""
        return tuple(shown.message for shown in self.shown)

    @cached_property
    def tokens(self) -> int:
        """Exact tokens of messages and summary."""
        return self.summary_tokens + sum(shown.tokens for shown in self.shown)

    @cached_property
    def estimate(self) -> int:
        """Tokens of what has no exact count."""
        return sum(shown.estimate for shown in self.shown)

    def messages_for(self, dialect: str) -> tuple[Message, ...]:
        """The messages with the summary among them, as the dialect places it."""
        if self.summary is None:
            return self.messages
        before, after = self.messages[: self.summary_at], self.messages[self.summary_at :]
        place = place_summary(
            self.summary, before[-1] if before else None, after[0] if after else None, dialect
        )
        return (*before[:-1], *place, *after[1:])


def puts_summary_in_user_message(dialect: str) -> bool:
    """Return True if a summary must be part of a user's message in that dialect."""
    return not has_inline_system(dialect)


def place_summary(
    summary: str, before: Message | None, after: Message | None, dialect: str, *, note: str = ""
) -> tuple[Message, ...]:
    """The summary between two messages, or in one of them, as the dialect wants it.

    `note` is what the model is told of it, by enfold.
    """
    text = Text(fence(summary, note=note))
    leading = (before,) if before is not None else ()
    following = (after,) if after is not None else ()
    if not puts_summary_in_user_message(dialect):
        return (*leading, Message("system", (text,)), *following)
    if after is not None and after.role == "user":
        return (*leading, _with_block(after, text))
    if before is not None and before.role == "user":
        return (_with_block(before, text, last=True), *following)
    return (*leading, Message("user", (text,)), *following)


def _with_block(message: Message, block: Text, *, last: bool = False) -> Message:
    """The message with one more text: after its tool results, before or after what else it says."""
    results = tuple(part for part in message.parts if isinstance(part, ToolResult))
    rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    content = (*rest, block) if last else (block, *rest)
    return replace(message, parts=(*results, *content))
