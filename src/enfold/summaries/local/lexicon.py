"""The lexicon: what a run of characters between blanks says, worked out once per distinct run.

Words of any language become concepts; paths, addresses, numbers, identifiers and names are exact
items as well, which a summary must keep as they are written. Scripts without blanks between words
(Chinese, Japanese, Thai) are read as overlapping pairs of characters, which needs no dictionary.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import chain
from operator import add
from typing import NamedTuple

from enfold.summaries.local import cues
from enfold.summaries.local.cues import Cue
from enfold.summaries.local.punctuation import (
    CLOSING,
    EDGES,
    OPENING,
    UNSPACED_PAUSES,
    UNSPACED_STOPS,
)


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
    found = cues.of_word(lower)
    if kind > Kind.NAME:
        return Chunk(kind, core, (lower,), (core,), found)
    if found & Cue.NUMBER:
        return Chunk(Kind.COUNT, core, (lower,), (core,), found)
    words = (lower,) if lower.isalpha() else _WORD.findall(lower)
    concepts = tuple(
        concept for concept in map(_concept, words) if not cues.of_word(concept) & Cue.COMMON
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


_TELLING_PAIRS = frozenset(cues.PAIRS)
_COMMON_PAIRS = frozenset(pair for pair, cue in cues.PAIRS.items() if cue & Cue.COMMON)


def _understand_unspaced(raw: str, core: str) -> Chunk:
    concepts: list[str] = []
    items = [found.strip() for found in _AMOUNT.findall(core)] if _DIGIT.search(core) else []
    items += _QUOTED.findall(raw)
    found = cues.of_unspaced(raw)
    for run in _RUN.findall(core):
        if UNSPACED.match(run):
            pairs = list(map(add, run, run[1:]))
            known = _TELLING_PAIRS.intersection(pairs)
            for pair in known:
                found |= cues.PAIRS[pair]
            common = _COMMON_PAIRS & known if known else known
            concepts += [pair for pair in pairs if pair not in common] if common else pairs
            continue
        inner = understand(run)
        concepts += inner.concepts
        if inner.kind >= Kind.NAME and not inner.core.isdigit():
            items.append(inner.core)
    concepts += [item.lower() for item in items]
    return Chunk(Kind.WORD, core, tuple(concepts), tuple(items), found & ~Cue.COMMON)
