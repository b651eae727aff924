"""The contract of strategies: who one is, what it can do, what can be set, and how it is asked.

A `StrategyKind` is what the registry knows by name: identity, capabilities, config, and how to make a
strategy. A `Strategy` is one that was made, with its config and its means. It sees messages and
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
"""What a summarizer takes for so many input and output tokens, in US dollars; None is unknown."""

Config = TypeVar("Config", bound=CamelModel)

PARALLEL_SUMMARIES = 4


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a strategy can do."""

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
    """What a strategy would make of a view."""

    tokens_before: int
    tokens_after: int
    steps: tuple[Step, ...] = ()
    """What each step would make of it, where a strategy has several."""

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
    """What a strategy would ask of summarizers."""

    by_author: tuple[SummarizerCalls, ...] = ()
    dollars: float | None = None
    """None where a price is unknown; 0 only where nobody is asked."""

    @property
    def calls(self) -> int:
        """How often a summarizer would be asked."""
        return sum(each.calls for each in self.by_author)

    @property
    def input_tokens(self) -> int:
        """What they would read."""
        return sum(each.input_tokens for each in self.by_author)

    @property
    def output_tokens(self) -> int:
        """What they would write."""
        return sum(each.output_tokens for each in self.by_author)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a strategy would come to: how small the view, and at what price."""

    reduction: Reduction
    cost: EstimatedCost

    @classmethod
    def by_trying(cls, plan: Plan, answer: Condensation) -> Estimate:
        """Of a strategy that asks nobody: what it answers, exactly, and for nothing."""
        reduction = Reduction(plan.tokens, answer.tokens(plan), answer.steps)
        return cls(reduction, EstimatedCost(dollars=0.0))


def _nobody_else(name: str) -> Summarizer:
    raise SummaryError(f"no profile {name!r} is at hand here")


@dataclass(frozen=True, slots=True)
class Summarizers:
    """What a strategy works with beside its config."""

    summarizer: Summarizer
    """Who writes summaries where the config names nobody."""
    by_profile: Callable[[str], Summarizer] = field(default=_nobody_else)
    """Who writes them for a profile; `SummaryError` if there is no such profile."""
    parallel: int = PARALLEL_SUMMARIES
    """How many summaries may be written at the same time."""


class Strategy(Protocol):
    """How a view is condensed."""

    @property
    def id(self) -> str:
        """Recorded with every snapshot it makes."""
        ...

    @property
    def retention(self) -> Retention:
        """What stays verbatim by its own config, where nothing else is asked for."""
        ...

    def touches(self, plan: Plan) -> Sequence[int]:
        """Indexes of the messages that it may fold or edit; none if there is nothing to do."""
        ...

    async def condense(self, plan: Plan) -> Condensation:
        """The answer to the plan; `validate` has the last word on it."""
        ...

    async def estimate(self, plan: Plan, prices: Prices | None = None) -> Estimate:
        """What it would come to, and ask of summarizers at these prices; no model is asked."""
        ...


@dataclass(frozen=True, slots=True)
class StrategyKind(Generic[Config]):
    """A strategy as the registry knows it."""

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


def names() -> tuple[str, ...]:
    """Every strategy that can be chosen; those of other packages come last."""
    return (*BUILT_IN, *(name for name in _offered() if name not in BUILT_IN))


def get(name: str) -> AnyStrategyKind:
    """The strategy of that name; `ConfigError` if there is none, or it does not load."""
    if name in BUILT_IN:
        return _built_in(name)
    if name in _offered():
        return _load(_offered()[name])
    raise ConfigError(f"no strategy {name!r}; there are {', '.join(names())}")


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
        raise ConfigError(f"{point.value} is no Kind with the id {point.name!r}")
    return kind
