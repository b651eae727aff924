"""Usage and costs of model calls, and the tokens that compressions saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Query

from enfold.engine.activity import Activity, PromptFigures, read_activity, read_prompt_trial
from enfold.records import UsageSummary
from enfold.server.api.shapes import StrictRoute, TheCaller, TheEngine, TheSession

router = APIRouter(prefix="/api", tags=["usage"], route_class=StrictRoute)

Since: TypeAlias = Annotated[
    int, Query(ge=0, le=2**53, description="Only since this time, in milliseconds since 1970.")
]


@router.get("/usage", name="total", summary="Show usage and costs")
async def total_usage(engine: TheEngine, caller: TheCaller, since: Since = 0) -> UsageSummary:
    """Return the usage of all your sessions."""
    found = await engine.usage(namespace=caller.namespace, since=since)
    return UsageSummary.of(found)


@router.get("/sessions/{session}/usage", name="of_session", summary="Show a session's usage")
async def session_usage(session: TheSession, since: Since = 0) -> UsageSummary:
    """Return the usage of one session."""
    return UsageSummary.of(await session.usage(since=since))


@router.get("/prompt-trial", name="prompt_trial", summary="Compare prompts on trial")
async def show_prompt_trial(
    engine: TheEngine, caller: TheCaller, since: Since = 0
) -> Mapping[str, PromptFigures]:
    """Return what summaries came to with the prompt on trial and with the usual one."""
    return await read_prompt_trial(engine, caller.namespace, since=since)


@router.get("/activity", name="activity", summary="Show savings")
async def show_activity(engine: TheEngine, caller: TheCaller, since: Since = 0) -> Activity:
    """Return the savings of compressions in all your sessions; amounts of money are estimates."""
    return await read_activity(engine, caller.namespace, since=since)
