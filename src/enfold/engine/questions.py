"""Questions: what a question in plain words is about, as what the index can look for.

Common words, and the words with which one asks, say nothing of what was talked about. Of the
others the ending is left off, so that `transcriptions` finds `transcripts` too. What stands in
double quotes, or has joints as a path has, is also looked for as it is.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from enfold.store.words import Phrase, fold, phrases_of, texts_of_terms
from enfold.summaries.local.cues import PAIR, PAIRS, Cue, of_word

MOST = 24
"""Phrases that are looked for; a question has fewer, a pasted page has not."""
_CLITIC = re.compile(r"(?<=\w)['’](?:s|m|d|t|re|ve|ll)\b", re.IGNORECASE)
_SHORTEST_STEM = 4
_LONGEST_WHOLE = 3
"""Characters of a word that is never taken for the beginning of another."""


class _Words(NamedTuple):
    asking: frozenset[str]
    endings: tuple[str, ...]


def phrases_about(question: str) -> list[Phrase]:
    """What to look for; the words of asking only if there are no others."""
    words = list(dict.fromkeys(texts_of_terms(_CLITIC.sub("", question))))
    telling = [word for word in words if is_telling(word)]
    chosen = [word for word in telling if word not in _words().asking] or telling or words
    joined = (phrase for phrase in phrases_of(_CLITIC.sub("", question)) if _is_exact(phrase))
    return list(dict.fromkeys((*joined, *map(_beginning, chosen))))[:MOST]


def is_telling(word: str) -> bool:
    """Whether a word, as the index has it, tells one message from another."""
    if len(word) == 1 and word.isalpha():
        return False
    return not of_word(word) & (Cue.COMMON | Cue.FILLER) and not PAIRS.get(word, 0) & Cue.COMMON


def stem(word: str) -> str:
    """The word without its ending, which is less than half of it."""
    shortest = max(_SHORTEST_STEM, len(word) // 2 + 1)
    for ending in _words().endings:
        if word.endswith(ending) and len(word) - len(ending) >= shortest:
            return word.removesuffix(ending)
    return word


def _beginning(word: str) -> Phrase:
    if not word.isalpha() or len(word) <= _LONGEST_WHOLE:
        return Phrase((word,))
    return Phrase((stem(word),), prefix=True)


def _is_exact(phrase: Phrase) -> bool:
    """Whether a phrase is more than a word, and not a run of a script without blanks."""
    return len(phrase.terms) > 1 and not any(map(_is_pair, phrase.terms))


def _is_pair(term: str) -> bool:
    return len(term) <= PAIR and not term.isascii() and term.isalpha()


@cache
def _words() -> _Words:
    table = tomllib.loads(files(__package__).joinpath("asking.toml").read_text(encoding="utf-8"))
    endings = {fold(ending) for each in table["endings"].values() for ending in each}
    return _Words(
        frozenset(_folded(table["asking"])),
        tuple(sorted(endings, key=lambda ending: (-len(ending), ending))),
    )


def _folded(languages: dict[str, list[str]]) -> Iterator[str]:
    for words in languages.values():
        yield from map(fold, words)
