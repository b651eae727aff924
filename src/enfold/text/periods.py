"""Periods: the dates that a question names, such as "on 7 May" and "since 2026-03"."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache

from enfold.text.questions import month_names


@dataclass(frozen=True, slots=True)
class Period:
    """Days in a row; None where there is no first or last day."""

    first: date | None
    last: date | None


@dataclass(frozen=True, slots=True)
class _Dates:
    """Dates in a text: the first and last day, and their place."""

    first: date
    last: date
    start: int
    end: int


def period_of(question: str, *, today: date, newest: date) -> tuple[Period | None, str]:
    """Return the period that a question names, if any, and the question without it.

    A date without a year is the last one up to `newest`, the date of the newest message.
    """
    folded = question.lower()
    found = sorted(_dates_in(folded, today, newest), key=lambda each: (each.start, -each.end))
    if not found:
        return None, question
    one = found[0]
    before = _BEFORE.search(folded, 0, one.start)
    word = before[1] if before else ""
    start = before.start() if before else one.start
    other = next((each for each in found[1:] if each.start >= one.end), None)
    if other and _JOINS.fullmatch(folded[one.end : other.start]):
        period, end = Period(one.first, other.last), other.end
    else:
        period, end = _related(one, word), one.end
    return period, f"{question[:start]} {question[end:]}"


def _related(found: _Dates, word: str) -> Period:
    if word in _AFTER:
        return Period(found.last + timedelta(days=1), None)
    if word in _SINCE:
        return Period(found.first, None)
    if word in _UNTIL:
        return Period(None, found.last)
    if word in _EARLIER:
        return Period(None, found.first - timedelta(days=1))
    return Period(found.first, found.last)


_AFTER = frozenset({"after", "nach", "después de", "après", "depois de"})
_SINCE = frozenset({"since", "from", "seit", "ab", "desde", "depuis"})
_UNTIL = frozenset({"until", "till", "by", "bis", "hasta", "jusqu'au", "até"})
_EARLIER = frozenset({"before", "vor", "antes de", "avant"})
_ON = frozenset({"on", "in", "during", "between", "am", "im", "zwischen", "en", "el", "le", "em"})
_RELATIONS = "|".join(sorted(_AFTER | _SINCE | _UNTIL | _EARLIER | _ON, key=len, reverse=True))
_BEFORE = re.compile(rf"(?<!\w)({_RELATIONS}) (?:the |dem |den |el |le )?$")
_JOINS = re.compile(r"\s*(?:and|to|until|till|–|-|und|bis|y|a|et|au|e)\s+(?:the\s+)?")
_ISO = re.compile(r"(?<![\d-])(\d{4})-(\d{2})(?:-(\d{2}))?(?![\d-])")
_EAST = re.compile(r"(?:(\d{4})年)?(\d{1,2})月(?:(\d{1,2})[日号])?")
_POINTS = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\w)")
_AGO = re.compile(r"\b(\d{1,3}) days? ago\b")
_WORDS: dict[str, Callable[[date], tuple[date, date]]] = {
    "today": lambda day: (day, day),
    "yesterday": lambda day: (day - timedelta(days=1),) * 2,
    "this week": lambda day: (day - timedelta(days=day.weekday()), day),
    "last week": lambda day: _seven_days(day - timedelta(days=day.weekday() + 7)),
    "this month": lambda day: (day.replace(day=1), day),
    "last month": lambda day: _month(day.replace(day=1) - timedelta(days=1)),
}
_RELATIVE = re.compile(rf"\b({'|'.join(_WORDS)})\b")


def _seven_days(monday: date) -> tuple[date, date]:
    return monday, monday + timedelta(days=6)


def _month(day: date) -> tuple[date, date]:
    return day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1])


def _dates_in(text: str, today: date, newest: date) -> Iterator[_Dates]:
    for match in _ISO.finditer(text):
        yield from _span(match, _days(match[1], match[2], match[3], newest))
    for match in _EAST.finditer(text):
        yield from _span(match, _days(match[1], match[2], match[3], newest))
    for match in _POINTS.finditer(text):
        yield from _span(match, _days(match[3], match[2], match[1], newest))
    for match in _AGO.finditer(text):
        yield from _span(match, (today - timedelta(days=int(match[1])),) * 2)
    for match in _RELATIVE.finditer(text):
        yield from _span(match, _WORDS[match[1]](today))
    yield from _named(text, newest)


def _named(text: str, newest: date) -> Iterator[_Dates]:
    """Yield dates with the name of a month, which needs a day, a year or a word such as "in"."""
    day_first, month_first = _month_patterns()
    for match in day_first.finditer(text):
        yield from _span(match, _days(match[3], month_names()[match[2]], match[1], newest))
    for match in month_first.finditer(text):
        name, day, year = match.groups()
        word = _BEFORE.search(text, 0, match.start())
        # "in March" is a month, "the March release" is not.
        if day or year or (word and word[0].strip() == word[1]):
            yield from _span(match, _days(year, month_names()[name], day, newest))


@cache
def _month_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    names = "|".join(sorted(map(re.escape, month_names()), key=len, reverse=True))
    year = r"(?:,? (?:de |of )?(\d{4}))?(?!\d)"
    return (
        re.compile(rf"(?<![\d.])(\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of |de )?({names})\b{year}"),
        re.compile(rf"(?<!\w)({names})\b(?: (\d{{1,2}})(?:st|nd|rd|th)?(?!\d))?{year}"),
    )


def _span(match: re.Match[str], days: tuple[date, date] | None) -> Iterator[_Dates]:
    if days:
        yield _Dates(*days, match.start(), match.end())


def _days(
    year: str | None, month: str | int, day: str | None, newest: date
) -> tuple[date, date] | None:
    """Return the first and last day of a date or a month; None if there is no such date."""
    number = int(month)
    if not 1 <= number <= 12:  # noqa: PLR2004
        return None
    wanted = int(day) if day else 1
    years = [int(year)] if year else [newest.year, newest.year - 1]
    for each in years:
        if not 1 <= each <= 9999 or not 1 <= wanted <= monthrange(each, number)[1]:  # noqa: PLR2004
            continue
        first = date(each, number, wanted)
        if year or first <= newest:
            return (first, first) if day else _month(first)
    return None
