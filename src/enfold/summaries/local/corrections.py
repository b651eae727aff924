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

REPLACED = 0.1
"""The factor of a statement that was surely replaced."""
PERHAPS_REPLACED = 0.6
_TOPIC = 6
"""A word in more units than this does not tell what a sentence is about."""


def replaced(units: Sequence[Unit], lexicon: Lexicon) -> dict[int, float]:
    """The indexes of the units that later ones replace, each with its factor."""
    corrections = [i for i, unit in enumerate(units) if unit.reading.cues & Cue.CORRECTION]
    if not corrections:
        return {}
    kinds = lexicon.kinds
    topics: dict[str, list[int]] = {
        concept: []
        for index in corrections
        for concept in units[index].reading.concepts
        if kinds[concept] <= Kind.NAME
    }
    for index, unit in enumerate(units):
        for concept in topics.keys() & unit.reading.concepts:
            topics[concept].append(index)
    factors: dict[int, float] = {}
    for index in corrections:
        _find_replaced(index, units, topics, factors)
    return factors


def _find_replaced(
    index: int, units: Sequence[Unit], topics: dict[str, list[int]], factors: dict[int, float]
) -> None:
    new = units[index]
    shared = Counter(
        other
        for concept in new.reading.concepts
        if len(topics.get(concept, ())) <= _TOPIC
        for other in topics.get(concept, ())
        if units[other].place < new.place or units[other].is_earlier
    )
    values = _values(new)
    if not values:
        return
    for other, topics_shared in shared.items():
        old = units[other]
        old_values = _values(old)
        if old.form is Form.TOOL or old.origin == new.origin or not old_values - values:
            continue
        if old.reading.cues & Cue.CORRECTION and topics_shared < len(old.reading.concepts) / 2:
            continue
        sure = topics_shared > 1 or old_values & values
        if not sure and not _both_count(old, new):
            continue
        factor = REPLACED if sure else PERHAPS_REPLACED
        factors[other] = min(factor, factors.get(other, 1.0))


def _both_count(old: Unit, new: Unit) -> bool:
    """Whether both hold a number, so that the one may be the other's new value."""
    return all(any(item.kind is Kind.NUMBER for item in u.reading.items) for u in (old, new))


def _values(unit: Unit) -> set[str]:
    return {concept for item in unit.reading.items for concept in item.concepts}
