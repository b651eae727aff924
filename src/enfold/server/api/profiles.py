"""Profiles: which models are asked, by whom; everybody may use them, the owner may change them."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field, SecretStr

from enfold.errors import AccessError
from enfold.llm.calls import Secret
from enfold.llm.profiles import Profile
from enfold.server.api.shapes import Shape, StrictRoute, TheEngine, TheOwner, example
from enfold.server.segments import name_in

router = APIRouter(prefix="/api", tags=["profiles"], route_class=StrictRoute)

Name: TypeAlias = Annotated[str, Path(description="The profile's name.", examples=["haiku"])]

_FILE = "file:"


class ProfileShape(Shape):
    """A profile. It says where its key is found, never the key."""

    name: str = Field(description="What it is called.")
    fields: dict[str, Any] | None = Field(description="Null if it cannot be used.")
    fault: str = Field(description="Why it cannot be used; empty if it can.")


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


class Trial(Shape):
    """What came of one small call."""

    model: str = Field(description="The model that answered.")
    seconds: float = Field(description="How long it took.")
    input_tokens: int | None = Field(description="Null is unknown.")
    output_tokens: int | None = Field(description="Null is unknown.")
    cost: float | None = Field(description="In US dollars; null is unknown.")


@router.get("/profiles", name="list", summary="List profiles")
async def list_profiles(engine: TheEngine) -> list[ProfileShape]:
    """By name; one may say why it cannot be used."""
    return [
        ProfileShape(
            name=each.name,
            fields=None if each.profile is None else each.profile.as_json(),
            fault=each.fault,
        )
        for each in await engine.profiles.all()
    ]


@router.get("/profiles/{profile}", name="get", summary="Show a profile")
async def get_profile(profile: Name, engine: TheEngine) -> ProfileShape:
    """All its fields."""
    return _shown(await engine.profiles.get(name_in(profile)))


@router.put("/profiles/{profile}", name="save", summary="Save a profile")
async def save_profile(
    profile: Name, new: NewProfile, engine: TheEngine, _: TheOwner
) -> ProfileShape:
    """Its key is named as env:NAME or stored with `PUT …/key`; a file is named on the machine."""
    if str(new.fields.get("key", "")).startswith(_FILE):
        raise AccessError("body.fields.key: a file is named with `enfold profiles`, not over HTTP")
    return _shown(await engine.profiles.save(name_in(profile), new.fields, replace=True))


@router.put("/profiles/{profile}/key", name="set_key", summary="Store a profile's key")
async def set_key(profile: Name, new: NewKey, engine: TheEngine, _: TheOwner) -> ProfileShape:
    """Encrypted, and never shown again."""
    secret = Secret(new.key.get_secret_value())
    return _shown(await engine.profiles.set_key(name_in(profile), secret))


@router.post("/profiles/{profile}/test", name="test", summary="Try a profile")
async def try_profile(profile: Name, engine: TheEngine, _: TheOwner) -> Trial:
    """Ask its model one small question; the error says what is wrong."""
    tried = await engine.profiles.test(name_in(profile))
    return Trial(
        model=tried.model,
        seconds=tried.seconds,
        input_tokens=tried.usage.input_tokens,
        output_tokens=tried.usage.output_tokens,
        cost=tried.cost,
    )


@router.delete("/profiles/{profile}", name="delete", summary="Delete a profile", status_code=204)
async def delete_profile(
    profile: Name,
    engine: TheEngine,
    _: TheOwner,
    force: Annotated[bool, Query(description="Even if it condenses for others.")] = False,  # noqa: FBT002 - a query's name
) -> Response:
    """With its stored key."""
    await engine.profiles.remove(name_in(profile), force=force)
    return Response(status_code=204)


def _shown(profile: Profile) -> ProfileShape:
    return ProfileShape(name=profile.name, fields=profile.as_json(), fault="")
