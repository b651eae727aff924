"""Questions: the words of a question that are worth searching for, as phrases and stems."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
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


def phrases_about(question: str) -> list[Phrase]:
    """Return the phrases to search for; question words only if there are no others."""
    plain = without_clitics(question)
    words = list(dict.fromkeys(texts_of_terms(plain)))
    content = [word for word in words if is_content_word(word)]
    chosen = [word for word in content if word not in _lists().question_words] or content or words
    joined = (phrase for phrase in phrases_of(plain) if _is_exact(phrase))
    return list(dict.fromkeys((*joined, *map(_prefix, chosen))))[:MAX_PHRASES]


def stem(word: str) -> str:
    """Return the word without its ending, but more than half of it."""
    shortest = max(_MIN_STEM_LENGTH, len(word) // 2 + 1)
    for ending in _lists().endings:
        if word.endswith(ending) and len(word) - len(ending) >= shortest:
            return word.removesuffix(ending)
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
    endings: tuple[str, ...]


@cache
def _lists() -> _Lists:
    """Return the word lists. They are read when the first question is asked."""
    path = files(__package__).joinpath("questions.toml")
    table: dict[str, dict[str, list[str]]] = tomllib.loads(path.read_text(encoding="utf-8"))
    endings = set(_folded(table["endings"].values()))
    return _Lists(
        frozenset(_folded(table["question_words"].values())),
        tuple(sorted(endings, key=lambda ending: (-len(ending), ending))),
    )


def _folded(lists: Iterable[list[str]]) -> Iterator[str]:
    for words in lists:
        yield from map(fold, words)
