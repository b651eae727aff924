"""Likeness: how much the wording of a sentence is that of rules.

The cues of `rules.toml` know listed words. This measure knows none: it adds the weights of pieces
of words and of neighbouring words, which `benchmarks/train_rules.py` learns from sentences in many
languages. A positive likeness is that of a rule.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from struct import iter_unpack
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


def likeness(tokens: Sequence[str]) -> float:
    """Return how much the words of a sentence are those of a rule: above 0 more than not."""
    if not tokens:
        return 0.0
    weights = _weights()
    total, number = 0.0, 0
    for token in tokens:
        weight, pieces = _word_weight(token)
        total += weight
        number += pieces
    total += sum(weights[bucket] for bucket in _order_buckets(tokens))
    return total / math.sqrt(number + len(tokens) + 1) + weights[0]


def buckets(tokens: Sequence[str]) -> list[int]:
    """Return the weights that the words of a sentence use. The first one is that of all."""
    return [
        *(bucket for token in tokens for bucket in _word_buckets(token)),
        *_order_buckets(tokens),
    ]


def _order_buckets(tokens: Sequence[str]) -> Iterator[int]:
    """Yield the weights of the first word, of neighbours and of the last word."""
    yield _bucket(f"^{tokens[0]}")
    for first, second in pairwise(tokens):
        yield _bucket(f"{first} {second}")
    yield _bucket(f"{tokens[-1]}$")


def _word_buckets(word: str) -> Iterator[int]:
    """Yield the weights of a word and of its pieces."""
    plain = _DIGIT.sub("0", word)
    is_unspaced = UNSPACED.match(plain) is not None
    if not is_unspaced:
        plain = f" {plain} "
        yield _bucket(f"={plain}")
    for size in _UNSPACED_PIECES if is_unspaced else _PIECES:
        for start in range(len(plain) - size + 1):
            yield _bucket(plain[start : start + size])


def _bucket(piece: str) -> int:
    # Bucket 0 has the weight of all sentences.
    return 1 + crc32(piece.encode("utf-8", "surrogatepass")) % (BUCKETS - 1)


@lru_cache(maxsize=32_768)
def _word_weight(word: str) -> tuple[float, int]:
    weights = _weights()
    found = [weights[bucket] for bucket in _word_buckets(word)]
    return sum(found), len(found)


@cache
def _weights() -> tuple[float, ...]:
    stored = files(__package__).joinpath(WEIGHTS).read_bytes()
    return tuple(step * SCALE for (step,) in iter_unpack("b", stored))
