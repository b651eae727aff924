"""Rehearsals: what a strategy would do and what it would ask for, without asking anybody.

The strategy runs as it is, with understudies in place of the summarizers: they read what they are
given, count it, and answer with as many tokens as were allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from enfold.condensation import Condensation, Task
from enfold.strategies.contract import Calls, Cost, Means, Prices, Reduction
from enfold.summaries import Summarizer, Summary, SummaryRequest
from enfold.summaries.prompts import build
from enfold.tokens import get

_WORD = " the"
"""One token in every vocabulary, also many times in a row."""


class _Rehearsable(Protocol):
    """A frozen dataclass with means, as the strategies here are."""

    @property
    def means(self) -> Means: ...

    async def condense(self, task: Task) -> Condensation: ...


Rehearsed = TypeVar("Rehearsed", bound=_Rehearsable)


class _Understudy:
    """Stands in for a summarizer, and remembers what it was asked."""

    def __init__(self, original: Summarizer) -> None:
        self.name = original.name
        self.max_input = original.max_input
        self.calls = self.input_tokens = self.output_tokens = 0

    async def summarize(self, request: SummaryRequest) -> Summary:
        prompt = build(request)
        self.calls += 1
        self.input_tokens += sum(get(request.tokenizer).count_many([prompt.system, prompt.user]))
        self.output_tokens += request.target
        return Summary((_WORD * request.target).strip(), self.name, request.target)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What came of it."""

    reduction: Reduction
    by_author: tuple[Calls, ...]

    def cost(self, prices: Prices | None) -> Cost:
        """What the calls would cost."""
        if not self.by_author:
            return Cost(dollars=0.0)
        known = [
            prices(each.author, each.input_tokens, each.output_tokens) if prices else None
            for each in self.by_author
        ]
        dollars = [each for each in known if each is not None]
        return Cost(self.by_author, sum(dollars) if len(dollars) == len(known) else None)


async def rehearse(strategy: Rehearsed, task: Task) -> Rehearsal:
    """Run the strategy with understudies."""
    company: dict[str, _Understudy] = {}

    def stand_in(original: Summarizer) -> _Understudy:
        return company.setdefault(original.name, _Understudy(original))

    means = strategy.means
    understudied = Means(
        stand_in(means.summarizer),
        lambda name: stand_in(means.by_profile(name)),
        means.parallel,
    )
    dataclass_strategy: Any = strategy
    answer = await replace(dataclass_strategy, means=understudied).condense(task)
    return Rehearsal(
        Reduction(task.tokens, answer.tokens(task)),
        tuple(
            Calls(each.name, each.calls, each.input_tokens, each.output_tokens)
            for each in company.values()
            if each.calls
        ),
    )
