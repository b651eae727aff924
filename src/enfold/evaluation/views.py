"""Views: what a model would be sent of a conversation, by each way of making it smaller.

`newest` is what everybody does first and what the others are compared with: the newest messages
that fit, cut where the history may be cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

from enfold import dialects, stateless
from enfold.errors import CompressionError, ConfigError
from enfold.evaluation.cases import Case
from enfold.history import cut_points
from enfold.messages import Message, ToolCall, ToolResult
from enfold.receipt import Count, receipt
from enfold.settings import Settings
from enfold.stateless import Options
from enfold.strategies.contract import Strategy
from enfold.tokens import count_conversation, count_messages

NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class Way:
    """How a conversation is made smaller, and how far."""

    strategy: str
    budget: float
    """Tokens to end at or below; up to 1 it is a share of the conversation's."""
    tokenizer: str = "o200k_base"
    prompt: str | None = None
    """For whoever writes the summary. None: the strategy's own."""
    label: str = ""
    """What the prompt is called in tables."""

    def __post_init__(self) -> None:
        if self.budget <= 0:
            raise ConfigError(f"budget is {self.budget:g}; expected tokens, or a share up to 1")

    @property
    def settings(self) -> Settings:
        """What makes the strategy."""
        config = {"prompt": self.prompt} if self.prompt is not None else {}
        return Settings(strategy=self.strategy, strategy_config={self.strategy: config})

    def target(self, tokens: int) -> int:
        """Where a conversation of so many tokens should end."""
        return max(1, int(tokens * self.budget if self.budget <= 1 else self.budget))


@dataclass(frozen=True, slots=True)
class View:
    """What is left of a conversation."""

    messages: tuple[Message, ...]
    tokens_before: int
    tokens_after: int
    seconds: float
    items: Count
    """The exact items of the whole conversation, by what became of them."""
    is_restored: bool | None
    """Whether the ledger gives back the input exactly. None where there is none."""
    pairs_are_whole: bool
    """Whether every tool call has its result and the other way round, as far as before."""
    cost: float | None = 0.0
    failure: str = ""
    """Why nothing was made smaller, where that failed."""


async def view_of(case: Case, way: Way, strategy: Strategy | None) -> View:
    """The view of a case; without a strategy, its newest messages."""
    if strategy is None:
        return _newest(case, way)
    before = count_conversation(case.conversation, way.tokenizer).total
    started = perf_counter()
    try:
        done = await stateless.condense(
            case.conversation, strategy, Options(way.tokenizer, target=way.target(before))
        )
    except CompressionError as error:
        whole = _view(case, case.messages, before, before, perf_counter() - started)
        return replace(whole, failure=str(error))
    rendered = dialects.render(case.conversation)
    made = _view(
        case,
        dialects.parse(done.messages, case.conversation.dialect).messages,
        before,
        done.report.tokens_after,
        done.report.seconds,
    )
    restored = stateless.restore(done.messages, done.ledger) == rendered
    return replace(made, is_restored=restored, cost=done.report.cost)


def _newest(case: Case, way: Way) -> View:
    started = perf_counter()
    counts = count_messages(case.messages, way.tokenizer)
    before = count_conversation(case.conversation, way.tokenizer).total
    left = way.target(before)
    first = len(case.messages)
    points = set(cut_points(case.messages))
    for index in range(len(case.messages) - 1, -1, -1):
        left -= counts[index]
        if left < 0:
            break
        first = index if index in points else first
    after = before - sum(counts[:first])
    return _view(case, case.messages[first:], before, after, perf_counter() - started)


def _view(
    case: Case, messages: tuple[Message, ...], before: int, after: int, seconds: float
) -> View:
    found = receipt(case.messages, messages).total
    return View(
        messages,
        before,
        after,
        seconds,
        found,
        is_restored=None,
        pairs_are_whole=_orphans(messages) <= _orphans(case.messages),
    )


def _orphans(messages: tuple[Message, ...]) -> set[str]:
    """Ids of calls without a result, and of results without a call."""
    calls = {part.id for m in messages for part in m.parts if isinstance(part, ToolCall)}
    results = {part.call_id for m in messages for part in m.parts if isinstance(part, ToolResult)}
    return calls ^ results
