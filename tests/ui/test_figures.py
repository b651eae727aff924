"""Figures: nothing is rounded into something else, and a moment is told as people tell it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from enfold.ui.figures import age_text, date_text, moment_text, share_text

NOON = datetime(2026, 3, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 %"),
        (0.001, "< 1 %"),
        (0.42, "42 %"),
        (0.999, "> 99 %"),
        (1, "100 %"),
        (1.3, "130 %"),
    ],
)
def test_a_share_is_not_rounded_to_nothing_or_to_all(value: float, text: str) -> None:
    assert share_text(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "now"),
        (59, "59 s ago"),
        (61, "1 min ago"),
        (7300, "2 h ago"),
        (3 * 86400, "3 d ago"),
        (40 * 86400, "24 Jan 2026"),
        (-5, "now"),
    ],
)
def test_ages_are_written_in_words(seconds: int, text: str) -> None:
    assert age_text(NOON - timedelta(seconds=seconds), NOON) == text


def test_a_moment_says_its_zone() -> None:
    assert moment_text(NOON) == "5 March 2026, 12:00 UTC"


def test_a_date_is_written_as_in_an_age() -> None:
    assert date_text(date(2026, 1, 4)) == "4 Jan 2026"
