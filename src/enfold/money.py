"""Money: amounts in US dollars, where None is an amount that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable


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
