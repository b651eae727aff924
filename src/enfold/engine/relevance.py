"""Relevance: the messages of a branch that a question is about.

A message is relevant if it, or the text around it, contains the question's words; rare words weigh
more. The influence of a word falls with the distance in tokens, so that a discussion is found by
the words that open it. A message that contains most of the question's words itself comes first.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from heapq import nlargest
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple

from enfold.records import MessageLocation, PhraseOccurrences
from enfold.text.questions import VAGUE_PART, stem
from enfold.text.sentences import PAIR
from enfold.text.words import Phrase, texts_of_terms

_REACH = 400.0
"""Tokens after which the influence of a word has fallen to a third."""
_BACKWARD = 0.5
"""The influence of a word on messages before it, relative to those after it: people name a thing
first and then discuss it."""
_MAX_DISTANCE = 200
"""Tokens of a message that count as distance, so that the text after a long result is near."""
_FADING = tuple(math.exp(-tokens / _REACH) for tokens in range(_MAX_DISTANCE + 1))
"""The share of a word's influence that is left after a message of that many tokens."""
_LEAST_INFLUENCE = 1e-4
"""The influence below which a word is too far away to count."""
_SPEAKER = 0.5
"""The influence of a word in the speaker's name."""
_SPOKEN = 0.1
"""The relevance that a message gains if the question names its speaker."""
_OWN_WORDS = 0.6
"""The relevance that a message gains if it contains all words of the question; half of the words
give a quarter of it."""
_FOCUS = 0.8
"""The share of its relevance that a message loses where all around it is irrelevant: people discuss
a subject in one place, and words of it occur in others. It grows with the square of the loss."""
_REPEATED = 0.25
"""The influence of a word that many messages before have. People say what a thing is when they
first speak of it, and later mention it in passing."""
_REPEATS = 30.0
"""Messages with a word after which a third of its further influence is left."""
_NEWNESS = tuple(
    _REPEATED + (1.0 - _REPEATED) * math.exp(-earlier / _REPEATS) for earlier in range(200)
)
"""The influence of a word by the number of messages before that have it."""
RANKED_WHOLE = 1_280
"""Messages of a branch that is ranked whole."""
MAX_RANKED = 448
"""Messages of a longer branch that are ranked: the best blocks."""
BLOCK = 8
"""Messages of a block. The parts of a long branch are chosen by blocks."""
_MAX_TRIED = 2 * MAX_RANKED // BLOCK + 1
"""Blocks until the choice is full: each adds one at least, or is among those that were added."""
_BLOCKS_BEFORE, _BLOCKS_AFTER = 1, 4
"""Neighbours of a block that are ranked with it."""
_NEXT_BLOCK = 0.6
"""The influence of a word on the blocks next to its own, in the choice of blocks."""


class RankedMessage(NamedTuple):
    """A message and its relevance for a question."""

    location: MessageLocation
    relevance: float
    """The share of the question's words that are near, by weight, and more for its own words."""
    own: float
    """The share of the question's words that the message itself contains, by weight."""


def ranges(
    found: PhraseOccurrences, *, similar: Mapping[Phrase, float] = MappingProxyType({})
) -> list[tuple[int, int]]:
    """Return the ranges of the branch to rank, by first and last depth, without overlap.

    Of a long branch they are the blocks with most words of the question, and their neighbours.
    Words that are similar to those of the question count the given part.
    """
    if not found.depths:
        return []
    if found.length <= RANKED_WHOLE:
        return [(1, found.length)]
    scores = _block_scores(found, similar)
    # The messages with a name answer a question about it, not their neighbours.
    before, after = (0, 0) if found.has_name else (_BLOCKS_BEFORE, _BLOCKS_AFTER)
    chosen: set[int] = set()
    for block in _best_blocks(scores):
        around = range(max(0, block - before), block + after + 1)
        missing = [each for each in around if each not in chosen]
        if (len(chosen) + len(missing)) * BLOCK > MAX_RANKED:
            break
        chosen.update(missing)
    merged: list[tuple[int, int]] = []
    for block in sorted(chosen):
        first, last = block * BLOCK + 1, min(found.length, (block + 1) * BLOCK)
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], last)
        elif first <= last:
            merged.append((first, last))
    return merged


def _block_scores(found: PhraseOccurrences, similar: Mapping[Phrase, float]) -> dict[int, float]:
    """Return the weight of the phrases in and next to each block with a find."""
    scores: dict[int, float] = {}
    score_of = scores.get
    for phrase, weight in _less_if_similar(_weights(found), similar).items():
        blocks = {(depth - 1) // BLOCK for depth in found.depths[phrase]}
        near = {block - 1 for block in blocks}
        near.update([block + 1 for block in blocks])
        near -= blocks
        for chosen, more in ((blocks, weight), (near, _NEXT_BLOCK * weight)):
            for block in chosen:
                scores[block] = score_of(block, 0.0) + more
    return scores


def _best_blocks(scores: Mapping[int, float]) -> list[int]:
    """Return at least the `_MAX_TRIED` best blocks, best first; the newest of equals first."""
    least = sorted(scores.values(), reverse=True)[:_MAX_TRIED][-1]
    best = sorted((block for block, score in scores.items() if score >= least), reverse=True)
    return sorted(best, key=scores.__getitem__, reverse=True)


def rank(
    phrases: Iterable[Phrase],
    found: PhraseOccurrences,
    stretches: Iterable[Sequence[MessageLocation]],
    *,
    vague: Collection[Phrase] = (),
    similar: Mapping[Phrase, float] = MappingProxyType({}),
    results: bool = False,
) -> list[RankedMessage]:
    """Return the messages with their relevance, in the order of the stretches.

    Words that are similar to those of the question count the given part. With `results` a tool's
    result is as relevant as its call: the question asks how it ended.
    """
    weights = _less_if_similar(_less_if_vague(_weights(found), vague), similar)
    total = sum(_less_if_vague(_weights_of_all(phrases, found), vague).values())
    ranked: list[tuple[Sequence[MessageLocation], list[float], list[float], list[float]]] = []
    chosen = list(filter(None, stretches))
    named = _speakers_called(weights, chosen)
    for locations in chosen:
        tokens = [min(each.tokens, _MAX_DISTANCE) for each in locations]
        fading = [_FADING[each] for each in tokens]
        relevances, shares = _rank_stretch(locations, fading, weights, found, total, named)
        if results:
            _raise_results(locations, relevances, shares)
        ranked.append((locations, relevances, shares, _means_around(relevances, tokens, fading)))
    most = max((max(means) for *_, means in ranked if means), default=0.0) or 1.0
    part, least = _FOCUS / most**2, 1.0 - _FOCUS
    make = partial(tuple.__new__, RankedMessage)  # several times as fast as to call the class
    messages: list[RankedMessage] = []
    for locations, relevances, shares, means in ranked:
        focused = [
            relevance * (least + part * mean * mean)
            for relevance, mean in zip(relevances, means, strict=True)
        ]
        messages += map(make, zip(locations, focused, shares, strict=True))
    return messages


def _less_if_vague(
    weights: Mapping[Phrase, float], vague: Collection[Phrase]
) -> dict[Phrase, float]:
    return {
        each: weight * (VAGUE_PART if each in vague else 1.0) for each, weight in weights.items()
    }


def _less_if_similar(
    weights: Mapping[Phrase, float], similar: Mapping[Phrase, float]
) -> Mapping[Phrase, float]:
    if not similar:
        return weights
    return {each: weight * similar.get(each, 1.0) for each, weight in weights.items()}


def _means_around(
    relevances: Sequence[float], tokens: Sequence[int], fading: Sequence[float]
) -> list[float]:
    """Return the mean relevance on both sides of each message, by tokens; near messages count more.

    The sides count alike, so that the last message is judged by those before it.
    """
    means = [0.0] * len(relevances)
    for order in (range(len(means)), range(len(means) - 1, -1, -1)):
        total = size = 0.0
        for at in order:
            fade, number = fading[at], tokens[at]
            total = total * fade + relevances[at] * number
            size = size * fade + number
            means[at] += total / (size or 1.0)
    return means


def _raise_results(
    locations: Sequence[MessageLocation], relevances: list[float], shares: list[float]
) -> None:
    """Give the messages after a call its relevance if they have fewer words of the question."""
    call = None
    for at, location in enumerate(locations):
        if location.role == "assistant":
            call = at
        elif call is not None and shares[call] > shares[at]:
            relevances[at] = max(relevances[call], relevances[at])
            shares[at] = shares[call]


def _weights(found: PhraseOccurrences) -> dict[Phrase, float]:
    """Return the weight of each phrase, which is higher the fewer messages contain it."""
    counts = {phrase: found.count(phrase) for phrase in found.depths}
    return {
        phrase: math.log(1 + (found.length - count + 0.5) / (count + 0.5))
        for phrase, count in counts.items()
    }


def _weights_of_all(phrases: Iterable[Phrase], found: PhraseOccurrences) -> dict[Phrase, float]:
    """Return the weight of each phrase, found or not. One that no message has weighs most."""
    return _weights(replace(found, depths={each: found.depths.get(each, ()) for each in phrases}))


_FITTING, _FITTING_OF_ONE = 0.42, 0.3
"""Minimum score of an answer: `_FITTING` plus `_FITTING_OF_ONE` divided by the number of words: one
word of two is chance, two of six are not. On meetings, 2 % of the questions about them have less,
and 90 % of the questions about other meetings."""
_FITTING_OF_DATE = 0.6
"""The same for messages of the date that a question names, whatever its number of words."""
_FEW_WORDS, _IN_ONE_MESSAGE = 4, 0.3
"""Words of a short question, and the share of them that one message must have."""
_SUPPORT, _SUPPORTING = 0.6, 3
"""The weight of the words that the `_SUPPORTING` best messages have, on average: what was discussed
is in several."""
_LEAST_WEIGHT = 3.0
"""The weight of a word that most messages have: a question about the only subject fits."""
_MISSING_NAME = 2.0
"""The factor of the weight of a name, such as `src/a.py`, that no message has."""
_COVERED_TOKENS = 200
"""Tokens of the conversation in which the words of a question must occur together."""


def has_answer(
    phrases: Sequence[Phrase],
    found: PhraseOccurrences,
    stretches: Iterable[Sequence[MessageLocation]],
    *,
    names: Collection[Phrase] = (),
    vague: Collection[Phrase] = (),
    shown: Mapping[Phrase, Sequence[int]] | None = None,
    is_dated: bool = False,
) -> bool:
    """Return True if one part of the conversation has enough of the question's words.

    Words count by the root of their rarity, those that no message has most, and vague ones less.
    Fewer are enough if several messages have them. With `is_dated`, the messages have the date that
    the question names. One message must have some of the words of a short question. `names` are the
    phrases that name one thing, such as `src/a.py`. With `shown` a message has a phrase only if its
    depth is there; the phrases are as rare as in `found`.
    """
    single = _words_and_missing_names(phrases, names, found)
    words = [each for each in single if not _is_border(each, single, found.depths)]
    number = sum(_less_if_vague(dict.fromkeys(words, 1.0), vague).values())
    least = _FITTING_OF_DATE if is_dated else _FITTING + _FITTING_OF_ONE / max(1.0, number)
    rarity = _weights_of_all(words, found)
    weights = _less_if_vague(
        {each: math.sqrt(max(weight, _LEAST_WEIGHT)) for each, weight in rarity.items()}, vague
    )
    weights |= {
        each: weight * _MISSING_NAME
        for each, weight in weights.items()
        if each in names and each not in found.depths
    }
    places = found.depths if shown is None else shown
    depths = {phrase: places.get(phrase, ()) for phrase in words}
    stretches = list(stretches)
    named = _speakers_called(words, stretches)
    parts = [_words_in(part, weights, depths, named) for part in stretches]
    best = max((each for each, _ in parts), default=0.0)
    supporting = nlargest(_SUPPORTING, (weight for _, each in parts for weight in each))
    total = sum(weights.values()) or 1.0
    if number <= _FEW_WORDS and max(supporting, default=0.0) < _IN_ONE_MESSAGE * total:
        return False
    return best + _SUPPORT * sum(supporting) / _SUPPORTING >= least * total


def _words_and_missing_names(
    phrases: Sequence[Phrase], names: Collection[Phrase], found: PhraseOccurrences
) -> list[Phrase]:
    """Return the words of a question. A name that no message has takes the place of its words.

    The words of `check_flag.py` occur in many sessions that have no such file.
    """
    missing = [each for each in phrases if each in names and each not in found.depths]
    words = [
        each
        for each in phrases
        if len(each.terms) == 1 and not any(is_word_of(each, name) for name in missing)
    ]
    return [*missing, *words] or list(phrases)


def is_word_of(word: Phrase, name: Phrase) -> bool:
    """Return True if a word is one of a name: "flag" of `check_flag.py`."""
    begins = word.terms[0]
    return begins in name.terms or (
        word.prefix and any(term.startswith(begins) for term in name.terms)
    )


def _is_border(
    phrase: Phrase, words: Iterable[Phrase], depths: Mapping[Phrase, Sequence[int]]
) -> bool:
    """Return True for a pair of an unspaced script that is no word but the border of two words.

    No message has it, and it overlaps a pair that a message has.
    """
    pair = phrase.terms[0]
    if phrase in depths or len(pair) != PAIR or pair.isascii():
        return False
    return any(
        len(other.terms[0]) == PAIR
        and (other.terms[0][1] == pair[0] or other.terms[0][0] == pair[1])
        for other in words
        if other in depths
    )


def _words_in(
    locations: Sequence[MessageLocation],
    weights: Mapping[Phrase, float],
    depths: Mapping[Phrase, Sequence[int]],
    named: Mapping[Phrase, Collection[str]],
) -> tuple[float, Iterable[float]]:
    """Return the highest weight of different phrases within `_COVERED_TOKENS` in a row.

    Also returns the weight of the phrases in each message that has one.
    """
    ends = list(accumulate(each.tokens for each in locations))
    places: list[tuple[int, int]] = []
    for number, phrase in enumerate(weights):
        found = set(_places(locations, depths[phrase]))
        if speakers := named[phrase]:
            found.update(at for at, each in enumerate(locations) if each.name in speakers)
        places += [(at, number) for at in found]
    places.sort()
    values = list(weights.values())
    inside = [0] * len(values)
    messages: dict[int, float] = defaultdict(float)
    best = total = 0.0
    first = 0
    for at, number in places:
        messages[at] += values[number]
        if not inside[number]:
            total += values[number]
        inside[number] += 1
        while ends[at] > ends[places[first][0]] + _COVERED_TOKENS:
            gone = places[first][1]
            inside[gone] -= 1
            if not inside[gone]:
                total -= values[gone]
            first += 1
        best = max(best, total)
    return best, messages.values()


def _places(locations: Sequence[MessageLocation], depths: Sequence[int]) -> list[int]:
    """Return the indexes of the locations at the depths; both are in order."""
    if not locations:
        return []
    first, last = locations[0].depth, locations[-1].depth
    chosen = depths[bisect_left(depths, first) : bisect_right(depths, last)]
    return [depth - first for depth in chosen]


def _speakers_called(
    phrases: Iterable[Phrase], stretches: Iterable[Iterable[MessageLocation]]
) -> dict[Phrase, set[str]]:
    """Return the speakers whose names have the first word of a phrase, for each phrase."""
    names = {each.name for locations in stretches for each in locations}
    speakers = {name: _forms(name) for name in names if name}
    return {
        phrase: {name for name, words in speakers.items() if phrase.terms[0] in words}
        for phrase in phrases
    }


@lru_cache(maxsize=1_024)
def _forms(name: str) -> frozenset[str]:
    """Return the words of a name and their stems."""
    return frozenset(form for word in texts_of_terms(name) for form in (word, stem(word)))


def _rank_stretch(
    locations: Sequence[MessageLocation],
    fading: Sequence[float],
    weights: Mapping[Phrase, float],
    found: PhraseOccurrences,
    total: float,
    named: Mapping[Phrase, Collection[str]],
) -> tuple[list[float], list[float]]:
    """Return the relevance of each message, and the share of the words that it has itself."""
    near, shares = [0.0] * len(locations), [0.0] * len(locations)
    for phrase, weight in weights.items():
        depths = found.depths[phrase]
        places = _places(locations, depths)
        if not places and not named[phrase]:
            continue
        influences = [0.0] * len(locations)
        earlier = found.count(phrase) - len(depths) + bisect_left(depths, locations[0].depth)
        share = weight / (total or 1.0)
        for number, at in enumerate(places, max(0, earlier)):
            influences[at] = _NEWNESS[number] if number < len(_NEWNESS) else _REPEATED
            shares[at] += share
        if speakers := named[phrase]:
            for at, each in enumerate(locations):
                if each.name in speakers:
                    influences[at] += _SPEAKER
        _spread(influences, fading, weight, near)
    speakers = set[str]().union(*named.values())
    most = sum(weights.values()) or 1.0
    relevances = [
        nearness / most + _OWN_WORDS * share**2
        for nearness, share in zip(near, shares, strict=True)
    ]
    if speakers:
        for at, each in enumerate(locations):
            if each.name in speakers:
                relevances[at] += _SPOKEN
    return relevances, shares


def _spread(
    influences: Sequence[float], fading: Sequence[float], weight: float, near: list[float]
) -> None:
    """Add the weight of a word to all places, by its influence there, which fades by distance."""
    places = [at for at, influence in enumerate(influences) if influence]
    if not places:
        return
    reached = [0.0] * len(near)
    carried = 0.0
    end = len(near) - 1
    for at in range(places[0], len(near)):
        carried += influences[at]
        reached[at] = carried
        carried *= fading[at]
        if carried < _LEAST_INFLUENCE and at >= places[-1]:
            end = at
            break
    carried = 0.0
    exp = math.exp
    for at in range(end, -1, -1):
        here = reached[at] + _BACKWARD * carried
        if here > _LEAST_INFLUENCE:
            near[at] += weight * (1.0 - exp(-here))
        elif at < places[0]:
            break
        carried = (carried + influences[at]) * fading[at]
