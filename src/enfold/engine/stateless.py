"""Condensing one conversation without a store: in comes a wire value, out comes a smaller one.

What was taken out is in the ledger, so the input can be restored exactly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from enfold import ledger
from enfold import wire as dialects
from enfold.budget import FREED_TARGET, SAFETY_MARGIN
from enfold.condensation import (
    Condensation,
    EditedMessage,
    SummarizedMessages,
    accept,
    receipt_for,
    unchanged,
)
from enfold.condensation import Plan as Task
from enfold.errors import ConfigError, InputError, NoGainError
from enfold.ledger import Ledger
from enfold.llm.costs import savings
from enfold.llm.prices import Prices
from enfold.messages import Conversation, Message
from enfold.plan import Aim, SizedSplit, plan, plan_for
from enfold.receipt import Receipt
from enfold.report import Report
from enfold.retention import Retention, split, zones
from enfold.strategies.contract import Strategy
from enfold.strategies.native import keeping_instructions
from enfold.summaries import fence_tokens
from enfold.tokens import count_conversation, count_messages
from enfold.view import ShownMessage, View

_MESSAGE_FIELDS = ("messages", "input", "contents")
"""Where request bodies have their messages."""


@dataclass(frozen=True, slots=True)
class CondenseOptions:
    """How far to go."""

    tokenizer: str = "o200k_base"
    target: int | None = None
    """Tokens to end at or below. None: see `window`."""
    window: int | None = None
    """The model's window: end at or below 60 % of what it takes. None: as small as it gets."""
    keep_tokens: int | None = None
    """Newest tokens that stay verbatim. None: what the strategy's config says."""
    prices: Prices | None = None
    """Of the model that the conversation is for: what makes savings known. None is unknown."""

    def __post_init__(self) -> None:
        for name in ("target", "window"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}, at least 1 expected")

    def retention(self, strategy: Strategy) -> Retention:
        """What stays verbatim: what was asked for, else what the strategy itself would keep."""
        if self.keep_tokens is not None:
            return Retention("tokens", self.keep_tokens, strategy.retention.keep_first)
        return strategy.retention

    @property
    def has_goal(self) -> bool:
        """True if it matters where the conversation ends."""
        return self.target is not None or self.window is not None

    def goal(self, tokens: int) -> int:
        """Where a conversation of so many tokens should end."""
        if self.target is not None:
            return self.target
        if self.window is not None:
            return int(self.window * (1 - SAFETY_MARGIN) * FREED_TARGET)
        return tokens


@dataclass(frozen=True, slots=True)
class Condensed:
    """A condensed conversation."""

    messages: Any = field(repr=False)
    """In the dialect and the shape in which it came: an array, or a request body."""
    report: Report
    ledger: Ledger = field(repr=False)
    receipt: Receipt = field(repr=False)
    """Here what is in the ledger is restorable: a program can put it back, the model cannot."""


async def condense(
    conversation: Conversation,
    strategy: Strategy,
    options: CondenseOptions,
    *,
    whole: Conversation | None = None,
) -> Condensed:
    """The conversation, smaller; as it was, with the reason, if there is nothing to do.

    `whole` is what it is only a branch of, if it is: then the ledger leads back to that.
    """
    started = perf_counter()
    static_tokens = count_conversation(replace(conversation, messages=()), options.tokenizer).total
    plan = _task(conversation, strategy, options, static_tokens)
    answer = await _answer(plan, strategy)
    receipt = answer.receipt or receipt_for(plan, answer)
    smaller = _apply(conversation, plan, answer)
    wire = dialects.render(smaller)
    report = Report(
        strategy=answer.strategy,
        tokens_before=static_tokens + plan.tokens,
        tokens_after=static_tokens + answer.tokens(plan),
        seconds=perf_counter() - started - receipt.seconds,
        steps=answer.steps,
        operations=answer.operations,
        warnings=(*answer.warnings, *_missed(plan, answer)),
        cost=answer.cost,
        saved=_saved(static_tokens + plan.tokens, static_tokens + answer.tokens(plan), options),
    )
    before, after = _messages_in(dialects.render(whole or conversation)), _messages_in(wire)
    shortened = {edit.index: edit.shortenings for edit in answer.edits if edit.shortenings}
    written = ledger.write(before, after, {} if whole else shortened)
    return Condensed(wire, report, written, receipt)


def _saved(before: int, after: int, options: CondenseOptions) -> float | None:
    """What every later request costs less, sent without a prompt cache."""
    return savings(before, after, options.prices).later_turn


def restore(value: Any, written: Ledger) -> Any:
    """The conversation of before, in the shape in which the condensed one comes."""
    restored = ledger.restore(_messages_in(value), written)
    if isinstance(value, list):
        return restored
    key = next(key for key in _MESSAGE_FIELDS if key in value)
    return {**value, key: restored if isinstance(value[key], list) else restored[0]}


def _plan(
    messages: Sequence[Message], counts: Sequence[int], aim: Aim, options: CondenseOptions
) -> SizedSplit:
    """As tight as the goal asks for; where there is none, exactly what retention says stays."""
    if options.has_goal:
        return plan(messages, counts, aim)
    return plan_for(counts, split(messages, counts, aim.retention, room=0), aim)


def _task(
    conversation: Conversation, strategy: Strategy, options: CondenseOptions, static_tokens: int
) -> Task:
    counts = tuple(count_messages(conversation.messages, options.tokenizer))
    goal = max(1, options.goal(sum(counts) + static_tokens) - static_tokens)
    retention = keeping_instructions(options.retention(strategy), conversation.messages)
    aim = Aim(retention, goal, fence=fence_tokens(options.tokenizer))
    planned = _plan(conversation.messages, counts, aim, options)
    return Task(
        conversation.messages,
        counts,
        planned.split,
        options.tokenizer,
        summary_tokens=planned.summary_tokens,
        target=goal if options.has_goal else None,
        zones=zones(counts, retention),
        static_tokens=static_tokens,
        restorable_by="ledger",
    )


async def _answer(plan: Task, strategy: Strategy) -> Condensation:
    """What the strategy makes of it; everything kept, with a warning, where it makes nothing."""
    try:
        answer = await strategy.condense(plan)
        return await asyncio.to_thread(accept, plan, answer, may_be_unchanged=True)
    except NoGainError as error:
        return accept(plan, unchanged(plan, strategy.id, str(error)), may_be_unchanged=True)


def _missed(plan: Task, answer: Condensation) -> tuple[str, ...]:
    """What to say where the conversation does not end where it should."""
    after = answer.tokens(plan)
    if plan.target is None or after <= plan.target:
        return ()
    static = plan.static_tokens
    over = f"{static + after:,} tokens stay, more than {static + plan.target:,}"
    return (f"{over}: what must stay verbatim is too much, or the strategy does not go further",)


def _apply(conversation: Conversation, plan: Task, answer: Condensation) -> Conversation:
    """The conversation that the answer describes, the summary placed as its dialect has it."""
    shown: list[ShownMessage] = []
    summary, summary_at = None, 0
    for entry in answer.entries:
        if isinstance(entry, SummarizedMessages):
            summary, summary_at = entry.text, len(shown)
        else:
            message = (
                entry.message if isinstance(entry, EditedMessage) else plan.messages[entry.index]
            )
            shown.append(ShownMessage("", message, 0))
    view = View(tuple(shown), plan.tokenizer, summary=summary, summary_at=summary_at)
    return replace(conversation, messages=view.messages_for(conversation.dialect))


def _messages_in(value: Any) -> Sequence[Any]:
    """The messages of a wire value: of an array, or of a request body."""
    if isinstance(value, list):
        return value
    for key in _MESSAGE_FIELDS:
        if isinstance(value, dict) and key in value:
            return value[key] if isinstance(value[key], list) else [value[key]]
    raise InputError("expected an array of messages, or a request body with one")
