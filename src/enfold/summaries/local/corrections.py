"""Corrections: which earlier statements a later one replaces.

A sentence that sounds like a correction replaces an earlier one if both are about the same thing
and the earlier one holds a value (a number, a name, a path) that the later one changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from enfold.summaries.local.cues import Cue
from enfold.summaries.local.lexicon import Kind, Lexicon
from enfold.summaries.local.splitting import Form
from enfold.summaries.local.units import Unit

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
