"""Usage of several requests that are one turn to the client: the sum, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def added(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers summed at every level, lists one after the other; of anything else the second."""
    total = dict(first)
    for key, value in second.items():
        total[key] = _sum(total.get(key), value)
    return total


def _sum(first: Any, second: Any) -> Any:
    match first, second:
        case _, None:
            return first
        case {}, {}:
            return added(first, second)
        case list(), list():
            return [*first, *second]
        case bool(), _:
            return second
        case int() | float(), int() | float():
            return first + second
    return second
