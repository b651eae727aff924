"""Prices of models, costs of calls in US dollars, and the savings of a compression.

Prices, per million tokens, and context windows come from the price library; a profile can override
them. An unknown price is None, never zero, and so is every sum with it. A cached token without its
own price costs as much as other input. Some models cost more from a certain length on; the higher
prices then apply to the whole request.

Providers report cached tokens in two ways: some count them in `input_tokens`, others separately.
`BilledTokens` is the same for both: it counts each token once, by the way it is billed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

from enfold.amounts import add, dollars
from enfold.errors import ConfigError, InputError
from enfold.llm.providers import MAJOR_PROVIDERS, price_library_id
from enfold.modelconfig import FALLBACK_MAX_INPUT, FALLBACK_MAX_OUTPUT, SHIPPED, ModelConfig, Source
from enfold.tokens import correction

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice


def find(provider: str, model: str) -> ModelInfo | None:
    """Return the library's entry for a provider's model, or None."""
    from genai_prices.data_snapshot import get_snapshot

    library_id = price_library_id(provider)
    try:
        _, info = get_snapshot().find_provider_model(model, None, library_id, None)
    except LookupError:
        return None
    return info


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
            price: Any = getattr(self, name)
            if price is None:
                continue
            if isinstance(price, bool) or not isinstance(price, int | float) or not isfinite(price):
                raise ConfigError(
                    f"the {name} price is {price!r}; a number of US dollars is expected"
                )
            if price < 0:
                raise ConfigError(f"the {name} price is {price!r}; it cannot be negative")

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
                raise ConfigError(f"no price {key!r}; available: {found}")
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
    found = Prices()
    if info is not None:
        found = _from_library(info.get_prices(at or datetime.now(tz=UTC)))
    if overrides is not None:
        own = Prices.of(overrides)
        longer = own.longer or tuple(
            Longer(each.above, _replaced(each.prices, own)) for each in found.longer
        )
        plain = replace(_replaced(found, own), longer=())
        found = replace(plain, longer=tuple(each for each in longer if each.prices != plain))
    return None if found == Prices() else found


def _from_library(entry: ModelPrice) -> Prices:
    """Return the prices of a library's entry; only those of text tokens."""
    listed = {name: getattr(entry, key) for name, key in _LIBRARY_KEYS.items()}
    tiers = {name: getattr(price, "tiers", ()) for name, price in listed.items()}

    def reached(mark: int) -> Prices:
        """Return the prices of requests longer than the mark."""
        found: dict[str, float] = {}
        for name, price in listed.items():
            if price is not None:
                steps = [tier.price for tier in tiers[name] if tier.start <= mark]
                found[name] = float(steps[-1] if steps else getattr(price, "base", price))
        return Prices(*map(found.get, NAMES))

    marks = sorted({tier.start for steps in tiers.values() for tier in steps})
    return replace(reached(-1), longer=tuple(Longer(mark, reached(mark)) for mark in marks))


def _replaced(found: Prices, own: Prices) -> Prices:
    """Return the library's prices of one length, replaced by a profile's own ones.

    Below the library's input price its cache prices that are higher than the profile's input price
    do not hold: such tokens cost as much as other input then.
    """
    given = {name: value for name in NAMES if (value := getattr(own, name)) is not None}
    dropped = dict.fromkeys(
        name
        for name in ("cache_writes", "cache_reads")
        if own.input is not None and own.input < min(found.input or 0, getattr(found, name) or 0)
    )
    return replace(found, **{**dropped, **given})


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
    info = find(provider, model)
    if info is None or info.context_window is None:
        return _config(id, FALLBACK_MAX_INPUT, FALLBACK_MAX_OUTPUT, "default")
    return of_window(id, info.context_window)


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
    reply = max_output
    if reply is None:
        reply = max(FALLBACK_MAX_OUTPUT, min(_LARGEST_REPLY, window // _REPLY_SHARE))
    reply = min(window // 2, reply)
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


def _config(id: str, max_input: int, max_output: int, source: Source) -> ModelConfig:
    provider, _, model = id.partition(":")
    factor = correction(provider, model).factor
    return ModelConfig(id, max_input, max_output, correction=factor, source=source)


ModelPrices: TypeAlias = Prices | Mapping[str, Any] | None
"""Prices, or a mapping that has them among its fields."""

_PER = 1_000_000


@dataclass(frozen=True, slots=True)
class BilledTokens:
    """Token counts by the way they are billed; each token is counted once."""

    input: int = 0
    """Neither written to the cache nor read from it."""
    output: int = 0
    cache_writes: int = 0
    cache_reads: int = 0

    def __post_init__(self) -> None:
        for name in NAMES:
            if getattr(self, name) < 0:
                raise InputError(f"{getattr(self, name)} {name} tokens; 0 or more are expected")

    @property
    def sent(self) -> int:
        """All input tokens, cached or not."""
        return self.input + self.cache_writes + self.cache_reads

    @classmethod
    def reported(
        cls,
        input_tokens: int,
        output_tokens: int,
        cache_creation_input_tokens: int = 0,
        cache_read_input_tokens: int = 0,
        *,
        includes_cached: bool,
    ) -> BilledTokens:
        """Return reported counts, each token once.

        `includes_cached`: cached tokens are part of `input_tokens`.
        """
        cached = cache_creation_input_tokens + cache_read_input_tokens
        plain = max(0, input_tokens - cached) if includes_cached else input_tokens
        return cls(plain, output_tokens, cache_creation_input_tokens, cache_read_input_tokens)


@dataclass(frozen=True, slots=True)
class CallCost:
    """The cost of a call in US dollars, part by part. None is unknown."""

    input: float | None = 0.0
    output: float | None = 0.0
    cache_writes: float | None = 0.0
    cache_reads: float | None = 0.0

    @property
    def parts(self) -> tuple[float | None, ...]:
        """The costs in the order of `NAMES`."""
        return (self.input, self.output, self.cache_writes, self.cache_reads)

    @property
    def total(self) -> float | None:
        """The sum of the parts. None if a part is unknown."""
        return add(self.parts)

    def __add__(self, other: CallCost) -> CallCost:
        return CallCost(*map(add, zip(self.parts, other.parts, strict=True)))

    def as_json(self) -> dict[str, float | None]:
        """Return the costs as a JSON object."""
        return {**dict(zip(NAMES, self.parts, strict=True)), "total": self.total}


UNKNOWN = CallCost(None, None, None, None)


def cost_of(prices: Prices | None, billed: BilledTokens) -> CallCost:
    """Return the cost of one request and its reply, part by part."""
    reached = (prices or Prices()).at(billed.sent)
    parts: list[float | None] = []
    for name in NAMES:
        tokens: int = getattr(billed, name)
        price: float | None = getattr(reached, name)
        if price is None and name != "output":
            price = reached.input  # cached tokens without a price cost as much as other input
        if not tokens:
            parts.append(0.0)
        else:
            parts.append(None if price is None else tokens * price / _PER)
    return CallCost(*parts)


def calculate_api_cost_anthropic(
    model: ModelPrices,
    input_tokens: int,
    output_tokens: int,
    cache_creation_input_tokens: int = 0,
    cache_read_input_tokens: int = 0,
) -> float | None:
    """Return the US dollars of one call whose `input_tokens` exclude cached ones. None is unknown.

    `model` has the prices: `Prices`, or a mapping with its names or those of a profile
    (`inputPrice`, …); other fields of a mapping are ignored. `cost_of` returns the parts.
    """
    counts = (input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens)
    return cost_of(_prices_in(model), BilledTokens.reported(*counts, includes_cached=False)).total


def calculate_api_cost_openai(
    model: ModelPrices,
    input_tokens: int,
    output_tokens: int,
    cache_creation_input_tokens: int = 0,
    cache_read_input_tokens: int = 0,
) -> float | None:
    """Return the US dollars of one call whose `input_tokens` include cached ones. None is unknown.

    `model` is as in `calculate_api_cost_anthropic`.
    """
    counts = (input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens)
    return cost_of(_prices_in(model), BilledTokens.reported(*counts, includes_cached=True)).total


def _prices_in(model: ModelPrices) -> Prices | None:
    if model is None or isinstance(model, Prices):
        return model
    priced = {*NAMES, *PROFILE_NAMES}
    return Prices.of({name: value for name, value in model.items() if name in priced})


@dataclass(frozen=True, slots=True)
class Figures:
    """The tokens that a run sends and receives, over all its calls."""

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 1
    cached_share: float = 0.0
    """The share of the input that the provider reads from its cache, 0 to 1."""

    def __post_init__(self) -> None:
        for name in ("input_tokens", "output_tokens", "calls"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it cannot be negative")
        if not 0 <= self.cached_share <= 1:
            raise ConfigError(f"cached_share is {self.cached_share}; 0 to 1 is expected")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model or a profile that a run could use."""

    name: str
    prices: Prices | None
    correction: float = 1.0
    """The model's tokens for one counted token."""

    @classmethod
    def of(cls, name: str, model: str, overrides: Overrides | None = None) -> Candidate:
        """Return the candidate for a profile: its name, its `provider:model`, its own prices."""
        provider, _, bare = model.partition(":")
        found = prices(provider, bare, overrides)
        return cls(name, found, correction(provider, bare).factor)


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The cost of a run with one candidate."""

    name: str
    cost: CallCost
    saved: float | None = None
    """US dollars less than with the candidate it is compared with. None is unknown."""
    share: float | None = None
    """`saved` as a share of the cost of that candidate."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended candidate and the reason."""

    name: str
    reason: str
    saved: float | None = None


@dataclass(frozen=True, slots=True)
class Savings:
    """The savings of a compression, in US dollars. None is unknown."""

    next_turn: float | None
    """In the next request, whose new prefix is not cached yet; may be negative."""
    later_turn: float | None
    """In each request after that."""
    cost: float | None = 0.0
    """The cost of the compression."""

    def after(self, turns: int) -> float | None:
        """Return the savings after a number of requests, minus the cost of the compression."""
        if turns < 1:
            return None if self.cost is None else -self.cost
        if self.next_turn is None or self.later_turn is None or self.cost is None:
            return None
        return self.next_turn + self.later_turn * (turns - 1) - self.cost

    @property
    def pays_off_after(self) -> int | None:
        """The number of requests after which it has paid for itself. None: never, or unknown."""
        if self.next_turn is None or self.later_turn is None or self.cost is None:
            return None
        missing = self.cost - self.next_turn
        if missing < 0:
            return 1
        return None if self.later_turn <= 0 else 2 + int(missing / self.later_turn)


def estimate(figures: Figures, model_prices: Prices | None, *, factor: float = 1.0) -> CallCost:
    """Return the cost of a run; `factor` is the model's tokens per counted token."""
    if not figures.calls:
        return CallCost()
    # Prices depend on the length of each call, so this is the average one.
    sent = ceil(figures.input_tokens * factor / figures.calls)
    cached = round(sent * figures.cached_share)
    reply = ceil(figures.output_tokens * factor / figures.calls)
    one = cost_of(model_prices, BilledTokens(sent - cached, reply, cache_reads=cached))
    return CallCost(*(None if part is None else part * figures.calls for part in one.parts))


def price_of(
    by_name: Mapping[str, Prices | None], name: str, input_tokens: int, output_tokens: int
) -> float | None:
    """Return the cost of tokens with a named model or profile; None if its prices are unknown."""
    return cost_of(by_name.get(name), BilledTokens(input_tokens, output_tokens)).total


def compare(
    figures: Figures, candidates: Sequence[Candidate], current: str | None = None
) -> tuple[CostEstimate, ...]:
    """Return every candidate with its cost, cheapest first and unknown ones last.

    Savings are against `current`, or against the most expensive if none is named.
    """
    costs = {
        each.name: UNKNOWN
        if each.prices is None
        else estimate(figures, each.prices, factor=each.correction)
        for each in candidates
    }
    if current is not None and current not in costs:
        raise ConfigError(f"no candidate {current!r}; available: {', '.join(costs)}")
    totals = [cost.total for cost in costs.values() if cost.total is not None]
    against = costs[current].total if current is not None else max(totals, default=None)
    found = []
    for name, cost in costs.items():
        if cost.total is None or against is None:
            found.append(CostEstimate(name, cost))
        else:
            saved = against - cost.total
            found.append(CostEstimate(name, cost, saved, saved / against if against else 0.0))
    found.sort(key=lambda each: (inf if each.cost.total is None else each.cost.total, each.name))
    return tuple(found)


def recommend(
    figures: Figures, candidates: Sequence[Candidate], current: str | None = None
) -> Recommendation | None:
    """Return the cheapest candidate with a known price, and the reason; None if there is none.

    Only costs are compared, not the quality of the models.
    """
    offers = compare(figures, candidates, current)
    priced = [offer for offer in offers if offer.cost.total is not None]
    if not priced:
        return None
    best = priced[0]
    unknown = len(offers) - len(priced)
    aside = f"; the price of {unknown} more is unknown" if unknown else ""
    cost = dollars(best.cost.total)
    if best.name == current:
        reason = f"{best.name} is the cheapest already, {cost} a run{aside}"
    elif best.saved is None or best.share is None:
        reason = f"{best.name} is the cheapest whose price is known, {cost} a run{aside}"
    else:
        less = f"{dollars(best.saved)} ({best.share:.0%}) less than"
        reason = f"{best.name} costs {cost}, {less} {current or 'the most expensive'}{aside}"
    return Recommendation(best.name, reason, best.saved)


def savings(
    before: int,
    after: int,
    model_prices: Prices | None,
    *,
    cost: float | None = 0.0,
    cached: bool = False,
) -> Savings:
    """Return the savings if a conversation takes `after` tokens instead of `before`.

    Without a prompt cache all of it is sent as input each time. With one, all of it would have been
    read from the cache; the compressed one is written to it once, then read. `cost` is that of
    the compression.
    """
    if cached:
        old, new = BilledTokens(cache_reads=before), BilledTokens(cache_reads=after)
        first = BilledTokens(cache_writes=after)
    else:
        old, new = BilledTokens(before), BilledTokens(after)
        first = new
    return Savings(_less(model_prices, old, first), _less(model_prices, old, new), cost)


def _less(model_prices: Prices | None, old: BilledTokens, new: BilledTokens) -> float | None:
    past, coming = cost_of(model_prices, old).total, cost_of(model_prices, new).total
    return None if past is None or coming is None else past - coming
