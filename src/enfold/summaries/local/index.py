"""The index: exact items whose sentences found no place, listed in one line.

A path or an amount without its sentence still tells what to look up, and costs a few tokens. When
a summary is continued again and again, this is where the facts of its first lines live on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from enfold.summaries.local.lexicon import Kind
from enfold.summaries.local.material import Material
from enfold.summaries.local.splitting import Form
from enfold.tokens import Tokenizer

EARLIER = 3.0
"""What was kept once weighs more than what is new."""
FROM_TOOLS = 0.3
FROM_REPLACED = 0.5
"""What a stale statement named beside its number may still hold."""
WORTH_POWER = 1.5
LENGTH_POWER = 0.4
"""A long path says more than a short name, so its tokens count against it only in part."""
_SHORTEST = 3
"""Characters below which an item means nothing by itself."""


class Entry(NamedTuple):
    """One item of the index."""

    shown: str
    concepts: tuple[str, ...]
    unit: int
    """The index of its unit, which gives its place in the line."""
    worth: float


def entries(
    material: Material, units: Iterable[int], is_covered: Callable[[str], bool]
) -> list[Entry]:
    """The items of these units that nothing which was taken mentions; each once."""
    found: dict[str, Entry] = {}
    for index in units:
        for shown, concepts in _items(material, index):
            if concepts and not all(map(is_covered, concepts)) and shown not in found:
                worth = max(material.worths[concept] for concept in concepts)
                found[shown] = Entry(shown, concepts, index, worth * _factor(material, index))
    return list(found.values())


def choose(entries: list[Entry], budget: int, tokenizer: Tokenizer) -> tuple[list[Entry], int]:
    """Those that are worth most for their tokens, and the tokens they take."""
    entries = sorted(entries, key=lambda entry: -entry.worth)[: max(0, budget)]
    counts = tokenizer.count_many([f", {entry.shown}" for entry in entries])
    ranked = sorted(
        zip(entries, counts, strict=True),
        key=lambda pair: (-_rank(pair[0].worth, pair[1]), pair[0].unit, pair[0].shown),
    )
    chosen: list[Entry] = []
    spent = 0
    for entry, count in ranked:
        if spent + count <= budget:
            chosen.append(entry)
            spent += count
    return chosen, spent


def _rank(worth: float, tokens: int) -> float:
    return float(worth**WORTH_POWER / tokens**LENGTH_POWER)


def _items(material: Material, index: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    unit = material.units[index]
    if unit.form is Form.ITEM:
        yield unit.reading.text, unit.reading.concepts
        return
    least = Kind.PLACE if unit.form is Form.TOOL and not unit.is_earlier else Kind.NAME
    not_wanted = {Kind.COUNT, Kind.NUMBER} if index in material.replaced else {Kind.COUNT}
    for item in unit.reading.items:
        if least <= item.kind not in not_wanted and len(item.shown) >= _SHORTEST:
            yield item.shown, item.concepts


def _factor(material: Material, index: int) -> float:
    unit = material.units[index]
    factor = material.factors[index] or FROM_REPLACED
    if unit.is_earlier:
        return EARLIER * factor
    return factor * (FROM_TOOLS if unit.form is Form.TOOL else 1)
