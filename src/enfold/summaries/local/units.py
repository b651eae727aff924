"""Units: the pieces of a conversation that a summary is put together from.

A unit is a sentence, a clause of a long sentence, a list item, a line of code, a digested tool
call, or a line of the earlier summary. Its text is quoted, never reworded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from operator import or_
from typing import NamedTuple

from enfold.jsontext import dump_text
from enfold.messages import Attachment, Data, Message, Role, Text, ToolCall, ToolResult
from enfold.summaries.local import digests
from enfold.summaries.local import lexicon as cues
from enfold.summaries.local.digests import Digest
from enfold.summaries.local.lexicon import PAUSES, QUESTION_MARKS, QUOTES, Chunk, Cue, Kind, Lexicon
from enfold.summaries.local.sentences import Form, pieces

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


REPLACED = 0.0
"""The factor of a statement that was surely replaced. It would mislead; what else it named may
still go into the index."""
PERHAPS_REPLACED = 0.6
"""For one that shares a single word with the correction."""
_TOPIC = 6
"""A word in more units than this does not tell what a sentence is about."""


def replaced(units: Sequence[Unit], lexicon: Lexicon) -> dict[int, float]:
    """The indexes of the units that later ones replace, each with its factor."""
    corrections = [i for i, unit in enumerate(units) if _corrects(unit)]
    topics: dict[str, list[int]] = {
        concept: []
        for index in corrections
        for concept in units[index].reading.concepts
        if lexicon.kind(concept) <= Kind.NAME
    }
    for index, unit in enumerate(units if topics else ()):
        for concept in topics.keys() & unit.reading.concepts:
            topics[concept].append(index)
    factors: dict[int, float] = {}
    for index in corrections:
        for other, shared in _about_the_same(index, units, topics).items():
            factor = _factor(units[other], units[index], shared)
            factors[other] = min(factor, factors.get(other, 1.0))
    return {index: factor for index, factor in factors.items() if factor < 1}


def _corrects(unit: Unit) -> bool:
    """A correction in the earlier summary has had its effect when it was new."""
    return bool(unit.reading.cues & Cue.CORRECTION) and not unit.is_earlier


def _about_the_same(
    index: int, units: Sequence[Unit], topics: dict[str, list[int]]
) -> Counter[int]:
    """Earlier statements, with how many telling words they share with this one."""
    new = units[index]
    found = (topics.get(concept, []) for concept in new.reading.concepts)
    return Counter(
        other
        for others in found
        if len(others) <= _TOPIC
        for other in others
        if other < index and units[other].origin != new.origin
    )


def _factor(old: Unit, new: Unit, shared: int) -> float:
    """What is left of the old statement's worth beside the new one."""
    before, now = _values(old), _values(new)
    set_now = {now[concept] for concept in now.keys() - before.keys()}
    changed = set_now & set(before.values())
    if old.form is Form.TOOL or not changed:
        return 1.0
    if old.reading.cues & Cue.CORRECTION and shared < len(old.reading.concepts) / 2:
        return 1.0  # it corrects something else
    if shared == 1 and not before.keys() & now.keys():
        return PERHAPS_REPLACED
    return REPLACED


def _values(unit: Unit) -> dict[str, Kind]:
    return {concept: item.kind for item in unit.reading.items for concept in item.concepts}


_PASSED_ON = Cue.DECISION | Cue.CORRECTION | Cue.OPEN | Cue.NEXT
_CODE_LENGTH = 160
_FEW_WORDS = 0.4
"""The share of words below which a line is no sentence."""
_SHORT = 30
"""Characters up to which a line is taken for a sentence anyway."""


def draft_conversation(messages: Sequence[Message]) -> list[Draft]:
    """The pieces of all the messages, in order, the digested tool calls last."""
    drafts: list[Draft] = []
    calls: dict[str, ToolCall] = {}
    told: list[Digest] = []
    for index, message in enumerate(messages):
        origin = Origin(index, message.name or SPEAKERS[message.role], message.role)
        for part in message.parts:
            match part:
                case Text(text):
                    drafts += _drafts(text, origin)
                case ToolCall(call_id):
                    calls[call_id] = part
                case ToolResult(call_id):
                    told.append(digests.digest(calls.pop(call_id, None), part, index))
                case Attachment(name=name) if name:
                    drafts.append(Draft(f"[{name}]", Form.LISTING, origin))
                case Data(value):
                    drafts += _drafts(dump_text(value), origin)
    told += _pending(calls.values(), len(messages) - 1)
    for digest in digests.gather(told):
        origin = Origin(digest.message, "", "tool")
        drafts.append(Draft(digest.text, Form.TOOL, origin, cues=digest.cues))
    return drafts


def read_drafts(
    drafts: Sequence[Draft], texts: Sequence[list[str]], chosen: Iterable[int], lexicon: Lexicon
) -> list[Unit]:
    """The chosen drafts as units; `texts` are the runs between the blanks of each draft."""
    units: list[Unit] = []
    for place in chosen:
        reading = read(texts[place], lexicon)
        if not reading.text:
            continue
        draft = drafts[place]
        cues = draft.cues | _said_before(drafts, texts, place, lexicon)
        if cues:
            reading = reading._replace(cues=reading.cues | cues)
        form = draft.form
        if form is Form.SENTENCE and reading.plain < _FEW_WORDS and len(reading.text) > _SHORT:
            form = Form.LISTING
        units.append(Unit(reading, draft.origin, form, place, draft.begins_line))
    return units


def _said_before(
    drafts: Sequence[Draft], texts: Sequence[list[str]], place: int, lexicon: Lexicon
) -> int:
    """The cues of a sentence that only announces this one, such as "Agreed."."""
    before = place - 1
    if before < 0 or drafts[before].origin is not drafts[place].origin:
        return 0
    if len(drafts[before].text) > _SHORT:
        return 0
    reading = read(texts[before], lexicon)
    return reading.cues & _PASSED_ON if len(reading.concepts) <= 1 else 0


def _drafts(text: str, origin: Origin) -> list[Draft]:
    drafts: list[Draft] = []
    for form, piece, begins_line in pieces(text):
        if form is Form.CODE:
            drafts += [Draft(lines, form, origin) for lines in _code_lines(piece)]
        else:
            drafts.append(Draft(piece, form, origin, begins_line))
    return drafts


def _code_lines(code: str) -> Iterator[str]:
    """A block of code in runs of lines, each written in one."""
    held = ""
    for line in code.splitlines():
        stripped = digests.shorten(line, _CODE_LENGTH)
        if held and len(held) + len(stripped) > _CODE_LENGTH:
            yield f"`{held}`"
            held = ""
        if stripped:
            held = f"{held} ⏎ {stripped}" if held else stripped
    if held:
        yield f"`{held}`"


def _pending(calls: Iterable[ToolCall], last: int) -> Iterator[Digest]:
    for call in calls:
        target = digests.describe_arguments(call.arguments)
        yield Digest(last, call.name, target, digests.PENDING, failed=False)
