"""Costs: what calls of models cost, did cost, or would cost, and what a compression saves.

All in US dollars. A cost whose price nobody knows is None, and so is every sum with it.

Providers report cached tokens in two ways. Anthropic's `input_tokens` are those that were not
cached, and what was written to the cache or read from it is beside them. OpenAI's are all of them,
the cached ones included. `Billed` is the same for both: each token once, as what it is billed for.
`ACCOUNTINGS` says who reports how.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from enfold.errors import InputError
from enfold.llm.prices import NAMES, PROFILE_NAMES, Prices
from enfold.money import add

Accounting: TypeAlias = Literal["anthropic", "openai"]
ModelPrices: TypeAlias = Prices | Mapping[str, Any] | None
"""Prices, or what else describes a model and has them among its fields."""

ACCOUNTINGS: Mapping[str, Accounting] = {
    "anthropic": "anthropic",
    "bedrock": "anthropic",  # Converse counts like Anthropic, whoever made the model
    "aws": "anthropic",
    "openai": "openai",
    "azure": "openai",
    "openrouter": "openai",  # for Claude too: it translates
    "google": "openai",
    "gemini": "openai",
    "vertex": "openai",
}
"""By provider; one that is not here speaks OpenAI's wire. See `accounting` for Claude elsewhere."""
_CLAUDE_ON_ITS_OWN_WIRE = frozenset({"azure", "google", "vertex"})
_PER = 1_000_000


def accounting(provider: str, model: str = "") -> Accounting:
    """How a provider reports cached tokens; Claude reports as at home wherever its wire is used."""
    if provider in _CLAUDE_ON_ITS_OWN_WIRE and model.startswith("claude"):
        return "anthropic"
    return ACCOUNTINGS.get(provider, "openai")


@dataclass(frozen=True, slots=True)
class Billed:
    """Tokens, each counted once, by what they are billed as."""

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
        """All that went in, cached or not."""
        return self.input + self.cache_writes + self.cache_reads

    @classmethod
    def reported(
        cls,
        how: Accounting,
        input_tokens: int,
        output_tokens: int,
        cache_creation_input_tokens: int = 0,
        cache_read_input_tokens: int = 0,
    ) -> Billed:
        """What a provider reported, each token once."""
        cached = cache_creation_input_tokens + cache_read_input_tokens
        plain = input_tokens if how == "anthropic" else max(0, input_tokens - cached)
        return cls(plain, output_tokens, cache_creation_input_tokens, cache_read_input_tokens)


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars, part by part. None is unknown."""

    input: float | None = 0.0
    output: float | None = 0.0
    cache_writes: float | None = 0.0
    cache_reads: float | None = 0.0

    @property
    def parts(self) -> tuple[float | None, ...]:
        """In the order of `NAMES`."""
        return (self.input, self.output, self.cache_writes, self.cache_reads)

    @property
    def total(self) -> float | None:
        """All of it. None as soon as a part is unknown."""
        return add(self.parts)

    def __add__(self, other: Cost) -> Cost:
        return Cost(*map(add, zip(self.parts, other.parts, strict=True)))

    def as_json(self) -> dict[str, float | None]:
        """For programs."""
        return {**dict(zip(NAMES, self.parts, strict=True)), "total": self.total}


UNKNOWN = Cost(None, None, None, None)


def cost_of(prices: Prices | None, billed: Billed) -> Cost:
    """What the tokens of one request and its reply cost, part by part."""
    reached = (prices or Prices()).at(billed.sent)
    return Cost(*(_dollars(getattr(billed, name), _price(reached, name)) for name in NAMES))


def calculate_api_cost_anthropic(
    model: ModelPrices,
    input_tokens: int,
    output_tokens: int,
    cache_creation_input_tokens: int = 0,
    cache_read_input_tokens: int = 0,
) -> float | None:
    """US dollars of one call, where `input_tokens` leave cached ones out. None is unknown.

    `model` has the prices: `Prices`, or a mapping with its names or those of a profile
    (`inputPrice`, …); what else is in a mapping is not looked at. `cost_of` gives the parts.
    """
    billed = Billed.reported(
        "anthropic",
        input_tokens,
        output_tokens,
        cache_creation_input_tokens,
        cache_read_input_tokens,
    )
    return cost_of(_prices_in(model), billed).total


def calculate_api_cost_openai(
    model: ModelPrices,
    input_tokens: int,
    output_tokens: int,
    cache_creation_input_tokens: int = 0,
    cache_read_input_tokens: int = 0,
) -> float | None:
    """US dollars of one call, where `input_tokens` include cached ones. None is unknown.

    `model` is as in `calculate_api_cost_anthropic`.
    """
    billed = Billed.reported(
        "openai",
        input_tokens,
        output_tokens,
        cache_creation_input_tokens,
        cache_read_input_tokens,
    )
    return cost_of(_prices_in(model), billed).total


def _prices_in(model: ModelPrices) -> Prices | None:
    if model is None or isinstance(model, Prices):
        return model
    priced = {*NAMES, *PROFILE_NAMES}
    return Prices.of({name: value for name, value in model.items() if name in priced})


def _price(prices: Prices, name: str) -> float | None:
    """Cached tokens without a price of their own are ordinary input."""
    own: float | None = getattr(prices, name)
    return prices.input if own is None and name != "output" else own


def _dollars(tokens: int, price: float | None) -> float | None:
    if not tokens:
        return 0.0
    return None if price is None else tokens * price / _PER
