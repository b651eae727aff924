"""Questions: the words of a question that are worth searching for, as phrases and stems."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from enfold.text.cues import PAIR, is_content_word
from enfold.text.words import Phrase, fold, phrases_of, texts_of_terms, without_clitics

MAX_PHRASES = 24
"""Phrases that are searched for. A question has fewer; a pasted page has more."""
_MIN_STEM_LENGTH = 4
_MAX_WHOLE_LENGTH = 3
"""Characters. A word up to this length is not searched for as a prefix."""


_MAX_QUESTIONS = 4
"""Questions in one text that are answered separately."""
_MIN_JOINED = 2
"""Phrases of a question that is answered separately though it follows a word such as "and"."""
_FILE = re.compile(
    r"(?<![\w./\\-])(?:[\w.@~-]*[/\\])*(\.?\w[\w@+-]*(?:\.\w+)*\.[A-Za-z]\w{0,9})(?![\w/\\])"
)
"""A file with an ending, such as `src/a.py`. Its name is the group."""


def phrases_about(question: str) -> list[Phrase]:
    """Return the phrases to search for; question words only if there are no others."""
    plain = without_clitics(question)
    words = list(dict.fromkeys(texts_of_terms(plain)))
    content = [word for word in words if is_content_word(word)]
    lists = _lists()
    idle = lists.question_words | lists.end_words
    if file_names(question):
        idle |= lists.change_words
    chosen = [word for word in content if word not in idle] or content or words
    joined = (phrase for phrase in phrases_of(plain) if _is_exact(phrase))
    return list(dict.fromkeys((*joined, *map(_prefix, chosen))))[:MAX_PHRASES]


def names_something(question: str) -> bool:
    """Return True if a question has words that name its subject."""
    lists = _lists()
    idle = lists.question_words | lists.end_words | lists.change_words
    words = texts_of_terms(without_clitics(question))
    return any(is_content_word(word) and word not in idle for word in words)


def sub_questions(question: str) -> list[str]:
    """Return the questions that a text consists of, at most `_MAX_QUESTIONS`.

    A part that names little ("and why?") belongs to the question before it.
    """
    found: list[str] = []
    pieces = _question_end().split(question)
    for piece, joint in zip(pieces[::2], ("", *pieces[1::2]), strict=True):
        if not piece.strip():
            continue
        least = _MIN_JOINED if joint.strip(" ;") else 1
        is_full = names_something(piece) and len(phrases_about(piece)) >= least
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
    words = set(texts_of_terms(without_clitics(question)))
    lists = _lists()
    if words & lists.fault_words:
        return Aim.FAULT
    if file_names(question):
        other = set(texts_of_terms(_FILE.sub(" ", without_clitics(question))))
        other -= lists.question_words
        if other & lists.change_words or not any(map(is_content_word, other)):
            return Aim.CHANGE
    return Aim.END if words & lists.end_words else Aim.MATCH


def file_names(question: str) -> list[str]:
    """Return the names of files in a question, without their folders."""
    return [match[1] for match in _FILE.finditer(question)]


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
    end_words: frozenset[str]
    fault_words: frozenset[str]
    change_words: frozenset[str]
    asking: tuple[str, ...]
    joining: tuple[str, ...]
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
        words("end_words"),
        words("fault_words"),
        words("change_words"),
        plain("asking_words"),
        plain("joining_words"),
        words("endings"),
    )


def _folded(lists: Iterable[list[str]]) -> Iterator[str]:
    for words in lists:
        yield from map(fold, words)
