"""Conversations without a store: a wire value comes in, a smaller one goes out.

The ledger holds what was taken out, so that the input can be restored exactly. The steps are
those of `enfold.pipeline`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, ClassVar

from enfold import ledger, pipeline, wire
from enfold.amounts import track_spending
from enfold.budget import FREED_TARGET, SAFETY_MARGIN
from enfold.condensation import (
    Condensation,
    EditedMessage,
    Plan,
    SummarizedMessages,
    accept,
    receipt_for,
    unchanged,
)
from enfold.engine.results import Preview
from enfold.engine.results import preview as preview_of
from enfold.errors import ConfigError, InputError, NoGainError
from enfold.ledger import Ledger
from enfold.llm.costs import Prices, savings
from enfold.messages import Conversation, Message
from enfold.pipeline import Request
from enfold.receipt import Receipt
from enfold.report import Report
from enfold.retention import RECENT_MESSAGES_RATIO, Retention, Split, split
from enfold.standing_instructions import WORDS_SHARE, after_instructions
from enfold.strategies.contract import Prices as PriceOf
from enfold.strategies.contract import Strategy
from enfold.strategies.lossless.markers import expand
from enfold.tokens import count_conversation, count_message, count_messages
from enfold.view import ShownMessage, View

LOSSLESS = "lossless"
_MESSAGE_FIELDS = ("messages", "input", "contents")
"""The fields in which request bodies have their messages."""


@dataclass(frozen=True, slots=True)
class CondenseOptions:
    """The goal of a condensation."""

    tokenizer: str = "o200k_base"
    target: int | None = None
    """Tokens to end at or below. None: see `window`."""
    window: int | None = None
    """The model's window: end at or below 60 % of it. None: as small as possible."""
    keep_tokens: int | None = None
    """Number of recent tokens kept verbatim. None: the number of the strategy's config."""
    prices: Prices | None = None
    """Prices of the conversation's model, for the savings. None is unknown."""

    def __post_init__(self) -> None:
        for name in ("target", "window"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}, at least 1 expected")

    def retention(self, strategy: Strategy) -> Retention:
        """Return what stays verbatim: `keep_tokens`, else the strategy's own retention."""
        if self.keep_tokens is not None:
            return Retention("tokens", self.keep_tokens, strategy.retention.keep_first)
        if self.limit is not None and strategy.retention.is_default:
            tokens = int(self.limit * RECENT_MESSAGES_RATIO)
            return Retention("tokens", tokens, strategy.retention.keep_first)
        return strategy.retention

    def fits(self, tokens: int) -> bool:
        """Return True if the conversation may stay as it is: it fits the target or the window."""
        most = self.window if self.target is None else self.target
        return most is not None and tokens <= most

    @property
    def limit(self) -> int | None:
        """The maximum tokens of a request in the window. None without a window."""
        return None if self.window is None else int(self.window * (1 - SAFETY_MARGIN))

    @property
    def goal(self) -> int | None:
        """Tokens at or below which the conversation should end. None: as small as possible."""
        if self.target is None and self.limit is not None:
            return int(self.limit * FREED_TARGET)
        return self.target


@dataclass(frozen=True, slots=True)
class Condensed:
    """A condensed conversation."""

    JSON_FIELDS: ClassVar = ("messages", "report", "ledger", "receipt")
    messages: Any = field(repr=False)
    """In the dialect and the shape of the input: an array, or a request body."""
    report: Report
    ledger: Ledger = field(repr=False)
    receipt: Receipt = field(repr=False)
    """Content of the ledger counts as restorable: a program can put it back, the model cannot."""


async def condense(
    conversation: Conversation,
    strategy: Strategy,
    options: CondenseOptions,
    *,
    whole: Conversation | None = None,
    raw: Sequence[Any] | None = None,
) -> Condensed:
    """Return the conversation made smaller, or unchanged with the reason as a warning.

    `whole` is the conversation that this one is a branch of, if it is one: then the ledger
    restores that. `raw` are the wire messages that the conversation was parsed from, if they are
    at hand: then they are not rendered again for the ledger.
    """
    started = perf_counter()
    static = count_conversation(replace(conversation, messages=()), options.tokenizer).total
    request = _request(conversation, strategy, options, static)
    plan = pipeline.make_plan(request)
    try:
        if options.fits(static + request.tokens_before):
            answer = accept(plan, unchanged(plan, strategy.id, ""), may_be_unchanged=True)
        else:
            with track_spending() as spent:
                answer = await pipeline.run_strategy(request, plan)
    except NoGainError as error:
        answer = accept(plan, unchanged(plan, strategy.id, str(error)), may_be_unchanged=True)
        answer = replace(answer, cost=spent.total())
    outcome = pipeline.make_outcome(request, plan, answer, seconds=0)
    before, after = static + outcome.tokens_before, static + outcome.tokens_after
    cut = pipeline.cut_warnings(plan) if after < before else ()
    report = replace(
        outcome.report,
        tokens_before=before,
        tokens_after=after,
        warnings=(*cut, *answer.warnings, *_warnings(plan, after)),
        saved=savings(before, after, options.prices).later_turn,
    )
    receipt = answer.receipt or receipt_for(plan, answer)
    references = answer.references(plan)
    condensed = _apply(conversation, request, answer)
    shortened = {edit.index: edit.shortenings for edit in answer.edits if edit.shortenings}
    # The plan takes much memory, and rendering needs some too. The loop still refers to the answer
    # of the task that computed it, until its next step.
    del request, plan, answer, outcome
    await asyncio.sleep(0)
    rendered = wire.render(condensed)
    del condensed
    written = ledger.write(
        raw if raw is not None else _messages_in(wire.render(whole or conversation)),
        _messages_in(rendered),
        {} if whole else shortened,
    )
    return Condensed(
        rendered,
        replace(report, seconds=perf_counter() - started),
        replace(written, references=references),
        receipt,
    )


async def preview(
    conversation: Conversation,
    strategy: Strategy,
    options: CondenseOptions,
    price_of: PriceOf | None = None,
) -> Preview:
    """Return the expected result of `condense`; no model is called."""
    static = count_conversation(replace(conversation, messages=()), options.tokenizer).total
    request = _request(conversation, strategy, options, static)
    tokens, messages = static + request.tokens_before, len(conversation.messages)
    if not options.fits(tokens):
        return await preview_of(request, price_of)
    return Preview(0, messages, tokens, tokens, 0, "", (), strategy.id, 0.0)


def restore(value: Any, written: Ledger) -> Any:
    """Return the original conversation, in the shape of the condensed one.

    Messages that were altered since are named in an `AlteredWarning`.
    """
    return _in_shape_of(value, ledger.restore(_messages_in(value), written))


def restore_unaltered(value: Any, written: Ledger) -> tuple[Any, tuple[int, ...]]:
    """Return the original conversation and the indexes of messages that were altered since."""
    restored, altered = ledger.restore_unaltered(_messages_in(value), written)
    return _in_shape_of(value, restored), altered


def _in_shape_of(value: Any, restored: list[Any]) -> Any:
    if isinstance(value, list):
        return restored
    key = next(key for key in _MESSAGE_FIELDS if key in value)
    return {**value, key: restored if isinstance(value[key], list) else restored[0]}


def _request(
    conversation: Conversation, strategy: Strategy, options: CondenseOptions, static: int
) -> Request:
    sent = View.of(
        conversation.messages,
        count_messages(conversation.messages, options.tokenizer),
        options.tokenizer,
    )
    # Lossless leaves references alone. Other strategies may remove the content that they name.
    view, sent = (sent, sent) if strategy.id == LOSSLESS else _without_references(sent)
    messages, counts = view.messages, [shown.tokens for shown in view.shown]
    retention = options.retention(strategy)
    goal = None if options.goal is None else max(1, options.goal - static)
    return Request(
        view=view,
        sent_view=sent,
        strategy=strategy,
        retention=retention,
        goal=max(1, view.tokens) if goal is None else goal,
        target=goal,
        # Without a goal exactly what the retention says stays.
        split=_exact_split(messages, counts, retention) if goal is None else None,
        fills=options.target is not None,
        # As small as possible: only rules stay, so that a second run changes nothing.
        words_share=WORDS_SHARE if goal is not None else 0.0,
        limit=options.limit,
        static_tokens=static,
        restorable_by="ledger",
        may_be_unchanged=True,
        prices=options.prices,
    )


def _exact_split(messages: Sequence[Message], counts: Sequence[int], retention: Retention) -> Split:
    return split(messages, counts, after_instructions(retention, messages), room=0)


def _warnings(plan: Plan, after: int) -> tuple[str, ...]:
    """Return a warning if the conversation does not end at or below its target."""
    if plan.target is None or after <= plan.static_tokens + plan.target:
        return ()
    over = f"{after:,} tokens stay, more than {plan.static_tokens + plan.target:,}"
    return (f"{over}: too much must stay verbatim, or the strategy does not go further",)


def _without_references(sent: View) -> tuple[View, View]:
    """Return the view with the content that references stand for, and the view as it is sent.

    The second names for each message with references the messages that they point to.
    """
    expanded = expand(sent.messages)
    if not expanded:
        return sent, sent
    shown, whole = list(sent.shown), list(sent.shown)
    for index, (message, targets) in expanded.items():
        tokens = count_message(message, sent.tokenizer)
        whole[index] = shown[index]._replace(message=message, tokens=tokens)
        shown[index] = shown[index]._replace(points_to=tuple(shown[each].id for each in targets))
    return replace(sent, shown=tuple(whole)), replace(sent, shown=tuple(shown))


def _apply(conversation: Conversation, request: Request, answer: Condensation) -> Conversation:
    """Return the conversation that the answer describes, the summary placed for its dialect."""
    pointers = pipeline.pointers_that_hold(request, answer)
    shown: list[ShownMessage] = []
    summary, summary_at = None, 0
    for entry in answer.entries:
        if isinstance(entry, SummarizedMessages):
            summary, summary_at = entry.text, len(shown)
        else:
            kept = pointers.get(entry.index, request.view.shown[entry.index])
            edit = entry if isinstance(entry, EditedMessage) else None
            shown.append(kept if edit is None else kept._replace(message=edit.message))
    view = replace(request.view, shown=tuple(shown), summary=summary, summary_at=summary_at)
    return replace(conversation, messages=view.messages_for(conversation.dialect))


def _messages_in(value: Any) -> Sequence[Any]:
    """Return the messages of a wire value: of an array, or of a request body."""
    if isinstance(value, list):
        return value
    for key in _MESSAGE_FIELDS:
        if isinstance(value, dict) and key in value:
            return value[key] if isinstance(value[key], list) else [value[key]]
    raise InputError("expected an array of messages, or a request body with one")
