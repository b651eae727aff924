"""The report: the means of all measures, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, mean
from typing import Any
from xml.sax.saxutils import escape

from enfold.evaluation.cases import HALVES
from enfold.evaluation.measures import (
    ANSWER,
    HEADLINE,
    NEWEST,
    ROW,
    RULE_NAMES,
    Evidence,
    Method,
    ProbeResult,
    Reach,
)
from enfold.evaluation.run import CaseResult

ALL = "all"


@dataclass(frozen=True, slots=True)
class MethodSummary:
    """Means over the cases of one way, of one half or all. None: nothing to take a mean of."""

    way: Method
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
    """The same figures by each rule for a present message; the three above are verbatim."""
    items_kept: float | None
    users_kept: float | None
    typed_kept: float | None
    """Sentences that people typed and that are in the view, of all cases together."""
    on_target: float
    """Share of cases that end between 80 and 100 % of their target."""
    restored: float | None
    pairs_whole: float
    sending_saved: float
    chains: int
    decay_in_view: tuple[float, ...]
    decay_reachable: tuple[float, ...]
    evidence_of_first_third: tuple[Mapping[str, Reach], Mapping[str, Reach]]
    """Questions about the first third: evidence after the first compression and after the last."""
    answers: float | None
    """The mean mark of a model's answers."""
    unmarked: int
    """Answers that the marking model gave no mark."""
    rules: tuple[float, ...]
    """The share of planted rules in view after each compression of the chains."""

    @property
    def after_ten(self) -> float | None:
        """The share that is still reachable after all compressions of the chains."""
        return self.decay_reachable[-1] if self.decay_reachable else None

    def reachable_by(self, rule: str) -> float | None:
        """Return the share of the evidence that is reachable by a rule."""
        return self.by_rule[rule].reachable if rule in self.by_rule else None


def summaries(outcomes: Sequence[CaseResult]) -> list[MethodSummary]:
    """One for each way, of all cases and of each half; halves only if there are several cases."""
    found: list[MethodSummary] = []
    for half in (ALL, *HALVES):
        for way in dict.fromkeys(outcome.way for outcome in outcomes):
            of_way = [each for each in outcomes if each.way == way]
            chosen = [each for each in of_way if half in (ALL, each.half)]
            if chosen and (half == ALL or len(chosen) < len(of_way)):
                found.append(_summary(way, half, chosen))
    return found


def as_json(outcomes: Sequence[CaseResult]) -> dict[str, Any]:
    """All figures: the means, and case by case."""
    return {
        "summaries": [asdict(each) for each in summaries(outcomes)],
        "cases": [asdict(each) for each in outcomes],
    }


def marked_by(outcomes: Iterable[CaseResult]) -> list[str]:
    """Return the models that answered and marked, each with the date."""
    marks = (each.answered for each in outcomes if each.answered is not None)
    return sorted({f"{each.model} on {each.day}" for each in marks})


def _summary(way: Method, half: str, outcomes: Sequence[CaseResult]) -> MethodSummary:
    by_rule = _by_rule(each.evidence for each in outcomes if each.evidence is not None)
    verbatim = by_rule.get(HEADLINE)
    chains = [each.decay for each in outcomes if each.decay is not None]
    at_both_ends = [each.evidence for each in chains if each.evidence is not None]
    typed = sum(each.typed for each in outcomes)
    answered = [each.answered for each in outcomes if each.answered is not None]
    marked = [(each.mark, each.questions) for each in answered if each.mark is not None]
    return MethodSummary(
        way,
        half,
        len(outcomes),
        sum(bool(each.failure) for each in outcomes),
        sum(each.tokens_before for each in outcomes),
        sum(each.tokens_after for each in outcomes),
        sum(each.seconds for each in outcomes),
        mean(each.ratio for each in outcomes),
        questions=verbatim.questions if verbatim else 0,
        in_view=verbatim.in_view if verbatim else None,
        by_search=verbatim.by_search if verbatim else None,
        reachable=verbatim.reachable if verbatim else None,
        by_rule=by_rule,
        items_kept=_mean([e.items_kept / e.items for e in outcomes if e.items]),
        users_kept=_mean([e.users_kept / e.users for e in outcomes if e.users]),
        typed_kept=sum(e.typed_kept for e in outcomes) / typed if typed else None,
        on_target=mean(each.is_on_target for each in outcomes),
        restored=_mean([e.is_restored for e in outcomes if e.is_restored is not None]),
        pairs_whole=mean(each.pairs_are_whole for each in outcomes),
        sending_saved=mean(each.sending.saved for each in outcomes),
        chains=len(chains),
        decay_in_view=_by_step(each.in_view for each in chains),
        decay_reachable=_by_step(each.reachable for each in chains),
        evidence_of_first_third=(
            _by_rule(first for first, _ in at_both_ends),
            _by_rule(last for _, last in at_both_ends),
        ),
        answers=fmean(*zip(*marked, strict=True)) if marked else None,
        unmarked=sum(each.unmarked for each in answered),
        rules=_by_step(each.rules for each in outcomes if each.rules is not None),
    )


def _by_rule(found: Iterable[Evidence]) -> dict[str, Reach]:
    """Return means by rule, over the questions, not over the cases."""
    measured = [each.by_rule for each in found]
    by_rule: dict[str, Reach] = {}
    for name in RULE_NAMES:
        if reaches := [each[name] for each in measured if name in each]:
            weights = [each.questions for each in reaches]
            by_rule[name] = Reach(
                sum(weights),
                fmean((each.in_view for each in reaches), weights),
                fmean((each.by_search for each in reaches), weights),
                fmean((each.reachable for each in reaches), weights),
            )
    return by_rule


def _mean(values: Sequence[float]) -> float | None:
    return mean(values) if values else None


def _by_step(chains: Iterable[Sequence[float]]) -> tuple[float, ...]:
    return tuple(mean(step) for step in zip(*chains, strict=True))


COLUMNS: Mapping[str, Callable[[MethodSummary], str]] = {
    "half": lambda each: each.half,
    "strategy": lambda each: name_of(each.way),
    "cases": lambda each: str(each.cases),
    "ratio": lambda each: f"{each.ratio:.1f}",
    "in view": lambda each: shown_share(each.in_view),
    "by search": lambda each: shown_share(each.by_search),
    "reachable": lambda each: shown_share(each.reachable),
    "25 words": lambda each: shown_share(each.reachable_by(ROW)),
    "answer": lambda each: shown_share(each.reachable_by(ANSWER)),
    "items": lambda each: shown_share(each.items_kept),
    "users": lambda each: shown_share(each.users_kept),
    "typed": lambda each: shown_share(each.typed_kept),
    "on target": lambda each: shown_share(each.on_target),
    "restored": lambda each: shown_share(each.restored),
    "pairs": lambda each: shown_share(each.pairs_whole),
    "sending": lambda each: f"{-each.sending_saved:+.0%}",
    "after 10": lambda each: shown_share(each.after_ten),
    "rules": lambda each: shown_share(each.rules[-1] if each.rules else None),
    "answers": lambda each: (
        shown_share(each.answers) + (f", {each.unmarked} unmarked" if each.unmarked else "")
    ),
    "seconds": lambda each: f"{each.seconds:.1f}",
}
"""The table's columns."""


def rows(found: Iterable[MethodSummary]) -> Iterator[list[str]]:
    """The table, row by row."""
    for each in found:
        yield [shown(each) for shown in COLUMNS.values()]


def name_of(way: Method) -> str:
    """The strategy, and which prompt where there are several."""
    return f"{way.strategy}, {way.label}" if way.label else way.strategy


def shown_share(value: float | None) -> str:
    """As people read it."""
    return "–" if value is None else f"{value:.1%}"


TWICE, REACHABLE = 2.0, 0.85
"""Goals: ratio to the newest messages' share; share in the view or by one search."""


@dataclass(frozen=True, slots=True)
class RuleSummary:
    """One way, one half, one rule."""

    half: str
    strategy: str
    rule: str
    questions: int
    newest: float | None
    """The share in the newest messages of the same budget. None where it was not measured."""
    in_view: float
    by_search: float
    reachable: float

    @property
    def times(self) -> float | None:
        """The share in the view, divided by the newest messages' share."""
        return self.in_view / self.newest if self.newest else None

    @property
    def meets(self) -> tuple[bool, bool]:
        """True for each goal that is met: twice the newest in the view, and reachable."""
        return self.times is not None and self.times >= TWICE, self.reachable >= REACHABLE

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        twice, reachable = self.meets
        return asdict(self) | {"times": self.times, "twice": twice, "reached": reachable}


def by_rule(found: Sequence[MethodSummary]) -> list[RuleSummary]:
    """Each way but the newest messages, by each rule from the strictest to the loosest."""
    newest_of = {
        (each.half, each.way.budget): each.by_rule for each in found if each.way.strategy == NEWEST
    }
    rows: list[RuleSummary] = []
    for summary in found:
        half, way = summary.half, summary.way
        if way.strategy == NEWEST:
            continue
        newest = newest_of.get((half, way.budget), {})
        for name, reach in summary.by_rule.items():
            compared = newest[name].in_view if name in newest else None
            shares = (compared, reach.in_view, reach.by_search, reach.reachable)
            rows.append(RuleSummary(half, name_of(way), name, reach.questions, *shares))
    return rows


SENSITIVITY_COLUMNS: Mapping[str, Callable[[RuleSummary], str]] = {
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


def sensitivity_rows(found: Iterable[RuleSummary]) -> Iterator[list[str]]:
    """The table, row by row."""
    for each in found:
        yield [shown(each) for shown in SENSITIVITY_COLUMNS.values()]


KIND_COLUMNS = ("strategy", "kind", "questions", "reachable", "25 words", "nothing fits")


def kind_rows(outcomes: Iterable[CaseResult]) -> Iterator[list[str]]:
    """Yield a row for each kind of questions; nothing if all are of one kind.

    For the kind `abstention`, whose questions have no answer, this should be 100 %.
    """
    by_kind: dict[tuple[str, str], list[ProbeResult]] = {}
    for outcome in outcomes:
        for each in outcome.kinds:
            by_kind.setdefault((name_of(outcome.way), each.kind), []).append(each)
    if len({kind for _, kind in by_kind}) < 2:  # noqa: PLR2004
        return
    for (way, kind), found in sorted(by_kind.items()):
        yield [
            way,
            kind,
            str(len(found)),
            shown_share(_mean([each.verbatim for each in found if each.verbatim is not None])),
            shown_share(_mean([each.in_a_row for each in found if each.in_a_row is not None])),
            shown_share(mean(not each.is_answered for each in found)),
        ]


_WIDTH, _LEFT, _BAR, _GAP, _CHART = 760, 190, 16, 26, 180
_SCALE = 420
"""Pixels of a whole."""
_COLOURS = ("#8a94a6", "#2f6fde", "#1f9d6b", "#c9762b", "#8a4fc7", "#c2413f")
_MEASURES: Mapping[str, str] = {
    "in_view": "evidence in the view",
    "reachable": "in it or by one search",
    "items_kept": "exact items in the view",
}


def draw(summaries: Iterable[MethodSummary]) -> str:
    """Bars for the shares of each way, and lines for what is left after each compression."""
    found = [each for each in summaries if each.half == ALL]
    chained = [each for each in found if each.decay_reachable]
    height = 60 + (_GAP + _BAR * len(found)) * len(_MEASURES) + 20 * len(found)
    pieces = [*_bars(found), *(_decay(chained, height) if chained else ())]
    height += _CHART + 60 if chained else 0
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(pieces)}</svg>\n'
    )


def _bars(found: Sequence[MethodSummary]) -> Iterator[str]:
    """The shares of each measure, and below them the colours of the ways."""
    top = 30
    coloured = [(each, _COLOURS[place % len(_COLOURS)]) for place, each in enumerate(found)]
    for name, title in _MEASURES.items():
        yield _text(_LEFT - 10, top + 12, title, anchor="end")
        for each, colour in coloured:
            share = getattr(each, name)
            if share is None:
                yield _text(_LEFT, top + 12, "not measured")
            else:
                yield (
                    f'<rect x="{_LEFT}" y="{top}" width="{share * _SCALE:.1f}" '
                    f'height="{_BAR - 3}" fill="{colour}"/>'
                )
                yield _text(_LEFT + share * _SCALE + 6, top + 11, f"{share:.0%}")
            top += _BAR
        top += _GAP
    for each, colour in coloured:
        yield f'<rect x="{_LEFT}" y="{top - 10}" width="10" height="10" fill="{colour}"/>'
        yield _text(_LEFT + 16, top, f"{each.way.strategy}, {each.ratio:.1f} : 1")
        top += 20


def _decay(chained: Sequence[MethodSummary], top: int) -> Iterator[str]:
    """Left to right the compressions, bottom to top the share that is left."""
    yield _text(_LEFT, top + 16, "first compression: items in the view (dashed), reachable (line)")
    base = top + 30
    for share in (0.0, 0.5, 1.0):
        y = base + _CHART * (1 - share)
        yield f'<path d="M{_LEFT} {y:.0f}h{_SCALE}" stroke="#ddd"/>'
        yield _text(_LEFT - 10, y + 4, f"{share:.0%}", anchor="end")
    for place, each in enumerate(chained):
        colour = _COLOURS[(place + 1) % len(_COLOURS)]
        yield _path(each.decay_reachable, base, colour, "")
        yield _path(each.decay_in_view, base, colour, ' stroke-dasharray="4 3"')


def _path(shares: Sequence[float], base: int, colour: str, style: str) -> str:
    step = _SCALE / max(1, len(shares) - 1)
    points = " ".join(
        f"{_LEFT + at * step:.1f},{base + _CHART * (1 - share):.1f}"
        for at, share in enumerate(shares)
    )
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{style}/>'


def _text(x: float, y: float, words: str, *, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#333">{escape(words)}</text>'
    )
