"""Profiles: which model is asked, where, with whose key, and who condenses for it.

A profile is stored under its name as a JSON object, its fields. It says where its key is found,
never the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import urlsplit

from enfold.amounts import add
from enfold.budget import MAX_CONDENSE_THRESHOLD, MIN_CONDENSE_THRESHOLD
from enfold.errors import AuthenticationError, ConfigError, GatewayError, SummaryError
from enfold.llm.calls import Connection, Secret
from enfold.llm.keys import check_source
from enfold.llm.prices import NAMES, Prices, prices
from enfold.llm.providers import provider
from enfold.llm.summarizer import ModelSummarizer
from enfold.summaries import Summary, SummaryRequest, prompts
from enfold.summaries.request import pieces

INHERIT = -1
"""A threshold that leaves it to the model and the settings."""
LONGEST_NAME = 100

_NAME = re.compile(r"[\w][\w .@+-]*")


@dataclass(frozen=True, slots=True)
class Profile:
    """One way of asking a model."""

    name: str
    provider: str
    """The provider's name."""
    model: str
    """As the provider names it."""
    base_url: str | None = None
    """In place of the provider's public address."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What the provider asks for beside the model, such as a region."""
    key: str | None = None
    """Where the key is: env:NAME, file:PATH or stored. None: the provider's usual variable."""
    prices: Prices | None = None
    """US dollars for a million tokens, over what the library knows."""
    threshold: float | None = None
    """The percentage at which a compression is due, 5 to 100; None and -1 inherit."""
    prompt: str | None = None
    """What a summarizing model is told in sessions with this profile."""
    condensing_profile: str | None = None
    """The profile that condenses for this one. None: the provider's cheap model."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the sessions with this profile."""

    @property
    def id(self) -> str:
        """The model's id, `provider:model`."""
        return f"{self.provider}:{self.model}"

    def known_prices(self) -> Prices | None:
        """Return the prices of its model: its own, else those of the library. None if unknown."""
        return prices(self.provider, self.model, self.prices)

    def connection(self, key: Secret | None, model: str | None = None) -> Connection:
        """Where its model is, or another of the same provider."""
        return Connection(
            self.provider,
            model or self.model,
            key=key,
            base_url=self.base_url,
            options=dict(self.options),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the fields as they are stored; unset fields are left out."""
        given = {
            each.name: getattr(self, each.name) for each in fields(self) if each.name != "name"
        }
        if self.prices is not None:
            own = {name: getattr(self.prices, name) for name in NAMES}
            given["prices"] = {name: price for name, price in own.items() if price is not None}
        return {name: value for name, value in given.items() if value not in (None, {})}


def read(name: str, stored: Mapping[str, Any]) -> Profile:
    """The profile of that name from its fields; `ConfigError` names the one that is wrong."""
    named: dict[str, Any] = {ALIASES.get(key, key): value for key, value in stored.items()}
    unknown = sorted(set(named) - set(CHECKS))
    if unknown:
        raise ConfigError(f"{unknown[0]}: unknown field; there are {', '.join(CHECKS)}")
    values: dict[str, Any] = {}
    for key, value in named.items():
        if value is None:
            continue
        try:
            values[key] = CHECKS[key](value)
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None
    for key in ("provider", "model"):
        if key not in values:
            raise ConfigError(f"{key}: missing")
    profile = Profile(_checked_name(name), **values)
    _check_fit(profile)
    return profile


def check_threshold(profile: Profile) -> None:
    """Raise `ConfigError` if a threshold is out of bounds.

    Asked when a profile is saved. One that was stored otherwise is passed over with a note where
    the threshold is resolved, and the profile still serves.
    """
    percent = profile.threshold
    if percent in (None, INHERIT):
        return
    if not MIN_CONDENSE_THRESHOLD <= (percent or 0) <= MAX_CONDENSE_THRESHOLD:
        allowed = f"{MIN_CONDENSE_THRESHOLD} to {MAX_CONDENSE_THRESHOLD}"
        raise ConfigError(f"threshold: {percent:g} is not {allowed}, nor {INHERIT} to inherit")


def _check_fit(profile: Profile) -> None:
    """Check options and address against what the provider needs."""
    known = provider(profile.provider)
    strange = sorted(set(profile.options) - set(known.options))
    if strange:
        allowed = ", ".join(known.options) or "none"
        raise ConfigError(f"options: no {strange[0]!r} for {known.id}; there are: {allowed}")
    missing = [name for name in known.needs_options if name not in profile.options]
    if missing:
        raise ConfigError(f"options: {known.id} needs a {missing[0]}")
    if known.needs_base_url and profile.base_url is None:
        raise ConfigError(f"base_url: {known.id} needs the server's address")


def _checked_name(name: str) -> str:
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise ConfigError(
            f"name: {name!r} cannot be one; use letters, digits, blanks and . _ @ + -, at most "
            f"{LONGEST_NAME}"
        )
    return name


def _text(value: Any) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise ConfigError("expected a text")


def _provider(value: Any) -> str:
    return provider(_text(value)).id


def _address(value: Any) -> str:
    """Return an address without a key; errors do not repeat the value, which may hold one."""
    try:
        parts = urlsplit(_text(value))
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in {"http", "https"} or not host:
        raise ConfigError("expected an address such as http://127.0.0.1:8080/v1")
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigError("leave out user, password and everything from ? or # on; see `key`")
    return _text(value)


def _texts(value: Any) -> dict[str, str]:
    if isinstance(value, Mapping) and all(
        isinstance(part, str) and part for pair in value.items() for part in pair
    ):
        return dict(value)
    raise ConfigError("expected texts by name")


def _source(value: Any) -> str:
    # Not even its type is told of what may be a key.
    return check_source(value if isinstance(value, str) else "")


def _prices(value: Any) -> Prices:
    if isinstance(value, Mapping):
        return Prices.of(value)
    raise ConfigError('expected US dollars for a million tokens, such as {"input": 2.5}')


def _number(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise ConfigError(f"{value!r} is no number")


def _prompt(value: Any) -> str:
    prompts.validate(value if isinstance(value, str) else "")
    return str(value)


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise ConfigError("expected an object")


CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "provider": _provider,
    "model": _text,
    "base_url": _address,
    "options": _texts,
    "key": _source,
    "prices": _prices,
    "threshold": _number,
    "prompt": _prompt,
    "condensing_profile": _text,
    "settings": _object,
}
"""What the value of each field must be; None is as if it were not there."""

ALIASES: Mapping[str, str] = {
    "autoCondenseContextPercent": "threshold",
    "condensingApiConfigId": "condensing_profile",
    "customCondensingPrompt": "prompt",
}
"""Names that other systems use for a field."""


NO_HANDLER = "No valid API handler available"


@dataclass(frozen=True, slots=True)
class SummarizerCandidate:
    """A profile and model that may write summaries."""

    title: str
    """Who it is, for people."""
    profile: Profile | None = None
    model: str = ""
    """That of the profile, or another of its provider."""
    fault: str = ""
    """Why it cannot be used. Empty where nothing is known against it."""

    @property
    def name(self) -> str:
        """Recorded as the author of summaries: the profile, and the model that is asked."""
        if self.profile is None:
            return self.title
        return f"{self.profile.name} ({self.profile.provider}:{self.model})"


def summarizer_candidates(
    known: Mapping[str, Profile | str], *, named: str | None = None, conversation: str | None = None
) -> Iterator[SummarizerCandidate]:
    """Yield the candidates for a session with the profile `conversation`, best first.

    `known` has every profile, or what is wrong with it. `named` was asked for; else it is the
    condensing profile of the conversation's.
    """
    own = _found(known, conversation, "conversation profile") if conversation else None
    profile = own.profile if own is not None else None
    first = named or (profile.condensing_profile if profile is not None else None)
    visited: set[tuple[str, str]] = set()
    for each in _in_order(known, first, own):
        who = (each.profile.name if each.profile else each.title, each.model)
        if who not in visited:
            visited.add(who)
            yield each


def _in_order(
    known: Mapping[str, Profile | str], first: str | None, own: SummarizerCandidate | None
) -> Iterator[SummarizerCandidate]:
    if first is not None:
        yield _found(known, first, "condensing profile")
    if own is None:
        return
    if own.profile is not None:
        cheap = provider(own.profile.provider).cheap_model
        if cheap is not None:
            title = f"cheap model of {own.profile.provider}, {cheap!r}"
            yield SummarizerCandidate(title, own.profile, cheap)
    yield own


def _found(known: Mapping[str, Profile | str], name: str, role: str) -> SummarizerCandidate:
    title, found = f"{role} {name!r}", known.get(name)
    if isinstance(found, Profile):
        return SummarizerCandidate(title, found, found.model)
    return SummarizerCandidate(title, fault=found or "there is no profile of that name")


@dataclass(frozen=True, slots=True)
class CandidateSummarizer:
    """A candidate that can be asked."""

    title: str
    summarizer: ModelSummarizer


class SummarizerChain:
    """A summarizer that asks one after the other until one has written a summary."""

    def __init__(
        self, writers: Sequence[CandidateSummarizer], passed_over: Sequence[str] = ()
    ) -> None:
        """`passed_over` says of earlier candidates who they are and why they cannot be used."""
        if not writers:
            raise SummaryError(_no_handler(passed_over))
        self._writers = list(writers)
        self._passed_over = list(passed_over)

    @property
    def name(self) -> str:
        """Of the one that is asked first."""
        return self._writers[0].summarizer.name

    @property
    def max_input(self) -> int:
        """Of the one that is asked first."""
        return self._writers[0].summarizer.max_input

    def after(self, author: str) -> SummarizerChain | None:
        """Return the candidates after the author of a summary. None if that was the last."""
        names = [writer.summarizer.name for writer in self._writers]
        rest = self._writers[names.index(author) + 1 :] if author in names else []
        return SummarizerChain(rest) if rest else None

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return the first summary that succeeds; its notes name the candidates that failed.

        Its cost includes theirs.
        """
        failed: list[str] = []
        costs: list[float | None] = []
        for writer in tuple(self._writers):
            try:
                summary = await _in_sequence(writer.summarizer, request)
            except SummaryError as error:
                reason = f"{writer.title}: {_without_name(str(error), writer)}"
                failed.append(reason)
                costs.append(error.cost)
                if _is_final(error) and len(self._writers) > 1:
                    self._writers.remove(writer)
                    self._passed_over.append(reason)
                continue
            passed = dict.fromkeys((*self._passed_over, *failed))
            notes = (f"{each}; {summary.author} wrote instead" for each in passed)
            cost = add([*costs, summary.cost])
            return replace(summary, cost=cost, notes=(*summary.notes, *notes))
        reasons = dict.fromkeys((*self._passed_over, *failed))
        raise SummaryError(_no_handler(reasons), cost=add(costs))


async def _in_sequence(summarizer: ModelSummarizer, request: SummaryRequest) -> Summary:
    """The summary of all, piece by piece where it is more than this one can read."""
    costs: list[float | None] = []
    summary: Summary | None = None
    for piece in pieces(request, summarizer.max_input):
        previous = summary.text if summary is not None else request.previous
        try:
            summary = await summarizer.summarize(
                replace(request, messages=piece, previous=previous)
            )
        except SummaryError as error:
            error.cost = add([*costs, error.cost])
            raise
        costs.append(summary.cost)
    if summary is None:
        raise SummaryError("there is nothing to summarize")
    return replace(summary, cost=add(costs))


def _is_final(error: SummaryError) -> bool:
    """True if asking again is of no use: a wrong key, or a model that is not there."""
    cause = error.__cause__
    return isinstance(cause, AuthenticationError) or type(cause) is GatewayError


def _without_name(text: str, writer: CandidateSummarizer) -> str:
    return text.removeprefix(f"{writer.summarizer.name}: ")


def _no_handler(reasons: Sequence[str] | Mapping[str, None]) -> str:
    return f"{NO_HANDLER}: {'; '.join(reasons) or 'no profile is named'}"
