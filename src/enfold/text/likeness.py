"""Likeness: how much the wording of a sentence is that of rules.

The cues of `rules.toml` know listed words. This measure knows none: it adds the weights of pieces
of words and of neighbouring words, which `benchmarks/train_rules.py` learns from sentences in many
languages. A positive likeness is that of a rule.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from struct import iter_unpack
from typing import NamedTuple
from zlib import crc32

from enfold.text.words import UNSPACED

WEIGHTS = "likeness.bin"
BUCKETS = 1 << 14
"""Pieces share this many weights."""
SCALE = 1 / 16
"""The value of one step of a stored weight."""

_DIGIT = re.compile(r"\d")
_PIECES = (2, 3, 4)
"""Letters of the pieces of a word."""
_UNSPACED_PIECES = (1, 2, 3, 4)


class _Word(NamedTuple):
    weight: float
    """The sum of the weights of the word and of its pieces."""
    pieces: int
    data: bytes
    before: int
    """The checksum of the word and a space, from which that of a pair goes on."""


def likeness(tokens: Sequence[str]) -> float:
    """Return how much the words of a sentence are those of a rule: above 0 more than not."""
    if not tokens:
        return 0.0
    weights = _weights()
    words = [_word(token) for token in tokens]
    total, number = 0.0, 0
    for word in words:
        total += word[0]
        number += word[1]
    total += sum([weights[bucket] for bucket in _order_buckets(words)])
    return total / math.sqrt(number + len(tokens) + 1) + weights[0]


def buckets(tokens: Sequence[str]) -> list[int]:
    """Return the weights that the words of a sentence use. The first one is that of all."""
    return [
        *(bucket for token in tokens for bucket in _word_buckets(token)),
        *_order_buckets([_word(token) for token in tokens]),
    ]


def _order_buckets(words: Sequence[_Word]) -> list[int]:
    """Return the weights of the first word, of neighbours and of the last word."""
    pairs = [crc32(second[2], first[3]) for first, second in pairwise(words)]
    first, last = crc32(words[0].data, _FIRST), crc32(b"$", crc32(words[-1].data))
    return [1 + found % (BUCKETS - 1) for found in (first, *pairs, last)]


_FIRST = crc32(b"^")


def _word_buckets(word: str) -> list[int]:
    """Return the weights of a word and of its pieces."""
    plain = word if word.isalpha() else _DIGIT.sub("0", word)
    is_unspaced = not plain.isascii() and UNSPACED.match(plain) is not None
    sizes = _UNSPACED_PIECES if is_unspaced else _PIECES
    plain = plain if is_unspaced else f" {plain} "
    data = _encoded(plain)
    whole = [] if is_unspaced else [b"=" + data]
    places = [(start, start + size) for size in sizes for start in range(len(plain) - size + 1)]
    if len(data) == len(plain):
        found = [data[start:end] for start, end in places]
    else:
        found = [_encoded(plain[start:end]) for start, end in places]
    # Bucket 0 has the weight of all sentences.
    return [1 + crc32(piece) % (BUCKETS - 1) for piece in (*whole, *found)]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@lru_cache(maxsize=4_096)
def _word(word: str) -> _Word:
    weights = _weights()
    found = [weights[bucket] for bucket in _word_buckets(word)]
    data = _encoded(word)
    return _Word(sum(found), len(found), data, crc32(b" ", crc32(data)))


@cache
def _weights() -> tuple[float, ...]:
    stored = files(__package__).joinpath(WEIGHTS).read_bytes()
    return tuple(step * SCALE for (step,) in iter_unpack("b", stored))
