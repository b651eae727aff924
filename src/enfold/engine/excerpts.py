"""Excerpts: the few words of a message that best show what it says about a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from enfold.engine.questions import is_telling
from enfold.store.search import locate
from enfold.store.words import Phrase, texts_of_terms

WORDS = 8
"""Of an excerpt."""
PAIRED = 20
"""Characters of an excerpt in a script without blanks."""
FOUND = 3
"""What a word that was looked for weighs beside another that tells something."""
_LONGEST = 120
"""Characters of an excerpt, however long its words are."""
_LOOKED_AT = 20_000
"""Characters of a message in which its most telling words are looked for."""
_WORD = re.compile(r"\S+")


class Excerpt(NamedTuple):
    """A piece of a text."""

    start: int
    text: str


def excerpt(text: str, phrases: Sequence[Phrase]) -> Excerpt:
    """The words in a row that have most of what was looked for, and most that tell something.

    Where several words were looked for as they stand, it begins with them and has them all.
    """
    spans = _spans(text)
    if len(spans) <= WORDS and len(text) <= _LONGEST:
        return Excerpt(0, text)
    exact = [phrase for phrase in phrases if len(phrase.terms) > 1]
    start, end = locate(text[:_LOOKED_AT], exact) if exact else (0, 0)
    if end:
        return _beginning_with(text, start, end, spans)
    found = _Found(phrases)
    weights = [found.weight(text[start:end]) for start, end in spans]
    sums = [0, *accumulate(weights)]
    last = max(0, len(spans) - WORDS)
    best = max(range(last + 1), key=lambda at: (sums[min(at + WORDS, len(spans))] - sums[at], -at))
    start, end = spans[best][0], spans[min(best + WORDS, len(spans)) - 1][1]
    return Excerpt(start, text[start : min(end, start + _LONGEST)])


def _beginning_with(text: str, start: int, end: int, spans: Sequence[tuple[int, int]]) -> Excerpt:
    """What was found, with what follows it up to an excerpt's words."""
    following = [span for span in spans if span[1] > start][:WORDS]
    return Excerpt(start, text[start : max(end, min(following[-1][1], start + _LONGEST))])


class _Found:
    """What was looked for, for weighing words."""

    def __init__(self, phrases: Sequence[Phrase]) -> None:
        self._whole = {phrase.terms[0] for phrase in phrases if not phrase.prefix}
        self._begun = tuple(phrase.terms[0] for phrase in phrases if phrase.prefix)
        self._known: dict[str, int] = {}

    def weight(self, word: str) -> int:
        """What a word weighs."""
        if word not in self._known:
            self._known[word] = max(map(self._weight, texts_of_terms(word)), default=0)
        return self._known[word]

    def _weight(self, term: str) -> int:
        if term in self._whole or term.startswith(self._begun):
            return FOUND
        return 1 if is_telling(term) else 0


def _spans(text: str) -> list[tuple[int, int]]:
    """Where words are; a run without blanks is taken in pieces."""
    found: list[tuple[int, int]] = []
    step = PAIRED // WORDS + 1
    for match in _WORD.finditer(text, 0, _LOOKED_AT):
        start, end = match.span()
        if end - start <= step * WORDS or match[0].isascii():
            found.append((start, end))
        else:
            found += [(at, min(at + step, end)) for at in range(start, end, step)]
    return found
