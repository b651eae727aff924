"""Checks of summaries: is a text a summary of its input, and mending of one that is.

`fault_of` needs no list of phrases and no list of languages. It compares the text with the
vocabulary of its input. A word that is rare in the input and occurs in the text is evidence that
the text is about the input; a refusal, a greeting or an instruction to the reader has little of it.
A refusal that names the request shares the words of one sentence, so the evidence of the sentence
that has most is not counted: a summary is about more than one.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import NamedTuple

from enfold.errors import NoSummaryError
from enfold.summaries.prompts import prompt_texts
from enfold.summaries.request import SummaryRequest
from enfold.text.items import texts
from enfold.text.sentences import whole_sentences
from enfold.text.words import LONGEST_TERM, has_long_word, texts_of_terms
from enfold.tokens import Tokenizer

# Measured by `benchmarks/summaries.py refusals` on 95 recorded conversations: of 190 summaries by
# the built-in summarizer none is refused; of 1,710 refusals and instructions in four languages that
# quote seven words of the conversation 89 %, of 190 replies 26 %. Of people's answers to single
# questions about meetings about 3 % are refused.

_SHORT = 0.08
"""A text of fewer words than this share of its limit, or of its input if that is less, is short."""
_MIN_EVIDENCE = 3.0
_MIN_EVIDENCE_IF_SHORT = 3.5
"""The least sum of the rarities, 0 to 1, of words that the text shares with its input.

The sentence of the input that has most of these words does not count."""
_MAX_EVIDENCE_SHARE = 0.0175
"""No more is required than this share of all the evidence that the input has."""
_MIN_INPUT_EVIDENCE = 12.0
"""Of an input with less evidence, which is a dozen rare words, a summary shares one at least."""
_LEAST_INPUT_EVIDENCE = 3.0
"""An input with less evidence, which is three rare words, gives no measure."""
_MIN_COVERAGE = 0.3
_MIN_COVERAGE_IF_SHORT = 0.45
"""The least share of the words, weighted by rarity, that are words of the input."""
_FREQUENT = 80
"""The most frequent words of the input that are taken as the common words of its language."""
_SAME_LANGUAGE = 0.08
"""The share of these among the words of a text in the same language, at least.

A summary in another language shares names, numbers and identifiers with its input and few other
words, so its coverage says nothing."""
_SAMPLES = (20_000, 200_000, 2_000_000)
"""Characters. Of a longer input every n-th message is read, a few of them first. In the others
only words of the answer are looked for, if the last sample does not have them."""
_VARIETY = 0.6
"""A text of n words has at least n to this power different words."""
_LONG_SENTENCE = 40
"""Words. A longer sentence, which may be a text without punctuation, counts as several."""
_EXCERPT = 2 / 3
"""The least share of a text's words that are in one sentence of the input if it is an excerpt."""
_FEW_WORDS = 12
"""Words of a text that is too short to judge by the variety of its words."""
_STEM = 5
"""Letters. Longer words with the same beginning count as the same word in another form."""

_BORDERS = {code: " " for code in range(128) if not chr(code).isalnum()}
"""Characters of ASCII between terms, for `str.translate`."""
_BLOCK = 1 << 16
"""Characters that are searched for words at once."""
_WORDS_AHEAD = 2
"""Words that are looked for at once where they are expected in order."""
_PIECE = re.compile(r"[^\n.!?。！？]+")  # noqa: RUF001 - other scripts' full stops
_PIECE_TERMS = {
    code: chr(code).lower() if chr(code).isalnum() else "\n" if chr(code) in "\n.!?" else " "
    for code in range(128)
}
"""For each character of an ASCII text the small letter or digit, a line feed between pieces, or a
space."""


class _Vocabulary(NamedTuple):
    """The words of a summary's input, and those that a text shares with each sentence of it."""

    pieces: int
    """The number of lines and sentences."""
    counts: Counter[str]
    """The number of pieces that have a word."""
    stems: Counter[str]
    """The same for the beginnings of long words."""
    shared: frozenset[frozenset[str]]
    """The beginnings of the text's words that a sentence has."""

    @classmethod
    def of(cls, source: Iterable[str], distinct: Collection[str]) -> _Vocabulary:
        wanted = {word[:_STEM] for word in distinct}
        pieces = 0
        counts, stem_counts = Counter[str](), Counter[str]()
        shared: set[frozenset[str]] = set()
        for text in source:
            words, stems = list[str](), list[str]()
            for terms in _terms_of_pieces(text):
                pieces += 1
                own = set(terms)
                words += own
                own_stems = {word[:_STEM] for word in own if len(word) > _STEM}
                stems += own_stems
                if len(terms) <= _LONG_SENTENCE:  # a word that is not long is its own stem
                    shared.add(frozenset(wanted & own | wanted & own_stems))
                    continue
                for start in range(0, len(terms), _LONG_SENTENCE):
                    part = terms[start : start + _LONG_SENTENCE]
                    shared.add(frozenset(wanted.intersection([word[:_STEM] for word in part])))
            counts.update(words)
            stem_counts.update(stems)
        return cls(pieces, counts, stem_counts, frozenset(shared))

    def rarity(self, word: str) -> float | None:
        """Return the rarity of a word from 0, in every piece, to 1; None if it does not occur."""
        count = self.counts.get(word) or (self.stems.get(word[:_STEM]) if len(word) > _STEM else 0)
        return self._rarity(count) if count else None

    def _rarity(self, count: int) -> float:
        return math.log((self.pieces + 1) / min(count, self.pieces)) / math.log(self.pieces + 1)

    def total_evidence(self, ignored: Container[str]) -> float:
        """Return the sum of the rarities of all words but numbers and those to ignore."""
        words = self.counts.items()
        counts = Counter(
            count for word, count in words if word not in ignored and not word.isdigit()
        )
        return sum(self._rarity(count) * number for count, number in counts.items())

    def evidence(self, rarities: Mapping[str, float], words: Collection[str]) -> float:
        """Return the sum of the rarities of shared words, without the sentence that has most.

        Of a text that consists of such a sentence all words count.
        """
        total = sum(rarities.values())
        longest = max(map(len, self.shared), default=0)
        if longest >= _EXCERPT * len({word[:_STEM] for word in words}):
            return total
        by_stem: defaultdict[str, float] = defaultdict(float)
        for word, rarity in rarities.items():
            by_stem[word[:_STEM]] += rarity
        return total - max(sum(map(by_stem.__getitem__, each)) for each in self.shared)


def _terms_of_pieces(text: str) -> Iterator[list[str]]:
    """Yield the terms of each line and sentence that has some."""
    if text.isascii() and not has_long_word(text):
        pieces = text.translate(_PIECE_TERMS).split("\n")
        return filter(None, map(str.split, pieces))
    return filter(None, map(texts_of_terms, _PIECE.findall(text)))


def fault_of(text: str, request: SummaryRequest) -> str:
    """Return the reason why a text is no summary of the request's input; empty if it is one."""
    words = texts_of_terms(text)
    distinct = set(words)
    if not words:
        return "the answer has no words"
    if len(words) >= _FEW_WORDS and len(distinct) < len(words) ** _VARIETY:
        return f"the answer repeats {len(distinct):,} words over {len(words):,}"
    given = (*texts(request.messages), *filter(None, (request.previous,)))
    length = sum(map(len, given))
    fault = ""
    # Roles alternate in most conversations; an odd step reads both.
    steps = [length // sample | 1 for sample in _SAMPLES]
    for step in dict.fromkeys(steps):
        source = _Vocabulary.of(given[::step], distinct)
        total = source.total_evidence(_prompt_words(request.prompt))
        fault = _fault_against(words, request, source, total)
        if fault and 1 < step == steps[-1]:
            # Words that only the other messages have can only speak for the text.
            missing = [word for word in dict.fromkeys(words) if source.rarity(word) is None]
            source.counts.update(_occurring(missing, given))
            total = source.total_evidence(_prompt_words(request.prompt))
            fault = _fault_against(words, request, source, total)
        if not fault and total >= _MIN_INPUT_EVIDENCE:
            break
    return fault


def _occurring(words: Iterable[str], given: Sequence[str]) -> set[str]:
    """Return the words that occur in a text; each is looked for until it is found.

    A summary usually follows the order of its input. So in a first pass the words are looked for
    in their order, each from where the one before it was found.
    """
    found, left = set[str](), {f" {word} ": word for word in words}
    has_long = any(len(word) >= LONGEST_TERM for word in left.values())
    if not has_long:
        for line in map(_line_of, _blocks(filter(str.isascii, given))):
            while key := next((key for key in islice(left, _WORDS_AHEAD) if key in line), ""):
                found.add(left.pop(key))
    if not left:
        return found
    others = (text for text in given if not text.isascii())
    for text in chain(_blocks(filter(str.isascii, given)), others):
        lower = text.lower()
        if lower.isascii() and not has_long:
            line = _line_of(lower)
        elif any(word in lower for word in left.values()):
            line = f" {' '.join(texts_of_terms(lower))} "
        else:
            continue
        for key in [key for key in left if key in line]:
            found.add(left.pop(key))
    return found


def _line_of(text: str) -> str:
    """Return an ASCII text with spaces around each word."""
    return f" {text.lower().translate(_BORDERS)} "


def _blocks(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts, many together, to search them at once."""
    held: list[str] = []
    size = 0
    for text in texts:
        held.append(text)
        size += len(text)
        if size > _BLOCK:
            yield "\n".join(held)
            held, size = [], 0
    yield "\n".join(held)


def _fault_against(
    words: Sequence[str], request: SummaryRequest, source: _Vocabulary, total: float
) -> str:
    """Return the reason why words are no summary of an input; empty if they are one.

    `total` is the evidence that the input has.
    """
    distinct = set(words)
    ignored = _prompt_words(request.prompt)
    rarities = {word: source.rarity(word) for word in distinct}
    unknown = sum(rarity is None for rarity in rarities.values())
    found = {word: each for word, each in rarities.items() if each and word not in ignored}
    evidence = sum(found.values())
    if total < _MIN_INPUT_EVIDENCE:
        shares_nothing = not evidence and total >= _LEAST_INPUT_EVIDENCE
        return "the answer shares no word with the conversation" if shares_nothing else ""
    length = sum(source.counts.values())
    is_short = len(words) < _SHORT * min(request.max_tokens, length)
    required = _MIN_EVIDENCE_IF_SHORT if is_short else _MIN_EVIDENCE
    if source.evidence(found, distinct) < min(required, _MAX_EVIDENCE_SHARE * total):
        return "the answer has hardly anything of the conversation"
    coverage = evidence / (evidence + unknown)
    if is_short and coverage < _MIN_COVERAGE_IF_SHORT:
        return "the answer is short and not about the conversation"
    frequent = {word for word, _ in source.counts.most_common(_FREQUENT)}
    is_same_language = sum(word in frequent for word in words) >= _SAME_LANGUAGE * len(words)
    if is_same_language and coverage < _MIN_COVERAGE:
        return "the answer is not about the conversation"
    return ""


def refuse_no_summary(
    text: str, request: SummaryRequest, author: str, *, cost: float | None = 0.0
) -> None:
    """Raise `NoSummaryError` if an answer is no summary of the request's input."""
    fault = fault_of(text, request)
    if fault:
        raise NoSummaryError(f"the answer by {author} was no summary ({fault})", cost=cost)


@cache
def _prompt_words(custom: str | None) -> frozenset[str]:
    """Return the words of the prompts. A refusal repeats them, so they are no evidence."""
    return frozenset(texts_of_terms("\n".join((*prompt_texts(), custom or ""))))


_SECTION = re.compile(r"^#{1,6} ")


def shorten(text: str, limit: int, tokenizer: Tokenizer) -> str:
    """Return the text with at most `limit` tokens, without its last sentences or list items.

    They are taken from the end of the longest section, so that each section keeps its beginning.
    The text is empty if not even one sentence fits.
    """
    lines = [whole_sentences(line) for line in text.splitlines()]
    sections = _sections(text.splitlines())
    while (size := tokenizer.count(_joined(lines))) > limit:
        surplus = size - limit
        sizes = [
            sum(len(piece) for index in section for piece in lines[index]) for section in sections
        ]
        longest = max(range(len(sections)), key=sizes.__getitem__, default=0)
        if not sections or not sizes[longest]:
            return ""
        _drop_last(lines, sections[longest], surplus, tokenizer)
    return _joined(lines)


def _sections(lines: list[str]) -> list[list[int]]:
    """Return the indexes of the lines of each section, without its heading."""
    found: list[list[int]] = [[]]
    for index, line in enumerate(lines):
        if _SECTION.match(line):
            found.append([])
        else:
            found[-1].append(index)
    return [section for section in found if section]


def _drop_last(
    lines: list[list[str]], section: list[int], surplus: int, tokenizer: Tokenizer
) -> None:
    """Remove the last sentences of a section, one at least, until the surplus is gone."""
    freed = 0
    for index in reversed(section):
        while lines[index] and (not freed or freed < surplus // 4):
            freed += max(1, tokenizer.count(lines[index].pop()))


def _joined(lines: list[list[str]]) -> str:
    """Return the text without lines that lost all sentences, and headings that lost all lines."""
    kept: list[str] = []
    for pieces in lines:
        line = "".join(pieces).rstrip()
        if _SECTION.match(line) and kept and _SECTION.match(kept[-1]):
            kept.pop()
        if line or (kept and kept[-1]):
            kept.append(line)
    while kept and (not kept[-1] or _SECTION.match(kept[-1])):
        kept.pop()
    return "\n".join(kept)


MENTIONED = "Mentioned"
"""Begins the line that lists exact items without their sentences."""


def with_mentioned(text: str, items: Iterable[str]) -> str:
    """Return the summary with further items in its line of mentioned items."""
    added = ", ".join(items)
    if not added:
        return text
    lines = text.splitlines()
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].startswith(f"- {MENTIONED}: "):
            lines[index] += f", {added}"
            return "\n".join(lines)
    return f"{text.rstrip()}\n- {MENTIONED}: {added}"
