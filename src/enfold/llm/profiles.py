"""Profiles: a model, its address, the source of its key, and the profile that condenses for it.

A profile is stored under its name as a JSON object, its fields. It names the source of its key,
never the key. Every field is described once, in `Profile`; forms, command line and documentation
read `describe(Profile)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError, ValidationInfo, field_validator, model_validator

from enfold.amounts import add
from enfold.budget import INHERIT, threshold_share
from enfold.errors import (
    AuthenticationError,
    ConfigError,
    GatewayError,
    NoSummaryError,
    SummaryError,
)
from enfold.fields import ContradictionError, DescribedModel, Fault, config_error, described, write
from enfold.llm.calls import Connection, Secret
from enfold.llm.costs import PROFILE_NAMES, Candidate, Prices, prices
from enfold.llm.keys import check_source
from enfold.llm.providers import PROVIDERS, provider
from enfold.llm.summarizer import ModelSummarizer, summarize_divided
from enfold.summaries import Summary, SummaryRequest, prompts

LONGEST_NAME = 100

_HIGHEST_PRICE = 1_000_000
"""Far above any price, so that costs stay numbers that can be added and written."""
_PERCENT = "autoCondenseContextPercent"
ALIASES: Mapping[str, str] = {
    _PERCENT: "threshold",
    "condensingApiConfigId": "condensing_profile",
    "customCondensingPrompt": "prompt",
}
"""Names that other systems use for a field."""

_NAME = re.compile(r"[\w][\w .@+-]*")


class ProfilePrices(DescribedModel):
    """Prices in US dollars per million tokens, in place of the list prices."""

    input: float | None = described("Input", "Price of input tokens.", default=None, ge=0)
    output: float | None = described("Output", "Price of output tokens.", default=None, ge=0)
    cache_writes: float | None = described(
        "Cache writes", "Price of tokens written to the provider's cache.", default=None, ge=0
    )
    cache_reads: float | None = described(
        "Cache reads", "Price of tokens read from the provider's cache.", default=None, ge=0
    )

    @model_validator(mode="before")
    @classmethod
    def _our_names(cls, given: Any) -> Any:
        return _renamed(given, PROFILE_NAMES)

    @field_validator("*")
    @classmethod
    def _plausible(cls, value: float | None) -> float | None:
        if value is not None and value > _HIGHEST_PRICE:
            raise ValueError(f"expected {_HIGHEST_PRICE:,} or less, found {value:g}")
        return value


class Profile(DescribedModel):
    """A model and everything that a call to it needs."""

    name: str = described("Name", "The profile's name.")
    provider: str = described(
        "Provider",
        "The provider of the model.",
        kind="choice",
        choices={each.id: each.title for each in PROVIDERS.values()},
    )
    model: str = described("Model", "The model's name at the provider.")
    base_url: str | None = described(
        "Base URL",
        "The server's address.",
        default=None,
        unset="the provider's public address",
    )
    options: Mapping[str, str] = described(
        "Options", "Options of the provider, such as a region.", default={}
    )
    key: str | None = described(
        "Key source",
        "The source of the key: env:NAME, file:PATH or stored.",
        default=None,
        unset="the provider's usual variable",
    )
    prices: ProfilePrices | None = described(
        "Prices", "US dollars per million tokens.", default=None, unset="the list prices"
    )
    threshold: float | None = described(
        "Threshold",
        "Percentage of the limit at which a compression is due, 5 to 100. A share of 0.05 to 1 "
        "is read as a percentage too; -1 inherits.",
        default=None,
        expected="5 to 100, or -1 to inherit",
        unit="%",
        unset="the threshold of the model and the settings",
    )
    prompt: str | None = described(
        "Prompt",
        "The prompt for summaries of sessions with this profile.",
        default=None,
        unset="the prompt of the settings",
    )
    condensing_profile: str | None = described(
        "Condensing profile",
        "The profile that condenses for this one.",
        default=None,
        unset="the provider's low-cost model, otherwise this profile",
    )
    settings: Mapping[str, Any] = described(
        "Settings", "Settings of the sessions with this profile.", default={}
    )

    @model_validator(mode="before")
    @classmethod
    def _our_names(cls, given: Any) -> Any:
        return _renamed(_migrated(given), ALIASES)

    @field_validator("name")
    @classmethod
    def _valid_name(cls, value: str) -> str:
        if len(value) > LONGEST_NAME or not _NAME.fullmatch(value):
            raise ValueError(
                f"{value!r} is not a valid name; use letters, digits, blanks and . _ @ + -, "
                f"at most {LONGEST_NAME}"
            )
        return value

    @field_validator("provider", "model", "condensing_profile", mode="before")
    @classmethod
    def _stripped(cls, value: Any) -> Any:
        text = value.strip() if isinstance(value, str) else value
        if text == "":
            raise ValueError("expected a text")
        return text

    @field_validator("provider")
    @classmethod
    def _listed_provider(cls, value: str) -> str:
        try:
            return provider(value).id
        except ConfigError as error:
            raise ValueError(str(error)) from None

    # The errors of the next three do not repeat the value: it may hold a key.
    @field_validator("base_url", mode="before")
    @classmethod
    def _address_without_key(cls, value: Any) -> str:
        text = value.strip() if isinstance(value, str) else ""
        try:
            parts = urlsplit(text)
            is_address = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise ValueError("expected an address such as http://127.0.0.1:8080/v1")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("leave out user, password and everything from ? or # on; see `key`")
        return text

    @field_validator("key", mode="before")
    @classmethod
    def _key_source(cls, value: Any) -> str:
        try:
            return check_source(value if isinstance(value, str) else "")
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @field_validator("options", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> dict[str, str]:
        if isinstance(value, Mapping) and all(
            isinstance(part, str) and part for pair in value.items() for part in pair
        ):
            return dict(value)
        raise ValueError("expected texts by name")

    @field_validator("threshold")
    @classmethod
    def _percentage(cls, value: float | None, info: ValidationInfo) -> float | None:
        """Return the threshold as a percentage.

        One that an older version stored otherwise is kept: it is ignored with a note where the
        threshold is resolved, and the profile can still be used.
        """
        if value is None or value == INHERIT:
            return value
        try:
            return round(threshold_share(value) * 100, 6)
        except ConfigError as error:
            if info.context == _STORED:
                return value
            raise ValueError(f"{error}, nor {INHERIT} to inherit") from None

    @field_validator("prompt")
    @classmethod
    def _valid_prompt(cls, value: str) -> str:
        try:
            prompts.validate(value)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return value

    @model_validator(mode="after")
    def _fits_provider(self) -> Profile:
        """Check options and address against the needs of the provider."""
        facts = provider(self.provider)
        strange = sorted(set(self.options) - set(facts.options))
        if strange:
            allowed = ", ".join(facts.options) or "none"
            reason = f"no {strange[0]!r} for {facts.id}; available: {allowed}"
            raise ContradictionError(Fault("options", reason))
        missing = [name for name in facts.needs_options if name not in self.options]
        if missing:
            raise ContradictionError(Fault("options", f"{facts.id} needs a {missing[0]}"))
        if facts.needs_base_url and self.base_url is None:
            raise ContradictionError(Fault("base_url", f"{facts.id} needs the server's address"))
        return self

    @property
    def id(self) -> str:
        """The model's id, `provider:model`."""
        return f"{self.provider}:{self.model}"

    @property
    def cheap_model(self) -> str | None:
        """The provider's cheap model. None if it is unknown, or if the profile has its own server.

        A server of one's own may have none of the provider's models.
        """
        return None if self.base_url else provider(self.provider).cheap_model

    @property
    def own_prices(self) -> Prices | None:
        """The prices that the profile states. None if it states none."""
        return None if self.prices is None else Prices(**self.prices.model_dump())

    def known_prices(self) -> Prices | None:
        """Return the prices of its model: its own, else those of the library. None if unknown."""
        return prices(self.provider, self.model, self.own_prices)

    def connection(self, key: Secret | None, model: str | None = None) -> Connection:
        """Return the connection to its model, or to another model of the same provider."""
        return Connection(
            self.provider,
            model or self.model,
            key=key,
            base_url=self.base_url,
            options=dict(self.options),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the fields as they are stored; unset fields are left out."""
        written = {name: value for name, value in write(self).items() if value != {}}
        del written["name"]
        return {name: _whole(value) for name, value in written.items()}


_STORED = {"is_stored": True}
"""The context in which a profile from the database is validated."""


def _migrated(given: Any) -> Any:
    """Return an object whose flat prices and settings of other systems are where ours are.

    The limits of the model are left out: `model_limits` returns them.
    """
    if not isinstance(given, Mapping):
        return given
    fields = {key: value for key, value in given.items() if key not in _MODEL_FIELDS}
    flat = {key: fields.pop(key) for key in PROFILE_NAMES if key in fields}
    if given.get("supportsPromptCache") is False:
        flat = {key: value for key, value in flat.items() if not key.startswith("cache")}
    if flat and isinstance(prices := fields.get("prices", {}), Mapping):
        fields["prices"] = {**flat, **prices}
    settings = fields.get("settings", {})
    if "autoCondenseContext" in fields and isinstance(settings, Mapping):
        fields["settings"] = {"auto_compress": fields.pop("autoCondenseContext"), **settings}
    thresholds = fields.pop("profileThresholds", None)
    if thresholds is not None:
        if not isinstance(thresholds, Mapping):
            fault = f'expected percentages by profile, such as {{"fast": 80}}, found {thresholds!r}'
            raise ContradictionError(Fault("profileThresholds", fault))
        for each, percent in thresholds.items():
            _check_threshold(f"profileThresholds.{each}", percent)
        names = (given.get("name"), given.get("profileId"), given.get("id"))
        own = next((thresholds[name] for name in names if name in thresholds), None)
        if own is not None:
            general = fields.pop(_PERCENT, None)
            _check_threshold(_PERCENT, general)
            fields.setdefault("threshold", general if own == INHERIT and general else own)
    return fields


def _check_threshold(name: str, value: Any) -> None:
    """Raise an error if a value that another one replaces could not be a threshold either."""
    if value is None or value == INHERIT:
        return
    fault = f"expected 5 to 100, or {INHERIT} to inherit, found {value!r}"
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ContradictionError(Fault(name, fault))
    try:
        threshold_share(value)
    except ConfigError:
        raise ContradictionError(Fault(name, fault)) from None


_NAME_FIELDS = ("id", "profileId", "profileName")
_MODEL_FIELDS = {"contextWindow", "maxOutputTokens", "supportsPromptCache", *_NAME_FIELDS}
"""Fields and names that another system's profile has for its model."""
_BECAME = {
    **dict.fromkeys(_NAME_FIELDS, "nothing: the profile has its name"),
    **ALIASES,
    **{theirs: f"prices.{ours}" for theirs, ours in PROFILE_NAMES.items()},
    "autoCondenseContext": "settings.auto_compress",
    "profileThresholds": "threshold",
    "contextWindow": "max_input of the model, without its output",
    "maxOutputTokens": "max_output of the model",
    "supportsPromptCache": "prices of the cache, which hold if it is true",
}


def renaming_notes(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return our name and value for each field that has another system's name."""
    return tuple(f"{name} became {_BECAME[name]}" for name in fields if name in _BECAME)


def model_limits(fields: Mapping[str, Any]) -> dict[str, int]:
    """Return the limits of the model that another system's profile states: `window`, `output`.

    Raises `ConfigError` if one is no number of tokens.
    """
    found = {}
    for ours, theirs in (("window", "contextWindow"), ("output", "maxOutputTokens")):
        value = _whole(fields.get(theirs))
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"{theirs} = {value!r}: expected a whole number, 1 or more")
        found[ours] = value
    cached = fields.get("supportsPromptCache")
    if cached is not None and not isinstance(cached, bool):
        raise ConfigError(f"supportsPromptCache = {cached!r}: expected true or false")
    if found.get("output", 0) >= found.get("window", inf):
        raise ConfigError(
            f"maxOutputTokens = {found['output']}: expected less than contextWindow, which is "
            f"{found['window']}"
        )
    return found


def _renamed(given: Any, aliases: Mapping[str, str]) -> Any:
    """Return an object with our names of its fields, without those that are null."""
    if not isinstance(given, Mapping):
        return given
    return {aliases.get(key, key): value for key, value in given.items() if value is not None}


def _whole(value: Any) -> Any:
    """Return 80.0 as 80, also inside an object: JSON writes them differently."""
    if isinstance(value, dict):
        return {name: _whole(inner) for name, inner in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def read(name: str, fields: Mapping[str, Any], *, is_stored: bool = False) -> Profile:
    """Return the profile with that name and these fields.

    Raises `ConfigError` that names every field that is wrong. With `is_stored` a threshold out of
    bounds is accepted.
    """
    if fields.get("name", name) != name:
        raise ConfigError("name: a profile's name is not one of its fields")
    given = {**fields, "name": name}
    try:
        return Profile.model_validate(given, context=_STORED if is_stored else None)
    except ValidationError as error:
        raise config_error(Profile, error) from None


def cost_candidates(
    profiles: Iterable[Profile],
) -> tuple[list[Candidate], Mapping[str, str]]:
    """Return the profiles and their providers' cheap models for a comparison of costs.

    The second value is the model of each, by the name of the candidate.
    """
    found: list[Candidate] = []
    models: dict[str, str] = {}
    for profile in profiles:
        found.append(Candidate.of(profile.name, profile.id, profile.own_prices))
        models[profile.name] = profile.id
        cheap = profile.cheap_model
        if cheap is not None and cheap != profile.model:
            name = f"{profile.name}, cheap model"
            found.append(Candidate.of(name, f"{profile.provider}:{cheap}"))
            models[name] = f"{profile.provider}:{cheap}"
    return found, models


NO_HANDLER = "No valid API handler available"


@dataclass(frozen=True, slots=True)
class SummarizerCandidate:
    """A profile and model that may write summaries."""

    title: str
    """The candidate's name for people."""
    profile: Profile | None = None
    model: str = ""
    """The model of the profile, or another model of its provider."""
    fault: str = ""
    """Why it cannot be used. Empty if no reason is known."""

    @property
    def name(self) -> str:
        """The author of its summaries: the profile and the model that is called."""
        if self.profile is None:
            return self.title
        return f"{self.profile.name} ({self.profile.provider}:{self.model})"


def summarizer_candidates(
    profiles: Mapping[str, Profile | str],
    *,
    named: str | None = None,
    conversation: str | None = None,
) -> Iterator[SummarizerCandidate]:
    """Yield the candidates for a session with the profile `conversation`, best first.

    `profiles` has every profile by name, or the reason why it cannot be used. `named` is the
    requested one; by default it is the condensing profile of the conversation's profile.
    """
    own = _found(profiles, conversation, "conversation profile") if conversation else None
    profile = own.profile if own is not None else None
    first = named or (profile.condensing_profile if profile is not None else None)
    found: list[SummarizerCandidate] = []
    if first is not None:
        found.append(_found(profiles, first, "condensing profile"))
    if profile is not None and profile.cheap_model is not None:
        title = f"cheap model of {profile.provider}, {profile.cheap_model!r}"
        found.append(SummarizerCandidate(title, profile, profile.cheap_model))
    if own is not None:
        found.append(own)
    visited: set[tuple[str, str]] = set()
    for each in found:
        who = (each.profile.name if each.profile else each.title, each.model)
        if who not in visited:
            visited.add(who)
            yield each


def _found(profiles: Mapping[str, Profile | str], name: str, role: str) -> SummarizerCandidate:
    title, found = f"{role} {name!r}", profiles.get(name)
    if isinstance(found, Profile):
        return SummarizerCandidate(title, found, found.model)
    return SummarizerCandidate(title, fault=found or "there is no profile of that name")


@dataclass(frozen=True, slots=True)
class CandidateSummarizer:
    """A candidate that can be called."""

    title: str
    summarizer: ModelSummarizer


class SummarizerChain:
    """A summarizer that calls its candidates in order until one has written a summary."""

    def __init__(
        self, writers: Sequence[CandidateSummarizer], passed_over: Sequence[str] = ()
    ) -> None:
        """`passed_over` has the earlier candidates and why they cannot be used."""
        if not writers:
            raise SummaryError(_no_handler(passed_over))
        self._writers = list(writers)
        self._passed_over = list(passed_over)

    @property
    def name(self) -> str:
        """The name of the first candidate."""
        return self._writers[0].summarizer.name

    @property
    def max_input(self) -> int:
        """The maximum input of the first candidate."""
        return self._writers[0].summarizer.max_input

    def after(self, author: str) -> SummarizerChain | None:
        """Return the candidates after the author of a summary. None if that was the last."""
        names = [writer.summarizer.name for writer in self._writers]
        rest = self._writers[names.index(author) + 1 :] if author in names else []
        return SummarizerChain(rest) if rest else None

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return the first summary that succeeds; its notes name the candidates that failed.

        Its cost includes theirs. If none succeeds, it is a `NoSummaryError` if a model answered,
        else a `SummaryError`.
        """
        kind: type[SummaryError] = SummaryError
        failed: list[str] = []
        costs: list[float | None] = []
        for writer in tuple(self._writers):
            try:
                summary = await summarize_divided(writer.summarizer, request)
            except SummaryError as error:
                text = str(error).removeprefix(f"{writer.summarizer.name}: ")
                reason = f"{writer.title}: {text}"
                failed.append(reason)
                costs.append(error.cost)
                if isinstance(error, NoSummaryError):
                    kind = NoSummaryError
                # Another call would fail too: a wrong key, or a model that does not exist.
                cause = error.__cause__
                is_final = isinstance(cause, AuthenticationError) or type(cause) is GatewayError
                if is_final and len(self._writers) > 1:
                    self._writers.remove(writer)
                    self._passed_over.append(reason)
                continue
            passed = dict.fromkeys((*self._passed_over, *failed))
            notes = (f"{each}; {summary.author} wrote instead" for each in passed)
            cost = add([*costs, summary.cost])
            return replace(summary, cost=cost, notes=(*summary.notes, *notes))
        reasons = dict.fromkeys((*self._passed_over, *failed))
        text = "; ".join(reasons) if kind is NoSummaryError else _no_handler(reasons)
        raise kind(text, cost=add(costs))


def _no_handler(reasons: Sequence[str] | Mapping[str, None]) -> str:
    return f"{NO_HANDLER}: {'; '.join(reasons) or 'no profile is named'}"
