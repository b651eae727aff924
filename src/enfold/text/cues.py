"""Cue words: words and phrases of several languages that show what a sentence does.

`cues.toml` has the lists. A cue is a bit of an integer, so cues of many words are combined with
`|`. `IntFlag` would be the usual type, but combining its members takes ten times as long, and the
built-in summarizer combines them once per word.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

from enfold.text.words import texts_of_terms


class Cue:
    """The bits. Those from POINTER on describe a word, not the sentence that contains it."""

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
    ASIDE = 1 << 12
    """The speaker says that it has nothing to do with the subject."""
    RULE = 1 << 13
    """A sentence in which a user states a rule, a correction or a decision."""
    POINTER = 1 << 14
    """Refers to an earlier sentence."""
    FILLER = 1 << 15
    NUMBER = 1 << 16
    """A number in words."""
    COMMON = 1 << 17
    ANCHOR = 1 << 18
    """The longest word of at least one phrase; the phrase is looked for only if it occurs."""


WORD_CUES = Cue.POINTER | Cue.FILLER | Cue.NUMBER | Cue.COMMON | Cue.ANCHOR
_SHORTEST = 4
"""Letters of the shortest telling word, in a script with spaces."""
PAIR = 2
"""Characters. Most words of unspaced scripts have two, so such text is read in pairs."""

_WORDS: dict[str, int] = {}
_PHRASES: dict[str, list[tuple[str, int]]] = {}
"""Phrases with their cue, by the phrase's longest word."""
_UNSPACED: dict[str, int] = {}


def _load(text: str) -> None:
    for name, languages in tomllib.loads(text).items():
        cue = getattr(Cue, name.upper())
        for language, entries in languages.items():
            for entry in entries:
                if language == "unspaced":
                    _UNSPACED[entry] = _UNSPACED.get(entry, 0) | cue
                    continue
                words = entry.replace(",", "").split()
                longest = max(words, key=len)
                if len(words) > 1:
                    _PHRASES.setdefault(longest, []).append((entry, cue))
                _WORDS[longest] = _WORDS.get(longest, 0) | (Cue.ANCHOR if len(words) > 1 else cue)


_load(files(__package__).joinpath("cues.toml").read_text(encoding="utf-8"))

PAIR_CUES = {entry: cue for entry, cue in _UNSPACED.items() if len(entry) == PAIR}
"""The cues of pairs of characters of unspaced scripts."""
COMMON_PAIRS = frozenset(pair for pair, cue in PAIR_CUES.items() if cue & Cue.COMMON)
_NOT_A_PAIR = re.compile("|".join(re.escape(entry) for entry in _UNSPACED if len(entry) != PAIR))


def word_cues(word: str) -> int:
    """Return the cues of a lower-case word."""
    return _WORDS.get(word.replace("’", "'"), 0)


def phrase_cues(text: str, anchors: Iterable[str]) -> int:
    """Return the cues of the phrases in a text, given the anchor words that it contains."""
    lower = text.lower().replace("’", "'")
    found = 0
    for word in anchors:
        for phrase, cue in _PHRASES.get(word.lower().replace("’", "'"), ()):
            if phrase in lower:
                found |= cue
    return found


def unspaced_cues(text: str) -> int:
    """Return the cues of entries in an unspaced script that are shorter or longer than a pair."""
    found = 0
    for entry in _NOT_A_PAIR.findall(text):
        found |= _UNSPACED[entry]
    return found


@lru_cache(maxsize=16_384)
def is_content_word(word: str) -> bool:
    """Return True if a word of the search index distinguishes one message from another."""
    if len(word) == 1 and word.isalpha():
        return False
    is_frequent = word_cues(word) & (Cue.COMMON | Cue.FILLER) or word in COMMON_PAIRS
    return not is_frequent


def telling_words(text: str) -> frozenset[str]:
    """Return the content words of a text without short ones, which occur in any text by chance."""
    return frozenset(filter(_tells, texts_of_terms(text)))


@lru_cache(maxsize=16_384)
def _tells(word: str) -> bool:
    is_long = len(word) >= _SHORTEST or not word.isascii() or any(map(str.isdigit, word))
    return is_long and is_content_word(word)
