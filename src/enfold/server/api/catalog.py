"""Models, profiles, presets and settings. Only the owner changes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Self, TypeAlias

from fastapi import APIRouter, Path, Query
from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SecretStr,
    model_validator,
)

from enfold.engine import activity
from enfold.engine.models import ModelChanges
from enfold.engine.profiles import ListedProfile, ProfileTest
from enfold.errors import AccessError
from enfold.llm.calls import Secret
from enfold.llm.profiles import renaming_notes
from enfold.modelconfig import DEFAULT_MODEL, ModelConfig
from enfold.server.access import name_in, require_owner
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
from enfold.settings import SettingValue, setting_values
from enfold.strategies import contract, presets
from enfold.strategies.contract import AnyStrategyKind
from enfold.strategies.presets import Preset

router = APIRouter(prefix="/api", tags=["models"], route_class=StrictRoute)

Model: TypeAlias = Annotated[
    str, Path(max_length=256, description="As provider:model.", examples=[DEFAULT_MODEL])
]


@router.get("/models", name="list", summary="List models")
async def list_models(
    engine: TheEngine,
    q: Annotated[str, Query(max_length=256, description="A part of the name.")] = "",
) -> Sequence[ModelConfig]:
    """Return all stored models by name."""
    return [each for each in await engine.models.all() if q.lower() in each.id.lower()]


@router.get("/models/{model:path}", name="get", summary="Show a model")
async def get_model(model: Model, engine: TheEngine) -> ModelConfig:
    """Return a model; a new one is looked up and stored."""
    return await engine.models.get(name_in(model))


@router.patch("/models/{model:path}", name="change", summary="Change or add a model")
async def change_model(
    model: Model, changes: ModelChanges, engine: TheEngine, _: TheOwner
) -> ModelConfig:
    """Change limits; they apply from the next decision on, in every process."""
    values = changes.model_dump(exclude_none=True)
    return await engine.models.edit(name_in(model), **values)


@router.delete("/models/{model:path}", name="forget", summary="Forget a model", status_code=204)
async def forget_model(model: Model, engine: TheEngine, _: TheOwner) -> None:
    """Delete the stored limits; they are looked up again on the next use."""
    await engine.models.delete(name_in(model))


profiles_router = APIRouter(prefix="/api", tags=["profiles"], route_class=StrictRoute)

Name: TypeAlias = Annotated[str, Path(description="The profile's name.", examples=["haiku"])]


class NewProfile(Shape):
    """A profile to save."""

    fields: dict[str, Any] = Field(
        description="provider, model, base_url, options, key, prices, threshold, prompt, "
        "condensing_profile and settings."
    )
    model_config = example(
        fields={"provider": "openrouter", "model": "qwen/qwen3-32b", "key": "env:MY_KEY"}
    )


class NewKey(Shape):
    """A key to store, encrypted."""

    key: SecretStr = Field(
        min_length=1, max_length=10_000, description="The key; it is never shown again."
    )
    model_config = example(key="the provider's key")


@profiles_router.get("/profiles", name="list", summary="List profiles")
async def list_profiles(engine: TheEngine) -> Sequence[ListedProfile]:
    """Return all profiles by name; one that cannot be used has a `fault`."""
    return await engine.profiles.all()


@profiles_router.get("/costs", name="costs", summary="Compare the costs of profiles")
async def compare_costs(
    engine: TheEngine,
    caller: TheCaller,
    input_tokens: Annotated[
        int, Query(ge=0, le=10**9, description="The tokens that are summarized.")
    ] = 100_000,
    output_tokens: Annotated[
        int, Query(ge=0, le=10**9, description="The tokens of the summary.")
    ] = 2_000,
) -> Sequence[activity.ProfileCost]:
    """Return the cost of a compression with each profile, cheapest first; no model is called."""
    return await activity.compare_costs(engine, caller.namespace, input_tokens, output_tokens)


@profiles_router.get("/profiles/{profile}", name="get", summary="Show a profile")
async def get_profile(profile: Name, engine: TheEngine) -> ListedProfile:
    """Return all fields of a profile."""
    return ListedProfile.of(await engine.profiles.get(name_in(profile)))


@profiles_router.put("/profiles/{profile}", name="save", summary="Save a profile")
async def save_profile(
    profile: Name, new: NewProfile, engine: TheEngine, _: TheOwner
) -> ListedProfile:
    """Save or replace a profile. Its key is `env:NAME`, or stored with `PUT …/key`."""
    if str(new.fields.get("key", "")).startswith("file:"):
        raise AccessError("body.fields.key: set a key file with `enfold profiles`, not over HTTP")
    saved = await engine.profiles.save(name_in(profile), new.fields, replace=True)
    return replace(ListedProfile.of(saved), notes=renaming_notes(new.fields))


@profiles_router.put("/profiles/{profile}/key", name="set_key", summary="Store a profile's key")
async def set_key(profile: Name, new: NewKey, engine: TheEngine, _: TheOwner) -> ListedProfile:
    """Store the key, encrypted. It is never shown again."""
    secret = Secret(new.key.get_secret_value())
    return ListedProfile.of(await engine.profiles.set_key(name_in(profile), secret))


@profiles_router.post("/profiles/{profile}/test", name="test", summary="Test a profile")
async def try_profile(profile: Name, engine: TheEngine, _: TheOwner) -> ProfileTest:
    """Send one small question to the profile's model."""
    return await engine.profiles.test(name_in(profile))


@profiles_router.delete(
    "/profiles/{profile}", name="delete", summary="Delete a profile", status_code=204
)
async def delete_profile(
    profile: Name,
    engine: TheEngine,
    _: TheOwner,
    force: Annotated[bool, Query(description="Delete it even if it is in use.")] = False,  # noqa: FBT002 - a query's name
) -> None:
    """Delete a profile and its stored key."""
    await engine.profiles.remove(name_in(profile), force=force)


presets_router = APIRouter(prefix="/api", tags=["presets"], route_class=StrictRoute)


@dataclass(frozen=True, slots=True)
class ListedStrategy:
    """A strategy that can be chosen."""

    id: str
    """The name in the setting `strategy`."""
    name: str
    """Its name for people."""
    description: str
    """Description."""
    version: str
    """Its version."""
    capabilities: Mapping[str, Any]
    """Capabilities: `lossless`, `batch`, `individual`, `speed` and others."""
    config_schema: Mapping[str, Any]
    """The JSON schema of its config."""

    @classmethod
    def of(cls, kind: AnyStrategyKind) -> ListedStrategy:
        """Return a strategy of the registry."""
        able = asdict(kind.capabilities)
        return cls(kind.id, kind.name, kind.description, kind.version, able, kind.schema())


@presets_router.get("/strategies", name="strategies", summary="List strategies")
async def list_strategies() -> Sequence[ListedStrategy]:
    """Return the strategies with their capabilities and the JSON schemas of their configs."""
    return [ListedStrategy.of(contract.get(name)) for name in contract.names()]


PresetName: TypeAlias = Annotated[
    str, Path(description="The preset's name.", examples=["balanced"])
]


class NewPreset(Shape):
    """A preset to save."""

    description: str = Field("", max_length=1_000, description="A description.")
    strategy: str = Field(description="The strategy's name.")
    config: dict[str, Any] = Field(default_factory=dict, description="The strategy's config.")

    _notes: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="wrap")
    @classmethod
    def _migrate(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Read `provider` and `smartConfig` of another system; the path has the name."""
        if not isinstance(value, Mapping):
            return handler(value)
        fields = presets.migrated(value)
        made = handler({name: fields[name] for name in fields if name not in {"version", "name"}})
        made._notes = presets.renaming_notes(value)  # noqa: SLF001 - of this class
        return made

    def preset(self, name: str) -> Preset:
        """Return the preset under a name."""
        return Preset(name, self.description, self.strategy, self.config, notes=self._notes)

    model_config = example(
        description="Keep the last ten messages, shorten the others.",
        strategy="truncation",
        config={"preserveRecentCount": 10},
    )


class PresetScope(Shape):
    """The session that uses a preset."""

    session: str | None = Field(
        None, description="The session's name; null for all sessions without their own strategy."
    )
    model_config = example(session="festival")


@presets_router.get("/presets", name="list", summary="List presets")
async def list_presets(engine: TheEngine) -> Sequence[Preset]:
    """Return the built-in presets, then the saved ones."""
    return await engine.presets.all()


@presets_router.get("/presets/{preset}", name="get", summary="Show a preset")
async def get_preset(preset: PresetName, engine: TheEngine) -> Preset:
    """Return a preset with its config."""
    return await engine.presets.get(name_in(preset))


@presets_router.put("/presets/{preset}", name="save", summary="Save a preset")
async def save_preset(preset: PresetName, new: NewPreset, engine: TheEngine, _: TheOwner) -> Preset:
    """Save or replace a preset. An unknown field of the config is an error with its path."""
    return await engine.presets.save(new.preset(name_in(preset)), replace=True)


@presets_router.delete(
    "/presets/{preset}", name="delete", summary="Delete a preset", status_code=204
)
async def delete_preset(preset: PresetName, engine: TheEngine, _: TheOwner) -> None:
    """Delete a saved preset. Built-in presets stay."""
    await engine.presets.delete(name_in(preset))


@presets_router.post("/presets/{preset}/apply", name="apply", summary="Apply a preset")
async def apply_preset(
    preset: PresetName, scope: PresetScope, engine: TheEngine, caller: TheCaller
) -> Preset:
    """Use a preset's strategy and config, in one session or in all without their own."""
    session = None
    if scope.session is None:
        require_owner(caller)
    else:
        session = await engine.find(scope.session, namespace=caller.namespace)
    return await engine.presets.apply(name_in(preset), session)


settings_router = APIRouter(prefix="/api", tags=["settings"], route_class=StrictRoute)


class SettingChanges(Shape):
    """New values of settings; null lets a setting be inherited again."""

    settings: dict[str, Any] = Field(min_length=1, description="New values by name.")
    model_config = example(settings={"threshold": 0.8, "style": None})


@settings_router.get("/settings", name="list", summary="Show settings")
async def list_settings(engine: TheEngine) -> dict[str, SettingValue]:
    """Return the settings that apply if a session, a profile or a call sets nothing else."""
    return setting_values(await engine.settings(), levels=engine.static_settings)


@settings_router.patch("/settings", name="change", summary="Change settings")
async def change_settings(
    changes: SettingChanges, engine: TheEngine, _: TheOwner
) -> dict[str, SettingValue]:
    """Change settings for all sessions, in every process, from the next decision on."""
    await engine.change_settings(changes.settings)
    return setting_values(await engine.settings(), changes.settings, engine.static_settings)


@settings_router.get(
    "/sessions/{session}/settings", name="of_session", summary="Show a session's settings"
)
async def session_settings(session: TheSession, engine: TheEngine) -> dict[str, SettingValue]:
    """Return the settings in force in a session, each with the level that set it."""
    return setting_values(await session.settings(), levels=engine.static_settings)


@settings_router.patch(
    "/sessions/{session}/settings", name="change_session", summary="Change a session's settings"
)
async def change_session_settings(
    changes: SettingChanges, session: TheSession, engine: TheEngine
) -> dict[str, SettingValue]:
    """Change settings of one session."""
    await session.configure(**checked(changes.settings))
    return setting_values(await session.settings(), changes.settings, engine.static_settings)
