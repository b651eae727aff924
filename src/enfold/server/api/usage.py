"""Usage, costs and savings; and verification of all that is stored."""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Mapping
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Query

from enfold.engine.activity import Activity, PromptFigures, read_activity, read_prompt_trial
from enfold.engine.verification import Verification, verify
from enfold.errors import TooManyError
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


# Verification.


_RETRY_SECONDS = 10.0
_running = Lock()
"""Held while a verification runs: it reads the whole database, so one runs at a time."""


@router.get("/verify", name="verify", summary="Verify the store")
async def verify_store(
    engine: TheEngine,
    caller: TheCaller,
    session: Annotated[
        str | None, Query(max_length=256, description="Check one session only.")
    ] = None,
) -> Verification:
    """Check every row of your sessions; for the owner, of the whole database."""
    if _running.locked():
        raise TooManyError("a verification runs already; retry later", retry_after=_RETRY_SECONDS)
    async with _running:
        namespace = None if caller.is_owner else caller.namespace
        return await verify(engine.store, namespace=namespace, session=session)
