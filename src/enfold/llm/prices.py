"""Prices of models in US dollars per million tokens, and their context windows.

They come from the price library; a profile can override them. None is unknown, never zero. A cached
token without its own price costs as much as other input.

Some models cost more from a certain length on. The higher prices then apply to the whole request.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

from enfold.errors import ConfigError
from enfold.llm.providers import MAJOR_PROVIDERS, price_library_id
from enfold.modelconfig import FALLBACK_MAX_INPUT, FALLBACK_MAX_OUTPUT, SHIPPED, ModelConfig, Source
from enfold.tokens import correction

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo


def find(provider: str, model: str) -> ModelInfo | None:
    """Return the library's entry for a provider's model, or None."""
    from genai_prices.data_snapshot import get_snapshot

    library_id = price_library_id(provider)
    try:
        _, info = get_snapshot().find_provider_model(model, None, library_id, None)
    except LookupError:
        return None
    return info


if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

NAMES = ("input", "output", "cache_writes", "cache_reads")
"""The kinds of tokens that have a price, in the order in which they are shown."""
PROFILE_NAMES = {
    "inputPrice": "input",
    "outputPrice": "output",
    "cacheWritesPrice": "cache_writes",
    "cacheReadsPrice": "cache_reads",
}
"""The names that profiles of other systems use -> our names."""
_LIBRARY_KEYS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_writes": "cache_write_mtok",
    "cache_reads": "cache_read_mtok",
}


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens of each kind."""

    input: float | None = None
    output: float | None = None
    cache_writes: float | None = None
    """The price of tokens written to the provider's cache."""
    cache_reads: float | None = None
    """The price of tokens read from it."""
    longer: tuple[Longer, ...] = field(default=(), kw_only=True)
    """The prices of longer requests, shortest first."""

    def __post_init__(self) -> None:
        for name in NAMES:
            _check(name, getattr(self, name))

    def at(self, input_tokens: int) -> Prices:
        """Return the prices of a request of that length, cached tokens included."""
        reached = [each.prices for each in self.longer if input_tokens > each.above]
        return reached[-1] if reached else self

    @classmethod
    def of(cls, given: Prices | Mapping[str, float | None]) -> Prices:
        """Return prices from a mapping by our names, or by those of a profile (`inputPrice`, …)."""
        if isinstance(given, Prices):
            return given
        named: dict[str, float | None] = {}
        for key, value in given.items():
            name = PROFILE_NAMES.get(key, key)
            if name not in NAMES:
                found = ", ".join((*NAMES, *PROFILE_NAMES))
                raise ConfigError(f"no price {key!r}; there are {found}")
            named[name] = value
        return cls(*map(named.get, NAMES))


@dataclass(frozen=True, slots=True)
class Longer:
    """The prices of requests with more input tokens than `above`."""

    above: int
    prices: Prices


Overrides: TypeAlias = Prices | Mapping[str, float | None]


def prices(
    provider: str, model: str, overrides: Overrides | None = None, *, at: datetime | None = None
) -> Prices | None:
    """Return a model's prices, from the overrides and the price library. None: unknown.

    `at` is the time of the call, for models whose price depends on it; by default now.
    """
    info = find(provider, model)
    found = None
    if info is not None:
        found = _from_library(info.get_prices(at or datetime.now(tz=UTC)))
    if overrides is not None:
        found = _over(found or Prices(), Prices.of(overrides))
    return None if found in (None, Prices()) else found


def _check(name: str, price: Any) -> None:
    if price is None:
        return
    if isinstance(price, bool) or not isinstance(price, int | float) or not isfinite(price):
        raise ConfigError(f"the {name} price is {price!r}; a number of US dollars is expected")
    if price < 0:
        raise ConfigError(f"the {name} price is {price!r}; it cannot be negative")


def _from_library(entry: ModelPrice) -> Prices:
    """Return the prices of a library's entry; only those of text tokens."""
    marks = sorted({mark for name in NAMES for mark in _marks(entry, name)})
    long = tuple(Longer(mark, _reached(entry, mark)) for mark in marks)
    return replace(_reached(entry, None), longer=long)


def _marks(entry: ModelPrice, name: str) -> Iterable[int]:
    price = getattr(entry, _LIBRARY_KEYS[name])
    return (tier.start for tier in getattr(price, "tiers", ()))


def _reached(entry: ModelPrice, mark: int | None) -> Prices:
    """Return the prices of requests longer than the mark; without a mark, of the shortest ones."""
    found: dict[str, float] = {}
    for name in NAMES:
        price = getattr(entry, _LIBRARY_KEYS[name])
        if price is None:
            continue
        tiers = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= (mark or -1)]
        found[name] = float(tiers[-1] if tiers else getattr(price, "base", price))
    return Prices(*map(found.get, NAMES))


def _over(found: Prices, own: Prices) -> Prices:
    """Return the library's prices, replaced by a profile's own ones at every length."""
    overrides = {name: value for name in NAMES if (value := getattr(own, name)) is not None}
    longer = own.longer or tuple(
        Longer(each.above, replace(each.prices, **overrides)) for each in found.longer
    )
    plain = replace(found, **overrides, longer=())
    return replace(plain, longer=tuple(each for each in longer if each.prices != plain))


_LARGEST_REPLY = 64_000
_REPLY_SHARE = 8


def detect(id: str) -> ModelConfig:
    """Return the config of `provider:model`.

    It is the shipped one, else the published limits, else the library's, else the default.
    """
    shipped = {config.id: config for config in SHIPPED}
    if id in shipped:
        return shipped[id]
    provider, _, model = id.partition(":")
    for limits in published_limits():
        if limits.provider == provider and limits.pattern.fullmatch(model):
            return _config(id, limits.max_input, limits.max_output, "library")
    window = _window(id)
    if window is None:
        return _config(id, FALLBACK_MAX_INPUT, FALLBACK_MAX_OUTPUT, "default")
    return of_window(id, window)


@dataclass(frozen=True, slots=True)
class PublishedLimits:
    """The limits of a family of models, as their provider publishes them."""

    provider: str
    pattern: re.Pattern[str]
    """Matches the models' whole names."""
    max_input: int
    max_output: int
    models: tuple[str, ...]
    """Examples."""
    source: str
    """The page that publishes the limits."""


@cache
def published_limits() -> tuple[PublishedLimits, ...]:
    """Return the table of published limits."""
    table = tomllib.loads(files(__package__).joinpath("limits.toml").read_text("utf-8"))
    return tuple(
        PublishedLimits(
            **{**row, "pattern": re.compile(row["pattern"]), "models": tuple(row["models"])}
        )
        for row in table["limits"]
    )


def of_window(
    id: str, window: int, max_output: int | None = None, source: Source = "library"
) -> ModelConfig:
    """Return the config of a model with that window, of which the longest reply is reserved."""
    reply = _reply(window) if max_output is None else min(max_output, window // 2)
    return _config(id, window - reply, reply, source)


def current() -> Iterator[ModelConfig]:
    """Yield the current models of the large providers whose window the library knows."""
    from genai_prices.data_snapshot import get_snapshot

    shipped = {config.id for config in SHIPPED}
    for provider in get_snapshot().providers:
        if provider.id not in MAJOR_PROVIDERS:
            continue
        for model in provider.models:
            id = f"{provider.id}:{model.id}"
            if model.context_window and not model.deprecated and id not in shipped:
                yield of_window(id, model.context_window)


def _reply(window: int) -> int:
    return min(window // 2, max(FALLBACK_MAX_OUTPUT, min(_LARGEST_REPLY, window // _REPLY_SHARE)))


def _window(id: str) -> int | None:
    provider, _, model = id.partition(":")
    info = find(provider, model)
    return info.context_window if info is not None else None


def _config(id: str, max_input: int, max_output: int, source: Source) -> ModelConfig:
    provider, _, model = id.partition(":")
    factor = correction(provider, model, "o200k_base").factor
    return ModelConfig(
        id,
        max_input,
        max_output,
        correction=factor,
        source=source,
    )
