"""The lexicon: the concepts, exact items and cues of each distinct token of a conversation.

A token is a run of characters between spaces. It is read once; its exact items come from the
grammar that the receipt uses too. Words of any language become concepts in one spelling. Scripts
without spaces are read as overlapping pairs of characters, which needs no dictionary.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import add
from typing import Literal, NamedTuple, TypeAlias

from enfold.text.grammar import Kind, items_in_token, phrases_in, plain_kind, tokens_of
from enfold.text.sentences import (
    COMMON_PAIRS,
    PAIR_CUES,
    Cue,
    unspaced_cues,
    word_cues,
)
from enfold.text.words import (
    CLOSING_QUOTES,
    EDGES,
    OPENING_QUOTES,
    UNSPACED,
    UNSPACED_LETTERS,
    UNSPACED_PAUSES,
    UNSPACED_STOPS,
    without_clitics,
)

TokenKind: TypeAlias = Kind | Literal["numeral"]
"""A numeral is a number in words."""

NUMBERS: frozenset[TokenKind] = frozenset({"number", "date", "integer"})
PLACES: frozenset[TokenKind] = frozenset({"path", "url", "name"})
TECHNICAL: frozenset[TokenKind] = PLACES | {"identifier", "error", "code", "command"}
EXACT = NUMBERS | TECHNICAL | {"acronym", "numeral"}
"""Everything but words and possible names."""
_BY_EXACTNESS: tuple[Iterable[TokenKind], ...] = (
    *(("word",), ("numeral",), ("acronym",)),
    *(NUMBERS, TECHNICAL - PLACES, PLACES),
)
_EXACTNESS = {kind: rank for rank, kinds in enumerate(_BY_EXACTNESS) for kind in kinds}
"""Rank of the kinds, to choose between two kinds of one concept."""

_RUN = re.compile(
    rf"[{UNSPACED_LETTERS}]+|[^\s{UNSPACED_LETTERS}{UNSPACED_STOPS}{UNSPACED_PAUSES}]+"
)
_QUOTED = re.compile(
    rf"[{OPENING_QUOTES}]([^{OPENING_QUOTES}{CLOSING_QUOTES}\n]{{2,24}})[{CLOSING_QUOTES}]"
)
_SETTING = re.compile(r"^([A-Za-z_][\w.]*)=(\S+)$")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"\d[\d.,:/\-]*")
_MIN_PLURAL_LENGTH = 4
_MAX_LENGTH = 300
"""Characters. A longer token without exact items is encoded data."""


class Token(NamedTuple):
    """A run of characters between spaces, and its meaning."""

    kind: TokenKind
    core: str
    """The characters without the punctuation around them."""
    concepts: tuple[str, ...] = ()
    """Its subjects, in one spelling."""
    items: tuple[tuple[TokenKind, str], ...] = ()
    """Its exact items, and a possible name or number."""
    cues: int = 0


class ExactItem(NamedTuple):
    """Something that must be kept as it is written."""

    kind: TokenKind
    concepts: tuple[str, ...]
    shown: str
    """As written: a full name, or a number with its unit."""


class Lexicon(dict[str, Token]):
    """Tokens by their characters; a new one is read when it is looked up."""

    def __init__(self) -> None:
        super().__init__()
        self._exact: dict[str, TokenKind] = {}
        """Concepts that are more than words and names."""
        self.exact: dict[tuple[tuple[TokenKind, str], ...], list[ExactItem]] = {}
        """The exact items of tokens, by the items that the tokens have, so that all share them."""
        self._names: set[str] = set()
        """Concepts that are capitalized inside a piece of text."""
        self._pairs: dict[str, str] = {}
        """Concepts of unspaced scripts by themselves, so that all tokens share them."""

    def __missing__(self, raw: str) -> Token:
        token = read_token(raw)
        if len(token.concepts) > 1:
            pairs = token.concepts
            token = token._replace(concepts=tuple(map(self._pairs.setdefault, pairs, pairs)))
        elif (
            token.concepts
            and (word := self.get(token.concepts[0]))
            and word.concepts == token.concepts
        ):
            # Most words occur in several forms: capitalized, before a comma.
            token = token._replace(concepts=word.concepts)
        self[raw] = token
        for kind, item in token.items:
            concept = item.lower()
            # The most exact kind wins, so that the order of tokens makes no difference.
            current = self._exact.get(concept, "word")
            if kind in EXACT and _EXACTNESS[current] < _EXACTNESS[kind]:
                self._exact[concept] = kind
        return token

    def learn(self, texts: Iterable[list[str]]) -> dict[str, float]:
        """Return how often each concept occurs in the texts, and note the names in them.

        Each text is a list of tokens. The lists are read one by one and not held.
        """
        openings = Counter[str]()

        def noted() -> Iterator[list[str]]:
            for raws in texts:
                if raws:
                    openings[raws[0]] += 1
                yield raws

        occurrences = Counter(chain.from_iterable(noted()))
        for raw, count in occurrences.items():
            token = self[raw]
            if token.kind == "capitalized" and count > openings[raw]:
                self._names.update(token.concepts)
        once = [self[raw].concepts for raw, count in occurrences.items() if count == 1]
        counts: dict[str, float] = dict(Counter(chain.from_iterable(once)))
        for raw, count in occurrences.items():
            if count > 1:
                for concept in self[raw].concepts:
                    counts[concept] = counts.get(concept, 0) + count
        return counts

    @property
    def marked(self) -> set[str]:
        """The concepts that may be more than words."""
        return self._names | self._exact.keys()

    def kind(self, concept: str) -> TokenKind:
        """Return the kind of a concept. A capitalized word that is also written small is a word."""
        if concept in self._names and concept not in self and concept not in self._exact:
            return "capitalized"
        return self._exact.get(concept, "word")


def read_token(raw: str) -> Token:
    """Return the meaning of one run of characters."""
    if raw.isalpha() and raw.islower() and raw.isascii():
        return _read_word(raw, "word")
    core = raw if raw.isalnum() else raw.strip(EDGES)
    if not core:
        return Token("mark", "")
    if not core.isascii() and UNSPACED.search(core):
        return _read_unspaced(raw, core)
    setting = _SETTING.match(core) if "=" in core else None
    if setting:  # The name of a setting is the same in every call; its value is the news.
        return read_token(setting[2])._replace(core=core)
    items = tuple(item for part in tokens_of(raw) for item in items_in_token(part))
    if items:
        kind = max((kind for kind, _ in items), key=_EXACTNESS.__getitem__)
        core = items[0][1] if len(items) == 1 else core
        concepts = tuple(item.lower() for _, item in items)
        return Token(kind, core, concepts, items, word_cues(core.lower()))
    if len(core) > _MAX_LENGTH:
        return Token("mark", "")
    return _read_word(core, plain_kind(core))


def _read_word(core: str, kind: TokenKind) -> Token:
    lower = core.lower()
    if lower == core:
        lower = core  # one text, not two equal ones
    cues = word_cues(lower)
    if cues & Cue.NUMBER:
        kind = "numeral"
    if kind in EXACT:
        return Token(kind, core, (lower,), ((kind, core),), cues)
    words = (lower,) if lower.isalpha() else _WORD.findall(lower)
    concepts = tuple(
        concept for concept in map(_concept, words) if not word_cues(concept) & Cue.COMMON
    )
    if not concepts:
        return Token("word", core, cues=cues)
    return Token(kind, core, concepts, ((kind, core),) if kind == "capitalized" else (), cues)


def _concept(word: str) -> str:
    """Return one spelling for a word and its plural."""
    if not word.isalpha():
        word = without_clitics(word)
    if len(word) > _MIN_PLURAL_LENGTH and word[-1] == "s" and word[-2] != "s":
        return word[:-1]
    return word


def _read_unspaced(raw: str, core: str) -> Token:
    concepts: list[str] = []
    items: list[tuple[TokenKind, str]] = []
    if _DIGIT.search(core):
        items += [(kind, item) for kind, item in phrases_in(core) if kind in NUMBERS]
        taken = "".join(item for _, item in items)
        numbers = (number.rstrip(".,:/-") for number in _NUMBER.findall(core))
        items += [("integer", number) for number in numbers if number not in taken]
    items += [("identifier", quoted) for quoted in _QUOTED.findall(raw)]
    cues = unspaced_cues(raw)
    for run in _RUN.findall(core):
        if UNSPACED.match(run):
            pairs = list(map(add, run, run[1:]))
            known_pairs = PAIR_CUES.keys() & pairs
            for pair in known_pairs:
                cues |= PAIR_CUES[pair]
            common = COMMON_PAIRS & known_pairs
            concepts += [pair for pair in pairs if pair not in common] if common else pairs
            continue
        inner = read_token(run)
        concepts += inner.concepts
        items += [(kind, item) for kind, item in inner.items if kind != "integer"]
    concepts += [item.lower() for _, item in items]
    return Token("word", core, tuple(concepts), tuple(items), cues & ~Cue.COMMON)
