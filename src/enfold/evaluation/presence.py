"""Presence: whether a message is in a view, or in what a search gave back, by several rules.

What counts as being there is a matter of opinion, so there are four rules, from the strictest to
the loosest, and figures are given by each:

- word for word, of all messages: the message's text stands there, were it only "Yeah.";
- word for word, of the messages that say something: three different content words or more;
- quoted: or eight of its words in a row stand there, with two content words among them;
- in substance: or forty words in a row, within one line, have at least half of its content words.

A content word is not among the common ones of its language, and has four letters, a digit, or is
of a script that is written in pairs. A message's text stands in another where it begins and ends
between words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from enfold.engine.questions import is_telling
from enfold.messages import Message, text_of
from enfold.store.words import texts_of_terms

SAYS_SOMETHING = 3
"""Content words from which a message says something: "Yeah, exactly." has none."""
IN_SUBSTANCE = 0.5
QUOTED = 8
QUOTED_CONTENT = 2
"""Words in a row that make a quotation, and how many of them must be content words."""
PASSAGE = 40
"""Words in a row in which they must stand. A longer line is looked at piece by piece, or a view of
a few long messages would seem to hold what is said in any of them."""
_SHORTEST = 4


def content_words(text: str) -> frozenset[str]:
    """What tells a message from another."""
    return frozenset(word for word in texts_of_terms(text) if _is_content(word))


def has_words(message: Message) -> bool:
    """Whether there is anything to look for."""
    return bool(text_of(message.parts).strip())


def says_something(message: Message) -> bool:
    """Whether a message says more than "Yeah.": enough to be kept or lost."""
    return len(content_words(text_of(message.parts))) >= SAYS_SOMETHING


class Shown:
    """The texts of a view, or of what a search gave back."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(texts)

    def has_words(self, words: str) -> bool:
        """Whether these words stand in one of them in a row."""
        row = " ".join(words.split())
        if row not in self._whole:
            return False
        alone = rf"(?<![A-Za-z0-9]){re.escape(row)}(?![A-Za-z0-9])"
        return bool(row) and re.search(alone, self._whole) is not None

    def has_whole(self, message: Message) -> bool:
        """Whether the message's text stands in one of them, word for word."""
        return self.has_words(text_of(message.parts))

    def quotes(self, message: Message) -> bool:
        """Whether it stands there, or eight of its words in a row do."""
        runs = (run for run in _runs(text_of(message.parts).split()) if run in self._quotable)
        return self.has_whole(message) or any(map(_tells, runs))

    def has_substance(self, message: Message) -> bool:
        """Whether it stands there, is quoted, or half of what tells it apart stands together."""
        if self.quotes(message):
            return True
        words = content_words(text_of(message.parts))
        return bool(words) and any(
            len(words & passage) >= IN_SUBSTANCE * len(words) for passage in self._passages
        )

    @cached_property
    def _whole(self) -> str:
        """One text after another, with a mark between that no words run over."""
        return "\n".join(" ".join(text.split()) for text in self._texts)

    @cached_property
    def _quotable(self) -> frozenset[tuple[str, ...]]:
        return frozenset(run for line in self._lines() for run in _runs(line.split()))

    @cached_property
    def _passages(self) -> tuple[frozenset[str], ...]:
        return tuple(content_words(piece) for line in self._lines() for piece in _pieces(line))

    def _lines(self) -> Iterator[str]:
        for text in self._texts:
            yield from text.splitlines()


@dataclass(frozen=True, slots=True)
class Rule:
    """What counts."""

    name: str
    counts: Callable[[Message], bool]
    """Which messages do."""
    holds: Callable[[Shown, Message], bool]
    """When they are there."""


RULES = (
    Rule("verbatim, of all", has_words, Shown.has_whole),
    Rule("verbatim", says_something, Shown.has_whole),
    Rule("quoted", says_something, Shown.quotes),
    Rule("in substance", says_something, Shown.has_substance),
)
"""From the strictest to the loosest."""
LOOSEST = RULES[-1].name


def share(found: Iterable[int], wanted: Sequence[int]) -> float:
    """Of what is wanted, how much was found."""
    having = set(found)
    return sum(index in having for index in wanted) / len(wanted)


def quotation(message: Message, shown: Shown) -> str | None:
    """The first eight words of the message that tell something and stand there."""
    for run in _runs(text_of(message.parts).split()):
        words = " ".join(run)
        if _tells(run) and shown.has_words(words):
            return words
    return None


def _tells(run: Sequence[str]) -> bool:
    return len(content_words(" ".join(run))) >= QUOTED_CONTENT


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for start in range(len(words) - QUOTED + 1):
        yield tuple(words[start : start + QUOTED])


def _pieces(line: str) -> Iterator[str]:
    """So many words at a time, each piece half over the one before it."""
    words = line.split()
    for start in range(0, max(1, len(words) - PASSAGE // 2), PASSAGE // 2):
        yield " ".join(words[start : start + PASSAGE])


def _is_content(word: str) -> bool:
    if not is_telling(word):
        return False
    return len(word) >= _SHORTEST or not word.isascii() or any(map(str.isdigit, word))
