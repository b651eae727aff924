"""Summing up: the means of what was measured, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, mean
from typing import Any

from enfold.evaluation.cases import HALVES
from enfold.evaluation.measuring import Evidence, Reach
from enfold.evaluation.presence import LOOSEST, RULES
from enfold.evaluation.running import Outcome
from enfold.evaluation.views import Way

ALL = "all"


@dataclass(frozen=True, slots=True)
class Summary:
    """Means over the cases of one way, of one half or all. None: nothing to take a mean of."""

    way: Way
    half: str
    cases: int
    failures: int
    tokens_before: int
    tokens_after: int
    seconds: float
    ratio: float
    questions: int
    in_view: float | None
    by_search: float | None
    reachable: float | None
    by_rule: Mapping[str, Reach]
    """The same by each rule for what counts; the three above are by the loosest."""
    items_kept: float | None
    users_kept: float | None
    restored: float | None
    pairs_whole: float
    sending_saved: float
    chains: int
    decay_in_view: tuple[float, ...]
    decay_reachable: tuple[float, ...]
    first_fold: tuple[Mapping[str, Reach], Mapping[str, Reach]]
    """Of questions about the first third, the evidence after the first fold and after the last."""
    answers: float | None
    """The mean mark of a model's answers."""
    unmarked: int
    """Answers that the marking model gave no mark."""

    @property
    def after_ten(self) -> float | None:
        """What can still be reached after all compressions of the chains."""
        return self.decay_reachable[-1] if self.decay_reachable else None

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def summaries(outcomes: Sequence[Outcome]) -> list[Summary]:
    """One for each way, of all cases and of each half; halves only if there are several cases."""
    ways = dict.fromkeys(outcome.way for outcome in outcomes)
    found: list[Summary] = []
    for half in (ALL, *HALVES):
        for way in ways:
            chosen = [each for each in outcomes if each.way == way and half in (ALL, each.half)]
            if chosen and (half == ALL or len(chosen) < _of(outcomes, way)):
                found.append(_summary(way, half, chosen))
    return found


def as_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """All figures: the means, and case by case."""
    return {
        "summaries": [each.as_json() for each in summaries(outcomes)],
        "cases": [asdict(each) for each in outcomes],
    }


def _of(outcomes: Iterable[Outcome], way: Way) -> int:
    return sum(each.way == way for each in outcomes)


def _summary(way: Way, half: str, outcomes: Sequence[Outcome]) -> Summary:
    restored = [each.is_restored for each in outcomes if each.is_restored is not None]
    chains = [each.decay for each in outcomes if each.decay is not None]
    return Summary(
        way,
        half,
        len(outcomes),
        sum(bool(each.failure) for each in outcomes),
        sum(each.tokens_before for each in outcomes),
        sum(each.tokens_after for each in outcomes),
        sum(each.seconds for each in outcomes),
        mean(each.ratio for each in outcomes),
        **_evidence(outcomes),
        items_kept=_mean([e.items_kept / e.items for e in outcomes if e.items]),
        users_kept=_mean([e.users_kept / e.users for e in outcomes if e.users]),
        restored=_mean(restored),
        pairs_whole=mean(each.pairs_are_whole for each in outcomes),
        sending_saved=mean(each.sending.saved for each in outcomes),
        chains=len(chains),
        decay_in_view=_by_step([each.in_view for each in chains]),
        decay_reachable=_by_step([each.reachable for each in chains]),
        first_fold=_first_fold([each.evidence for each in chains if each.evidence is not None]),
        **_marks(outcomes),
    )


def _evidence(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    by_rule = _by_rule(each.evidence for each in outcomes if each.evidence is not None)
    loosest = by_rule.get(LOOSEST)
    return {
        "questions": loosest.questions if loosest else 0,
        "in_view": loosest.in_view if loosest else None,
        "by_search": loosest.by_search if loosest else None,
        "reachable": loosest.reachable if loosest else None,
        "by_rule": by_rule,
    }


def _first_fold(
    found: Sequence[tuple[Evidence, Evidence]],
) -> tuple[dict[str, Reach], dict[str, Reach]]:
    return _by_rule(first for first, _ in found), _by_rule(last for _, last in found)


def _by_rule(found: Iterable[Evidence]) -> dict[str, Reach]:
    measured = [each.by_rule for each in found]
    return {
        rule.name: _reach(reaches)
        for rule in RULES
        if (reaches := [each[rule.name] for each in measured if rule.name in each])
    }


def _reach(found: Sequence[Reach]) -> Reach:
    """Means over the questions, not over the cases."""
    weights = [each.questions for each in found]
    return Reach(
        sum(weights),
        fmean((each.in_view for each in found), weights),
        fmean((each.by_search for each in found), weights),
        fmean((each.reachable for each in found), weights),
    )


def _marks(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    found = [each.answered for each in outcomes if each.answered is not None]
    marked = [(each.mark, each.questions) for each in found if each.mark is not None]
    marks, weights = zip(*marked, strict=True) if marked else ((), ())
    return {
        "answers": fmean(marks, weights) if marks else None,
        "unmarked": sum(each.unmarked for each in found),
    }


def _mean(values: Sequence[float]) -> float | None:
    return mean(values) if values else None


def _by_step(chains: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(mean(step) for step in zip(*chains, strict=True))


def _shown_answers(each: Summary) -> str:
    left_out = f", {each.unmarked} unmarked" if each.unmarked else ""
    return f"{shown_share(each.answers)}{left_out}"


COLUMNS: Mapping[str, Callable[[Summary], str]] = {
    "half": lambda each: each.half,
    "strategy": lambda each: name_of(each.way),
    "cases": lambda each: str(each.cases),
    "ratio": lambda each: f"{each.ratio:.1f}",
    "in view": lambda each: shown_share(each.in_view),
    "by search": lambda each: shown_share(each.by_search),
    "reachable": lambda each: shown_share(each.reachable),
    "items": lambda each: shown_share(each.items_kept),
    "users": lambda each: shown_share(each.users_kept),
    "restored": lambda each: shown_share(each.restored),
    "pairs": lambda each: shown_share(each.pairs_whole),
    "sending": lambda each: f"{-each.sending_saved:+.0%}",
    "after 10": lambda each: shown_share(each.after_ten),
    "answers": _shown_answers,
    "seconds": lambda each: f"{each.seconds:.1f}",
}
"""The table's columns."""


def rows(found: Iterable[Summary]) -> Iterator[list[str]]:
    """The table, row by row."""
    for each in found:
        yield [shown(each) for shown in COLUMNS.values()]


def name_of(way: Way) -> str:
    """The strategy, and which prompt where there are several."""
    return f"{way.strategy}, {way.label}" if way.label else way.strategy


def shown_share(value: float | None) -> str:
    """As people read it."""
    return "–" if value is None else f"{value:.1%}"
