"""Falling back: what happens where a strategy fails, or does not free enough. It is always said.

The first strategy's answer is taken if it may be used. If it fails, whatever the reason, the second
answers in its place. If a target must be reached and the first misses it, the second may do better.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from enfold.condensation import (
    Condensation,
    Folded,
    Step,
    Task,
    accept,
    receipt_for,
    unchanged,
    with_middle_folded,
)
from enfold.errors import EnfoldError, NoGainError
from enfold.retention import Retention
from enfold.strategies.contract import Estimate, Prices, Strategy
from enfold.strategies.truncation import KIND, TruncationConfig, cut_short
from enfold.summaries import summary_tokens


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

    def touches(self, task: Task) -> Sequence[int]:
        """What the first may touch; the second too where the target must be reached."""
        touched = self.first.touches(task)
        if not touched and self.second is not None and task.is_due:
            return self.second.touches(task)
        return touched

    async def condense(self, task: Task) -> Condensation:
        """The first's answer, or the second's with the reason."""
        answer = await self._answer(task)
        return replace(answer, warnings=(*self.notes, *answer.warnings))

    async def estimate(self, task: Task, prices: Prices | None = None) -> Estimate:
        """That of the first."""
        return await self.first.estimate(task, prices)

    async def _answer(self, task: Task) -> Condensation:
        if self.second is None:
            return await self.first.condense(task)
        try:
            answer = await _usable(self.first, task)
        except NoGainError as error:
            if not task.is_due:
                raise
            return await self._in_its_place(self.second, task, str(error))
        except Exception as error:  # noqa: BLE001 - others' code, which must not cost a session
            return await self._in_its_place(self.second, task, _reason(error))
        if task.target is None or not task.is_due or answer.tokens(task) <= task.target:
            return answer
        return await self._better(self.second, task, answer)

    async def _in_its_place(self, second: Strategy, task: Task, reason: str) -> Condensation:
        answer = await second.condense(task)
        note = f"the strategy {self.id} failed, {second.id} took its place: {reason}"
        return replace(
            answer,
            warnings=(note, *answer.warnings),
            operations=(f"skip_{self.id}", *answer.operations),
        )

    async def _better(self, second: Strategy, task: Task, answer: Condensation) -> Condensation:
        """The second's answer if it is smaller."""
        missed = (
            f"the strategy {self.id} ended at {answer.tokens(task):,} tokens, "
            f"more than {task.target:,}"
        )
        try:
            other = await _usable(second, task)
        except EnfoldError as error:
            if answer.is_unchanged:
                raise
            return replace(answer, warnings=(f"{missed}: {error}", *answer.warnings))
        if other.tokens(task) >= answer.tokens(task):
            return replace(answer, warnings=(missed, *answer.warnings))
        return replace(
            other,
            warnings=(f"{missed}; {second.id} took over", *other.warnings),
            operations=(f"skip_{self.id}", *other.operations),
        )


async def _usable(strategy: Strategy, task: Task) -> Condensation:
    """The strategy's answer, checked; one that changes nothing is fine."""
    answer = await strategy.condense(task)
    return await asyncio.to_thread(accept, task, answer, may_be_unchanged=True)


def _reason(error: Exception) -> str:
    """What to tell; the words of foreign errors may quote a message, so only their kind is told."""
    return str(error) if isinstance(error, EnfoldError) else type(error).__name__


OPERATION = "last_resort_completed"
"""Among a compression's operations: what was done is this, and no summary."""

_LEFT_OUT = (
    "({number} earlier messages were left out here without a summary, because none could be "
    "written. They are stored, and can be looked up.)"
)
_EVERYTHING_OLD = TruncationConfig(preserve_recent_count=0, preserve_first_count=0)
"""What is old, the task says itself."""
_WAYS_BACK = "nothing is lost: undo shows it again, regenerate writes the summary that is missing"


def truncated(task: Task, reason: str) -> Condensation:
    """The task without its old content; the gentler answer if it reaches the target.

    The receipt is part of it: whoever chose the last resort chose to go below the floors.
    """
    answer = cut_short(task, _EVERYTHING_OLD)
    if task.target is not None and answer.tokens(task) > task.target:
        answer = min(answer, _left_out(task), key=lambda each: each.tokens(task))
    if answer.is_unchanged:
        return answer
    return replace(
        answer,
        warnings=(f"truncated, because the summary failed: {reason}", _WAYS_BACK),
        operations=(*answer.operations, OPERATION),
        receipt=receipt_for(task, answer),
    )


def _left_out(task: Task) -> Condensation:
    """Old messages left out, after the summary that there is of what came before them."""
    split = task.split
    indexes = tuple(index for index in split.folded if index != split.pinned)
    if not indexes:
        return unchanged(task, KIND.id, "there is nothing to leave out")
    notice = _LEFT_OUT.format(number=len(indexes))
    text = notice if task.previous is None else f"{task.previous}\n\n{notice}"
    folded = Folded(indexes, text, summary_tokens(text, task.tokenizer), KIND.id)
    answer = Condensation(
        KIND.id, with_middle_folded(task, folded), operations=("leave_out_completed",)
    )
    return replace(answer, steps=(Step("leave_out", task.tokens, answer.tokens(task)),))
