"""Answers of the engine: the view to send, the status of a session, a preview."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from enfold import pipeline, wire
from enfold.budget import Decision
from enfold.condensation import Step
from enfold.messages import Conversation, Message
from enfold.pipeline import NATIVE, Outcome, Request
from enfold.standing_instructions import Why
from enfold.strategies.contract import Prices as PriceOf
from enfold.view import View


@dataclass(frozen=True, slots=True)
class Prepared:
    """The view to send, and the pending input that follows it."""

    view: View
    decision: Decision
    """Of the view as it is sent."""
    compression: Outcome | None = None
    """The compression that ran before it, if any."""
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
    """The expected result of a compression. No model is called."""

    messages: int
    """The messages that would be summarized or edited."""
    kept_messages: int
    """The messages that would stay verbatim."""
    tokens_before: int
    """The tokens of the view now."""
    tokens_after: int
    """The maximum tokens of the view after."""
    summary_tokens: int
    """The maximum tokens of the summary."""
    author: str
    """The author of the summary."""
    warnings: tuple[str, ...] = ()
    """Warnings before the compression."""
    strategy: str = ""
    """The strategy that would be used."""
    cost: float | None = None
    """The expected cost of model calls in US dollars. None is unknown."""
    steps: tuple[Step, ...] = ()
    """The steps of a strategy that has several."""


@dataclass(frozen=True, slots=True)
class StandingMessage:
    """A message that compressions leave in the view, and the reason."""

    JSON_FIELDS: ClassVar = ("message", "position", "role", "why", "tokens", "in_view", "text")
    message: str
    """The id of the message."""
    position: int
    """Its place on the branch; the first is 1."""
    role: str
    """The role of the message."""
    why: Why
    """`pinned`, `system`, `context`, `rule` or `words`."""
    tokens: int
    """The tokens of the message."""
    in_view: bool
    """False if it was summarized before it was pinned; the next compression shows it again."""
    text: str
    """The beginning of its text."""


@dataclass(frozen=True, slots=True)
class Status:
    """The used part of a session's context."""

    needs_compression: bool
    """True if a compression is due before the next request."""
    current_token_count: int
    """The tokens of the next request."""
    context_limit: int
    """The maximum tokens of the history."""
    threshold_token_count: int
    """The tokens above which a compression is due."""
    utilization: float
    """The share of the limit in use: 0 to 1, and above 1 if it does not fit."""
    retention_token_budget: int
    """The number of recent tokens kept verbatim."""
    retained_message_count: int
    """The messages that a compression would keep verbatim."""
    compressible_message_count: int
    """The messages that a compression could summarize."""
    estimated_tokens: int
    """The estimated part of the current count: images, documents, opaque reasoning."""
    summary_tokens: int
    """The tokens of the summary in use."""
    standing_tokens: int
    """The tokens of instructions, pins and rules, which every compression keeps."""
    messages: int
    """The messages of the whole branch, summarized or not."""
    tokenizer: str
    """The tokenizer that counted."""
    model: str
    """The model whose window counts, as `provider:model`."""
    threshold_source: str
    """The level that set the threshold."""
    tool_tokens: int
    """Of the current count, the messages with tool calls or tool results."""
    tokens_per_turn: int
    """The tokens of an average recent turn: a user message and all until the next; 0 if unknown."""
    blocked: str | None
    """Why the session is blocked. None while it is not."""
    decision: Decision
    """The decision that follows."""


async def preview(request: Request, price_of: PriceOf | None = None) -> Preview:
    """Return what the compression would do; no model is called and nothing is written."""
    plan = pipeline.make_plan(request)
    touched = request.strategy.touches(plan)
    before, messages = request.tokens_before, len(request.view.shown)
    nothing = Preview(
        messages=0,
        kept_messages=messages,
        tokens_before=before,
        tokens_after=before,
        summary_tokens=0,
        author=request.author,
        strategy=request.strategy.id,
        cost=0.0,
    )
    if not touched:
        return nothing
    estimated = await request.strategy.estimate(plan, price_of)
    is_native = request.strategy.id == NATIVE
    after = plan.expected_tokens if is_native else estimated.reduction.tokens_after
    return replace(
        nothing,
        messages=len(touched),
        kept_messages=messages - len(touched),
        tokens_after=min(before, after),
        summary_tokens=plan.summary_tokens if is_native else 0,
        warnings=pipeline.plan_warnings(request, plan, after) if is_native else (),
        cost=estimated.cost.dollars,
        steps=() if is_native else estimated.reduction.steps,
    )
