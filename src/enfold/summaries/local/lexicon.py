"""The lexicon: what a run of characters between blanks says, worked out once per distinct run.

Words of any language become concepts; paths, addresses, numbers, identifiers and names are exact
items as well, which a summary must keep as they are written. Scripts without blanks between words
(Chinese, Japanese, Thai) are read as overlapping pairs of characters, which needs no dictionary.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from importlib.resources import files
from itertools import chain
from operator import add
from typing import NamedTuple


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

CUES_UNSPACED = "unspaced"
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
            if language == CUES_UNSPACED:
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


STOPS = ".!?\u2026\u3002\uff01\uff1f\uff61\u061f\u06d4\u0964"
"""End a sentence: also the ideographic, the full-width, the Arabic and the Devanagari ones."""
UNSPACED_STOPS = "\u3002\uff01\uff1f\uff61"
"""Those of scripts in which no blank follows."""
QUESTION_MARKS = "?\uff1f\u061f"
COLONS = (":", "\uff1a")
SEMICOLONS = ";\u061b"
COMMAS = ",\u060c"
UNSPACED_PAUSES = "\uff0c\uff1b\u3001"
"""Comma, semicolon and enumeration comma, full-width."""
QUOTES = "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb\u2039\u203a"
OPENING = "\u300c\u300e\u300a\u3010\u201c"
CLOSING = "\u300d\u300f\u300b\u3011\u201d"
"""Quotation marks and title marks of East Asia, in pairs."""
UNSPACED_CLOSING = f"{CLOSING}\uff09"
UNSPACED_ENDS = tuple(f"{UNSPACED_STOPS}{UNSPACED_PAUSES}{UNSPACED_CLOSING}")
"""After one of these no blank follows."""
EDGES = (
    f"{STOPS}{QUOTES}{OPENING}{CLOSING}{COMMAS}{SEMICOLONS}{UNSPACED_PAUSES}{''.join(COLONS)}"
    "`()[]{}<>*_|~=+\uff08\uff09\u2014\u2013-"
)
"""What may stand around a word without belonging to it."""
PAUSES = tuple(f"{STOPS}{COMMAS}{SEMICOLONS}{UNSPACED_PAUSES}{''.join(COLONS)}")
"""After one of these, text goes on without another mark."""


class Kind(IntEnum):
    """What a chunk is; the higher, the more exactly it must be kept."""

    MARK = 0
    WORD = 1
    NAME = 2
    COUNT = 3
    """A number in words."""
    ACRONYM = 4
    NUMBER = 5
    IDENTIFIER = 6
    PLACE = 7
    """A path or an address: where something is."""


class Chunk(NamedTuple):
    """One run of characters between blanks, understood."""

    kind: Kind
    core: str
    """Without the punctuation around it."""
    concepts: tuple[str, ...] = ()
    """What it is about, in one spelling."""
    items: tuple[str, ...] = ()
    """What in it must be kept exactly."""
    cues: int = 0


MARK = Chunk(Kind.MARK, "")

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005\u3040-\u30ff"
    "\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
UNSPACED = re.compile(f"[{_UNSPACED}]")
"""A character of a script without blanks between words."""
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\s{_UNSPACED}{UNSPACED_STOPS}{UNSPACED_PAUSES}]+")
_AMOUNT = re.compile(
    rf"\d[\d.,:/\-]*(?:(?:[年月日号点时分秒]\d*)+|[万千百亿](?:\d+[万千百亿]?)*[{_UNSPACED}]?"
    rf"|[%\uff05‰°]|[{_UNSPACED}])?"
)
"""A date, a time, a sum or a count, with what it counts."""
_QUOTED = re.compile(rf"[{OPENING}]([^{OPENING}{CLOSING}\n]{{2,24}})[{CLOSING}]")
_ADDRESS = re.compile(
    r"^(?:[a-z][\w+.-]*://|www\.|mailto:)\S+|^[\w.+-]+@[\w-]+\.[\w.-]+$", re.IGNORECASE
)
_PATH = re.compile(
    r"^(?:[~.]{0,2}[/\\]|[A-Za-z]:[/\\])[\w.@~*$(){}\[\]-]+"
    r"|^[\w.@~-]+(?:[/\\][\w.@~*${}\[\]-]+){2,}"
    r"|^(?:[\w.@~-]+[/\\])+[\w@~-]*\.\w+"
    r"|^[\w@~-]*[A-Za-z_][\w@~-]*\.(?=[a-z0-9]*[a-z])[a-z0-9]{1,5}$"
)
_ABBREVIATION = re.compile(r"^(?:\w\.)+\w?$")
_IDENTIFIER = re.compile(
    r"^--?[a-z][\w-]+$|^[@#$]\w{2,}|\w_\w|[a-z][A-Z]|\w::\w|\w\(\)?|\w->\w|^\w+(?:\.\w+){2,}$"
    r"|^[A-Z]\w*-[A-Z]\w*-|^\w+[=:]\w"
)
_SETTING = re.compile(r"^([A-Za-z_][\w.]*)=(\S+)$")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_CLITIC = re.compile(r"['’](?:s|m|d|t|re|ve|ll)$")
_SHORTEST_PLURAL = 4
_DIGIT = re.compile(r"\d")
_LONGEST = 300
"""Characters from which a chunk without an address in it is a blob that says nothing."""


class Lexicon(dict[str, Chunk]):
    """Chunks by their characters; an unseen one is understood when it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._exact: dict[str, Kind] = {}
        """The concepts of chunks that are more than words and names."""
        self._names: set[str] = set()
        """Concepts with a capital where no piece of text begins."""

    def __missing__(self, raw: str) -> Chunk:
        chunk = self[raw] = understand(raw)
        if chunk.kind > Kind.NAME:
            self._note(chunk.concepts, chunk.kind)
        elif chunk.kind is Kind.WORD and chunk.items:
            self._note([item.lower() for item in chunk.items], Kind.NUMBER)
        return chunk

    def _note(self, concepts: Iterable[str], kind: Kind) -> None:
        """Keep the most exact kind, so that it does not matter which chunk came first."""
        for concept in concepts:
            if self._exact.get(concept, Kind.WORD) < kind:
                self._exact[concept] = kind

    def learn(self, texts: Sequence[list[str]]) -> Counter[str]:
        """How often each concept comes up in the texts; names are recognised on the way."""
        for raw in set(chain.from_iterable([raws[1:] for raws in texts])):
            chunk = self[raw]
            if chunk.kind is Kind.NAME:
                self._names.update(chunk.concepts)
        seen = Counter(chain.from_iterable(texts))
        once = [self[raw].concepts for raw, count in seen.items() if count == 1]
        counts = Counter(chain.from_iterable(once))
        for raw, count in seen.items():
            if count > 1:
                for concept in self[raw].concepts:
                    counts[concept] += count
        return counts

    @property
    def marked(self) -> set[str]:
        """The concepts that may be more than words; all others are words."""
        return self._names | self._exact.keys()

    def kind(self, concept: str) -> Kind:
        """What a concept is. A name that is also written small is a word."""
        if concept in self._names and concept not in self and concept not in self._exact:
            return Kind.NAME
        return self._exact.get(concept, Kind.WORD)


def understand(raw: str) -> Chunk:
    """What one run of characters says."""
    core = raw if raw.isalnum() else _core(raw)
    if not core:
        return MARK
    if not core.isascii() and UNSPACED.search(core):
        return _understand_unspaced(raw, core)
    setting = _SETTING.match(core) if "=" in core else None
    if setting:
        return understand(setting[2])._replace(core=core)
    if len(core) > _LONGEST and not _ADDRESS.match(core[:_LONGEST]):
        return MARK
    return _understand_word(core)


def _understand_word(core: str) -> Chunk:
    kind = _kind(core)
    if kind is Kind.PLACE and "{" in core and "}" not in core:
        core = core[: core.index("{")]  # the folder of several files
    lower = core.lower()
    found = of_word(lower)
    if kind > Kind.NAME:
        return Chunk(kind, core, (lower,), (core,), found)
    if found & Cue.NUMBER:
        return Chunk(Kind.COUNT, core, (lower,), (core,), found)
    words = (lower,) if lower.isalpha() else _WORD.findall(lower)
    concepts = tuple(
        concept for concept in map(_concept, words) if not of_word(concept) & Cue.COMMON
    )
    if not concepts:
        return Chunk(Kind.WORD, core, cues=found)
    return Chunk(kind, core, concepts, (core,) if kind is Kind.NAME else (), found)


def _core(raw: str) -> str:
    if raw.endswith("()") or (raw.startswith("--") and raw[2:3].isalpha()):
        return raw.rstrip(",;:.!?`*\"'").lstrip("`*\"'(")
    return raw.strip(EDGES)


def _kind(core: str) -> Kind:
    if core.isalpha():
        return _kind_of_word(core)
    if _ADDRESS.match(core) or (_PATH.match(core) and not _ABBREVIATION.match(core)):
        return Kind.PLACE
    if _IDENTIFIER.search(core):
        return Kind.IDENTIFIER
    if _DIGIT.search(core):
        return Kind.IDENTIFIER if core[0].isalpha() else Kind.NUMBER
    return Kind.NAME if core[0].isupper() and _WORD.search(core) else Kind.WORD


def _kind_of_word(word: str) -> Kind:
    if not word[0].isupper() or len(word) == 1:
        has_hump = word.isascii() and not word.islower() and len(word) > 1
        return Kind.IDENTIFIER if has_hump else Kind.WORD
    if word.isascii() and not word[1:].islower():
        return Kind.ACRONYM if word.isupper() else Kind.IDENTIFIER
    return Kind.NAME


def _concept(word: str) -> str:
    """One spelling for a word and its plainest variants."""
    if not word.isalpha():
        word = _CLITIC.sub("", word)
    if len(word) > _SHORTEST_PLURAL and word[-1] == "s" and word[-2] != "s":
        return word[:-1]
    return word


_TELLING_PAIRS = frozenset(PAIRS)
_COMMON_PAIRS = frozenset(pair for pair, cue in PAIRS.items() if cue & Cue.COMMON)


def _understand_unspaced(raw: str, core: str) -> Chunk:
    concepts: list[str] = []
    items = [found.strip() for found in _AMOUNT.findall(core)] if _DIGIT.search(core) else []
    items += _QUOTED.findall(raw)
    found = of_unspaced(raw)
    for run in _RUN.findall(core):
        if UNSPACED.match(run):
            pairs = list(map(add, run, run[1:]))
            known = _TELLING_PAIRS.intersection(pairs)
            for pair in known:
                found |= PAIRS[pair]
            common = _COMMON_PAIRS & known if known else known
            concepts += [pair for pair in pairs if pair not in common] if common else pairs
            continue
        inner = understand(run)
        concepts += inner.concepts
        if inner.kind >= Kind.NAME and not inner.core.isdigit():
            items.append(inner.core)
    concepts += [item.lower() for item in items]
    return Chunk(Kind.WORD, core, tuple(concepts), tuple(items), found & ~Cue.COMMON)
