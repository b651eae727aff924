"""Periods: the dates that a question names."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.text.questions import Period, period_of

TODAY = date(2026, 11, 17)  # a Tuesday
NEWEST = date(2026, 6, 1)


def day(month: int, number: int, year: int = 2026) -> date:
    return date(year, month, number)


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What did we do on 7 May?", day(5, 7), day(5, 7)),
        ("What did we do on May 7th, 2025?", day(5, 7, 2025), day(5, 7, 2025)),
        ("what happened in March", day(3, 1), day(3, 31)),
        ("what happened in December", day(12, 1, 2025), day(12, 31, 2025)),
        ("What did Ada say since 2026-03-02 about tea?", day(3, 2), None),
        ("everything after 2026-03", day(4, 1), None),
        ("before May 3rd", None, day(5, 2)),
        ("until 12.04.2026", None, day(4, 12)),
        ("between 3 May and 9 May", day(5, 3), day(5, 9)),
        ("was wurde am 3. Mai gesagt", day(5, 3), day(5, 3)),
        ("¿Qué dijo el 3 de mayo de 2025?", day(5, 3, 2025), day(5, 3, 2025)),
        ("5月7日我们做了什么", day(5, 7), day(5, 7)),
        ("yesterday", day(11, 16), day(11, 16)),
        ("last week", day(11, 9), day(11, 15)),
        ("3 days ago", day(11, 14), day(11, 14)),
    ],
)
def test_dates_of_a_question(question: str, first: date | None, last: date | None) -> None:
    period, _ = period_of(question, today=TODAY, newest=NEWEST)
    assert period == Period(first, last)


@pytest.mark.parametrize(
    "question",
    [
        "What came after the March release?",
        "May I ask what we march for?",
        "Who is on 31 February?",
        "Which port is 8123 in version 1.2.2026b?",
        "2026-13-01 or 20260-01-01",
    ],
)
def test_other_words_are_no_dates(question: str) -> None:
    assert period_of(question, today=TODAY, newest=NEWEST) == (None, question)


def test_the_other_words_of_the_question_remain() -> None:
    _, rest = period_of("What did Ada say on 7 May about tea?", today=TODAY, newest=NEWEST)
    assert rest.split() == ["What", "did", "Ada", "say", "about", "tea?"]


@given(st.dates(date(2, 1, 1), date(9998, 1, 1)))
def test_every_date_is_found_as_it_is_written(wanted: date) -> None:
    period, _ = period_of(f"What was on {wanted.isoformat()}?", today=TODAY, newest=NEWEST)
    assert period == Period(wanted, wanted)
    period, _ = period_of(f"since {wanted.isoformat()}", today=TODAY, newest=NEWEST)
    assert period == Period(wanted, None)
    period, _ = period_of(f"after {wanted.isoformat()}", today=TODAY, newest=NEWEST)
    assert period == Period(wanted + timedelta(days=1), None)


@given(st.text(max_size=60))
def test_any_text_is_read(text: str) -> None:
    period_of(text, today=TODAY, newest=NEWEST)
