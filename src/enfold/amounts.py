"""Numbers, times and amounts of money as text, and the usage of a model call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


def number(amount: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def when(milliseconds: int) -> str:
    """Return a time in milliseconds as local date and time."""
    local = datetime.fromtimestamp(milliseconds / 1000).astimezone()
    return local.strftime("%Y-%m-%d %H:%M")


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
