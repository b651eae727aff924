"""Profiles of the engine: kept in the database, given keys, tried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, ClassVar

from enfold.amounts import CallUsage
from enfold.engine.models import Models
from enfold.engine.presets import check_strategies
from enfold.engine.state import ClientModel
from enfold.errors import ConfigError, NotFoundError, SummaryError
from enfold.llm import profiles
from enfold.llm.calls import Call, Connection, Gateway, Secret
from enfold.llm.costs import pricing
from enfold.llm.discovery import discover
from enfold.llm.keys import STORED, Keys
from enfold.llm.prices import NAMES, Overrides, Prices, detect, prices
from enfold.llm.profiles import (
    CandidateSummarizer,
    Profile,
    SummarizerCandidate,
    SummarizerChain,
    read,
    summarizer_candidates,
)
from enfold.llm.providers import provider
from enfold.llm.summarizer import ModelSummarizer, cost_of_call
from enfold.messages import Message, Text
from enfold.modelconfig import ModelConfig, from_row
from enfold.records import ProfileRow, UsageEvent
from enfold.settings import Settings, check
from enfold.store import catalog
from enfold.store.database import Database
from enfold.store.store import Store
from enfold.summaries import Summarizer

LOCAL = "local"
"""The summarizer that is used where neither a setting nor a profile says who writes."""
KEYS = "keys"
"""The scope of the settings in which sealed keys are kept, by profile."""


@dataclass(frozen=True, slots=True)
class StoredProfiles:
    """The stored profiles, their keys and model configs."""

    profiles: Mapping[str, Profile | str]
    """By name; or what is wrong with one."""
    sealed: Mapping[str, str]
    configs: Mapping[str, ModelConfig]
    """Of the models that they may ask, as far as somebody configured them."""


def read_profiles(db: Database) -> StoredProfiles:
    """All profiles, with what is needed to ask their models."""
    profiles = {row.name: _profile(row) for row in catalog.profiles(db)}
    ids = {id for each in profiles.values() if isinstance(each, Profile) for id in _models(each)}
    rows = (catalog.model_config(db, id) for id in sorted(ids))
    configs = {row.id: from_row(row) for row in rows if row is not None}
    return StoredProfiles(profiles, catalog.settings(db, KEYS), configs)


def _profile(row: ProfileRow) -> Profile | str:
    try:
        return read(row.name, row.fields, is_stored=True)
    except ConfigError as error:
        return f"it cannot be used: {error}"


def _models(profile: Profile) -> tuple[str, ...]:
    cheap = provider(profile.provider).cheap_model
    return (profile.id,) if cheap is None else (profile.id, f"{profile.provider}:{cheap}")


@dataclass(frozen=True, slots=True)
class Roster:
    """The profiles and summarizers that are available."""

    stored: StoredProfiles
    keys: Keys
    gateway: Gateway
    summarizers: Mapping[str, Summarizer]
    """Those that are no profiles, by name; `local` is one."""
    used: list[UsageEvent] = field(default_factory=list)
    """What the summaries that were written through it have used."""
    known_prices: dict[str, Prices | None] = field(default_factory=dict)
    """Of those who may write, by the name under which they do."""

    def connection(self, profile: Profile, model: str | None = None) -> Connection:
        """Where the profile's model is, with its key; `ConfigError` says what is missing."""
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
        return pricing(self.known_prices)(author, input_tokens, output_tokens)

    def summarizer(
        self, settings: Settings, profile: str | None, own: ClientModel | None = None
    ) -> Summarizer:
        """Return the summarizer for a session with that profile.

        The one that the settings name, else the profile's chain, else the caller's own model, else
        the local one.
        """
        name = settings.summarizer or (profile if profile in self.summarizers else None)
        if name is None and profile is None:
            if own is not None:
                connection = replace(own.connection, timeout=settings.timeout)
                return self._by_model(own.gateway, connection, connection.name)
            name = LOCAL
        if name is not None and name in self.summarizers:
            return self.summarizers[name]
        if name is not None and name not in self.stored.profiles:
            there = ", ".join((*self.summarizers, *self.stored.profiles))
            raise SummaryError(f"no summarizer {name!r}; there are {there}")
        return self._chain(name, profile, settings.timeout)

    def _chain(
        self, named: str | None, conversation: str | None, seconds: float
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
            self.used.append(_event(profile, connection, usage, cost))

        return ModelSummarizer(gateway, connection, config, name, model_prices, keep_account)


def _event(
    profile: str | None, connection: Connection, usage: CallUsage, cost: float | None
) -> UsageEvent:
    return UsageEvent(
        kind="summary",
        profile=profile,
        model=connection.name,
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
        cost=cost,
    )


_QUESTION = "Answer with the single word: ready"
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
    )
    name: str
    """The profile's name."""
    profile: Profile | None
    fault: str = ""
    """Why it cannot be used; empty if it can."""

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

    async def all(self) -> tuple[ListedProfile, ...]:
        """Every profile, by name; one may say why it cannot be used."""
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
        """Return the connection of the profile's model, with its key."""
        roster = await self.roster()
        profile = _get(roster.stored, name)
        try:
            return roster.connection(profile)
        except ConfigError as error:
            raise ConfigError(f"profile {name!r}: {error}") from None

    async def test(self, name: str) -> ProfileTest:
        """Ask the profile's model one small question; a `GatewayError` says what is wrong."""
        profile, connection = await self.get(name), await self.connection(name)
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
        connection = await self.connection(name)
        found = await discover(connection)
        if found is None:
            return await self._models.get(connection.name)
        return await self._models.learn(connection.name, found.window, found.max_output)

    async def roster(self) -> Roster:
        """All profiles as they are now, and who writes for them."""
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
    there = ", ".join(stored.profiles) or "none yet; `enfold profiles add` makes one"
    raise NotFoundError(f"no profile {name!r}; there are: {there}")


def _save(db: Database, profile: Profile, *, replace: bool) -> None:
    stored = read_profiles(db)
    if not replace and profile.name in stored.profiles:
        raise ConfigError(f"name: there is a profile {profile.name!r} already; replace it")
    condensing = profile.condensing_profile
    if condensing not in (None, profile.name, *stored.profiles):
        raise ConfigError(f"condensing_profile: there is no profile {condensing!r}")
    catalog.put_profile(db, profile.name, profile.as_json())


def _remove(db: Database, name: str, *, force: bool) -> None:
    stored = read_profiles(db)
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
    profile = _get(read_profiles(db), name)
    catalog.put_setting(db, KEYS, name, sealed)
    catalog.put_profile(db, name, {**profile.as_json(), "key": STORED})
    return profiles.read(name, {**profile.as_json(), "key": STORED})
