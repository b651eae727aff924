"""The smart strategy: passes in order, each with its own selection, mode and operations.

`config` is what can be set, `decomposition` takes a message apart and puts it together,
`operations` says what becomes of content, `working` is the view between two passes, `passes` runs
one, `strategy` all of them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from enfold.amounts import add
from enfold.condensation import Condensation, Plan, Step, unchanged, validate
from enfold.errors import EnfoldError, NoGainError
from enfold.fields import write
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
)

__all__ = ["KIND", "MessageContent", "Smart", "SmartConfig", "decompose", "recompose"]

PRELUDE = "lossless_prelude"


@dataclass(frozen=True, slots=True)
class Smart:
    """Passes in order."""

    config: SmartConfig
    means: Summarizers

    id = "smart"

    @property
    def retention(self) -> Retention:
        """The last message; each pass says what else it leaves alone."""
        return Retention("messages", 1)

    def touches(self, plan: Plan) -> tuple[int, ...]:
        """Return the messages that any pass may touch; with a prelude all that may be edited."""
        working = WorkingView.begin(plan)
        found = {index for step in self.config.passes for index in messages_touched(step, working)}
        if self.config.lossless_prelude.enabled:
            found.update(plan.editable)
        return tuple(sorted(found))

    async def condense(self, plan: Plan) -> Condensation:
        """Run the prelude and the passes on the plan."""
        journey = _SmartRun(WorkingView.begin(plan), SummaryWriter(self.means, _turns(self.means)))
        if self.config.lossless_prelude.enabled:
            await self._prelude(journey)
        for step in self.config.passes:
            if journey.steps and journey.has_arrived:
                break
            if not _is_due(step, journey.working):
                journey.operations.append(f"skip_{step.id}")
                continue
            await self._pass(step, journey)
        return journey.answer(self.id)

    async def estimate(self, plan: Plan, prices: Prices | None = None) -> Estimate:
        """With all the summaries that would be written."""
        return await simulate(self, plan, prices)

    async def _prelude(self, journey: _SmartRun) -> None:
        """The lossless strategy; if it fails, the passes go on from what there is."""
        try:
            working = await self._without_loss(journey.working)
        except Exception as error:  # noqa: BLE001 - a prelude that fails is skipped, and said
            journey.skip(PRELUDE, "the lossless prelude", error)
        else:
            journey.go_on(PRELUDE, PRELUDE, working)

    async def _pass(self, step: Pass, journey: _SmartRun) -> None:
        try:
            working = await self._run(step, journey)
        except Exception as error:  # noqa: BLE001 - a pass that fails is skipped, and said
            journey.skip(step.id, f"the pass {step.id}", error)
        else:
            journey.go_on(step.id, step.name, working)

    async def _run(self, step: Pass, journey: _SmartRun) -> WorkingView:
        """Run one pass; raise `NoGainError` if the view becomes larger.

        After a new summary messages have other numbers, and what pointed to one was put back; the
        lossless strategy points to them anew.
        """
        before = journey.working
        after = await run_pass(step, before, journey.crew)
        if after.folded is not before.folded and self.config.lossless_prelude.enabled:
            after = await self._without_loss(after)
        if after.tokens > before.tokens:
            raise NoGainError(f"{before.tokens:,} tokens would have become {after.tokens:,}")
        return after

    async def _without_loss(self, working: WorkingView) -> WorkingView:
        kind = contract.get("lossless")
        lossless = kind.make_from(write(self.config.lossless_prelude.operations), self.means)
        rest = working.rest
        answer = await lossless.condense(rest)
        validate(rest, answer, may_be_unchanged=True)
        return working.with_shortened(answer.edits)


@dataclass(slots=True)
class _SmartRun:
    """One run of the strategy: where it is, and what there is to report."""

    working: WorkingView
    crew: SummaryWriter
    steps: list[Step] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)

    @property
    def has_arrived(self) -> bool:
        """True if the target is reached."""
        target = self.working.plan.target
        return target is not None and self.working.tokens <= target

    def go_on(self, id: str, name: str, working: WorkingView) -> None:
        """A step was done."""
        self.steps.append(Step(name, self.working.tokens, working.tokens))
        self.operations.append(f"{id}_completed")
        self.working = working

    def skip(self, id: str, name: str, error: Exception) -> None:
        """A step failed; the words of foreign errors may quote a message, so are not repeated."""
        reason = str(error) if isinstance(error, EnfoldError) else type(error).__name__
        self.operations.append(f"skip_{id}")
        self.crew.warnings.append(f"{name} was skipped: {reason}")

    def answer(self, strategy: str) -> Condensation:
        """Return the condensation."""
        warnings = tuple(self.crew.warnings)
        answer = Condensation(
            strategy,
            self.working.entries,
            tuple(self.steps),
            warnings,
            tuple(self.operations),
            add(self.crew.costs),
            invented=tuple(self.crew.invented),
        )
        if not answer.is_unchanged:
            return answer
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
    return working.tokens + working.plan.static_tokens > condition.token_threshold


KIND = StrategyKind(
    id="smart",
    name="Smart",
    description="Passes in order: without loss first, then truncating, suppressing, summarizing, "
    "until the target is reached.",
    capabilities=Capabilities(
        batch=True, individual=True, multi_pass=True, summaries=True, speed="medium"
    ),
    config=SmartConfig,
    make=Smart,
)
