"""Activity of the engine: savings, costs and failures of compressions, day by day.

The money saved is an estimate: the tokens that a compression freed, at the model's price for
input, once for every reply that came in the session since, and once at least. The share of these
replies' input that the provider read from its cache counts at the price of cached tokens. A model
without a known price saves an unknown amount.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any, ClassVar

from enfold.engine.engine import Engine
from enfold.llm.prices import Prices, prices
from enfold.records import CompressionRow, DailyFailures, DailyUsage
from enfold.store import catalog
from enfold.store import catalog as activity
from enfold.store.database import Database

_DAY = 24 * 3600
_A_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Saving:
    """One compression, and what it saved."""

    day: date
    strategy: str
    model: str
    tokens: int
    """How many left the view."""
    spared: int
    """How many were not sent again since."""
    dollars: float | None
    """What those would have cost. None is unknown."""


@dataclass(frozen=True, slots=True)
class Total:
    """The savings of several compressions."""

    compressions: int = 0
    """The number of compressions."""
    tokens: int = 0
    """The tokens that were taken out of views."""
    spared: int = 0
    """The tokens that were not sent again since."""
    dollars: float = 0.0
    """The price of the spared tokens, for models with a known price."""
    unknown: int = 0
    """The number of compressions for models of unknown price."""

    @staticmethod
    def sum(savings: Sequence[Saving]) -> Total:
        """Return the total of savings."""
        return Total(
            len(savings),
            sum(each.tokens for each in savings),
            sum(each.spared for each in savings),
            sum(each.dollars or 0.0 for each in savings),
            sum(each.dollars is None for each in savings),
        )


@dataclass(frozen=True, slots=True)
class DayActivity(Total):
    """The savings and failures of one day, in UTC."""

    day: date = date.min
    """The day."""
    failures: int = 0
    """The number of failed compressions."""
    cached_share: float | None = None
    """The share of the replies' input that came from the provider's cache. None: no replies."""

    @classmethod
    def of(cls, total: Total, day: date, failures: int, cached_share: float | None) -> DayActivity:
        """Return a day with the savings of a total."""
        return cls(**asdict(total), day=day, failures=failures, cached_share=cached_share)


@dataclass(frozen=True, slots=True)
class Activity:
    """Savings, usage and failures of a namespace since a time."""

    JSON_FIELDS: ClassVar = (
        "total",
        "failures=failed",
        "cached_share",
        "spent",
        "unknown_costs",
        "days",
        "by_strategy",
        "by_model",
    )
    savings: tuple[Saving, ...] = ()
    usage: tuple[DailyUsage, ...] = ()
    failures: tuple[DailyFailures, ...] = ()

    @property
    def total(self) -> Total:
        """The sum of all savings."""
        return Total.sum(self.savings)

    @property
    def is_empty(self) -> bool:
        """True if nothing at all happened."""
        return not (self.savings or self.usage or self.failures)

    @property
    def failed(self) -> int:
        """How many compressions failed."""
        return sum(each.failures for each in self.failures)

    @property
    def cached_share(self) -> float | None:
        """Of what replies read, the share that came from the provider's cache. None: no replies."""
        read = sum(each.input_tokens for each in self._used("reply"))
        return sum(each.cached_tokens for each in self._used("reply")) / read if read else None

    @property
    def spent(self) -> float:
        """The cost of summaries, as far as it is known."""
        return sum(each.cost for each in self._used("summary"))

    @property
    def unknown_costs(self) -> int:
        """How many calls for summaries have no known cost."""
        return sum(each.unknown_costs for each in self._used("summary"))

    def by_day(self) -> Mapping[date, Total]:
        """The savings of each day that has any."""
        return _totals(self.savings, lambda saving: saving.day)

    @property
    def days(self) -> tuple[DayActivity, ...]:
        """The days with activity, oldest first."""
        saved, failed, cached = self.by_day(), self.failures_by_day(), self.cached_by_day()
        return tuple(
            DayActivity.of(saved.get(day, Total()), day, failed.get(day, 0), cached.get(day))
            for day in sorted({*saved, *failed, *cached})
        )

    @property
    def by_strategy(self) -> Mapping[str, Total]:
        """The savings of each strategy, the largest first."""
        return _most_first(_totals(self.savings, lambda saving: saving.strategy))

    @property
    def by_model(self) -> Mapping[str, Total]:
        """The savings of each model's tokens, the largest first."""
        return _most_first(_totals(self.savings, lambda saving: saving.model))

    def failures_by_day(self) -> Mapping[date, int]:
        """How many failed on each day on which some did."""
        found: dict[date, int] = {}
        for each in self.failures:
            day = day_of(each.day)
            found[day] = found.get(day, 0) + each.failures
        return found

    def cached_by_day(self) -> Mapping[date, float]:
        """The share of the input that came from the provider's cache, on days with replies."""
        read: dict[date, int] = {}
        cached: dict[date, int] = {}
        for each in self._used("reply"):
            day = day_of(each.day)
            read[day] = read.get(day, 0) + each.input_tokens
            cached[day] = cached.get(day, 0) + each.cached_tokens
        return {day: cached[day] / tokens for day, tokens in read.items() if tokens}

    def _used(self, kind: str) -> Iterable[DailyUsage]:
        return (each for each in self.usage if each.kind == kind)


def day_of(days: int) -> date:
    """The date of a day that is counted from 1970."""
    return datetime.fromtimestamp(days * _DAY, tz=UTC).date()


async def read_activity(engine: Engine, namespace: str = "", *, since: int = 0) -> Activity:
    """Return the activity of a namespace since a moment, in milliseconds since 1970."""
    settings = await engine.settings()

    def read(db: Database) -> Activity:
        models = {row.name: row.fields for row in catalog.profiles(db)}
        price_of: dict[str, Prices | None] = {}
        savings = tuple(
            _saving(each, models, settings.model, price_of)
            for each in activity.compressions(db, namespace, since=since)
        )
        return Activity(
            savings,
            tuple(activity.usage_by_day(db, namespace, since=since)),
            tuple(activity.failures_by_day(db, namespace, since=since)),
        )

    return await engine.store.read(read)


def _saving(
    row: CompressionRow,
    profiles: Mapping[str, Mapping[str, Any]],
    usual: str,
    price_of: dict[str, Prices | None],
) -> Saving:
    fields = profiles.get(row.profile or "", {})
    model = row.model or _model_in(fields) or usual
    if model not in price_of:
        provider, _, name = model.partition(":")
        price_of[model] = prices(provider, name, fields.get("prices"))
    freed = max(0, row.tokens_before - row.tokens_after)
    spared = freed * max(1, row.replies)
    price = _input_price(price_of[model], row)
    return Saving(
        day_of(row.created_at // 1000 // _DAY),
        row.strategy,
        model,
        freed,
        spared,
        None if price is None else spared * price / _A_MILLION,
    )


def _input_price(found: Prices | None, row: CompressionRow) -> float | None:
    """Return the price of a million input tokens, at the measured share of cached ones."""
    if found is None or found.input is None:
        return None
    cached = found.input if found.cache_reads is None else found.cache_reads
    share = min(1.0, row.cached_tokens / row.input_tokens) if row.input_tokens else 0.0
    return share * cached + (1 - share) * found.input


def _model_in(fields: Mapping[str, Any]) -> str | None:
    if "provider" in fields and "model" in fields:
        return f"{fields['provider']}:{fields['model']}"
    return None


def _totals(savings: Iterable[Saving], key: Callable[[Saving], Any]) -> dict[Any, Total]:
    found: dict[Any, list[Saving]] = {}
    for saving in savings:
        found.setdefault(key(saving), []).append(saving)
    return {name: Total.sum(some) for name, some in found.items()}


def _most_first(totals: Mapping[str, Total]) -> dict[str, Total]:
    return dict(sorted(totals.items(), key=lambda item: (-item[1].tokens, item[0])))
