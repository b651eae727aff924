"""Questions: the words of a question that are worth searching for, and the periods it names."""

from __future__ import annotations

import re
import tomllib
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from enfold.text import vectors
from enfold.text.sentences import PAIR, is_content_word
from enfold.text.words import Phrase, fold, phrases_of, texts_of_terms, without_clitics

MAX_PHRASES = 24
"""Phrases that are searched for. A question has fewer; a pasted page has more."""
_MIN_STEM_LENGTH = 4
_MAX_WHOLE_LENGTH = 3
"""Characters. A word up to this length is not searched for as a prefix."""


_MAX_QUESTIONS = 4
"""Questions in one text that are answered separately."""
VAGUE_PART = 0.6
"""The weight of a word that fits any subject, relative to others."""
_SIMILAR_PART, _MIN_SIMILARITY, _MAX_SIMILAR = 0.15, 0.4, 3
"""The weight of a word that is similar to one of the question, the least similarity, and the number
of such words for each word of the question."""
_MIN_JOINED = 2
"""Phrases of a question that is answered separately though it follows a word such as "and"."""
_FILE = re.compile(
    r"(?<![\w./\\-])(?:[\w.@~-]*[/\\])*(\.?\w[\w@+-]*(?:\.\w+)*\.[A-Za-z]\w{0,9})(?![\w/\\])"
)
"""A file with an ending, such as `src/a.py`. Its name is the group."""


_QUOTE = re.compile('["\u201c\u201d]')
_NEGATED = re.compile(r"\b\w+n['’]t\b", re.IGNORECASE)
"""A verb such as `didn't`, which names nothing."""
_FORMS = (
    ("ies", "y"),
    ("ied", "y"),
    ("es", ""),
    ("s", ""),
    ("ed", ""),
    ("d", ""),
    ("ing", ""),
    ("ing", "e"),
    ("ly", ""),
)
"""Endings of English words, and what stands there in the basic form."""


def phrases_about(question: str) -> list[Phrase]:
    """Return the phrases to search for; question words only if there are no others."""
    plain = _plain(question)
    words = list(dict.fromkeys(texts_of_terms(plain)))
    content = [word for word in words if is_content_word(word)]
    lists = _lists()
    idle = lists.question_words | lists.end_words
    if file_names(question):
        idle |= lists.change_words
    named = [word for word in content if word not in idle]
    chosen = [word for word in named if not _is_border(word)] or named or content or words
    joined = (phrase for phrase in phrases_of(plain) if _is_exact(phrase))
    names = sorted(names_in(question))
    return list(dict.fromkeys((*joined, *names, *map(_prefix, chosen))))[:MAX_PHRASES]


def names_in(question: str) -> frozenset[Phrase]:
    """Return the phrases that name one thing, such as `check-in`; a file without its folders.

    A text in quotes is no name.
    """
    return frozenset(filter(_is_exact, _names(_plain(question))))


def _names(plain: str) -> list[Phrase]:
    # The same file is often named with other folders, or none.
    return phrases_of(_QUOTE.sub(" ", _FILE.sub(lambda match: match[1], plain)))


def _plain(question: str) -> str:
    return without_clitics(_NEGATED.sub(" ", question))


def _is_border(word: str) -> bool:
    """Return True for a pair of an unspaced script with a character that is grammar."""
    return len(word) == PAIR and not _lists().particles.isdisjoint(word)


def vague_phrases(question: str) -> frozenset[Phrase]:
    """Return the phrases of words that fit any subject, such as "advantage"."""
    words = texts_of_terms(_plain(question))
    faults = _lists().fault_words  # the output of most programs has one of them
    return frozenset(_prefix(word) for word in words if word in faults or _is_vague(word))


def similar_phrases(question: str) -> dict[Phrase, float]:
    """Return the phrases of words with nearly the meaning of the question's, and what they count.

    A word of the question itself counts 1. There are none without the extra `enfold[vectors]`.
    """
    if not vectors.are_installed():
        return {}
    own, vague = set(phrases_about(question)), vague_phrases(question)
    found: dict[Phrase, float] = {}
    for word in dict.fromkeys(texts_of_terms(_plain(question))):
        phrase = _prefix(word)
        if phrase not in own:
            continue
        part = _SIMILAR_PART * (VAGUE_PART if phrase in vague else 1.0)
        for other, similarity in _similar(word).items():
            if other not in own:
                found[other] = max(found.get(other, 0.0), part * similarity)
    return found


@lru_cache(maxsize=4_096)
def _similar(word: str) -> Mapping[Phrase, float]:
    """Return the phrases of the words nearest in meaning, which are no forms of the word."""
    own = _prefix(word).terms[0]
    found: dict[Phrase, float] = {}
    for each in vectors.similar_words(word):
        if len(found) == _MAX_SIMILAR or each.similarity < _MIN_SIMILARITY:
            break
        phrase = _prefix(each.text)
        stem_of_other = phrase.terms[0]
        if not own.startswith(stem_of_other) and not stem_of_other.startswith(own):
            found.setdefault(phrase, each.similarity)
    return found


@lru_cache(maxsize=4_096)
def _is_vague(word: str) -> bool:
    """Return True if a word, or what it is a form of in English, is vague."""
    bases = [word.removesuffix(end) + base for end, base in _FORMS if word.endswith(end)]
    return not _lists().vague_words.isdisjoint((word, *bases))


def names_something(question: str) -> bool:
    """Return True if a question has words that name its subject."""
    lists = _lists()
    idle = lists.question_words | lists.end_words | lists.change_words
    words = texts_of_terms(_plain(question))
    return any(
        is_content_word(word) and word not in idle and not _is_border(word) for word in words
    )


def sub_questions(question: str) -> list[str]:
    """Return the questions that a text consists of, at most `_MAX_QUESTIONS`.

    A part that names little ("and why?", "How did I feel?") belongs to the question before it.
    """
    found: list[str] = []
    pieces = _question_end().split(question)
    for piece, joint in zip(pieces[::2], ("", *pieces[1::2]), strict=True):
        if not piece.strip():
            continue
        least = _MIN_JOINED if joint.strip(" ;") else 1
        phrases = phrases_about(piece)
        is_vague = vague_phrases(piece).issuperset(phrases)
        is_full = names_something(piece) and len(phrases) >= least and not is_vague
        if found and (not is_full or len(found) == _MAX_QUESTIONS):
            found[-1] = f"{found[-1]}{joint}{piece}"
        else:
            found.append(piece)
    if len(found) > 1 and not names_something(found[0]):
        found[:2] = [f"{found[0]} {found[1]}"]
    return found


@cache
def _question_end() -> re.Pattern[str]:
    """Return a pattern whose group is the text between two questions."""
    lists = _lists()
    join, begin = ("|".join(map(re.escape, each)) for each in (lists.joining, lists.asking))
    return re.compile(
        rf"((?<=[?\uff1f\u061f])\s+|;\s+|,?\s+(?:{join})\s+(?=(?:{begin})\s)|\n+)", re.IGNORECASE
    )


@cache
def month_names() -> Mapping[str, int]:
    """Return the numbers of the months by their names, in lower case."""
    return {
        name: number
        for names in _table()["months"].values()
        for number, name in enumerate(names, start=1)
    }


class Aim(Enum):
    """The part of a tool's result that a question asks for."""

    MATCH = "match"
    """The lines with its words."""
    END = "end"
    FAULT = "fault"
    """The lines with an error."""
    CHANGE = "change"
    """The text that was written to a file."""


def aim_of(question: str) -> Aim:
    """Return the part of a tool's call or result that a question asks for."""
    words = set(texts_of_terms(_plain(question)))
    lists = _lists()
    if words & lists.fault_words:
        return Aim.FAULT
    if file_names(question):
        other = set(texts_of_terms(_FILE.sub(" ", _plain(question))))
        other -= lists.question_words
        if other & lists.change_words or not any(map(is_content_word, other)):
            return Aim.CHANGE
    return Aim.END if words & lists.end_words else Aim.MATCH


def file_names(question: str) -> list[str]:
    """Return the names of files in a question, without their folders."""
    return [match[1] for match in _FILE.finditer(question)]


@lru_cache(maxsize=4_096)
def stem(word: str) -> str:
    """Return the word without its ending, but more than half of it."""
    endings = _lists().endings
    shortest = max(_MIN_STEM_LENGTH, len(word) // 2 + 1)
    for end in range(shortest, len(word)):
        if word[end:] in endings:
            return word[:end]
    return word


def _prefix(word: str) -> Phrase:
    if not word.isalpha() or len(word) <= _MAX_WHOLE_LENGTH:
        return Phrase((word,))
    return Phrase((stem(word),), prefix=True)


def _is_exact(phrase: Phrase) -> bool:
    """Return True for several words in a row, but not for a run of an unspaced script."""

    def is_pair(term: str) -> bool:
        return len(term) <= PAIR and not term.isascii() and term.isalpha()

    return len(phrase.terms) > 1 and not any(map(is_pair, phrase.terms))


class _Lists(NamedTuple):
    question_words: frozenset[str]
    vague_words: frozenset[str]
    end_words: frozenset[str]
    fault_words: frozenset[str]
    change_words: frozenset[str]
    asking: tuple[str, ...]
    joining: tuple[str, ...]
    particles: frozenset[str]
    endings: frozenset[str]


@cache
def _table() -> dict[str, dict[str, list[str]]]:
    path = files(__package__).joinpath("questions.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def _lists() -> _Lists:
    """Return the word lists. They are read when the first question is asked."""
    table = _table()

    def words(name: str) -> frozenset[str]:
        return frozenset(_folded(table[name].values()))

    def plain(name: str) -> tuple[str, ...]:
        return tuple({word: None for words in table[name].values() for word in words})

    return _Lists(
        words("question_words"),
        words("vague_words"),
        words("end_words"),
        words("fault_words"),
        words("change_words"),
        plain("asking_words"),
        plain("joining_words"),
        words("particles"),
        words("endings"),
    )


def _folded(lists: Iterable[list[str]]) -> Iterator[str]:
    for words in lists:
        yield from map(fold, words)


# Periods that a question names.


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
