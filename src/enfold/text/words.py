"""Words: the terms of a text for the search index, and the phrases of a query.

Both database engines get their terms from here, so both find the same messages. A word is a run of
letters, digits and marks, without case and accents. Scripts that are written without spaces, or
whose words take endings, are indexed as overlapping pairs of characters, because the engines' own
tokenizers do not find a word of two characters in them. A name in camel case is one word, and its
parts are indexed too.

Each term has one place in the text, so a phrase is a run of terms. A run of n characters of such a
script gives n terms: its pairs, and its last character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from unicodedata import category, normalize

UNSPACED_LETTERS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005\u3040-\u30ff"
    "\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Letters of scripts without spaces between words (Chinese, Japanese, Thai, Khmer …), as ranges
for a regular expression."""
UNSPACED_MARKS = "\u3000-\u303f\uff00-\uffef"
"""The punctuation of these scripts."""
UNSPACED = re.compile(f"[{UNSPACED_LETTERS}]")

STOPS = ".!?\u2026\u3002\uff01\uff1f\uff61\u061f\u06d4\u0964"
"""End a sentence; includes the ideographic, full-width, Arabic and Devanagari marks."""
UNSPACED_STOPS = "\u3002\uff01\uff1f\uff61"
"""End a sentence in a script without spaces, so no space follows."""
QUESTION_MARKS = "?\uff1f\u061f"
COLONS = (":", "\uff1a")
SEMICOLONS = ";\u061b"
COMMAS = ",\u060c"
UNSPACED_PAUSES = "\uff0c\uff1b\u3001"
"""Full-width comma and semicolon, and the enumeration comma."""
QUOTES = "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb\u2039\u203a"
OPENING_QUOTES = "\u300c\u300e\u300a\u3010\u201c"
CLOSING_QUOTES = "\u300d\u300f\u300b\u3011\u201d"
"""East Asian quotation and title marks, in the order of their opening marks."""
UNSPACED_CLOSING = f"{CLOSING_QUOTES}\uff09"
UNSPACED_ENDS = tuple(f"{UNSPACED_STOPS}{UNSPACED_PAUSES}{UNSPACED_CLOSING}")
"""No space follows one of these."""
PAUSES = tuple(f"{STOPS}{COMMAS}{SEMICOLONS}{UNSPACED_PAUSES}{''.join(COLONS)}")
"""Text continues after one of these without further punctuation."""
EDGES = (
    f"{STOPS}{QUOTES}{OPENING_QUOTES}{CLOSING_QUOTES}{COMMAS}{SEMICOLONS}{UNSPACED_PAUSES}"
    f"{''.join(COLONS)}`()[]{{}}<>*_|~=+\uff08\uff09\u2014\u2013-"
)
"""Punctuation around a word that is not part of it."""


LONGEST_TERM = 64
"""Characters of a word that are indexed."""
LONGEST_PHRASE = 32
"""Terms of a phrase; a longer phrase is searched for as several that overlap."""
_PIECE = 4_096
"""Characters of a text that are searched for words in one step."""
MOST_PHRASES = 64
"""Phrases of one query; further phrases are ignored."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")
_ASCII_TERMS = bytes(
    ord(chr(code).lower()) if chr(code).isascii() and chr(code).isalnum() else ord(" ")
    for code in range(256)
)
"""For each byte of ASCII text the small letter or digit, or a space."""
_CANDIDATE = re.compile(r"[A-Za-z0-9\x80-\U0010ffff]+")
"""A possible word. Non-ASCII ones are examined more closely, which is slower."""
_WORD = re.compile(r"\w+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HAS_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z][A-Z][a-z]")
_QUOTED = re.compile(r'"([^"]*)"?|([^"\s]+)')
_MARKED = re.compile("[\x80-\u06ff\u1e00-\u1fff]")
"""Letters and marks of Latin, Greek, Cyrillic, Armenian, Hebrew and Arabic, in which a mark may be
omitted. In other scripts a mark makes another letter."""
_CLITIC = re.compile(r"(?<=\w)['’](?:s|m|d|t|re|ve|ll)\b", re.IGNORECASE)
"""English endings after an apostrophe."""
_NO_DECOMPOSITION = str.maketrans("đłøıħŧ", "dloiht")

_PAIRED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # Japanese syllables
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
    "\uac00-\ud7a3"  # Korean
)
_PAIRED_RUN = re.compile(f"([{_PAIRED}]+)")
_IS_PAIRED = re.compile(f"[{_PAIRED}]")

_WITH_MARKS = (
    *(range(0x300, 0x2100), range(0x2C00, 0x3100), range(0xA600, 0xAC00), range(0xFB00, 0x10400)),
    *(range(0x10A00, 0x12000), range(0x13400, 0x13500), range(0x16100, 0x17000)),
    *(range(0x1BC00, 0x1BD00), range(0x1CF00, 0x1F000), range(0xE0100, 0xE01F0)),
)
"""The parts of Unicode that have marks. The others are large: Chinese, Korean, hieroglyphs."""
_MAY_HAVE_MARKS = re.compile(
    f"[{''.join(f'{chr(codes.start)}-{chr(codes.stop - 1)}' for codes in _WITH_MARKS)}]"
)


class Term(NamedTuple):
    """A word or a pair of characters, and its place in the text."""

    text: str
    start: int
    end: int


class Phrase(NamedTuple):
    """Terms in a row."""

    terms: tuple[str, ...]
    prefix: bool = False
    """True if the last term may continue: a single character is the beginning of a pair."""


def storable(text: str) -> str:
    """Return the text without U+0000 and lone surrogates, which a database cannot store."""
    return _UNSTORABLE.sub("\ufffd", text)


def occurrences(text: str, part: str) -> Iterator[int]:
    """Yield each place at which a part begins in a text; places may overlap."""
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + 1)


def is_storable(text: str) -> bool:
    """Return True if a database can store the text as it is."""
    return not _UNSTORABLE.search(text)


def terms_of(text: str) -> Iterator[Term]:
    """Yield the terms of a text, in order."""
    for at, piece in _pieces(text, _CANDIDATE):
        for match in _CANDIDATE.finditer(piece):
            candidate, start = match[0], at + match.start()
            if candidate.isascii():
                yield Term(candidate.lower()[:LONGEST_TERM], start, at + match.end())
                continue
            yield from _terms_of_candidate(candidate, start)


def texts_of_terms(text: str) -> list[str]:
    """Return the terms of a text without their places, which is faster."""
    if len(text) <= _PIECE and text.isascii():  # nearly all texts
        return _terms_of_ascii(text)
    texts: list[str] = []
    for _, piece in _pieces(text, _CANDIDATE):
        if piece.isascii():
            texts += _terms_of_ascii(piece)
            continue
        for candidate in _CANDIDATE.findall(piece):
            if candidate.isascii():
                texts.append(candidate.lower()[:LONGEST_TERM])
            else:
                _add_texts_of(candidate, texts)
    return texts


def _terms_of_ascii(text: str) -> list[str]:
    """Return the terms of an ASCII text, several times as fast as by a regular expression."""
    spaced = text.encode().translate(_ASCII_TERMS).decode()
    if _has_long_word(spaced):
        return [word[:LONGEST_TERM] for word in spaced.split()]
    return spaced.split()


def has_long_word(text: str) -> bool:
    """Return True if an ASCII text has a word that is longer than a term."""
    return _has_long_word(text.encode().translate(_ASCII_TERMS).decode())


def _has_long_word(spaced: str) -> bool:
    """Return True if a text of words and spaces has a word that is longer than a term."""
    end = len(spaced)
    while end > LONGEST_TERM:
        # A longer word has no space in this many characters and one more.
        end = spaced.find(" ", end - LONGEST_TERM - 1, end)
        if end < 0:
            return True
    return False


def _add_texts_of(candidate: str, texts: list[str]) -> None:
    """Add the terms of a candidate that is not ASCII: the texts of `_terms_of_candidate`."""
    for _, piece in _pieces(candidate, _unicode_word()):
        for word in _pattern_for(piece).findall(piece):
            for folded in _unicode_word().findall(fold(word)):
                for run in _PAIRED_RUN.split(folded):
                    if _IS_PAIRED.match(run):
                        texts += [run[at : at + 2] for at in range(len(run))]
                    elif run:
                        texts.append(run[:LONGEST_TERM])


def _pieces(text: str, word: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield a long text in pieces that end between words, each with its place.

    A search in a long text holds the interpreter's lock until its end, so that no other thread
    could run.
    """
    start = 0
    while len(text) - start > _PIECE:
        end = limit = start + _PIECE
        while end == limit and (found := word.match(text, end, limit := end + _PIECE)):
            end = found.end()
        yield start, text[start:end]
        start = end
    yield start, text[start:] if start else text


def parts_of(text: str) -> set[str]:
    """Return the parts of names in camel case, in lower case."""
    return {
        part.lower()[:LONGEST_TERM]
        for _, piece in _pieces(text, _ASCII_WORD)
        if _HAS_CAMEL.search(piece)
        for word in _ASCII_WORD.findall(piece)
        if not (word.islower() or word.isupper())
        for part in _camel_parts(word)
    }


def phrases_of(query: str) -> list[Phrase]:
    """Return the phrases of a query: each word, and each text in double quotes.

    A word such as `foo_bar.py` is a phrase. A message must contain all phrases.
    """
    phrases: dict[Phrase, None] = {}
    for match in _QUOTED.finditer(storable(query)):
        for phrase in _phrases_in(match[1] or match[2] or ""):
            phrases[phrase] = None
            if len(phrases) == MOST_PHRASES:
                return list(phrases)
    return list(phrases)


def without_clitics(text: str) -> str:
    """Return the text without English endings after an apostrophe, such as `'s` and `'ll`."""
    return _CLITIC.sub("", text)


def fold(word: str) -> str:
    """Return the word without case and, where they may be omitted, accents."""
    folded = normalize("NFKC", word).casefold()
    if folded.isascii():
        return folded
    return _MARKED.sub(lambda match: _without_marks(match[0]), normalize("NFC", folded))


def _terms_of_candidate(candidate: str, start: int) -> Iterator[Term]:
    for offset, run in _pieces(candidate, _unicode_word()):
        for word in _pattern_for(run).finditer(run):
            first, last = start + offset + word.start(), start + offset + word.end()
            yield from _terms_of_word(word[0], first, last)


def _terms_of_word(word: str, start: int, end: int) -> Iterator[Term]:
    # Folding can add characters that are not part of a word: ½ becomes three characters.
    for folded in _unicode_word().findall(fold(word)):
        for run in _PAIRED_RUN.split(folded):
            yield from _terms_of_run(run, start, end)
            start = min(start + len(run), end - 1)


def _terms_of_run(run: str, start: int, end: int) -> Iterator[Term]:
    if not run:
        return
    if not _IS_PAIRED.match(run):
        yield Term(run[:LONGEST_TERM], start, min(start + len(run), end))
        return
    for at in range(len(run)):
        yield Term(run[at : at + 2], min(start + at, end - 1), min(start + at + 2, end))


def _phrases_in(text: str) -> Iterator[Phrase]:
    terms = [term.text for term in terms_of(text)]
    if not terms:
        return
    prefix = False
    if _IS_PAIRED.match(terms[-1]):
        # A query may end in the middle of a run, so its last character need not be a term.
        ends_in_pair = len(terms) > 1 and _IS_PAIRED.match(terms[-2]) and len(terms[-2]) > 1
        if ends_in_pair:
            terms.pop()
        else:
            prefix = True
    stride = LONGEST_PHRASE - 1
    for at in range(0, max(1, len(terms) - 1), stride):
        piece = tuple(terms[at : at + LONGEST_PHRASE])
        is_last = at + LONGEST_PHRASE >= len(terms)
        yield Phrase(piece, prefix=prefix and is_last)


def _camel_parts(word: str) -> list[str]:
    parts = _CAMEL.split(word)
    return parts if len(parts) > 1 else []


def _pattern_for(text: str) -> re.Pattern[str]:
    """Return the pattern for the words of a candidate.

    Without marks the shorter pattern finds the same; in a text of emoji it is much faster.
    """
    return _unicode_word() if _MAY_HAVE_MARKS.search(text) else _WORD


@cache
def _unicode_word() -> re.Pattern[str]:
    """Return a pattern for letters and digits of any script with their marks.

    It is built when the first text needs it, which takes some milliseconds.
    """
    marks = [code for codes in _WITH_MARKS for code in codes if category(chr(code))[0] == "M"]
    # As ranges: beyond the first 65,536 characters a pattern tests its single ones in turn.
    codes = set(marks)
    firsts = [code for code in marks if code - 1 not in codes]
    lasts = [code for code in marks if code + 1 not in codes]
    ranges = "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(firsts, lasts, strict=True))
    # A candidate has no underscore, so \w stands for letters and digits.
    return re.compile(f"[\\w{ranges}]+")


def _without_marks(character: str) -> str:
    letter = normalize("NFD", character)[0]
    return "" if category(letter) == "Mn" else letter.translate(_NO_DECOMPOSITION)
