"""Profiles of the engine: kept in the database, given keys, tried out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from time import perf_counter
from typing import Any, ClassVar

from enfold.amounts import CallUsage, number
from enfold.engine.models import Models
from enfold.engine.state import ClientModel, check_changes
from enfold.errors import ConfigError, GatewayError, NotFoundError, SummaryError
from enfold.llm import profiles
from enfold.llm.calls import Call, Connection, Gateway, Secret
from enfold.llm.costs import NAMES, Overrides, Prices, detect, price_of, prices
from enfold.llm.discovery import (
    LOCAL_SERVERS,
    ModelServer,
    discover,
    find_local_servers,
    list_models,
)
from enfold.llm.keys import STORED, Keys, KeyStorage, checked
from enfold.llm.profiles import (
    CandidateSummarizer,
    Profile,
    SummarizerCandidate,
    SummarizerChain,
    read,
    summarizer_candidates,
)
from enfold.llm.providers import PROVIDERS, provider
from enfold.llm.summarizer import ModelSummarizer, PrefixSummarizer, cost_of_call
from enfold.messages import Message, Text
from enfold.modelconfig import ModelConfig
from enfold.records import UsageEvent
from enfold.settings import Settings
from enfold.store import catalog, sessions
from enfold.store.database import Database
from enfold.store.store import Store
from enfold.strategies.contract import CHEAPEST
from enfold.summaries import Summarizer

LOCAL = "local"
"""The summarizer that is used if neither a setting nor a profile names one."""
KEYS = "keys"
"""The scope of the settings in which sealed keys are kept, by profile."""


@dataclass(frozen=True, slots=True)
class StoredProfiles:
    """The stored profiles, their keys and model configs."""

    profiles: Mapping[str, Profile | str]
    """The profiles by name; an error in place of a faulty one."""
    sealed: Mapping[str, str]
    configs: Mapping[str, ModelConfig]
    """Of the models that they may ask, as far as somebody configured them."""


def read_profiles(db: Database) -> StoredProfiles:
    """All profiles, with the means to call their models."""
    profiles: dict[str, Profile | str] = {}
    ids: set[str] = set()
    for row in catalog.profiles(db):
        try:
            profile = read(row.name, row.fields, is_stored=True)
        except ConfigError as error:
            profiles[row.name] = f"it cannot be used: {error}"
            continue
        profiles[row.name] = profile
        ids.add(profile.id)
        if profile.cheap_model is not None:
            ids.add(f"{profile.provider}:{profile.cheap_model}")
    configs = [catalog.model_config(db, id) for id in sorted(ids)]
    by_id = {config.id: config for config in configs if config is not None}
    return StoredProfiles(profiles, catalog.settings(db, KEYS), by_id)


@dataclass(frozen=True, slots=True)
class Roster:
    """The profiles and summarizers that are available."""

    stored: StoredProfiles
    keys: Keys
    gateway: Gateway
    summarizers: Mapping[str, Summarizer]
    """Those that are no profiles, by name; `local` is one."""
    used: list[UsageEvent] = field(default_factory=list)
    """Usage of the summaries that were written through it."""
    known_prices: dict[str, Prices | None] = field(default_factory=dict)
    """The prices of the possible authors of summaries, by name."""

    def connection(self, profile: Profile, model: str | None = None) -> Connection:
        """Return the connection to the profile's model; `ConfigError` names a missing part."""
        provider_facts = provider(profile.provider)
        sealed = self.stored.sealed.get(profile.name)
        key = self.keys.find(profile.key, provider_facts, owner=profile.name, sealed=sealed)
        return profile.connection(key, model)

    def price(self, author: str, input_tokens: int, output_tokens: int) -> float | None:
        """Return the cost of summaries in US dollars; None if unknown.

        A summarizer that is not a profile calls no model.
        """
        if any(author == each.name for each in self.summarizers.values()):
            return 0.0
        return price_of(self.known_prices, author, input_tokens, output_tokens)

    def summarizer(
        self, settings: Settings, profile: str | None, own: ClientModel | None = None
    ) -> Summarizer:
        """Return the summarizer for a session with that profile.

        The one that the settings name, else the profile's chain, else the caller's own model, else
        the local one.
        """
        if profile not in self.summarizers and profile not in self.stored.profiles:
            profile = None  # it was removed
        name = settings.summarizer or (profile if profile in self.summarizers else None)
        if name is None and profile is None:
            if own is not None:
                connection = replace(own.connection, timeout=settings.timeout)
                writer = self._by_model(own.gateway, connection, connection.name)
                if own.config is not None:
                    writer = replace(writer, config=own.config)
                return writer if own.prefix is None else PrefixSummarizer(writer, own.prefix)
            name = LOCAL
        if name is not None and name in self.summarizers:
            return self.summarizers[name]
        if name is not None and name not in self.stored.profiles:
            there = ", ".join((*self.summarizers, *self.stored.profiles))
            raise SummaryError(f"no summarizer {name!r}; available: {there}")
        return self._chain(name, profile, settings.timeout)

    def named(self, name: str, settings: Settings, profile: str | None) -> Summarizer:
        """Return the summarizer that a pass names, for a session with that profile.

        `CHEAPEST` is the cheapest of the profile's chain, unless the settings name a summarizer.
        """
        if name != CHEAPEST:
            return self.summarizer(settings.model_copy(update={"summarizer": name}), None)
        if settings.summarizer is None and profile in self.stored.profiles:
            return self._chain(None, profile, settings.timeout, is_cheapest_first=True)
        return self.summarizer(settings, profile)

    def _chain(
        self,
        named: str | None,
        conversation: str | None,
        seconds: float,
        *,
        is_cheapest_first: bool = False,
    ) -> SummarizerChain:
        writers: list[CandidateSummarizer] = []
        passed_over: list[str] = []
        for each in summarizer_candidates(
            self.stored.profiles, named=named, conversation=conversation
        ):
            try:
                writers.append(self._writer(each, seconds))
            except ConfigError as error:
                passed_over.append(f"{each.title}: {error}")

        def input_price(writer: CandidateSummarizer) -> float:
            """Return the price of a candidate's input; an unknown price is the highest."""
            found = writer.summarizer.prices
            return inf if found is None or found.input is None else found.input

        if is_cheapest_first:
            writers.sort(key=input_price)
        return SummarizerChain(writers, passed_over)

    def _writer(self, candidate: SummarizerCandidate, seconds: float) -> CandidateSummarizer:
        profile = candidate.profile
        if profile is None:
            raise ConfigError(candidate.fault)
        # A model on a small machine reads for long before it gives a sign of life.
        connection = replace(self.connection(profile, candidate.model), timeout=seconds)
        own_prices = profile.own_prices if candidate.model == profile.model else None
        summarizer = self._by_model(
            self.gateway, connection, candidate.name, profile.name, own_prices
        )
        return CandidateSummarizer(candidate.title, summarizer)

    def _by_model(
        self,
        gateway: Gateway,
        connection: Connection,
        name: str,
        profile: str | None = None,
        own_prices: Overrides | None = None,
    ) -> ModelSummarizer:
        """Return a summarizer that uses a model and records its usage."""
        config = self.stored.configs.get(connection.name) or detect(connection.name)
        model_prices = prices(connection.provider, connection.model, own_prices)
        self.known_prices[name] = model_prices

        def keep_account(usage: CallUsage, cost: float | None) -> None:
            event = UsageEvent.of("summary", usage, cost, model=connection.name, profile=profile)
            self.used.append(event)

        return ModelSummarizer(gateway, connection, config, name, model_prices, keep_account)


_QUESTION = "Answer with the single word: ready"
_FIRST_USE_SECONDS = 5.0
"""Seconds that a request waits at most for the limits of a new model."""
_log = logging.getLogger("enfold.engine")

_ROOM = 256
"""Tokens for the answer: models that reason need some before they write."""


@dataclass(frozen=True, slots=True)
class ListedProfile:
    """A profile in a list; one that was stored by hand may be broken."""

    JSON_FIELDS: ClassVar = (
        "name",
        "fields",
        "fault",
        "provider=profile.provider",
        "model=profile.model",
        "base_url=profile.base_url",
        "options=profile.options",
        "key=profile.key",
        "prices",
        "threshold=profile.threshold",
        "prompt=profile.prompt",
        "condensing_profile=profile.condensing_profile",
        "settings=profile.settings",
        "notes",
    )
    name: str
    """The profile's name."""
    profile: Profile | None
    fault: str = ""
    """Why it cannot be used; empty if it can."""
    notes: tuple[str, ...] = ()
    """The fields that this call named as another system does, and our names for them."""

    @classmethod
    def of(cls, profile: Profile) -> ListedProfile:
        """Return a profile that can be used, as in a list."""
        return cls(profile.name, profile)

    @property
    def fields(self) -> Mapping[str, Any] | None:
        """The profile's fields; null if it cannot be used."""
        return None if self.profile is None else self.profile.as_json()

    @property
    def prices(self) -> Mapping[str, float | None] | None:
        """US dollars per million tokens by kind, the profile's or published; null is unknown."""
        if self.profile is None:
            return None
        found = self.profile.known_prices()
        return {kind: getattr(found, kind, None) for kind in NAMES}


@dataclass(frozen=True, slots=True)
class ProfileTest:
    """The result of one small call to a profile's model."""

    JSON_FIELDS: ClassVar = (
        "model",
        "seconds",
        "input_tokens=usage.input_tokens",
        "output_tokens=usage.output_tokens",
        "cache_read_tokens=usage.cache_read_tokens",
        "cache_write_tokens=usage.cache_write_tokens",
        "cost",
    )
    model: str
    """The model that answered, as the provider reports it."""
    seconds: float
    """The duration of the call."""
    usage: CallUsage
    cost: float | None
    """In US dollars. None is unknown."""


_NAMING_SETTINGS: Mapping[str, str] = {
    "default_profile": "is the default profile",
    "summarizer": "writes all summaries",
}
"""Settings that name a profile, and the resulting use of the profile."""


@dataclass(frozen=True, slots=True)
class ProfileUses:
    """The sessions and profiles that use a profile."""

    sessions: int
    """The number of sessions with this profile."""
    condenses_for: tuple[str, ...] = ()
    """The profiles for which it condenses."""
    settings: tuple[str, ...] = ()
    """The settings that name it."""

    def __str__(self) -> str:
        """Describe the uses; empty if there are none."""
        found = [_NAMING_SETTINGS[name] for name in self.settings]
        if self.condenses_for:
            found.append(f"condenses for {', '.join(self.condenses_for)}")
        if self.sessions:
            found.append(f"answers in {number(self.sessions, 'session')}")
        return ", ".join(found)


class Profiles:
    """Profiles by name. A change holds for the next compression, in every process."""

    def __init__(
        self,
        store: Store,
        *,
        keys: Keys,
        gateway: Gateway,
        summarizers: Mapping[str, Summarizer],
        asks_limits: bool = False,
        local_servers: Sequence[str] | None = None,
    ) -> None:
        """With `asks_limits` providers are asked for the limits of new models.

        `local_servers` are base URLs to look for model servers at, if not the usual ones.
        """
        self._asks_limits = asks_limits
        self._store = store
        self._local_servers = tuple(LOCAL_SERVERS) if local_servers is None else local_servers
        self._models = Models(store)
        self._keys = keys
        self._gateway = gateway
        self._summarizers = summarizers

    async def all(self) -> tuple[ListedProfile, ...]:
        """Return every profile, by name; a faulty one has its fault."""
        stored = await self._store.read(read_profiles)
        return tuple(
            ListedProfile(name, each)
            if isinstance(each, Profile)
            else ListedProfile(name, None, each)
            for name, each in stored.profiles.items()
        )

    async def get(self, name: str) -> Profile:
        """The profile of that name."""
        return _get(await self._store.read(read_profiles), name)

    async def save(self, name: str, fields: Mapping[str, Any], *, replace: bool = False) -> Profile:
        """Keep a profile, if need be in place of the one of that name."""
        profile = profiles.read(name, fields)
        if name in {*self._summarizers, CHEAPEST}:
            raise ConfigError(f"name: {name!r} is the name of a summarizer; choose another")
        limits = profiles.model_limits(fields)
        await self._store.write(_save, profile, limits, replace=replace)
        return profile

    async def set_threshold(self, name: str, percent: float | None) -> Profile:
        """Set the threshold of a profile alone, 5 to 100; None or -1 inherits."""
        fields = {**(await self.get(name)).as_json(), "threshold": percent}
        return await self.save(name, fields, replace=True)

    async def uses(self, name: str) -> ProfileUses:
        """Return the uses of a profile."""
        return await self._store.read(_uses, name)

    async def remove(self, name: str, *, force: bool = False) -> None:
        """Delete a profile and its stored key.

        A profile that condenses for others or that a setting names is only deleted if forced. The
        others then condense themselves, and the setting is unset. Sessions with this profile use
        the default profile from then on.
        """
        await self._store.write(_remove, name, force=force)

    async def set_key(self, name: str, key: Secret, storage: KeyStorage = "encrypted") -> Profile:
        """Store a key and let the profile use it."""
        await self.get(name)
        if storage == "encrypted":
            sealed = await asyncio.to_thread(self._keys.seal, key, owner=name)
            return await self._store.write(_set_key, name, STORED, sealed)
        keep = self._keys.remember if storage == "memory" else self._keys.write_file
        return await self._store.write(_set_key, name, keep(key, owner=name), None)

    async def key_storages(self) -> tuple[KeyStorage, ...]:
        """Return the ways in which a key can be kept here, best first."""
        can_encrypt = await asyncio.to_thread(lambda: self._keys.can_encrypt)
        return ("encrypted", "file", "memory") if can_encrypt else ("file", "memory")

    async def local_servers(self) -> tuple[ModelServer, ...]:
        """Return the model servers that answer on this machine."""
        return await find_local_servers(self._local_servers)

    def providers_with_key(self) -> Mapping[str, str]:
        """Return the providers whose key is in the environment, and the variable of each."""
        found = {id: self._keys.usual_variable(row) for id, row in PROVIDERS.items()}
        return {id: name for id, name in found.items() if name is not None}

    async def list_models(
        self, fields: Mapping[str, Any], key: Secret | None = None
    ) -> tuple[str, ...]:
        """Return the names of the models that a profile with these fields could use."""
        row = provider(str(fields.get("provider", "")))
        found = key or self._keys.find(fields.get("key"), row, owner="")
        return await list_models(Connection(row.id, "", found, fields.get("base_url") or None))

    async def try_out(
        self, name: str, fields: Mapping[str, Any], key: Secret | None = None
    ) -> ProfileTest:
        """Call the model of a profile that is not saved yet; a `GatewayError` has the cause."""
        profile = profiles.read(name, fields)
        if key is None:
            return await self._ask(profile, (await self.roster()).connection(profile))
        return await self._ask(profile, profile.connection(checked(key.reveal(), "the key")))

    async def connection(self, name: str) -> Connection:
        """Return the connection of the profile's model, with its key."""
        roster = await self.roster()
        profile = _get(roster.stored, name)
        try:
            return roster.connection(profile)
        except ConfigError as error:
            raise ConfigError(f"profile {name!r}: {error}") from None

    async def test(self, name: str) -> ProfileTest:
        """Ask the profile's model one small question; a `GatewayError` has the cause."""
        return await self._ask(await self.get(name), await self.connection(name))

    async def _ask(self, profile: Profile, connection: Connection) -> ProfileTest:
        call = Call((Message("user", (Text(_QUESTION),)),), max_tokens=_ROOM)
        started = perf_counter()
        reply = await self._gateway.complete(connection, call)
        seconds = perf_counter() - started
        cost = cost_of_call(reply.usage, profile.known_prices())
        return ProfileTest(reply.model, seconds, reply.usage, cost)

    async def discover(self, name: str) -> ModelConfig:
        """The limits of the profile's model: as its provider says them now, else as known.

        They are stored with their source. A `GatewayError` says why the provider cannot be asked.
        """
        return await self.discover_through(await self.connection(name))

    async def discover_through(self, connection: Connection) -> ModelConfig:
        """Return the limits of a connection's model, as `discover` does."""
        found = await discover(connection)
        if found is None:
            return await self._models.get(connection.name)
        return await self._models.learn(connection.name, found.window, found.max_output)

    async def config_of(self, id: str) -> ModelConfig:
        """Return the config of `provider:model`; of a new model its provider is asked first.

        It is asked through a profile of that model, if there is one. If it does not answer in time,
        the limits that are known without it are stored.
        """
        config = await self._store.read(catalog.model_config, id)
        if config is not None:
            return config
        stored = (await self._store.read(read_profiles)).profiles
        for name, profile in stored.items() if self._asks_limits else ():
            if isinstance(profile, Profile) and profile.id == id:
                try:
                    async with asyncio.timeout(_FIRST_USE_SECONDS):
                        return await self.discover(name)
                except (GatewayError, ConfigError, TimeoutError) as error:
                    _log.info("the provider did not state the limits of %s: %s", id, error)
        return await self._models.get(id)

    async def roster(self) -> Roster:
        """Return all profiles as they are now, and the authors of their summaries."""
        stored = await self._store.read(read_profiles)
        return Roster(stored, self._keys, self._gateway, self._summarizers)

    async def require(self, name: str) -> None:
        """Raise `NotFoundError` if a session cannot have that profile."""
        if name not in self._summarizers:
            await self.get(name)


def _get(stored: StoredProfiles, name: str) -> Profile:
    found = stored.profiles.get(name)
    if isinstance(found, Profile):
        return found
    if found is not None:
        raise ConfigError(f"profile {name!r}: {found}")
    there = ", ".join(stored.profiles) or "none; `enfold profiles add` makes one"
    raise NotFoundError(f"no profile {name!r}; available: {there}")


def _save(db: Database, profile: Profile, limits: Mapping[str, int], *, replace: bool) -> None:
    """Store a profile and the limits that it states for its model."""
    try:
        check_changes(db, profile.settings)
    except (ConfigError, NotFoundError) as error:
        raise ConfigError(f"settings: {error}") from None
    stored = read_profiles(db)
    if not replace and profile.name in stored.profiles:
        raise ConfigError(f"name: there is a profile {profile.name!r} already; replace it")
    condensing = profile.condensing_profile
    if condensing not in (None, profile.name, *stored.profiles):
        raise ConfigError(f"condensing_profile: there is no profile {condensing!r}")
    catalog.put_profile(db, profile.name, profile.as_json())
    if limits:
        current = catalog.model_config(db, profile.id) or detect(profile.id)
        catalog.put_model_config(db, current.stating(**limits))


def _uses(db: Database, name: str) -> ProfileUses:
    stored = read_profiles(db)
    if name not in stored.profiles:
        _get(stored, name)  # raises: there is no such profile
    condenses_for = tuple(
        other.name
        for other in stored.profiles.values()
        if isinstance(other, Profile) and other.condensing_profile == name != other.name
    )
    settings = catalog.settings(db, "global")
    named_by = tuple(key for key in _NAMING_SETTINGS if settings.get(key) == name)
    return ProfileUses(sessions.count_with_profile(db, name), condenses_for, named_by)


def _remove(db: Database, name: str, *, force: bool) -> None:
    uses = _uses(db, name)
    if not force and (uses.condenses_for or uses.settings):
        raise ConfigError(f"profile {name!r} {uses}; change that first, or use force")
    for setting in uses.settings:
        catalog.delete_setting(db, "global", setting)
    for other in uses.condenses_for:
        fields = _get(read_profiles(db), other).as_json()
        catalog.put_profile(db, other, {**fields, "condensing_profile": None})
    catalog.delete_profile(db, name)
    catalog.delete_setting(db, KEYS, name)


def _set_key(db: Database, name: str, source: str, sealed: str | None) -> Profile:
    profile = _get(read_profiles(db), name)
    if sealed is None:
        catalog.delete_setting(db, KEYS, name)
    else:
        catalog.put_setting(db, KEYS, name, sealed)
    catalog.put_profile(db, name, {**profile.as_json(), "key": source})
    return profiles.read(name, {**profile.as_json(), "key": source})
