"""Models: their limits and defaults, read by everybody, changed by the owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field, SecretStr

from enfold.engine.models import ModelChanges
from enfold.engine.profiles import ListedProfile, ProfileTest
from enfold.errors import AccessError
from enfold.llm.calls import Secret
from enfold.llm.profiles import Profile
from enfold.modelconfig import ModelConfig
from enfold.server.api.shapes import (
    Shape,
    StrictRoute,
    TheCaller,
    TheEngine,
    TheOwner,
    TheSession,
    checked,
    example,
)
from enfold.server.callers import require_owner
from enfold.server.headers import name_in
from enfold.settings import SettingValue, setting_values
from enfold.strategies.presets import Preset

router = APIRouter(prefix="/api", tags=["models"], route_class=StrictRoute)

Model: TypeAlias = Annotated[
    str, Path(max_length=256, description="As provider:model.", examples=["openai:gpt-4o"])
]


@router.get("/models", name="list", summary="List models")
async def list_models(
    engine: TheEngine,
    q: Annotated[str, Query(max_length=256, description="Only with this in their names.")] = "",
) -> Sequence[ModelConfig]:
    """Every model that is known, by name."""
    return [each for each in await engine.models.all() if q.lower() in each.id.lower()]


@router.get("/models/{model:path}", name="get", summary="Show a model")
async def get_model(model: Model, engine: TheEngine) -> ModelConfig:
    """One that is not known yet is looked for, and kept."""
    return await engine.models.get(name_in(model))


@router.patch("/models/{model:path}", name="change", summary="Change or add a model")
async def change_model(
    model: Model, changes: ModelChanges, engine: TheEngine, _: TheOwner
) -> ModelConfig:
    """In effect at the next decision, in every process."""
    values = changes.model_dump(exclude_none=True)
    return await engine.models.edit(name_in(model), **values)


@router.delete("/models/{model:path}", name="forget", summary="Forget a model", status_code=204)
async def forget_model(model: Model, engine: TheEngine, _: TheOwner) -> Response:
    """It is looked for again when it is next asked for, with the values that are known."""
    await engine.models.delete(name_in(model))
    return Response(status_code=204)


profiles_router = APIRouter(prefix="/api", tags=["profiles"], route_class=StrictRoute)

Name: TypeAlias = Annotated[str, Path(description="The profile's name.", examples=["haiku"])]

_FILE = "file:"


class NewProfile(Shape):
    """A profile to be kept, in place of another of that name."""

    fields: dict[str, Any] = Field(
        description="provider, model, base_url, options, key, prices, threshold, prompt, "
        "condensing_profile and settings."
    )
    model_config = example(
        fields={"provider": "anthropic", "model": "claude-haiku-4-5", "key": "env:MY_KEY"}
    )


class NewKey(Shape):
    """A key to be stored, encrypted."""

    key: SecretStr = Field(
        min_length=1, max_length=10_000, description="The key itself; it is never shown again."
    )
    model_config = example(key="the provider's key")


@profiles_router.get("/profiles", name="list", summary="List profiles")
async def list_profiles(engine: TheEngine) -> Sequence[ListedProfile]:
    """By name; one may say why it cannot be used."""
    return await engine.profiles.all()


@profiles_router.get("/profiles/{profile}", name="get", summary="Show a profile")
async def get_profile(profile: Name, engine: TheEngine) -> ListedProfile:
    """All its fields."""
    return _listed(await engine.profiles.get(name_in(profile)))


@profiles_router.put("/profiles/{profile}", name="save", summary="Save a profile")
async def save_profile(
    profile: Name, new: NewProfile, engine: TheEngine, _: TheOwner
) -> ListedProfile:
    """Its key is named as env:NAME or stored with `PUT …/key`; a file is named on the machine."""
    if str(new.fields.get("key", "")).startswith(_FILE):
        raise AccessError("body.fields.key: a file is named with `enfold profiles`, not over HTTP")
    return _listed(await engine.profiles.save(name_in(profile), new.fields, replace=True))


@profiles_router.put("/profiles/{profile}/key", name="set_key", summary="Store a profile's key")
async def set_key(profile: Name, new: NewKey, engine: TheEngine, _: TheOwner) -> ListedProfile:
    """Encrypted, and never shown again."""
    secret = Secret(new.key.get_secret_value())
    return _listed(await engine.profiles.set_key(name_in(profile), secret))


@profiles_router.post("/profiles/{profile}/test", name="test", summary="Try a profile")
async def try_profile(profile: Name, engine: TheEngine, _: TheOwner) -> ProfileTest:
    """Ask its model one small question; the error says what is wrong."""
    return await engine.profiles.test(name_in(profile))


@profiles_router.delete(
    "/profiles/{profile}", name="delete", summary="Delete a profile", status_code=204
)
async def delete_profile(
    profile: Name,
    engine: TheEngine,
    _: TheOwner,
    force: Annotated[bool, Query(description="Even if it condenses for others.")] = False,  # noqa: FBT002 - a query's name
) -> Response:
    """With its stored key."""
    await engine.profiles.remove(name_in(profile), force=force)
    return Response(status_code=204)


presets_router = APIRouter(prefix="/api", tags=["presets"], route_class=StrictRoute)

PresetName: TypeAlias = Annotated[
    str, Path(description="The preset's name.", examples=["balanced"])
]


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


@presets_router.get("/presets", name="list", summary="List presets")
async def list_presets(engine: TheEngine) -> Sequence[Preset]:
    """The built-in ones, then those that were saved."""
    return await engine.presets.all()


@presets_router.get("/presets/{preset}", name="get", summary="Show a preset")
async def get_preset(preset: PresetName, engine: TheEngine) -> Preset:
    """With its whole config."""
    return await engine.presets.get(name_in(preset))


@presets_router.put("/presets/{preset}", name="save", summary="Save a preset")
async def save_preset(preset: PresetName, new: NewPreset, engine: TheEngine, _: TheOwner) -> Preset:
    """A field of the config that the strategy does not know is refused with its path."""
    made = Preset(name_in(preset), new.description, new.strategy, new.config)
    return await engine.presets.save(made, replace=True)


@presets_router.delete(
    "/presets/{preset}", name="delete", summary="Delete a preset", status_code=204
)
async def delete_preset(preset: PresetName, engine: TheEngine, _: TheOwner) -> Response:
    """One that was saved; those built in stay."""
    await engine.presets.delete(name_in(preset))
    return Response(status_code=204)


@presets_router.post("/presets/{preset}/apply", name="apply", summary="Apply a preset")
async def apply_preset(
    preset: PresetName, applying: Applying, engine: TheEngine, caller: TheCaller
) -> Preset:
    """Use its strategy and config, in one session or where nothing else is set."""
    session = None
    if applying.session is None:
        require_owner(caller)
    else:
        session = await engine.find(applying.session, namespace=caller.namespace)
    return await engine.presets.apply(name_in(preset), session)


settings_router = APIRouter(prefix="/api", tags=["settings"], route_class=StrictRoute)


class SettingChanges(Shape):
    """Settings by name; null lets one be inherited again."""

    settings: dict[str, Any] = Field(min_length=1, description="New values by name.")
    model_config = example(settings={"threshold": 0.8, "style": None})


@settings_router.get("/settings", name="list", summary="Show settings")
async def list_settings(engine: TheEngine) -> dict[str, SettingValue]:
    """What holds where a session, a profile or a call says nothing else."""
    return setting_values(await engine.settings())


@settings_router.patch("/settings", name="change", summary="Change settings")
async def change_settings(
    changes: SettingChanges, engine: TheEngine, _: TheOwner
) -> dict[str, SettingValue]:
    """For all sessions, in every process, from the next decision on."""
    for name, value in checked(changes.settings).items():
        await engine.set(name, value)
    return setting_values(await engine.settings())


@settings_router.get(
    "/sessions/{session}/settings", name="of_session", summary="Show a session's settings"
)
async def session_settings(session: TheSession) -> dict[str, SettingValue]:
    """What is in force in the session, each value with the level that set it."""
    return setting_values(await session.settings())


@settings_router.patch(
    "/sessions/{session}/settings", name="change_session", summary="Change a session's settings"
)
async def change_session_settings(
    changes: SettingChanges, session: TheSession
) -> dict[str, SettingValue]:
    """For this session alone."""
    await session.configure(**checked(changes.settings))
    return setting_values(await session.settings())


def _listed(profile: Profile) -> ListedProfile:
    return ListedProfile(profile.name, profile)
