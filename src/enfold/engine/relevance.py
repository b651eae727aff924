"""Relevance: which messages of a branch a question is about.

A message is relevant if what the question asks for is said in it or near it: talk about a thing
names it now and then, not in every sentence. Rare words tell more than frequent ones, and a place
where several of the words come together more than one where a single word is said again and again.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from enfold.engine.questions import stem
from enfold.store.occurrences import Found, Spot
from enfold.store.words import Phrase, texts_of_terms

REACH = 400.0
"""Tokens after which the pull of a word has fallen to a third."""
BEFORE = 0.5
"""The pull on what was said before a word beside that on what comes after it: a thing is named
first, and then talked about."""
LONGEST = 200
"""Tokens of a message that count as distance: what follows a long tool result is still near."""
_STEP = 2
"""And what every message counts besides."""
ENOUGH = 1.0
"""How fast more of the same word adds less."""
OWN = 0.2
"""What having the word itself adds to having it near."""
SPEAKER = 0.5
"""The pull of a word in the name of who speaks."""
AROUND = (400, 200, 100, 50, 20)
"""Messages on each side of a find that are looked at, fewer where there are many finds."""
LOOKED_AT = 5_000
"""Messages, about, that are looked at."""
SEEDS = 300
"""Finds around which messages are looked at, the best ones if there are more."""
_NEAR = 10.0
"""Messages after which the pull has fallen to a third, in the first rough reckoning."""


@dataclass(frozen=True, slots=True)
class Relevant:
    """A message, and how much the question is about it."""

    spot: Spot
    relevance: float
    own: float
    """Of this, what it says itself."""


def ranges(found: Found) -> list[tuple[int, int]]:
    """The stretches of the branch to look at, by their first and last depth; none overlap.

    They reach as far around the finds as can be looked at.
    """
    seeds = sorted(_seeds(found, _weights(found)))
    stretches: list[tuple[int, int]] = []
    for around in AROUND:
        stretches = _merged(seeds, around, found.length)
        if sum(last - first for first, last in stretches) <= LOOKED_AT:
            break
    return stretches


def rank(found: Found, stretches: Iterable[Sequence[Spot]]) -> list[Relevant]:
    """The messages of the stretches, the most relevant first; of equals the newest."""
    weights = _weights(found)
    having = {phrase: frozenset(depths) for phrase, depths in found.depths.items()}
    ranked = [each for spots in stretches for each in _relevant(spots, weights, having)]
    return sorted(ranked, key=lambda each: (-each.relevance, -each.spot.depth))


def _weights(found: Found) -> dict[Phrase, float]:
    """How much a phrase tells: the more, the fewer messages have it."""
    return {
        phrase: math.log(1 + (found.length - len(depths) + 0.5) / (len(depths) + 0.5))
        for phrase, depths in found.depths.items()
    }


def _seeds(found: Found, weights: Mapping[Phrase, float]) -> Iterable[int]:
    """The finds with most of what is asked for near them, reckoned roughly."""
    everywhere = sorted({depth for depths in found.depths.values() for depth in depths})
    if len(everywhere) <= SEEDS:
        return everywhere
    pull = dict.fromkeys(everywhere, 0.0)
    for phrase, depths in found.depths.items():
        for depth in everywhere:
            pull[depth] += weights[phrase] * math.exp(-_distance(depths, depth) / _NEAR)
    return sorted(everywhere, key=lambda depth: (-pull[depth], -depth))[:SEEDS]


def _merged(depths: Iterable[int], around: int, length: int) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for depth in depths:
        first, last = max(1, depth - around), min(length, depth + around)
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    return merged


def _distance(depths: Sequence[int], depth: int) -> int:
    """To the nearest of them."""
    at = bisect_left(depths, depth)
    return min(abs(each - depth) for each in depths[max(0, at - 1) : at + 1])


def _relevant(
    spots: Sequence[Spot],
    weights: Mapping[Phrase, float],
    having: Mapping[Phrase, frozenset[int]],
) -> Iterator[Relevant]:
    relevance = [0.0] * len(spots)
    own = [0.0] * len(spots)
    fading = [math.exp(-(min(spot.tokens, LONGEST) + _STEP) / REACH) for spot in spots]
    speakers = {name: texts_of_terms(name) for spot in spots if (name := spot.name)}
    for phrase, weight in weights.items():
        called = {name for name, words in speakers.items() if _names(phrase, words)}
        said = [spot.depth in having[phrase] for spot in spots]
        pulls = [
            has + SPEAKER * (spot.name in called) for has, spot in zip(said, spots, strict=True)
        ]
        for at, near in enumerate(_gathered(pulls, fading)):
            own[at] += weight * said[at]
            relevance[at] += weight * (1 - math.exp(-ENOUGH * near) + OWN * said[at])
    for spot, much, self_said in zip(spots, relevance, own, strict=True):
        yield Relevant(spot, much, self_said)


def _names(phrase: Phrase, words: Sequence[str]) -> bool:
    return any(stem(word) == phrase.terms[0] or word == phrase.terms[0] for word in words)


def _gathered(pulls: Sequence[float], fading: Sequence[float]) -> list[float]:
    """What pulls at each place: there, before it and after it, fading with the distance."""
    gathered = list(pulls)
    onwards = range(len(pulls))
    for order, share in ((onwards, 1.0), (reversed(onwards), BEFORE)):
        held = 0.0
        for at in order:
            gathered[at] += share * held
            held = (held + pulls[at]) * fading[at]
    return gathered
