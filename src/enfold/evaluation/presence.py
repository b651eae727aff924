"""Presence: whether what a message says is in a view, or in what a search gave back.

A message counts if it says something: three different content words or more. A content word is
not among the common ones of its language, and has four letters, a digit, or is of a script that is
written in pairs. A message is in a view

- word for word, if its text stands in it;
- quoted, if eight of its words in a row stand in it, with two content words among them;
- in substance, if forty words of the view in a row, within one line, have at least half of the
  message's content words.

A message is reached by a search if one of the passages is of it and gives it whole or quotes it in
the same sense; with the passage comes the place from which the rest can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from enfold.engine.questions import is_telling
from enfold.engine.recall import Passage
from enfold.messages import Message, text_of
from enfold.store.words import texts_of_terms

SAYS_SOMETHING = 3
"""Content words from which a message counts: "Yeah, exactly." can neither be kept nor lost."""
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


def says_something(message: Message) -> bool:
    """Whether a message counts."""
    return len(content_words(text_of(message.parts))) >= SAYS_SOMETHING


class Shown:
    """The lines of a view."""

    def __init__(self, messages: Iterable[Message]) -> None:
        texts = [text_of(message.parts) for message in messages]
        self._whole = " ".join(" ".join(texts).split())
        self._quotable = {
            run for text in texts for line in text.splitlines() for run in _runs(line.split())
        }
        self._passages = [
            content_words(piece)
            for text in texts
            for line in text.splitlines()
            for piece in _pieces(line)
        ]

    def holds(self, message: Message) -> bool:
        """Whether the message is in the view, word for word or in substance."""
        text = " ".join(text_of(message.parts).split())
        if (text and text in self._whole) or self._quotes(text):
            return True
        words = content_words(text)
        return bool(words) and any(
            len(words & passage) >= IN_SUBSTANCE * len(words) for passage in self._passages
        )

    def _quotes(self, text: str) -> bool:
        runs = (run for run in _runs(text.split()) if run in self._quotable)
        return any(map(_tells, runs))


def is_shown(passage: Passage) -> bool:
    """Whether a passage that was found gives its message whole, or quotes it."""
    words = passage.text.split()
    return passage.is_whole or any(map(_tells, _runs(words)))


def share(found: Iterable[int], wanted: Sequence[int]) -> float:
    """Of what is wanted, how much was found."""
    having = set(found)
    return sum(index in having for index in wanted) / len(wanted)


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
