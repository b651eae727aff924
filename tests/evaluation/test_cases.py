"""Halves: fixed, about equal, and chosen by a hash."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from enfold.evaluation.cases import HALVES, halves


@given(st.sets(st.text(), min_size=2, max_size=40))
def test_halves_are_about_equal_and_do_not_depend_on_the_order(ids: set[str]) -> None:
    which = halves(sorted(ids))
    assert which == halves(sorted(ids, reverse=True))
    sizes = [list(which.values()).count(half) for half in HALVES]
    assert sum(sizes) == len(ids)
    assert abs(sizes[0] - sizes[1]) <= 1
