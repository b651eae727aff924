"""Activity: what compressions saved and cost, day by day, by strategy and by model."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from fastapi import APIRouter
from pydantic import Field

from enfold.engine.activity import Total, read_activity
from enfold.server.api.shapes import Shape, StrictRoute, TheCaller, TheEngine
from enfold.server.api.usage import Since

router = APIRouter(prefix="/api", tags=["usage"], route_class=StrictRoute)


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
