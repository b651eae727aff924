"""Verification of all that is stored."""

from __future__ import annotations

from asyncio import Lock
from typing import Annotated

from fastapi import APIRouter, Query

from enfold.engine.verification import Verification, verify
from enfold.errors import TooManyError
from enfold.server.api.shapes import StrictRoute, TheCaller, TheEngine

router = APIRouter(prefix="/api", tags=["verification"], route_class=StrictRoute)

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
