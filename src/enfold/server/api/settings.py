"""Settings: what is in force, for everybody or for one session, and where it comes from."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import Field

from enfold.engine.state import read_session_settings
from enfold.server.api.shapes import (
    Shape,
    StrictRoute,
    TheEngine,
    TheOwner,
    TheSession,
    checked,
    example,
)
from enfold.settings import CHECKS, Settings

router = APIRouter(prefix="/api", tags=["settings"], route_class=StrictRoute)


class SettingShape(Shape):
    """A setting's value, and who set it."""

    value: Any = Field(description="Null is unset.")
    level: str = Field(
        description="call, session, profile, database, config file, environment or default."
    )


class SettingChanges(Shape):
    """Settings by name; null lets one be inherited again."""

    settings: dict[str, Any] = Field(min_length=1, description="New values by name.")
    model_config = example(settings={"threshold": 0.8, "style": None})


@router.get("/settings", name="list", summary="Show settings")
async def list_settings(engine: TheEngine) -> dict[str, SettingShape]:
    """What holds where a session, a profile or a call says nothing else."""
    return shown(await engine.settings())


@router.patch("/settings", name="change", summary="Change settings")
async def change_settings(
    changes: SettingChanges, engine: TheEngine, _: TheOwner
) -> dict[str, SettingShape]:
    """For all sessions, in every process, from the next decision on."""
    for name, value in checked(changes.settings).items():
        await engine.set(name, value)
    return shown(await engine.settings())


@router.get("/sessions/{session}/settings", name="of_session", summary="Show a session's settings")
async def session_settings(session: TheSession, engine: TheEngine) -> dict[str, SettingShape]:
    """What is in force in the session, each value with the level that set it."""
    return shown(await engine.store.read(read_session_settings, session.key, engine.outside))


@router.patch(
    "/sessions/{session}/settings", name="change_session", summary="Change a session's settings"
)
async def change_session_settings(
    changes: SettingChanges, session: TheSession, engine: TheEngine
) -> dict[str, SettingShape]:
    """For this session alone."""
    await session.configure(**checked(changes.settings))
    return shown(await engine.store.read(read_session_settings, session.key, engine.outside))


def shown(settings: Settings) -> dict[str, SettingShape]:
    """Settings as the API has them."""
    return {
        name: SettingShape(value=getattr(settings, name), level=settings.sources[name])
        for name in CHECKS
    }
