"""Presets: a strategy with its config under a name, read, saved and applied."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Path, Response
from pydantic import Field

from enfold.server.api.shapes import (
    Shape,
    StrictRoute,
    TheCaller,
    TheEngine,
    TheOwner,
    example,
)
from enfold.server.callers import require_owner
from enfold.server.segments import name_in
from enfold.strategies.presets import Preset

router = APIRouter(prefix="/api", tags=["presets"], route_class=StrictRoute)

Name: TypeAlias = Annotated[str, Path(description="The preset's name.", examples=["balanced"])]


class PresetShape(Shape):
    """A strategy with its config."""

    name: str = Field(description="What it is called.")
    description: str = Field(description="What it is for.")
    strategy: str = Field(description="Which strategy it uses.")
    config: dict[str, Any] = Field(description="That strategy's config.")
    built_in: bool = Field(description="Whether it came with enfold.")
    fault: str = Field(description="Why it can no longer be used; empty if it can.")


class NewPreset(Shape):
    """A preset to be kept, in place of another of that name."""

    description: str = Field("", max_length=1_000, description="What it is for.")
    strategy: str = Field(description="Which strategy it uses.")
    config: dict[str, Any] = Field(default_factory=dict, description="That strategy's config.")
    model_config = example(
        description="The last ten, the rest cut short.",
        strategy="truncation",
        config={"preserveRecentCount": 10},
    )


class Applying(Shape):
    """Where to use a preset."""

    session: str | None = Field(None, description="Null for all sessions that say nothing else.")
    model_config = example(session="festival")


@router.get("/presets", name="list", summary="List presets")
async def list_presets(engine: TheEngine) -> list[PresetShape]:
    """The built-in ones, then those that were saved."""
    return [shown(preset) for preset in await engine.presets.all()]


@router.get("/presets/{preset}", name="get", summary="Show a preset")
async def get_preset(preset: Name, engine: TheEngine) -> PresetShape:
    """With its whole config."""
    return shown(await engine.presets.get(name_in(preset)))


@router.put("/presets/{preset}", name="save", summary="Save a preset")
async def save_preset(preset: Name, new: NewPreset, engine: TheEngine, _: TheOwner) -> PresetShape:
    """A field of the config that the strategy does not know is refused with its path."""
    made = Preset(name_in(preset), new.description, new.strategy, new.config)
    return shown(await engine.presets.save(made, replace=True))


@router.delete("/presets/{preset}", name="delete", summary="Delete a preset", status_code=204)
async def delete_preset(preset: Name, engine: TheEngine, _: TheOwner) -> Response:
    """One that was saved; those built in stay."""
    await engine.presets.delete(name_in(preset))
    return Response(status_code=204)


@router.post("/presets/{preset}/apply", name="apply", summary="Apply a preset")
async def apply_preset(
    preset: Name, applying: Applying, engine: TheEngine, caller: TheCaller
) -> PresetShape:
    """Use its strategy and config, in one session or where nothing else is set."""
    session = None
    if applying.session is None:
        require_owner(caller)
    else:
        session = await engine.find(applying.session, namespace=caller.namespace)
    return shown(await engine.presets.apply(name_in(preset), session))


def shown(preset: Preset) -> PresetShape:
    """A preset as the API has it."""
    return PresetShape(
        name=preset.name,
        description=preset.description,
        strategy=preset.strategy,
        config=dict(preset.config),
        built_in=preset.is_built_in,
        fault=preset.fault,
    )
