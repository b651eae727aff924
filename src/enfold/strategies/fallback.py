"""Fallback: a second strategy that runs if the first fails or frees too little, with a warning.

The first strategy's answer is taken if it may be used. If it fails, whatever the reason, the second
answers in its place. If a target must be reached and the first misses it, the second may do better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from enfold.amounts import track_spending
from enfold.condensation import (
    Condensation,
    Plan,
    Step,
    SummarizedMessages,
    accept,
    receipt_for,
    unchanged,
    with_middle_summarized,
)
from enfold.errors import EnfoldError, NoGainError
from enfold.retention import Retention
from enfold.strategies.contract import BUILT_IN, Estimate, Prices, Strategy, Summarizers
from enfold.strategies.native import Native, NativeConfig
from enfold.strategies.truncation import KIND, TruncationConfig, cut_short
from enfold.summaries import summary_tokens
from enfold.summaries.local import LocalSummarizer
from enfold.summaries.request import add_words, take_words
from enfold.tokens import compute_async


@dataclass(frozen=True, slots=True)
class WithFallback:
    """A strategy, another for when it fails, and what there is to say of the choice itself."""

    first: Strategy
    second: Strategy | None = None
    notes: tuple[str, ...] = ()
    """Warnings for the report, such as that a stored config could not be used."""

    @property
    def id(self) -> str:
        """That of the first."""
        return self.first.id

    @property
    def retention(self) -> Retention:
        """That of the first."""
        return self.first.retention

    def touches(self, plan: Plan) -> Sequence[int]:
        """Return what the first may touch, or the second if the target must be reached."""
        touched = self.first.touches(plan)
        if not touched and self.second is not None and plan.is_due:
            return self.second.touches(plan)
        return touched

    async def condense(self, plan: Plan) -> Condensation:
        """The first's answer, or the second's with the reason. The cost is that of both."""
        with track_spending() as spent:
            answer = await self._answer(plan)
        cost = spent.total(otherwise=answer.cost)
        return replace(answer, cost=cost, warnings=(*self.notes, *answer.warnings))

    async def estimate(self, plan: Plan, prices: Prices | None = None) -> Estimate:
        """That of the first."""
        return await self.first.estimate(plan, prices)

    async def _answer(self, plan: Plan) -> Condensation:
        if self.second is None:
            return await self.first.condense(plan)
        try:
            answer = await _usable(self.first, plan)
        except NoGainError as error:
            if not plan.is_due:
                raise
            return await self._in_its_place(self.second, plan, str(error))
        except Exception as error:
            # Code of third parties may raise anything; an error in our own code must show.
            if self.first.id in BUILT_IN and not isinstance(error, EnfoldError):
                raise
            return await self._in_its_place(self.second, plan, _reason(error))
        if plan.target is None or not plan.is_due or answer.tokens(plan) <= plan.target:
            return answer
        return await self._better(self.second, plan, answer)

    async def _in_its_place(self, second: Strategy, plan: Plan, reason: str) -> Condensation:
        answer = await second.condense(plan)
        note = f"the strategy {self.id} failed, {second.id} took its place: {reason}"
        return replace(
            answer,
            warnings=(note, *answer.warnings),
            operations=(f"skip_{self.id}", *answer.operations),
        )

    async def _better(self, second: Strategy, plan: Plan, answer: Condensation) -> Condensation:
        """The second's answer if it is smaller."""
        missed = (
            f"the strategy {self.id} ended at {answer.tokens(plan):,} tokens, "
            f"more than {plan.target:,}"
        )
        try:
            other = await _usable(second, plan)
        except EnfoldError as error:
            if answer.is_unchanged:
                raise
            return replace(answer, warnings=(f"{missed}: {error}", *answer.warnings))
        if other.tokens(plan) >= answer.tokens(plan):
            return replace(answer, warnings=(missed, *answer.warnings))
        return replace(
            other,
            warnings=(f"{missed}; {second.id} took over", *other.warnings),
            operations=(f"skip_{self.id}", *other.operations),
        )


async def _usable(strategy: Strategy, plan: Plan) -> Condensation:
    """The strategy's answer, checked; one that changes nothing is fine."""
    answer = await strategy.condense(plan)
    return await compute_async(accept, plan, answer, may_be_unchanged=True)


def _reason(error: Exception) -> str:
    """Return the reason; foreign errors may quote a message, so only their type is named."""
    return str(error) if isinstance(error, EnfoldError) else type(error).__name__


OPERATION = "last_resort_completed"
"""Among a compression's operations: what was done is this, and no summary."""

_LEFT_OUT = (
    "({number} earlier messages were left out here without a summary, because none could be "
    "written. They are stored, and can be looked up.)"
)
_EVERYTHING_OLD = TruncationConfig(preserve_recent_count=0, preserve_first_count=0)
"""The plan names the old messages."""
_WAYS_BACK = "nothing is lost: undo shows it again, regenerate writes the summary that is missing"


def truncated(plan: Plan, reason: str) -> Condensation:
    """The plan without its old content; the gentler answer if it reaches the target.

    The receipt shows it: this fallback may go below the minimums.
    """
    answer = cut_short(plan, _EVERYTHING_OLD)
    if plan.target is not None and answer.tokens(plan) > plan.target:
        answer = min(answer, _left_out(plan), key=lambda each: each.tokens(plan))
    if answer.is_unchanged:
        return answer
    return replace(
        answer,
        warnings=(f"truncated, because the summary failed: {reason}", _WAYS_BACK),
        operations=(*answer.operations, OPERATION),
        receipt=receipt_for(plan, answer),
    )


LOCAL_OPERATION = "local_summary_completed"
"""Among a compression's operations: the built-in summarizer wrote what a model should have."""


async def summarized_locally(plan: Plan, reason: str) -> Condensation:
    """Return the plan with its middle summarized by the built-in summarizer, and the reason."""
    strategy = Native(NativeConfig(), Summarizers(LocalSummarizer()))
    answer = await strategy.condense(plan)
    if answer.is_unchanged:
        return answer
    note = f"the built-in summarizer wrote the summary, because no other did: {reason}"
    return replace(
        answer,
        warnings=(note, *answer.warnings),
        operations=(*answer.operations, LOCAL_OPERATION),
    )


def _left_out(plan: Plan) -> Condensation:
    """Old messages left out, after the summary that there is of what came before them."""
    indexes = plan.split.summarized
    if not indexes:
        return unchanged(plan, KIND.id, "there is nothing to leave out")
    notice = _LEFT_OUT.format(number=len(indexes))
    previous, words = ("", ()) if plan.previous is None else take_words(plan.previous)
    text = add_words(f"{previous}\n\n{notice}", (*words, *plan.quotes.values()))
    summarized = SummarizedMessages(indexes, text, summary_tokens(text, plan.tokenizer), KIND.id)
    answer = Condensation(
        KIND.id, with_middle_summarized(plan, summarized), operations=("leave_out_completed",)
    )
    return replace(answer, steps=(Step("leave_out", plan.tokens, answer.tokens(plan)),))
