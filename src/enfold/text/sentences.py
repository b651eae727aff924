"""Sentences: a text divided into sentences, list items, headings, listing lines and code blocks.

The title of a conversation is its first typed sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import IntEnum
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
    UNSPACED_PAUSES,
    UNSPACED_STOPS,
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
_MIN_PHRASE = 24
_MAX_PIECE = 600
"""Characters of a piece, whether it is a whole sentence or not."""
_ABBREVIATION = 8
"""Characters of an abbreviation with its stop and the spaces after it."""
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
