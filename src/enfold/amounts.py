"""Wording: numbers with their nouns, and times, as every screen says them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


def number(amount: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is one."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def when(milliseconds: int) -> str:
    """A time for people, where they are."""
    local = datetime.fromtimestamp(milliseconds / 1000).astimezone()
    return local.strftime("%Y-%m-%d %H:%M")


def add(amounts: Iterable[float | None]) -> float | None:
    """The sum; unknown if one of them is."""
    total = 0.0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total


def dollars(amount: float | None) -> str:
    """An amount for people: two digits that count, cents at least."""
    if amount is None:
        return "unknown"
    size = abs(amount)
    for digits in (2, 3, 4, 5, 6):
        if not size or round(size, digits) >= 10 ** (1 - digits):
            return f"{'-' if amount < 0 else ''}${size:,.{digits}f}"
    return "less than $0.00001"


@dataclass(frozen=True, slots=True)
class CallUsage:
    """What the provider counted; None where it said nothing.

    `input_tokens` includes what was read from or written to the provider's cache.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
