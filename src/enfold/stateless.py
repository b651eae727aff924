"""Condensing one conversation without a store: in comes a wire value, out comes a smaller one.

What was taken out is in the ledger, so the input can be restored exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from enfold import dialects, ledger
from enfold.budget import FREED_TARGET, SAFETY_MARGIN
from enfold.condensation import (
    Condensation,
    Edited,
    Folded,
    Kept,
    Step,
    Strategy,
    Task,
    validate,
)
from enfold.errors import ConfigError, InputError, NoGainError
from enfold.ledger import Ledger
from enfold.messages import Conversation
from enfold.planning import Aim, plan
from enfold.retention import Retention
from enfold.tokens import count_conversation, count_messages
from enfold.view import Shown, View

_MESSAGE_FIELDS = ("messages", "input", "contents")
"""Where request bodies have their messages."""

KEEP_FIRST = 1
KEEP_LAST = 3
"""What stays verbatim where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class Options:
    """How far to go."""

    tokenizer: str = "o200k_base"
    target: int | None = None
    """Tokens to end at or below. None: see `window`."""
    window: int | None = None
    """The model's window: end at or below 60 % of what it takes. None: as small as it gets."""
    keep_tokens: int | None = None
    """Newest tokens that stay verbatim. None: the last three messages."""
    keep_first: int = KEEP_FIRST

    def __post_init__(self) -> None:
        for name in ("target", "window"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}, at least 1 expected")

    @property
    def retention(self) -> Retention:
        """What stays verbatim."""
        if self.keep_tokens is not None:
            return Retention("tokens", self.keep_tokens, self.keep_first)
        return Retention("messages", KEEP_LAST, self.keep_first)

    def goal(self, tokens: int) -> int:
        """Where a conversation of so many tokens should end."""
        if self.target is not None:
            return self.target
        if self.window is not None:
            return int(self.window * (1 - SAFETY_MARGIN) * FREED_TARGET)
        return tokens


@dataclass(frozen=True, slots=True)
class Report:
    """What was done, for people and for programs."""

    strategy: str
    tokens_before: int
    tokens_after: int
    seconds: float
    steps: tuple[Step, ...] = ()
    operations: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    cost: float | None = None
    """In US dollars. None is unknown."""
    saved: float | None = None

    @property
    def reduction(self) -> float:
        """The share of the tokens that is gone."""
        return 1 - self.tokens_after / self.tokens_before if self.tokens_before else 0.0

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "strategy": self.strategy,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "reduction": self.reduction,
            "seconds": self.seconds,
            "cost": self.cost,
            "saved": self.saved,
            "operations": list(self.operations),
            "steps": [
                {
                    "name": step.name,
                    "tokens_before": step.tokens_before,
                    "tokens_after": step.tokens_after,
                    "reduction": step.reduction,
                }
                for step in self.steps
            ],
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        lines = [f"Context condensed using the {self.strategy} strategy:"]
        lines += [
            f" - {step.name}: {step.tokens_before:,} → {step.tokens_after:,} tokens "
            f"({-step.reduction:.0%})"
            for step in self.steps
        ]
        lines.append(f" - Total reduction: {self.reduction:.0%}")
        lines.append(f" - Time: {self.seconds:.1f} seconds")
        return "\n".join([*lines, *(f" - Warning: {warning}" for warning in self.warnings)])


@dataclass(frozen=True, slots=True)
class Condensed:
    """A condensed conversation."""

    messages: Any
    """In the dialect and the shape in which it came: an array, or a request body."""
    report: Report
    ledger: Ledger


async def condense(conversation: Conversation, strategy: Strategy, options: Options) -> Condensed:
    """The conversation, smaller; as it was if there is nothing to fold."""
    started = perf_counter()
    beside = count_conversation(replace(conversation, messages=()), options.tokenizer).total
    task = _task(conversation, options, beside)
    answer = await _answer(task, strategy)
    smaller = _apply(conversation, task, answer)
    wire = dialects.render(smaller)
    report = Report(
        strategy=strategy.id,
        tokens_before=beside + task.tokens,
        tokens_after=beside + answer.tokens(task),
        seconds=perf_counter() - started,
        steps=answer.steps,
        operations=tuple(f"{step.name}_completed" for step in answer.steps),
        warnings=answer.warnings,
    )
    before, after = _messages_in(dialects.render(conversation)), _messages_in(wire)
    return Condensed(wire, report, ledger.write(before, after))


def restore(value: Any, written: Ledger) -> Any:
    """The conversation of before, in the shape in which the condensed one comes."""
    restored = ledger.restore(_messages_in(value), written)
    if isinstance(value, list):
        return restored
    key = next(key for key in _MESSAGE_FIELDS if key in value)
    return {**value, key: restored if isinstance(value[key], list) else restored[0]}


def _task(conversation: Conversation, options: Options, beside: int) -> Task:
    counts = tuple(count_messages(conversation.messages, options.tokenizer))
    goal = max(1, options.goal(sum(counts) + beside) - beside)
    planned = plan(conversation.messages, counts, Aim(options.retention, goal))
    return Task(
        conversation.messages,
        counts,
        planned.split,
        options.tokenizer,
        summary_tokens=planned.summary_tokens,
    )


async def _answer(task: Task, strategy: Strategy) -> Condensation:
    """What the strategy makes of it; everything kept, with a warning, where it makes nothing."""
    if task.split.is_empty:
        return _unchanged(task, strategy, "there is nothing to fold")
    answer = await strategy.condense(task)
    try:
        validate(task, answer)
    except NoGainError as error:
        return _unchanged(task, strategy, str(error))
    return answer


def _unchanged(task: Task, strategy: Strategy, why: str) -> Condensation:
    kept = tuple(Kept(index) for index in range(len(task.messages)))
    return Condensation(strategy.id, kept, warnings=(why,))


def _apply(conversation: Conversation, task: Task, answer: Condensation) -> Conversation:
    """The conversation that the answer describes, the summary placed as its dialect has it."""
    shown: list[Shown] = []
    summary, summary_at = None, 0
    for entry in answer.entries:
        if isinstance(entry, Folded):
            summary, summary_at = entry.text, len(shown)
        else:
            message = entry.message if isinstance(entry, Edited) else task.messages[entry.index]
            shown.append(Shown("", message, 0))
    view = View(tuple(shown), task.tokenizer, summary=summary, summary_at=summary_at)
    return replace(conversation, messages=view.messages_for(conversation.dialect))


def _messages_in(value: Any) -> Sequence[Any]:
    """The messages of a wire value: of an array, or of a request body."""
    if isinstance(value, list):
        return value
    for key in _MESSAGE_FIELDS:
        if isinstance(value, dict) and key in value:
            return value[key] if isinstance(value[key], list) else [value[key]]
    raise InputError("expected an array of messages, or a request body with one")
