"""Profiles: which model is asked, where, with whose key, and who condenses for it.

A profile is stored under its name as a JSON object, its fields. It says where its key is found,
never the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from enfold.budget import MAX_CONDENSE_THRESHOLD, MIN_CONDENSE_THRESHOLD
from enfold.errors import ConfigError
from enfold.llm.calls import Connection, Secret
from enfold.llm.keys import check_source
from enfold.llm.prices import NAMES, Prices, prices
from enfold.llm.providers import provider
from enfold.summaries import prompts

INHERIT = -1
"""A threshold that leaves it to the model and the settings."""
LONGEST_NAME = 100

_NAME = re.compile(r"[\w][\w .@+-]*")


@dataclass(frozen=True, slots=True)
class Profile:
    """One way of asking a model."""

    name: str
    provider: str
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
        """What its model costs: by its own prices, else by the library. None is unknown."""
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
        """The fields as they are stored; what is not set is left out."""
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
    """What the provider says of the other fields."""
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
    """An address without a key in it; what was given is not repeated, it may hold one."""
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
