"""Units: the pieces of a conversation that a summary is put together from.

A unit is a sentence, a clause of a long sentence, a list item, a line of code, a digested tool
call, or a line of the earlier summary. Its text is quoted, never reworded.
"""

from __future__ import annotations

import re
from functools import reduce
from itertools import chain
from operator import or_
from typing import NamedTuple

from enfold.messages import Role
from enfold.summaries.local import cues
from enfold.summaries.local.cues import Cue
from enfold.summaries.local.lexicon import Chunk, Kind, Lexicon
from enfold.summaries.local.punctuation import PAUSES, QUESTION_MARKS, QUOTES
from enfold.summaries.local.splitting import Form

SPEAKERS: dict[Role, str] = {"user": "User", "system": "System", "assistant": "", "tool": ""}
"""How roles are shown. The assistant's lines go unlabelled: most lines are its own."""
LAST_GENERATION = 3
"""Summaries after the first few are taken together, and with what is new."""
UNNAMED = frozenset(SPEAKERS.values())


class Item(NamedTuple):
    """Something that must be kept exactly."""

    kind: Kind
    concepts: tuple[str, ...]
    shown: str
    """As it was written: a full name, or a number with the word that says what it counts."""


class Reading(NamedTuple):
    """What a piece of text says."""

    text: str
    concepts: tuple[str, ...]
    items: tuple[Item, ...]
    cues: int
    technical: int
    """How many paths, addresses and identifiers it names."""
    plain: float
    """The share of its chunks that are words; low for code, tables and logs."""
    trimmed: bool = False
    """Whether fillers at its start were left out."""


NOTHING = Reading("", (), (), 0, 0, 1.0)


class Origin(NamedTuple):
    """Where a unit comes from."""

    message: int
    """The index of its message; negative for a line of the earlier summary."""
    speaker: str
    """As it is shown before the text; empty where it goes without saying."""
    role: Role
    section: str = ""
    """Where it stood in the earlier summary."""
    generation: int = LAST_GENERATION
    """When it came into the earlier summary: 0 for the first that was written."""


class Draft(NamedTuple):
    """A piece of a message that was not read yet."""

    text: str
    form: Form
    origin: Origin
    begins_line: bool = True
    cues: int = 0
    """What is known of it without reading."""


class Unit(NamedTuple):
    """One candidate for the summary."""

    reading: Reading
    origin: Origin
    form: Form
    place: int
    """Its number in the conversation; what stood side by side differs by one."""
    begins_line: bool = True

    @property
    def is_earlier(self) -> bool:
        """Whether it comes from the earlier summary."""
        return self.origin.message < 0


_QUESTION = re.compile(rf"[{QUESTION_MARKS}][{QUOTES})\]*_\s]*$")


_END = 8
"""Characters at the end of a sentence in which its question mark is looked for."""
_FEW_FILLERS = 2
"""Fillers with which a quotation may begin; if there are more, all are left out."""
_ENDINGS = (*PAUSES, *QUOTES, ")", "|")
"""After one of these, a capital is no sign of a name."""


def read(raws: list[str], lexicon: Lexicon, *, trim: bool = True) -> Reading:
    """What a text says, given the runs between its blanks; many fillers at its start are left out.

    A few are not: a sentence that is quoted from its beginning can be found again word for word.
    """
    chunks = list(map(lexicon.__getitem__, raws))
    start = _first_that_says_something(chunks) if trim else 0
    opening = raws[:start] if start <= _FEW_FILLERS else []
    if start:
        raws, chunks = raws[start:], chunks[start:]
    if not chunks:
        return NOTHING
    clean = " ".join(raws)
    kinds, cores, concepts, items, all_cues = zip(*chunks, strict=True)
    found = reduce(or_, all_cues)
    if found & Cue.ANCHOR:
        anchors = [core for core, own in zip(cores, all_cues, strict=True) if own & Cue.ANCHOR]
        found |= cues.of_phrases(clean, anchors)
    found = found & ~cues.OF_WORDS_ONLY | all_cues[0] & Cue.POINTER
    if _QUESTION.search(clean, len(clean) - _END):
        found |= Cue.QUESTION
    plain = kinds.count(Kind.WORD) + kinds.count(Kind.NAME)
    return Reading(
        " ".join((*opening, clean)),
        tuple(dict.fromkeys(chain.from_iterable(concepts))),
        _items(raws, chunks) if any(items) else (),
        found,
        kinds.count(Kind.IDENTIFIER) + kinds.count(Kind.PLACE),
        plain / len(kinds),
        start > len(opening),
    )


def _first_that_says_something(chunks: list[Chunk]) -> int:
    for index, chunk in enumerate(chunks):
        if chunk.kind is not Kind.MARK and not chunk.cues & Cue.FILLER:
            return index
    return len(chunks)


def _items(raws: list[str], chunks: list[Chunk]) -> tuple[Item, ...]:
    """The exact items; a single name where a sentence may begin is taken for a word."""
    items: list[Item] = []
    end_of_name = 0
    for index in [index for index, chunk in enumerate(chunks) if chunk.items]:
        chunk = chunks[index]
        if chunk.kind is Kind.NAME:
            if index < end_of_name:
                continue
            end_of_name = _end_of_name(raws, chunks, index)
            if end_of_name > index + 1 or not _begins_anew(raws, chunks, index):
                items.append(_whole_name(chunks[index:end_of_name]))
        elif chunk.kind is Kind.NUMBER or chunk.kind is Kind.COUNT:
            items.append(Item(chunk.kind, chunk.concepts, _with_its_word(chunks, index)))
        else:
            kind = Kind.NUMBER if chunk.kind is Kind.WORD else chunk.kind
            items += [Item(kind, (item.lower(),), item) for item in chunk.items]
    return tuple(items)


def _begins_anew(raws: list[str], chunks: list[Chunk], index: int) -> bool:
    return not index or chunks[index - 1].kind is Kind.MARK or raws[index - 1].endswith(_ENDINGS)


def _end_of_name(raws: list[str], chunks: list[Chunk], start: int) -> int:
    """Where a name of several words ends: at a small letter, or at a mark between two names."""
    end = start + 1
    while (
        end < len(chunks)
        and chunks[end].kind in {Kind.NAME, Kind.ACRONYM}
        and raws[end - 1].endswith(chunks[end - 1].core)
    ):
        end += 1
    return end


def _whole_name(chunks: list[Chunk]) -> Item:
    concepts = tuple(concept for chunk in chunks for concept in chunk.concepts)
    return Item(Kind.NAME, concepts, " ".join(chunk.core for chunk in chunks))


def _with_its_word(chunks: list[Chunk], index: int) -> str:
    """A number beside the word after it (45 ms), or the one before it (port 5432)."""
    number = chunks[index].core
    after = chunks[index + 1] if index + 1 < len(chunks) else None
    if after and after.kind in {Kind.WORD, Kind.NAME, Kind.ACRONYM} and after.concepts:
        return f"{number} {after.core}"
    before = chunks[index - 1] if index else None
    return f"{before.core} {number}" if before and before.concepts else number
