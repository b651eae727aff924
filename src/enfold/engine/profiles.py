"""Profiles of the engine: kept in the database, given keys, tried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from enfold.engine.models import Models
from enfold.engine.presets import check_strategies
from enfold.engine.roster import KEYS, Roster, Stored, read_stored
from enfold.errors import ConfigError, NotFoundError
from enfold.llm import profiles
from enfold.llm.calls import Call, CallUsage, Connection, Gateway, Secret
from enfold.llm.discovery import discover
from enfold.llm.keys import STORED, Keys
from enfold.llm.profiles import Profile
from enfold.llm.summarizer import cost_of_call
from enfold.messages import Message, Text
from enfold.modelconfig import ModelConfig
from enfold.settings import check
from enfold.store import catalog
from enfold.store.database import Database
from enfold.store.store import Store
from enfold.summaries import Summarizer

_QUESTION = "Answer with the single word: ready"
_ROOM = 256
"""Tokens for the answer: models that reason need some before they write."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A profile in a list; one that was stored by hand may be broken."""

    name: str
    profile: Profile | None
    fault: str = ""
    """Why it cannot be used."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of one small call."""

    model: str
    """The model that answered, as the provider reports it."""
    seconds: float
    usage: CallUsage
    cost: float | None
    """In US dollars. None is unknown."""


class Profiles:
    """Profiles by name. A change holds for the next compression, in every process."""

    def __init__(
        self,
        store: Store,
        *,
        keys: Keys,
        gateway: Gateway,
        summarizers: Mapping[str, Summarizer],
    ) -> None:
        self._store = store
        self._models = Models(store)
        self._keys = keys
        self._gateway = gateway
        self._summarizers = summarizers

    async def all(self) -> tuple[Listed, ...]:
        """Every profile, by name; one may say why it cannot be used."""
        stored = await self._store.read(read_stored)
        return tuple(
            Listed(name, each) if isinstance(each, Profile) else Listed(name, None, each)
            for name, each in stored.profiles.items()
        )

    async def get(self, name: str) -> Profile:
        """The profile of that name."""
        return _get(await self._store.read(read_stored), name)

    async def save(self, name: str, fields: Mapping[str, Any], *, replace: bool = False) -> Profile:
        """Keep a profile, if need be in place of the one of that name."""
        profile = profiles.read(name, fields)
        profiles.check_threshold(profile)
        if name in self._summarizers:
            raise ConfigError(f"name: {name!r} is the name of a summarizer; choose another")
        try:
            check_strategies(dict(check(key, value) for key, value in profile.settings.items()))
        except ConfigError as error:
            raise ConfigError(f"settings: {error}") from None
        await self._store.write(_save, profile, replace=replace)
        return profile

    async def remove(self, name: str, *, force: bool = False) -> None:
        """Forget a profile and its stored key; refused, unless forced, while others need it."""
        await self._store.write(_remove, name, force=force)

    async def set_key(self, name: str, key: Secret) -> Profile:
        """Store a key, encrypted, and let the profile use it."""
        await self.get(name)
        sealed = self._keys.seal(key, owner=name)
        return await self._store.write(_set_key, name, sealed)

    async def connection(self, name: str) -> Connection:
        """Where the profile's model is, with its key, for whoever asks it."""
        roster = await self.roster()
        profile = _get(roster.stored, name)
        try:
            return roster.connection(profile)
        except ConfigError as error:
            raise ConfigError(f"profile {name!r}: {error}") from None

    async def test(self, name: str) -> Tried:
        """Ask the profile's model one small question; a `GatewayError` says what is wrong."""
        profile, connection = await self.get(name), await self.connection(name)
        call = Call((Message("user", (Text(_QUESTION),)),), max_tokens=_ROOM)
        started = perf_counter()
        reply = await self._gateway.complete(connection, call)
        seconds = perf_counter() - started
        cost = cost_of_call(reply.usage, profile.known_prices())
        return Tried(reply.model, seconds, reply.usage, cost)

    async def discover(self, name: str) -> ModelConfig:
        """The limits of the profile's model: as its provider says them now, else as known.

        They are stored with their source. A `GatewayError` says why the provider cannot be asked.
        """
        connection = await self.connection(name)
        found = await discover(connection)
        if found is None:
            return await self._models.get(connection.name)
        return await self._models.learn(connection.name, found.window, found.max_output)

    async def roster(self) -> Roster:
        """All profiles as they are now, and who writes for them."""
        stored = await self._store.read(read_stored)
        return Roster(stored, self._keys, self._gateway, self._summarizers)

    async def require(self, name: str) -> None:
        """Raise `NotFoundError` if a session cannot have that profile."""
        if name not in self._summarizers:
            await self.get(name)


def _get(stored: Stored, name: str) -> Profile:
    found = stored.profiles.get(name)
    if isinstance(found, Profile):
        return found
    if found is not None:
        raise ConfigError(f"profile {name!r}: {found}")
    there = ", ".join(stored.profiles) or "none yet; `enfold profiles add` makes one"
    raise NotFoundError(f"no profile {name!r}; there are: {there}")


def _save(db: Database, profile: Profile, *, replace: bool) -> None:
    stored = read_stored(db)
    if not replace and profile.name in stored.profiles:
        raise ConfigError(f"name: there is a profile {profile.name!r} already; replace it")
    condensing = profile.condensing_profile
    if condensing not in (None, profile.name, *stored.profiles):
        raise ConfigError(f"condensing_profile: there is no profile {condensing!r}")
    catalog.put_profile(db, profile.name, profile.as_json())


def _remove(db: Database, name: str, *, force: bool) -> None:
    stored = read_stored(db)
    if name not in stored.profiles:
        _get(stored, name)  # which says that there is none, and what there is
    needed_by = [
        other.name
        for other in stored.profiles.values()
        if isinstance(other, Profile) and other.condensing_profile == name != other.name
    ]
    if needed_by and not force:
        raise ConfigError(
            f"profile {name!r} condenses for {', '.join(needed_by)}; change that first, or force it"
        )
    catalog.delete_profile(db, name)
    catalog.delete_setting(db, KEYS, name)


def _set_key(db: Database, name: str, sealed: str) -> Profile:
    profile = _get(read_stored(db), name)
    catalog.put_setting(db, KEYS, name, sealed)
    catalog.put_profile(db, name, {**profile.as_json(), "key": STORED})
    return profiles.read(name, {**profile.as_json(), "key": STORED})
