"""The roster: all profiles at one moment, where their models are, and who writes for whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from enfold.engine.models import from_row
from enfold.engine.requests import OwnModel
from enfold.errors import ConfigError, SummaryError
from enfold.llm.calls import CallUsage, Connection, Gateway
from enfold.llm.chain import Candidate, Chain, Writer, candidates
from enfold.llm.comparison import pricing
from enfold.llm.keys import Keys
from enfold.llm.models import detect
from enfold.llm.prices import Overrides, Prices, prices
from enfold.llm.profiles import Profile, read
from enfold.llm.providers import provider
from enfold.llm.summarizer import ModelSummarizer
from enfold.modelconfig import ModelConfig
from enfold.settings import Settings
from enfold.store import catalog
from enfold.store.database import Database
from enfold.store.records import ProfileRow, UsageEvent
from enfold.summaries import Summarizer

LOCAL = "local"
"""The summarizer that is used where neither a setting nor a profile says who writes."""
KEYS = "keys"
"""The scope of the settings in which sealed keys are kept, by profile."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What the database says of profiles."""

    profiles: Mapping[str, Profile | str]
    """By name; or what is wrong with one."""
    sealed: Mapping[str, str]
    configs: Mapping[str, ModelConfig]
    """Of the models that they may ask, as far as somebody configured them."""


def read_stored(db: Database) -> Stored:
    """All profiles, with what is needed to ask their models."""
    profiles = {row.name: _profile(row) for row in catalog.profiles(db)}
    ids = {id for each in profiles.values() if isinstance(each, Profile) for id in _models(each)}
    rows = (catalog.model_config(db, id) for id in sorted(ids))
    configs = {row.id: from_row(row) for row in rows if row is not None}
    return Stored(profiles, catalog.settings(db, KEYS), configs)


def _profile(row: ProfileRow) -> Profile | str:
    try:
        return read(row.name, row.fields)
    except ConfigError as error:
        return f"it cannot be used: {error}"


def _models(profile: Profile) -> tuple[str, ...]:
    cheap = provider(profile.provider).cheap_model
    return (profile.id,) if cheap is None else (profile.id, f"{profile.provider}:{cheap}")


@dataclass(frozen=True, slots=True)
class Roster:
    """Who can be asked."""

    stored: Stored
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
        known = provider(profile.provider)
        sealed = self.stored.sealed.get(profile.name)
        key = self.keys.find(profile.key, known, owner=profile.name, sealed=sealed)
        return profile.connection(key, model)

    def price(self, author: str, input_tokens: int, output_tokens: int) -> float | None:
        """What such summaries would cost, in US dollars; None is unknown.

        Whoever is no profile asks no model.
        """
        if any(author == each.name for each in self.summarizers.values()):
            return 0.0
        return pricing(self.known_prices)(author, input_tokens, output_tokens)

    def summarizer(
        self, settings: Settings, profile: str | None, own: OwnModel | None = None
    ) -> Summarizer:
        """Who writes under these settings in a session with that profile.

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

    def _chain(self, named: str | None, conversation: str | None, seconds: float) -> Chain:
        writers: list[Writer] = []
        passed_over: list[str] = []
        for each in candidates(self.stored.profiles, named=named, conversation=conversation):
            try:
                writers.append(self._writer(each, seconds))
            except ConfigError as error:
                passed_over.append(f"{each.title}: {error}")
        return Chain(writers, passed_over)

    def _writer(self, candidate: Candidate, seconds: float) -> Writer:
        profile = candidate.profile
        if profile is None:
            raise ConfigError(candidate.fault)
        # A model on a small machine reads for long before it gives a sign of life.
        connection = replace(self.connection(profile, candidate.model), timeout=seconds)
        own_prices = profile.prices if candidate.model == profile.model else None
        summarizer = self._by_model(
            self.gateway, connection, candidate.name, profile.name, own_prices
        )
        return Writer(candidate.title, summarizer)

    def _by_model(
        self,
        gateway: Gateway,
        connection: Connection,
        name: str,
        profile: str | None = None,
        own_prices: Overrides | None = None,
    ) -> ModelSummarizer:
        """Who writes with a model, under that name, and keeps account of it."""
        config = self.stored.configs.get(connection.name) or detect(connection.name)
        known = prices(connection.provider, connection.model, own_prices)
        self.known_prices[name] = known

        def keep_account(usage: CallUsage, cost: float | None) -> None:
            self.used.append(_event(profile, connection, usage, cost))

        return ModelSummarizer(gateway, connection, config, name, known, keep_account)


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
