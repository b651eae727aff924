"""Amounts in dollars."""

from __future__ import annotations

import pytest

from enfold.amounts import add, dollars


def test_a_sum_with_an_unknown_amount_is_unknown() -> None:
    assert add([0.5, 0.25]) == 0.75
    assert add([0.5, None]) is None
    assert add([]) == 0


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (None, "unknown"),
        (0, "$0.00"),
        (1_234.5, "$1,234.50"),
        (0.5, "$0.50"),
        (0.0036, "$0.0036"),
        (0.000031, "$0.000031"),
        (0.0000001, "less than $0.00001"),
        (-0.02, "-$0.020"),
    ],
)
def test_an_amount_shows_the_digits_that_count(amount: float | None, shown: str) -> None:
    assert dollars(amount) == shown
