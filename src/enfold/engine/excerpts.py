"""Excerpts: the few words of a message that best show what it says about a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from enfold.engine.questions import is_telling
from enfold.store.words import Phrase, Term, terms_of

LENGTH = 48
"""Characters of an excerpt, eight words or so."""
_DENSER = 3
"""A character of a script without blanks says about as much as this many others."""
_LEAD = 0.25
"""The share of an excerpt that may stand before what was found."""
_LOOKED_AT = 20_000
"""Characters of a message without a find in which its first telling words are looked for."""
_SENTENCE_END = re.compile(r"[.!?…。！？\n]+\s*")  # noqa: RUF001 - full-width marks are meant


class Excerpt(NamedTuple):
    """A piece of a text."""

    start: int
    text: str


def excerpt(text: str, phrases: Sequence[Phrase]) -> Excerpt:
    """Some eight words around what was found; where nothing was, the first that say something."""
    length = LENGTH if _is_spaced(text) else LENGTH // _DENSER
    if len(text) <= length * 1.5:
        return Excerpt(0, text)
    finds = _finds(text, phrases)
    start = _around(finds, length) if finds else _first_telling(text)
    return _cut(text, start, length)


def says_something(text: str, *, least: int = 3) -> bool:
    """Whether a text has words that tell it from others, rather than only "yes" and "mm-hm"."""
    telling: set[str] = set()
    for term in terms_of(text[:_LOOKED_AT]):
        if is_telling(term.text) and len(term.text) > 1:
            telling.add(term.text)
            if len(telling) >= least:
                return True
    return False


def _finds(text: str, phrases: Sequence[Phrase]) -> list[Term]:
    whole = {phrase.terms[0] for phrase in phrases if not phrase.prefix}
    begun = tuple(phrase.terms[0] for phrase in phrases if phrase.prefix)
    return [term for term in terms_of(text) if term.text in whole or term.text.startswith(begun)]


def _around(finds: Sequence[Term], length: int) -> int:
    """Where the window begins that holds most different words of those that were found."""
    best, start = 0, finds[0].start
    first = 0
    for last, term in enumerate(finds):
        while term.end - finds[first].start > length * (1 - _LEAD):
            first += 1
        different = len({each.text for each in finds[first : last + 1]})
        if different > best:
            best, start = different, finds[first].start
    return max(0, start - int(length * _LEAD))


def _first_telling(text: str) -> int:
    """The beginning of the first sentence that says something; of the text if none does."""
    start = 0
    for end in _SENTENCE_END.finditer(text, 0, _LOOKED_AT):
        if says_something(text[start : end.start()]):
            return start
        start = end.end()
    return start if says_something(text[start : start + _LOOKED_AT]) else 0


def _cut(text: str, start: int, length: int) -> Excerpt:
    """So many characters, but no half of a word."""
    end = start + length
    if _is_spaced(text):
        while 0 < start < len(text) and not text[start - 1].isspace():
            start -= 1
            if end - start > 2 * length:
                break
        blank = text.find(" ", end, end + length // 4)
        end = len(text) if end >= len(text) else blank if blank >= 0 else end
    return Excerpt(start, text[start:end])


def _is_spaced(text: str) -> bool:
    beginning = text[:400]
    return beginning.count(" ") * 12 >= len(beginning) or beginning.isascii()
