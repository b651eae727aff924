"""What the engine answers: the view to send, how a session stands, what a compression did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from enfold import wire
from enfold.budget import Decision
from enfold.condensation import Step
from enfold.messages import Conversation, Message
from enfold.pipeline import Outcome
from enfold.view import View


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to send: the view, then the pending input."""

    view: View
    decision: Decision
    """Of the view as it is sent."""
    compression: Outcome | None = None
    """What was compressed on the way, if anything."""
    pending: tuple[Message, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """As enfold has them, the summary a system message in its place."""
        return (*self.view.messages_for("enfold"), *self.pending)

    def render(self, dialect: str) -> list[Any]:
        """The messages as an array of the dialect."""
        messages = (*self.view.messages_for(dialect), *self.pending)
        rendered = wire.render(Conversation(messages, dialect), dialect)
        return list(rendered)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a compression would do; no model is asked."""

    messages: int
    """How many would be folded or edited."""
    kept_messages: int
    tokens_before: int
    tokens_after: int
    """At most."""
    summary_tokens: int
    """The summary's limit."""
    author: str
    warnings: tuple[str, ...] = ()
    strategy: str = ""
    cost: float | None = None
    """Expected, of the models that would be called, in US dollars. None is unknown."""
    steps: tuple[Step, ...] = ()
    """What each step would come to, where the strategy has several."""


@dataclass(frozen=True, slots=True)
class Status:
    """How full a session's context is."""

    needs_compression: bool
    current_token_count: int
    context_limit: int
    threshold_token_count: int
    utilization: float
    """0 to 1; above 1 where it does not fit."""
    retention_token_budget: int
    retained_message_count: int
    compressible_message_count: int
    estimated_tokens: int
    """Of the current count, what is an estimate: images, documents, opaque reasoning."""
    summary_tokens: int
    messages: int
    """In the whole branch."""
    tokenizer: str
    model: str
    threshold_source: str
    """The level that set the threshold."""
    tool_tokens: int
    """Of the current count, the messages with tool calls or tool results."""
    blocked: str | None
    """Why the session waits. None while it does not."""
    decision: Decision

    @property
    def utilization_percentage(self) -> float:
        """0 to 100."""
        return self.utilization * 100
