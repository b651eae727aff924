"""Advice: what somebody might want to change, from what happened. Facts in, cards out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from enfold.engine.activity import Activity
from enfold.engine.thresholds import EffectiveThreshold
from enfold.llm.comparison import Recommendation
from enfold.ui.window import path_of

Tone: TypeAlias = Literal["good", "warm", "bad"]

NEAR = 0.8
"""Of its limit: a session that has reached it is near."""
_LOW_THRESHOLD = 0.5
_FAILURES = 3
_LITTLE = 0.2
"""A compression that takes less than this share away is not worth much."""
_ENOUGH = 3
"""Compressions from which on something can be said of them."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to think about, and where to do something about it."""

    title: str
    words: str
    path: str
    action: str
    tone: Tone = "warm"


@dataclass(frozen=True, slots=True)
class Nearing:
    """A session that is near its limit, waits, or cannot be looked at."""

    id: str
    title: str
    utilization: float
    blocked: str | None = None
    fault: str | None = None
    """Why nobody can say how full it is."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What advice is made from."""

    activity: Activity
    threshold: EffectiveThreshold
    sessions: Sequence[Nearing] = ()
    cheaper: Recommendation | None = None
    """Who would write summaries for less, if somebody would."""


def advise(facts: Facts) -> tuple[Advice, ...]:
    """What there is to say, most urgent first."""
    return (
        *_blocked(facts),
        *_faulty(facts),
        *_failures(facts),
        *_near(facts),
        *_threshold(facts),
        *_cheaper(facts),
        *_unknown(facts),
    )


def _blocked(facts: Facts) -> Iterator[Advice]:
    for each in facts.sessions:
        if each.blocked is not None:
            yield Advice(
                f"“{each.title}” waits",
                f"A compression that was due failed: {each.blocked}",
                path_of(each.id),
                "Retry it, or go on",
                "bad",
            )


def _faulty(facts: Facts) -> Iterator[Advice]:
    for each in facts.sessions:
        if each.fault is not None:
            yield Advice(
                f"“{each.title}” cannot be counted",
                each.fault,
                "/settings/models",
                "Look at its model",
                "bad",
            )


def _failures(facts: Facts) -> Iterator[Advice]:
    failed, done = facts.activity.failed, facts.activity.total.compressions
    if failed >= _FAILURES:
        reasons = sorted({each.code for each in facts.activity.failures})
        yield Advice(
            "Many compressions fail",
            f"{failed:,} failed and {done:,} succeeded. Reasons: {', '.join(reasons)}. Try the "
            "profile that writes summaries, or let the built-in summarizer do it.",
            "/settings/profiles",
            "Test the profiles",
            "bad",
        )


def _near(facts: Facts) -> Iterator[Advice]:
    near = [each for each in facts.sessions if each.utilization >= NEAR and not each.blocked]
    for each in near:
        yield Advice(
            f"“{each.title}” is nearly full",
            f"It takes {each.utilization:.0%} of its limit.",
            path_of(each.id),
            "Summarize it",
        )


def _threshold(facts: Facts) -> Iterator[Advice]:
    found, total = facts.threshold, facts.activity.total
    if found.share is not None and found.share < _LOW_THRESHOLD:
        yield Advice(
            "The threshold is low",
            f"Conversations are folded at {found.share:.0%} of the limit, {found.tokens:,} tokens: "
            "more often than needed, and each time the provider's cache is lost.",
            "/settings",
            "Look at the threshold",
        )
    if not found.is_automatic:
        yield Advice(
            "Automatic compression is off",
            "Conversations grow up to the hard limit, and then the next message waits for it.",
            "/settings",
            "Look at the settings",
        )
    sizes = [each for each in facts.activity.savings if each.tokens]
    if total.compressions >= _ENOUGH and len(sizes) < total.compressions * _LITTLE:
        yield Advice(
            "Compressions free little",
            "Most of them made nothing smaller. Another strategy goes further.",
            "/settings/strategy",
            "Compare the strategies",
        )


def _cheaper(facts: Facts) -> Iterator[Advice]:
    cheaper = facts.cheaper
    if cheaper is not None and cheaper.saved is not None and cheaper.saved > 0:
        yield Advice(
            "Summaries could cost less",
            f"For the summaries of this time: {cheaper.reason}.",
            "/settings/profiles",
            "Compare the costs",
        )


def _unknown(facts: Facts) -> Iterator[Advice]:
    if facts.activity.total.unknown:
        yield Advice(
            "A price is unknown",
            f"What {facts.activity.total.unknown:,} compressions saved cannot be told in money: "
            "no price is known for their model. A profile may state it.",
            "/settings/profiles",
            "State a price",
        )
