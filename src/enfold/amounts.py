"""Numbers, times and amounts of money as text, and the usage of a model call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

_DAY = 86_400_000
"""Milliseconds."""


def number(amount: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def when(milliseconds: int) -> str:
    """Return a time in milliseconds as local date and time."""
    local = datetime.fromtimestamp(milliseconds / 1000).astimezone()
    return local.strftime("%Y-%m-%d %H:%M")


def utc_day(milliseconds: int) -> str:
    """Return the date of a time in milliseconds, as 2026-05-07."""
    return _day(milliseconds // _DAY)


@lru_cache(maxsize=1_024)
def _day(number: int) -> str:
    """Return the date of a day by its number since 1970."""
    return datetime.fromtimestamp(number * _DAY / 1000, UTC).date().isoformat()


def duration(seconds: float) -> str:
    """Return a number of seconds as text."""
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms"
    return f"{seconds:.1f} seconds" if seconds < 60 else f"{seconds / 60:.1f} minutes"  # noqa: PLR2004


def add(amounts: Iterable[float | None]) -> float | None:
    """Return the sum; None if one of the amounts is None."""
    total = 0.0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total


def dollars(amount: float | None) -> str:
    """Return an amount of US dollars as text, with at least two significant digits."""
    if amount is None:
        return "unknown"
    size = abs(amount)
    for digits in (2, 3, 4, 5, 6):
        if not size or round(size, digits) >= 10 ** (1 - digits):
            return f"{'-' if amount < 0 else ''}${size:,.{digits}f}"
    return "less than $0.00001"


@dataclass(frozen=True, slots=True)
class CallUsage:
    """The tokens that the provider counted; None where it reported nothing.

    `input_tokens` includes what was read from or written to the provider's cache.
    """

    input_tokens: int | None = None
    """The input tokens; null is unknown."""
    output_tokens: int | None = None
    """The output tokens; null is unknown."""
    cache_read_tokens: int | None = None
    """Of the input, the tokens read from the provider's cache; null is unknown."""
    cache_write_tokens: int | None = None
    """Of the input, the tokens written to the provider's cache; null is unknown."""

    def with_input_of(self, others: Iterable[CallUsage]) -> CallUsage:
        """Return the usage with the input of other calls added, cached tokens included."""
        total = self
        for other in others:
            total = CallUsage(
                _sum(total.input_tokens, other.input_tokens),
                self.output_tokens,
                _sum(total.cache_read_tokens, other.cache_read_tokens or 0),
                _sum(total.cache_write_tokens, other.cache_write_tokens or 0),
            )
        return total


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


@dataclass(frozen=True, slots=True)
class Spending:
    """The costs of model calls, also of calls whose answers were not used."""

    costs: list[float | None] = field(default_factory=list)

    def total(self, otherwise: float | None = 0.0) -> float | None:
        """Return the sum, None if a cost is unknown; `otherwise` if nothing was recorded."""
        return add(self.costs) if self.costs else otherwise


_spending: ContextVar[tuple[Spending, ...]] = ContextVar("spending", default=())


@contextmanager
def track_spending() -> Iterator[Spending]:
    """Collect the costs that are recorded inside the block, in tasks that it starts too.

    A call that is cancelled or whose answer is refused leaves no result to carry its cost, so the
    costs are collected here and not added up from results.
    """
    spending = Spending()
    token = _spending.set((*_spending.get(), spending))
    try:
        yield spending
    finally:
        _spending.reset(token)


def record_cost(cost: float | None) -> None:
    """Add a cost to every `track_spending` block that this code runs in."""
    for spending in _spending.get():
        spending.costs.append(cost)
