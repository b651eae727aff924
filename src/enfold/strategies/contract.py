"""The contract of strategies: identity, capabilities, config, and the calls of the engine.

A `StrategyKind` is the entry of the registry: identity, capabilities, config, and the constructor.
A `Strategy` is made from it with a config and the summarizers it may use. It sees messages and
counts, never a store, a dialect or a setting.

Third parties offer a `StrategyKind` through an entry point of the group `enfold.strategies`:

    [project.entry-points."enfold.strategies"]
    mine = "my_package.module:KIND"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from enfold import fields
from enfold.condensation import Condensation, Plan, Step
from enfold.errors import ConfigError, SummaryError
from enfold.fields import CamelModel, Fault
from enfold.retention import Retention
from enfold.summaries import Summarizer

Speed: TypeAlias = Literal["fast", "medium", "slow"]
Prices: TypeAlias = Callable[[str, int, int], float | None]
"""Return the cost of input and output tokens of a summarizer in US dollars; None if unknown."""

Config = TypeVar("Config", bound=CamelModel)

PARALLEL_SUMMARIES = 4
CHEAPEST = "cheapest"
"""In place of a profile: the cheapest model that the conversation's profile offers."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of a strategy."""

    lossless: bool = False
    """Nothing that the view said is gone from it."""
    batch: bool = False
    """Many messages become one summary."""
    individual: bool = False
    """Messages are made smaller one by one."""
    multi_pass: bool = False
    summaries: bool = False
    """It may ask a model."""
    speed: Speed = "fast"


@dataclass(frozen=True, slots=True)
class Reduction:
    """The estimated size of a view after a condensation."""

    tokens_before: int
    tokens_after: int
    steps: tuple[Step, ...] = ()
    """The result of each step, for strategies with several."""

    @property
    def share(self) -> float:
        """The share of the tokens that would be gone."""
        return 1 - self.tokens_after / self.tokens_before if self.tokens_before else 0.0


@dataclass(frozen=True, slots=True)
class SummarizerCalls:
    """Calls of one summarizer."""

    author: str
    calls: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class EstimatedCost:
    """The estimated calls of summarizers and their cost."""

    by_author: tuple[SummarizerCalls, ...] = ()
    dollars: float | None = None
    """None if a price is unknown; 0 only if no model is called."""

    @property
    def calls(self) -> int:
        """The number of calls."""
        return sum(each.calls for each in self.by_author)

    @property
    def input_tokens(self) -> int:
        """The input tokens of all calls."""
        return sum(each.input_tokens for each in self.by_author)

    @property
    def output_tokens(self) -> int:
        """The output tokens of all calls."""
        return sum(each.output_tokens for each in self.by_author)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a condensation: size and cost."""

    reduction: Reduction
    cost: EstimatedCost

    @classmethod
    def by_trying(cls, plan: Plan, answer: Condensation) -> Estimate:
        """Return the exact estimate of a strategy that calls no model: its result, at no cost."""
        reduction = Reduction(plan.tokens, answer.tokens(plan), answer.steps)
        return cls(reduction, EstimatedCost(dollars=0.0))


def _no_profiles(name: str) -> Summarizer:
    raise SummaryError(f"no profile {name!r} is available here")


@dataclass(frozen=True, slots=True)
class Summarizers:
    """The summarizers that a strategy may use."""

    summarizer: Summarizer
    """Used if the config names no profile."""
    by_profile: Callable[[str], Summarizer] = field(default=_no_profiles)
    """Return the summarizer of a profile, or of `CHEAPEST`; `SummaryError` if there is none."""
    parallel: int = PARALLEL_SUMMARIES
    """Maximum number of summaries written at the same time."""
    reviewed: bool = True
    """True if summaries are compared with what they replace. False for an estimate."""


class Strategy(Protocol):
    """A strategy with its config: condenses views."""

    @property
    def id(self) -> str:
        """Recorded with every snapshot it makes."""
        ...

    @property
    def retention(self) -> Retention:
        """The messages that stay verbatim by its config, unless a request says otherwise."""
        ...

    def touches(self, plan: Plan) -> Sequence[int]:
        """Return the indexes of the messages that it may edit or summarize."""
        ...

    async def condense(self, plan: Plan) -> Condensation:
        """The answer to the plan; `validate` has the last word on it."""
        ...

    async def estimate(self, plan: Plan, prices: Prices | None = None) -> Estimate:
        """Return the estimated size and cost at these prices, without calling a model."""
        ...


@dataclass(frozen=True, slots=True)
class StrategyKind(Generic[Config]):
    """A strategy in the registry: identity, capabilities, config and constructor."""

    id: str
    name: str
    description: str
    capabilities: Capabilities
    config: type[Config]
    """Its fields have a description, bounds and a default; JSON names are in camel case."""
    make: Callable[[Config, Summarizers], Strategy]
    version: str = "1.0.0"

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its config."""
        return {**fields.schema(self.config), "title": self.name}

    def faults(self, value: Any) -> tuple[Fault, ...]:
        """All that is wrong with a config."""
        return fields.faults(self.config, value)

    def read(self, value: Any) -> Config:
        """A config from JSON, None for the defaults; `ConfigError` names the fields in question."""
        return fields.read(self.config, value)

    def make_from(self, value: Any, means: Summarizers) -> Strategy:
        """The strategy with a config from JSON."""
        return self.make(self.read(value), means)


GROUP = "enfold.strategies"
"""The group of entry points."""

AnyStrategyKind: TypeAlias = StrategyKind[Any]

BUILT_IN = ("native", "lossless", "truncation", "smart")
"""Each is a module beside this one with a `KIND`, in the order in which they are shown."""


_registered: dict[str, AnyStrategyKind] = {}
"""Strategies that this process registered, by id."""


def register(kind: AnyStrategyKind) -> None:
    """Add a strategy to those of this process, or replace one that was registered before."""
    if kind.id in BUILT_IN:
        raise ConfigError(f"the strategy {kind.id!r} is built in; choose another id")
    _registered[kind.id] = kind


def names() -> tuple[str, ...]:
    """Every strategy that can be chosen; those of other packages come last."""
    return tuple(dict.fromkeys((*BUILT_IN, *_registered, *_offered())))


def get(name: str) -> AnyStrategyKind:
    """The strategy of that name; `ConfigError` if there is none, or it does not load."""
    if name in BUILT_IN:
        return _built_in(name)
    if name in _registered:
        return _registered[name]
    if name in _offered():
        return _load(_offered()[name])
    raise ConfigError(f"no strategy {name!r}; available: {', '.join(names())}")


@cache
def _built_in(name: str) -> AnyStrategyKind:
    kind: AnyStrategyKind = import_module(f"enfold.strategies.{name}").KIND
    return kind


@cache
def _offered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def _load(point: EntryPoint) -> AnyStrategyKind:
    try:
        kind = point.load()
    except Exception as error:
        raise ConfigError(
            f"the strategy {point.name!r} ({point.value}) does not load: {error!r}"
        ) from error
    if not isinstance(kind, StrategyKind) or kind.id != point.name:
        raise ConfigError(f"{point.value} is no StrategyKind with the id {point.name!r}")
    return kind
