"""Sensitivity: the evidence by each rule for what counts, beside the newest messages by the same.

Whoever reads a share should see how much of it is owed to the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from enfold.evaluation.presence import RULES
from enfold.evaluation.summing import Summary, name_of, shown_share
from enfold.evaluation.views import NEWEST

TWICE, REACHABLE = 2.0, 0.85
"""What is aimed at: in the view twice what the newest messages give; in it or by one search."""


@dataclass(frozen=True, slots=True)
class ByRule:
    """One way, one half, one rule."""

    half: str
    strategy: str
    rule: str
    questions: int
    newest: float | None
    """What the newest messages in the same budget hold. None where they were not measured."""
    in_view: float
    by_search: float
    reachable: float

    @property
    def times(self) -> float | None:
        """How many times the newest messages' share is in the view."""
        return self.in_view / self.newest if self.newest else None

    @property
    def meets(self) -> tuple[bool, bool]:
        """Whether each aim is met: twice the newest in the view, and reachable."""
        return self.times is not None and self.times >= TWICE, self.reachable >= REACHABLE

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        twice, reachable = self.meets
        return asdict(self) | {"times": self.times, "twice": twice, "reached": reachable}


def by_rule(found: Sequence[Summary]) -> list[ByRule]:
    """Each way but the newest messages, by each rule from the strictest to the loosest."""
    return [row for each in found if each.way.strategy != NEWEST for row in _rows(each, found)]


def _rows(summary: Summary, found: Iterable[Summary]) -> Iterator[ByRule]:
    newest = next((each for each in found if _is_newest_of(each, summary)), None)
    for rule in RULES:
        if reach := summary.by_rule.get(rule.name):
            beside = newest.by_rule.get(rule.name) if newest else None
            yield ByRule(
                summary.half,
                name_of(summary.way),
                rule.name,
                reach.questions,
                beside.in_view if beside else None,
                reach.in_view,
                reach.by_search,
                reach.reachable,
            )


def _is_newest_of(each: Summary, summary: Summary) -> bool:
    same_budget = each.way.budget == summary.way.budget
    return each.way.strategy == NEWEST and each.half == summary.half and same_budget


COLUMNS: Mapping[str, Callable[[ByRule], str]] = {
    "half": lambda each: each.half,
    "strategy": lambda each: each.strategy,
    "rule": lambda each: each.rule,
    "newest": lambda each: shown_share(each.newest),
    "in view": lambda each: shown_share(each.in_view),
    "times": lambda each: "–" if each.times is None else f"{each.times:.1f}",
    "by search": lambda each: shown_share(each.by_search),
    "reachable": lambda each: shown_share(each.reachable),
}
"""The table's columns."""


def rows(found: Iterable[ByRule]) -> Iterator[list[str]]:
    """The table, row by row."""
    for each in found:
        yield [shown(each) for shown in COLUMNS.values()]
