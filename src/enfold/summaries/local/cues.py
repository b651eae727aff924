"""Cues: what a sentence does, as far as single words and phrases give it away.

The words are in `cues.toml`. They only tip the scales.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files


class Cue:
    """What a word or phrase says of the sentence it stands in: bits of a plain integer.

    An `IntFlag` would say the same, but takes ten times as long to combine, once per word.
    """

    DECISION = 1 << 0
    CORRECTION = 1 << 1
    DEMAND = 1 << 2
    """A request, a rule or a limit."""
    NEXT = 1 << 3
    FAULT = 1 << 4
    OUTCOME = 1 << 5
    REASON = 1 << 6
    OPEN = 1 << 7
    DOUBT = 1 << 8
    ANNOUNCEMENT = 1 << 9
    PLEASANTRY = 1 << 10
    QUESTION = 1 << 11
    POINTER = 1 << 12
    """Points at an earlier sentence."""
    FILLER = 1 << 13
    NUMBER = 1 << 14
    """A number in words."""
    COMMON = 1 << 15
    ANCHOR = 1 << 16
    """The longest word of at least one phrase, by which the phrase is found."""


OF_WORDS_ONLY = Cue.POINTER | Cue.FILLER | Cue.NUMBER | Cue.COMMON | Cue.ANCHOR
"""What says something of a word, but nothing of a sentence with that word in it."""

UNSPACED = "unspaced"
"""In the table, in place of a language: scripts without blanks between words."""


PAIR = 2
"""Most words of those scripts have two characters, and texts in them are read pair by pair."""


class _Table:
    """`cues.toml`, arranged for looking up."""

    def __init__(self, text: str) -> None:
        self.words: dict[str, int] = {}
        self.phrases: dict[str, list[tuple[str, int]]] = {}
        self.unspaced: dict[str, int] = {}
        for cue, language, entries in self._lists(text):
            if language == UNSPACED:
                self.unspaced.update(
                    (entry, self.unspaced.get(entry, 0) | cue) for entry in entries
                )
            else:
                self._add(cue, entries)
        longer = (re.escape(entry) for entry in self.unspaced if len(entry) != PAIR)
        self.not_a_pair = re.compile("|".join(longer))

    @staticmethod
    def _lists(text: str) -> Iterator[tuple[int, str, list[str]]]:
        for name, languages in tomllib.loads(text).items():
            for language, entries in languages.items():
                yield getattr(Cue, name.upper()), language, entries

    def _add(self, cue: int, entries: list[str]) -> None:
        for entry in entries:
            words = entry.replace(",", "").split()
            anchor = max(words, key=len)
            if len(words) > 1:
                self.phrases.setdefault(anchor, []).append((entry, cue))
            self.words[anchor] = self.words.get(anchor, 0) | (Cue.ANCHOR if words[1:] else cue)


_TABLE = _Table(files(__package__).joinpath("cues.toml").read_text(encoding="utf-8"))


def of_word(word: str) -> int:
    """The cues of a lower-case word."""
    return _TABLE.words.get(word.replace("’", "'"), 0)


def of_phrases(text: str, anchors: Iterable[str]) -> int:
    """The cues of the phrases that have these words and stand in the text."""
    lower = text.lower().replace("’", "'")
    found = 0
    for word in anchors:
        for phrase, cue in _TABLE.phrases.get(word.lower().replace("’", "'"), ()):
            if phrase in lower:
                found |= cue
    return found


PAIRS: Mapping[str, int] = _TABLE.unspaced
"""The cues of two neighbouring characters of a script without blanks, for those that have any."""


def of_unspaced(text: str) -> int:
    """The cues of what is no pair in a text of such a script."""
    found = 0
    for entry in _TABLE.not_a_pair.findall(text):
        found |= _TABLE.unspaced[entry]
    return found
