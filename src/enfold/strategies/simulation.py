"""Simulation: estimates of size and cost, without calling a model.

The strategy runs with simulated summarizers. They count their input and return about as many tokens
as a summary of it takes. An estimate must be fast, so a long text is counted by samples, and input
that a model would read in several pieces is calculated, not divided.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any, Protocol, TypeVar

from enfold.condensation import Condensation, Plan
from enfold.messages import Message
from enfold.strategies.contract import (
    Estimate,
    EstimatedCost,
    Prices,
    Reduction,
    SummarizerCalls,
    Summarizers,
)
from enfold.summaries import Summarizer, Summary, SummaryRequest
from enfold.summaries.prompts import build
from enfold.summaries.request import fit, input_budget, part_budget, unescaped_transcript
from enfold.tokens import get

_NOTHING = (Message("user", ()),)
_WORD = " the"
"""One token in every vocabulary, also many times in a row."""
LENGTH, SHARE = 100, 0.08
"""Tokens of a summary: a constant, and a share of the messages as the summarizer reads them, added
to the summary that it continues; at most the tokens that the request allows.

Measured with the built-in summarizer on conversations of every kind, condensed with and without
a window (`benchmarks/estimates.py`): size and cost are within 20 % of the estimate in 98 % of the
runs of native. To assume that a summary is as long as allowed gives 74 %, because old tool output
is shortened before the summarizer reads it.
"""
_COUNTED_WHOLE = 50_000
_SAMPLES = 100
"""Characters up to which a text is counted whole; the number of samples of a longer text."""


class _Simulatable(Protocol):
    """A strategy that is a frozen dataclass with summarizers."""

    @property
    def means(self) -> Summarizers: ...

    async def condense(self, plan: Plan) -> Condensation: ...


Simulated = TypeVar("Simulated", bound=_Simulatable)


class _SimulatedSummarizer:
    """Replaces a summarizer and counts the tokens of its calls."""

    def __init__(self, original: Summarizer) -> None:
        self.name = original.name
        self.max_input: int | None = None  # it reads everything at once and calculates the pieces
        self._piece_limit = original.max_input
        self.calls = self.input_tokens = self.output_tokens = 0
        self._prompts: list[tuple[SummaryRequest, int]] = []
        """The last two requests without messages, which are often the same, and their tokens."""

    async def summarize(self, request: SummaryRequest) -> Summary:
        messages = _tokens(unescaped_transcript(request.messages), request.tokenizer)
        calls = 1
        if self._piece_limit is not None and messages > input_budget(request, self._piece_limit):
            request = fit(request, self._piece_limit)
            calls = ceil(messages / part_budget(request, self._piece_limit))
        overhead = self._prompt_tokens(replace(request, messages=(), recent=()))
        last = overhead
        if request.recent:
            last = self._prompt_tokens(replace(request, messages=(), recent=_NOTHING))
            last += _tokens(unescaped_transcript(request.recent), request.tokenizer)
        least = LENGTH + _tokens(request.previous or "", request.tokenizer)
        read = (messages * piece / calls for piece in range(1, calls + 1))
        written = [min(request.target, least + int(SHARE * tokens)) for tokens in read]
        self.calls += calls
        self.input_tokens += (calls - 1) * overhead + last + messages + sum(written[:-1])
        self.output_tokens += sum(written)
        return Summary((_WORD * written[-1]).strip(), self.name, written[-1], is_checked=True)

    def _prompt_tokens(self, request: SummaryRequest) -> int:
        for earlier, tokens in self._prompts:
            if earlier == request:
                return tokens
        prompt = build(request)
        found = sum(_tokens(text, request.tokenizer) for text in (prompt.system, prompt.user))
        self._prompts = [(request, found), *self._prompts[:1]]
        return found


def _cost(calls: tuple[SummarizerCalls, ...], prices: Prices | None) -> EstimatedCost:
    """Return the cost of the calls."""
    if not calls:
        return EstimatedCost(dollars=0.0)
    costs = [
        prices(each.author, each.input_tokens, each.output_tokens) if prices else None
        for each in calls
    ]
    dollars = [each for each in costs if each is not None]
    return EstimatedCost(calls, sum(dollars) if len(dollars) == len(costs) else None)


def _tokens(text: str, tokenizer: str) -> int:
    """The tokens of a text, of a long one by evenly spread samples."""
    count = get(tokenizer).count_many
    if len(text) <= _COUNTED_WHOLE:
        return sum(count([text]))
    length = _COUNTED_WHOLE // _SAMPLES
    step = (len(text) - length) / (_SAMPLES - 1)
    starts = (int(step * index) for index in range(_SAMPLES))
    return round(sum(count([text[at : at + length] for at in starts])) * len(text) / _COUNTED_WHOLE)


async def simulate(strategy: Simulated, plan: Plan, prices: Prices | None = None) -> Estimate:
    """Run the strategy with simulated summarizers; return the size of the result and its cost."""
    stand_ins: dict[str, _SimulatedSummarizer] = {}

    def stand_in(original: Summarizer) -> _SimulatedSummarizer:
        return stand_ins.setdefault(original.name, _SimulatedSummarizer(original))

    means = strategy.means
    simulated_means = Summarizers(
        stand_in(means.summarizer),
        lambda name: stand_in(means.by_profile(name)),
        means.parallel,
        reviewed=False,
    )
    dataclass_strategy: Any = strategy
    answer = await replace(dataclass_strategy, means=simulated_means).condense(plan)
    calls = tuple(
        SummarizerCalls(each.name, each.calls, each.input_tokens, each.output_tokens)
        for each in stand_ins.values()
        if each.calls
    )
    reduction = Reduction(plan.tokens, answer.tokens(plan), answer.steps)
    return Estimate(reduction, _cost(calls, prices))
