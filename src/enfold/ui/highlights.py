"""Highlights: where in a text the words of a search are, and the text as markup that shows them.

What anybody said is data: every character of it is escaped before it becomes markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import escape
from itertools import islice
from typing import TypeAlias

from enfold.store.words import Phrase, Term, parts_of, phrases_of, storable, terms_of

Range: TypeAlias = tuple[int, int]
"""From one character up to another."""

_AT_HAND = 256
"""Texts of which the places are remembered: a page is looked through before it is drawn."""
_MOST = 500
"""Highlights in one text; whoever has seen so many needs no more."""


@lru_cache(maxsize=_AT_HAND)
def found_in(text: str, query: str) -> tuple[Range, ...]:
    """Every place of the query's words and phrases, in order, none overlapping another."""
    phrases = phrases_of(query)
    if not phrases:
        return ()
    terms = list(terms_of(text))
    return tuple(islice(_joined(_matches(text, terms, phrases)), _MOST))


def markup(text: str, ranges: Sequence[Range] = ()) -> str:
    """The text as HTML, with those ranges marked."""
    pieces: list[str] = []
    at = 0
    for start, end in ranges:
        pieces += (escape(text[at:start]), "<mark>", escape(text[start:end]), "</mark>")
        at = end
    # A lone half of a character's code cannot be sent to a browser.
    return storable("".join((*pieces, escape(text[at:]))))


def _matches(text: str, terms: Sequence[Term], phrases: Sequence[Phrase]) -> Iterator[Range]:
    single = {phrase.terms[0] for phrase in phrases if len(phrase.terms) == 1}
    for index, term in enumerate(terms):
        lengths = [len(each.terms) for each in phrases if _begins(terms, index, each)]
        if lengths:
            yield term.start, terms[index + max(lengths) - 1].end
        elif single & parts_of(text[term.start : term.end]):
            yield term.start, term.end


def _begins(terms: Sequence[Term], index: int, phrase: Phrase) -> bool:
    """Whether the phrase begins at that term."""
    *head, last = phrase.terms
    found = [term.text for term in terms[index : index + len(phrase.terms)]]
    if len(found) < len(phrase.terms) or found[:-1] != head:
        return False
    return found[-1].startswith(last) if phrase.prefix else found[-1] == last


def _joined(ranges: Iterator[Range]) -> Iterator[Range]:
    """Ranges that overlap as one."""
    current: Range | None = None
    for start, end in ranges:
        if current is None:
            current = (start, end)
        elif start < current[1]:
            current = (current[0], max(current[1], end))
        else:
            yield current
            current = (start, end)
    if current is not None:
        yield current
