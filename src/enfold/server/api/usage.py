"""Usage: what calls of models used and cost, of one session or of all of yours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Query
from pydantic import Field

from enfold.engine.activity import Total, read_activity
from enfold.records import UsageTotal
from enfold.server.api.shapes import Shape, StrictRoute, TheCaller, TheEngine, TheSession

router = APIRouter(prefix="/api", tags=["usage"], route_class=StrictRoute)

Since: TypeAlias = Annotated[
    int, Query(ge=0, le=2**53, description="Milliseconds since 1970; what was before is left out.")
]


class UsageShape(Shape):
    """What the calls of one model used, for one purpose."""

    kind: str = Field(description="What the calls were for: a reply, a summary.")
    profile: str | None = Field(description="Which profile asked; null for none.")
    model: str | None = Field(description="Which model was asked.")
    calls: int = Field(description="How many.")
    input_tokens: int = Field(description="Sent, cached ones included.")
    cached_tokens: int = Field(description="Of these, what the provider had in its cache.")
    output_tokens: int = Field(description="Received.")
    cost: float = Field(description="In US dollars, of the calls whose cost is known.")
    unknown_costs: int = Field(description="How many calls have no known cost.")


class Usage(Shape):
    """Totals by purpose, profile and model, and over all of them."""

    cost: float | None = Field(description="In US dollars; null if some of it is unknown.")
    known_cost: float = Field(description="What is known of it.")
    calls: int = Field(description="How many.")
    totals: list[UsageShape] = Field(description="One entry per purpose, profile and model.")


@router.get("/usage", name="total", summary="Show usage and costs")
async def total_usage(engine: TheEngine, caller: TheCaller, since: Since = 0) -> Usage:
    """Of all your sessions."""
    found = await engine.usage(namespace=caller.namespace, since=since)
    return _summed(found)


@router.get("/sessions/{session}/usage", name="of_session", summary="Show a session's usage")
async def session_usage(session: TheSession, since: Since = 0) -> Usage:
    """Of one session."""
    return _summed(await session.usage(since=since))


def _summed(found: Sequence[UsageTotal]) -> Usage:
    known = sum(total.cost for total in found)
    return Usage(
        cost=None if any(total.unknown_costs for total in found) else known,
        known_cost=known,
        calls=sum(total.calls for total in found),
        totals=[
            UsageShape(
                kind=total.kind,
                profile=total.profile,
                model=total.model,
                calls=total.calls,
                input_tokens=total.input_tokens,
                cached_tokens=total.cached_tokens,
                output_tokens=total.output_tokens,
                cost=total.cost,
                unknown_costs=total.unknown_costs,
            )
            for total in found
        ],
    )


class SavedShape(Shape):
    """What several compressions saved."""

    compressions: int = Field(description="How many there were.")
    tokens: int = Field(description="How many left the views.")
    spared: int = Field(description="How many were not sent again since.")
    dollars: float = Field(description="What those would have cost, where a price is known.")
    unknown: int = Field(description="How many compressions are for models of unknown price.")


class DayShape(SavedShape):
    """What happened on one day, in UTC."""

    day: date = Field(description="The day.")
    failures: int = Field(description="Compressions that failed.")
    cached_share: float | None = Field(description="Of what replies read; null without replies.")


class ActivityShape(Shape):
    """What happened since a moment; days on which nothing did are left out."""

    total: SavedShape = Field(description="Of all days together.")
    failures: int = Field(description="Compressions that failed.")
    cached_share: float | None = Field(description="Of what replies read; null without replies.")
    spent: float = Field(description="On summaries, in US dollars, as far as it is known.")
    unknown_costs: int = Field(description="Calls for summaries whose cost is not known.")
    days: list[DayShape] = Field(description="Day by day, the oldest first.")
    by_strategy: dict[str, SavedShape] = Field(description="Of each strategy, by its name.")
    by_model: dict[str, SavedShape] = Field(description="Of each model, as provider:model.")


@router.get("/activity", name="activity", summary="Show what was saved")
async def show_activity(engine: TheEngine, caller: TheCaller, since: Since = 0) -> ActivityShape:
    """By compressions of all your sessions. Tokens are exact, money is an estimate."""
    found = await read_activity(engine, caller.namespace, since=since)
    saved, failed, cached = found.by_day(), found.failures_by_day(), found.cached_by_day()
    return ActivityShape(
        total=_saved(found.total),
        failures=found.failed,
        cached_share=found.cached_share,
        spent=found.spent,
        unknown_costs=found.unknown_costs,
        days=[
            DayShape(
                day=day,
                failures=failed.get(day, 0),
                cached_share=cached.get(day),
                **_saved(saved.get(day, Total())).model_dump(),
            )
            for day in sorted({*saved, *failed, *cached})
        ],
        by_strategy=_named(found.by_strategy()),
        by_model=_named(found.by_model()),
    )


def _named(totals: Mapping[str, Total]) -> dict[str, SavedShape]:
    return {name: _saved(total) for name, total in totals.items()}


def _saved(total: Total) -> SavedShape:
    return SavedShape(
        compressions=total.compressions,
        tokens=total.tokens,
        spared=total.spared,
        dollars=total.dollars,
        unknown=total.unknown,
    )
