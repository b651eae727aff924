"""Values of foreign JSON, taken only where they are what they should be."""

from __future__ import annotations

from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """The object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    """The objects of an array; none for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """The text; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def number(value: Any) -> int | None:
    """The whole number; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def total(*values: Any) -> int | None:
    """The sum of the numbers among them, of which the first must be one."""
    if number(values[0]) is None:
        return None
    return sum(number(value) or 0 for value in values)
