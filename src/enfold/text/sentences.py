"""Sentences: a text divided into sentences, list items, headings, listing lines and code blocks.

The title of a conversation is its first typed sentence. Cue words show what a sentence does.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import cache, lru_cache
from importlib.resources import files
from textwrap import shorten
from typing import NamedTuple

from enfold.messages import Message
from enfold.text.harness import person_text
from enfold.text.words import (
    COMMAS,
    QUOTES,
    SEMICOLONS,
    STOPS,
    UNSPACED,
    UNSPACED_CLOSING,
    UNSPACED_ENDS,
    UNSPACED_PAUSES,
    UNSPACED_STOPS,
    texts_of_terms,
)


class TextForm(IntEnum):
    """The kind of a piece of text."""

    SENTENCE = 0
    HEADING = 1
    LISTING = 2
    """A line of a log, a table, a directory or markup."""
    CODE = 3
    TOOL = 4
    """A tool call in one line."""
    ITEM = 5
    """An exact item without its sentence."""


class TextPiece(NamedTuple):
    """A part of a text that can be quoted on its own."""

    form: TextForm
    text: str
    begins_line: bool
    """True if it begins a line of the text, False if it continues one."""


LONG_SENTENCE = 120
"""Characters. A longer sentence is divided into clauses."""
_MIN_CLAUSE = 60
RUN_WORDS, _LONG_RUN = 25, 200
"""Words or characters of a run of sentences, at least, unless the line ends before."""
_MIN_PHRASE = 24
_MAX_PIECE = 600
"""Characters of a piece, whether it is a whole sentence or not."""
_ABBREVIATION = 8
"""Characters of an abbreviation with its stop and the spaces after it."""
_FEW_WORDS = 80
"""Characters that usually have a few telling words."""
_DENSITY = 3
"""A character of an unspaced script has about as much content as this many others."""

_FENCE = re.compile(
    r"^[ \t]*(```+|~~~+)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_BULLET = re.compile(r"^(?:[-*•+–]\s+|\(?\d{1,3}[.)]\s+|[a-zA-Z][.)]\s+|>\s?|\[[ xX]\]\s+)+")
_HEADING = re.compile(r"^#{1,6}\s+")
_MARKUP = ("|", "<", "{", "}")
_SENTENCE_END = re.compile(
    # A stop, a space and anything but a small letter; in scripts without spaces, the stop alone.
    rf"[{STOPS}]+[{QUOTES})\]*{UNSPACED_CLOSING}]*"
    rf"(?:\s+(?![a-z.,;:!?])|(?<=[{UNSPACED_STOPS}{UNSPACED_CLOSING}])(?=\S))"
)
_NO_SENTENCE_END = re.compile(r"(?:\b[A-Z]|\b(?:Dr|Mr|Mrs|Ms|vs|No|Nr|St|bzw|Sr|Sra))\.\s*$")
_CLAUSE_END = re.compile(
    rf"(?<=[{COMMAS}{SEMICOLONS}:])\s+|\s+[–—]\s+|\s+(?=(?:and|but|so|because|which|pero|porque|"
    r"mais|und|aber|weil|denn|mas|\u043d\u043e|\u0644\u0643\u0646)\s)"
)
_PHRASE_END = re.compile(rf"(?<=[{COMMAS}{SEMICOLONS}:]\s)|(?<=[{UNSPACED_PAUSES}])|(?=\s[–—(])")
_UNSPACED_CLAUSE_END = re.compile(rf"(?<=[{UNSPACED_PAUSES}])")


def pieces(text: str) -> list[TextPiece]:
    """Return the pieces of a text, in order."""
    found: list[TextPiece] = []
    end = 0
    if "```" in text or "~~~" in text:
        for fence in _FENCE.finditer(text):
            _add_prose(text[end : fence.start()], found)
            found.append(TextPiece(TextForm.CODE, fence[2], begins_line=True))
            end = fence.end()
    _add_prose(text[end:] if end else text, found)
    return found


def _add_prose(text: str, found: list[TextPiece]) -> None:
    for line in text.splitlines():
        bare = line.strip()
        if not bare:
            continue
        if not bare[:1].isalpha() or bare[1:2] in {".", ")"}:
            bare = _BULLET.sub("", bare)
            if bare.startswith("#") and _HEADING.match(bare):
                found.append(TextPiece(TextForm.HEADING, _HEADING.sub("", bare), begins_line=True))
                continue
            if bare.startswith(_MARKUP):
                found.append(TextPiece(TextForm.LISTING, bare[:_MAX_PIECE], begins_line=True))
                continue
        found += sentences(bare.replace("**", ""))


def sentences(line: str) -> list[TextPiece]:
    """Return the sentences of a line; long ones are divided into clauses."""
    found: list[TextPiece] = []
    for sentence in whole_sentences(line):
        _add_sentence(sentence, found)
    return found


def whole_sentences(line: str) -> list[str]:
    """Return the sentences of a line with the spaces after them; together they are the line."""
    if line.isascii() and "." not in line and "!" not in line and "?" not in line:
        return [line] if line else []
    found: list[str] = []
    start = 0
    for end in [match.end() for match in _SENTENCE_END.finditer(line)]:
        if not _NO_SENTENCE_END.search(line, max(start, end - _ABBREVIATION), end):
            found.append(line[start:end])
            start = end
    return [*found, line[start:]] if start < len(line) else found


def phrases(line: str) -> list[TextPiece]:
    """Return the smallest pieces of a line that make sense on their own."""
    found: list[TextPiece] = []
    for sentence in sentences(line):
        held = ""
        for phrase in _PHRASE_END.split(sentence.text):
            held += phrase
            density = _DENSITY if UNSPACED.search(held) else 1
            if len(held) * density >= _MIN_PHRASE:
                found.append(TextPiece(TextForm.SENTENCE, held, begins_line=not found))
                held = ""
        if held and found and len(held) < _MIN_PHRASE // _DENSITY:
            found[-1] = found[-1]._replace(text=found[-1].text + held)
        elif held:
            found.append(TextPiece(TextForm.SENTENCE, held, begins_line=not found))
    return found


def in_runs(found: Iterable[TextPiece]) -> Iterator[TextPiece]:
    """Yield the pieces; neighbouring sentences of a line are joined until they are long enough."""
    run: TextPiece | None = None
    for piece in found:
        if run is None:
            run = piece
        elif piece.begins_line or _is_run(run) or {run.form, piece.form} != {TextForm.SENTENCE}:
            yield run
            run = piece
        else:
            joint = "" if run.text.endswith(UNSPACED_ENDS) else " "
            run = run._replace(text=f"{run.text}{joint}{piece.text}")
    if run is not None:
        yield run


def _is_run(piece: TextPiece) -> bool:
    density = _DENSITY if UNSPACED.search(piece.text) else 1
    is_long = len(piece.text) * density >= _LONG_RUN
    return is_long or len(piece.text.split()) >= RUN_WORDS


def _add_sentence(sentence: str, found: list[TextPiece]) -> None:
    density = _DENSITY if not sentence.isascii() and UNSPACED.search(sentence) else 1
    if len(sentence) * density <= LONG_SENTENCE:
        found.append(TextPiece(TextForm.SENTENCE, sentence, begins_line=not found))
        return
    for clause in _clauses(sentence, density):
        for at in range(0, len(clause), _MAX_PIECE):
            found.append(
                TextPiece(TextForm.SENTENCE, clause[at : at + _MAX_PIECE], begins_line=not found)
            )


def _clauses(sentence: str, density: int) -> Iterator[str]:
    """Yield clauses that are long enough to make sense on their own."""
    boundary, joint = (_CLAUSE_END, " ") if density == 1 else (_UNSPACED_CLAUSE_END, "")
    held = ""
    for clause in boundary.split(sentence):
        held = f"{held}{joint}{clause}" if held else clause
        if len(held) * density >= _MIN_CLAUSE:
            yield held
            held = ""
    if held:
        yield held


LONGEST_TITLE = 60
"""Characters of a title."""


def title_from(messages: Iterable[Message]) -> str:
    """Return the first words that a person typed; empty if there are none."""
    typed = (person_text(message).strip() for message in messages if message.role == "user")
    return shorten_title(next(filter(None, typed), ""))


def shorten_title(text: str) -> str:
    """Return the beginning of a text as a title, on one line."""
    return shorten(text, LONGEST_TITLE, placeholder=" …")


# Cue words of several languages.


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


def corrects(text: str) -> bool:
    """Return True if a text corrects an earlier statement."""
    words = texts_of_terms(text)
    if not _correction_words().isdisjoint(words):
        return True
    anchors = _correction_anchors().intersection(words)
    found = phrase_cues(text, anchors) if anchors else 0
    if not text.isascii():
        found |= unspaced_cues(text)
        for word in words:
            found |= PAIR_CUES.get(word, 0)
    return bool(found & Cue.CORRECTION)


@cache
def _correction_words() -> frozenset[str]:
    """Return the words that correct something."""
    return frozenset(word for word, cue in _WORDS.items() if cue & Cue.CORRECTION)


@cache
def _correction_anchors() -> frozenset[str]:
    """Return the words with a phrase that corrects something."""
    return frozenset(
        word
        for word, phrases_of_word in _PHRASES.items()
        if any(cue & Cue.CORRECTION for _, cue in phrases_of_word)
    )


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


def tells(text: str, least: int) -> bool:
    """Return True if a text has that many telling words or more. Its beginning often decides."""
    beginning = text[:_FEW_WORDS].rpartition(" ")[0] if len(text) > _FEW_WORDS else ""
    if beginning and len(telling_words(beginning)) >= least:
        return True
    return len(telling_words(text)) >= least


@lru_cache(maxsize=16_384)
def _tells(word: str) -> bool:
    is_long = len(word) >= _SHORTEST or not word.isascii() or any(map(str.isdigit, word))
    return is_long and is_content_word(word)
