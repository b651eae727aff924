"""The smart strategy: passes in order, each with its own selection, mode and operations.

`config` has the options, `passes` takes a message apart, edits it and runs one pass; the strategy
here runs all of them until the target is reached.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from enfold.amounts import add
from enfold.condensation import Condensation, Plan, Step, unchanged, validate
from enfold.errors import EnfoldError, NoGainError
from enfold.fields import write
from enfold.report import PRELUDE
from enfold.retention import Retention
from enfold.strategies import contract
from enfold.strategies.contract import Capabilities, Estimate, Prices, StrategyKind, Summarizers
from enfold.strategies.simulation import simulate
from enfold.strategies.smart.config import Pass, SmartConfig
from enfold.strategies.smart.passes import (
    MessageContent,
    SummaryWriter,
    WorkingView,
    decompose,
    messages_touched,
    recompose,
    run_pass,
    saved_by_operation,
)

__all__ = ["KIND", "MessageContent", "Smart", "SmartConfig", "decompose", "recompose"]


@dataclass(frozen=True, slots=True)
class Smart:
    """Passes in order."""

    config: SmartConfig
    means: Summarizers

    id = "smart"

    @property
    def retention(self) -> Retention:
        """The last message; each pass says what else it leaves alone."""
        summaries = (step.batch_config for step in self.config.passes if step.batch_config)
        keeps_words = any(each.summarization_config.keep_user_messages for each in summaries)
        return Retention("messages", 1, keeps_words=keeps_words)

    def touches(self, plan: Plan) -> tuple[int, ...]:
        """Return the messages that any pass may touch; with a prelude all that may be edited."""
        working = WorkingView.begin(plan)
        found = {index for step in self.config.passes for index in messages_touched(step, working)}
        if self.config.lossless_prelude.enabled:
            found.update(plan.editable)
        return tuple(sorted(found))

    async def condense(self, plan: Plan) -> Condensation:
        """Run the prelude and the passes, until the target is reached."""
        run = _SmartRun(WorkingView.begin(plan), SummaryWriter(self.means, _turns(self.means)))
        if self.config.lossless_prelude.enabled:
            await self._prelude(run)
        passes = self.config.passes
        for step in passes:
            if run.steps and run.has_reached_target:
                break
            if not _is_due(step, run.working):
                run.operations.append(f"skip_{step.id}")
                continue
            await self._pass(step, run, is_last=step is passes[-1])
        await self._summarize_rest(run)
        return run.answer(self.id)

    async def estimate(self, plan: Plan, prices: Prices | None = None) -> Estimate:
        """With all the summaries that would be written."""
        return await simulate(self, plan, prices)

    async def _prelude(self, run: _SmartRun) -> None:
        """Run the lossless strategy; if it fails, the passes start from the plan as it is."""
        try:
            working = await self._without_loss(run.working)
        except EnfoldError as error:
            run.skip(PRELUDE, "the lossless prelude", error)
        else:
            run.complete(PRELUDE, PRELUDE, working)

    async def _summarize_rest(self, run: _SmartRun) -> None:
        """Let the summary grow until the target is reached, if the config has one."""
        if run.working.plan.target is None or run.has_reached_target:
            return
        summaries = [
            step
            for step in self.config.passes
            if step.batch_config is not None and step.batch_config.operation == "summarize"
        ]
        if summaries and not run.is_exhausted:
            await self._pass(summaries[-1], run, is_last=True)

    async def _pass(self, step: Pass, run: _SmartRun, *, is_last: bool) -> None:
        run.is_exhausted = is_last and step.mode == "batch"
        try:
            working = await self._run(step, run, is_last=is_last)
        except EnfoldError as error:
            run.skip(step.id, f"the pass {step.id}", error)
        else:
            run.complete(step.id, step.name, working, step)

    async def _run(self, step: Pass, run: _SmartRun, *, is_last: bool) -> WorkingView:
        """Run one pass; raise `NoGainError` if the view becomes larger.

        A new summary may remove what edits pointed to; the content was put back, and the lossless
        strategy looks for repeats in it again. If that fails, the summary stays.
        """
        before = run.working
        after = await run_pass(step, before, run.writer, is_last=is_last)
        is_new = after.summarized is not before.summarized and self.means.reviewed
        if is_new and self.config.lossless_prelude.enabled:
            try:
                after = await self._without_loss(after)
            except EnfoldError as error:
                run.writer.warnings.append(f"{PRELUDE} after {step.id} was skipped: {error}")
        if after.tokens > before.tokens:
            raise NoGainError(f"{before.tokens:,} tokens would have become {after.tokens:,}")
        return after

    async def _without_loss(self, working: WorkingView) -> WorkingView:
        kind = contract.get("lossless")
        lossless = kind.make_from(write(self.config.lossless_prelude.operations), self.means)
        rest = working.rest
        answer = await lossless.condense(rest)
        if self.means.reviewed:
            validate(rest, answer, may_be_unchanged=True)
        return working.with_shortened(answer.edits)


@dataclass(slots=True)
class _SmartRun:
    """One run of the strategy: the view so far, and what there is to report."""

    working: WorkingView
    writer: SummaryWriter
    steps: list[Step] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)
    is_exhausted: bool = False
    """True if the last step summarized all that it may."""
    failure: EnfoldError | None = None
    """The error of the last step that failed, other than for want of a gain."""

    @property
    def has_reached_target(self) -> bool:
        """True if the target is reached."""
        target = self.working.plan.target
        return target is not None and self.working.tokens <= target

    def complete(self, id: str, name: str, working: WorkingView, step: Pass | None = None) -> None:
        """Record a step and the view after it."""
        saved = saved_by_operation(step, self.working, working) if step is not None else {}
        self.steps.append(Step(name, self.working.tokens, working.tokens, saved))
        self.operations.append(f"{id}_completed")
        self.working = working

    def skip(self, id: str, name: str, error: EnfoldError) -> None:
        """Record a step that failed."""
        self.operations.append(f"skip_{id}")
        self.writer.warnings.append(f"{name} was skipped: {error}")
        if not isinstance(error, NoGainError):
            self.failure = error

    def answer(self, strategy: str) -> Condensation:
        """Return the condensation; raise the error of a step if nothing was changed because of it.

        The fallback then takes the strategy's place.
        """
        warnings = tuple(self.writer.warnings)
        answer = Condensation(
            strategy,
            self.working.entries,
            tuple(self.steps),
            warnings,
            tuple(self.operations),
            add(self.writer.costs),
            invented=tuple(self.writer.invented),
        )
        if not answer.is_unchanged:
            return answer
        if self.failure is not None:
            raise self.failure
        why = unchanged(self.working.plan, strategy, "no pass found anything to do")
        return Condensation(
            strategy,
            why.entries,
            tuple(self.steps),
            (*warnings, *why.warnings),
            tuple(self.operations),
            answer.cost,
        )


def _turns(means: Summarizers) -> asyncio.Semaphore:
    return asyncio.Semaphore(max(1, means.parallel))


def _is_due(step: Pass, working: WorkingView) -> bool:
    """Return True if the pass runs on a view of this size."""
    condition = step.execution.condition
    if step.execution.type == "always" or condition is None:
        return True
    plan = working.plan
    if condition.target_share is not None:
        is_above = plan.target is not None and working.tokens > plan.target * condition.target_share
        if not is_above:
            return False
    return (
        condition.token_threshold is None
        or working.tokens + plan.static_tokens > condition.token_threshold
    )


KIND = StrategyKind(
    id="smart",
    name="Smart",
    description="Runs passes until the target is reached: first without loss, then it shortens or "
    "removes old tool output, then it summarizes.",
    capabilities=Capabilities(
        batch=True, individual=True, multi_pass=True, summaries=True, speed="medium"
    ),
    config=SmartConfig,
    make=Smart,
)
