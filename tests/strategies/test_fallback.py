"""A strategy that fails, or does not go far enough, and the one that takes its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from enfold.amounts import record_cost
from enfold.condensation import (
    Condensation,
    CondensationEntry,
    EditedMessage,
    KeptMessage,
    Plan,
    unchanged,
)
from enfold.errors import NoGainError, SummaryError
from enfold.retention import Retention
from enfold.strategies.contract import Estimate, EstimatedCost, Prices, Reduction
from enfold.strategies.fallback import WithFallback
from enfold.testing import ScriptedSummarizer, assistant, user
from tests.strategies.tasks import plan_for, strategy

CHAT = tuple(user("alpha " * 80) if n % 2 == 0 else assistant("beta " * 80) for n in range(12))


@dataclass(frozen=True)
class Foreign:
    """A strategy of another package."""

    answer: Callable[[Plan], Condensation]

    id = "foreign"
    retention = Retention("messages", 2)

    def touches(self, plan: Plan) -> Sequence[int]:
        return () if self.answer(plan).is_unchanged else (1,)

    async def condense(self, plan: Plan) -> Condensation:
        return self.answer(plan)

    async def estimate(self, plan: Plan, prices: Prices | None = None) -> Estimate:
        dollars = prices("foreign", plan.tokens, 0) if prices else None
        return Estimate(Reduction(plan.tokens, 1), EstimatedCost(dollars=dollars))


def broken(_task: Plan) -> Condensation:
    raise ZeroDivisionError("quoting what the user said")


def loses_messages(plan: Plan) -> Condensation:
    return Condensation("foreign", tuple(map(KeptMessage, range(len(plan.messages) - 1))))


def shorter(plan: Plan) -> Condensation:
    entries: list[CondensationEntry] = list(map(KeptMessage, range(len(plan.messages))))
    entries[1] = EditedMessage(1, assistant("beta"), 5)
    return Condensation("foreign", tuple(entries), warnings=("careful",))


def nothing(plan: Plan) -> Condensation:
    return unchanged(plan, "foreign", "nothing to do")


def without_gain(plan: Plan) -> Condensation:
    return replace(
        shorter(plan), entries=(*map(KeptMessage, range(11)), EditedMessage(11, CHAT[11], 9_999))
    )


@pytest.mark.parametrize("answer", [broken, loses_messages])
async def test_native_takes_the_place_of_one_that_fails(
    answer: Callable[[Plan], Condensation],
) -> None:
    both = WithFallback(Foreign(answer), strategy("native"), ("a note",))
    done = await both.condense(plan_for(CHAT, both))
    assert done.strategy == "native"
    assert done.summary is not None
    assert done.operations[0] == "skip_foreign"
    assert done.warnings[0] == "a note"
    assert "foreign failed, native took its place" in done.warnings[1]


async def test_the_cost_is_that_of_both() -> None:
    def paid_in_vain(plan: Plan) -> Condensation:
        record_cost(0.25)
        return broken(plan)

    both = WithFallback(Foreign(paid_in_vain), Foreign(paid))
    assert (await both.condense(plan_for(CHAT, both))).cost == 0.75


def paid(plan: Plan) -> Condensation:
    record_cost(0.5)
    return replace(shorter(plan), cost=0.5)


async def test_the_words_of_a_foreign_error_are_not_repeated() -> None:
    both = WithFallback(Foreign(broken), strategy("native"))
    done = await both.condense(plan_for(CHAT, both))
    assert "ZeroDivisionError" in done.warnings[0]
    assert "quoting" not in done.warnings[0]


async def test_if_both_fail_the_second_says_why() -> None:
    away = ScriptedSummarizer(SummaryError("the model is away"))
    both = WithFallback(Foreign(broken), strategy("native", None, away))
    with pytest.raises(SummaryError, match="away"):
        await both.condense(plan_for(CHAT, both))


async def test_a_working_strategy_needs_no_fallback() -> None:
    both = WithFallback(Foreign(shorter), strategy("native"))
    done = await both.condense(plan_for(CHAT, both))
    assert (done.strategy, done.warnings) == ("foreign", ("careful",))
    without_fallback = WithFallback(Foreign(shorter), None, ("a note",))
    assert (await without_fallback.condense(plan_for(CHAT, without_fallback))).warnings == (
        "a note",
        "careful",
    )


async def test_a_target_that_must_be_reached_is_reached_by_the_second() -> None:
    both = WithFallback(Foreign(shorter), strategy("native"))
    plan = replace(plan_for(CHAT, both), target=500)
    assert (await both.condense(plan)).strategy == "foreign"
    done = await both.condense(replace(plan, is_due=True))
    assert done.strategy == "native"
    assert "ended at" in done.warnings[0]
    assert "took over" in done.warnings[0]


async def test_the_first_is_kept_where_the_second_fails_or_is_no_better() -> None:
    away = ScriptedSummarizer(SummaryError("the model is away"))
    both = WithFallback(Foreign(shorter), strategy("native", None, away))
    plan = replace(plan_for(CHAT, both), target=500, is_due=True)
    done = await both.condense(plan)
    assert done.strategy == "foreign"
    assert "away" in done.warnings[0]
    with pytest.raises(SummaryError):
        await WithFallback(Foreign(nothing), both.second).condense(plan)
    same = WithFallback(Foreign(shorter), Foreign(nothing))
    assert (await same.condense(plan)).edits


async def test_without_gain_the_second_is_only_asked_if_it_must() -> None:
    both = WithFallback(Foreign(without_gain), strategy("native"))
    plan = replace(plan_for(CHAT, both), target=500)
    with pytest.raises(NoGainError):
        await both.condense(replace(plan, zones=None, split=replace(plan.split, cut=12)))
    done = await both.condense(
        replace(plan, zones=None, split=replace(plan.split, cut=11), is_due=True)
    )
    assert done.strategy == "native"


async def test_touches_come_from_the_first_strategy_or_the_fallback_when_due() -> None:
    both = WithFallback(Foreign(nothing), strategy("native"))
    plan = plan_for(CHAT, both)
    assert both.touches(plan) == ()
    assert both.touches(replace(plan, is_due=True)) == strategy("native").touches(plan)
    foretold = await both.estimate(plan, lambda *_: 0.5)
    assert foretold.reduction.share > 0.9
    assert (foretold.cost.calls, foretold.cost.dollars) == (0, 0.5)
