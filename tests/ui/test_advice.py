"""Advice: given for the right facts only."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from enfold.engine.activity import Activity, Saving
from enfold.engine.state import EffectiveThreshold
from enfold.llm.costs import Recommendation
from enfold.records import DailyFailures
from enfold.ui.dashboard import AdviceFacts, SessionAlert, advise

USUAL = EffectiveThreshold("a:b", 95, 100, 105, 0.95, "threshold", "default", is_automatic=True)
FINE = AdviceFacts(Activity(), USUAL)
SAVED = Saving(date(2026, 1, 1), "native", "a:b", 10, 10, 0.1)
USELESS = replace(SAVED, tokens=0, spared=0)


@pytest.mark.parametrize(
    ("facts", "titles"),
    [
        (FINE, []),
        (replace(FINE, sessions=[SessionAlert("x", "X", 0.81)]), ["“X” is nearly full"]),
        (replace(FINE, sessions=[SessionAlert("x", "X", 1.39)]), ["“X” is over its limit"]),
        (replace(FINE, sessions=[SessionAlert("x", "X", 0.99, "no key")]), ["“X” is paused"]),
        (
            replace(FINE, sessions=[SessionAlert("x", "X", 0, fault="no")]),
            ["“X” cannot be counted"],
        ),
        (
            replace(FINE, activity=Activity(failures=(DailyFailures(1, "summary_failed", 3, 1),))),
            ["Many compressions fail"],
        ),
        (
            replace(FINE, activity=Activity(failures=(DailyFailures(1, "summary_failed", 2, 1),))),
            [],
        ),
        (replace(FINE, threshold=replace(USUAL, share=0.3)), ["The threshold is low"]),
        (replace(FINE, threshold=replace(USUAL, share=None)), []),
        (
            replace(FINE, threshold=replace(USUAL, is_automatic=False)),
            ["Automatic compression is off"],
        ),
        (
            replace(FINE, cheaper=Recommendation("small", "small does it for less", 1.5)),
            ["Summaries could cost less"],
        ),
        (replace(FINE, cheaper=Recommendation("same", "is the cheapest already", 0.0)), []),
        (
            replace(FINE, activity=Activity((replace(SAVED, dollars=None),))),
            ["A price is unknown"],
        ),
        (replace(FINE, activity=Activity((USELESS,) * 3)), ["Compressions save little"]),
        (replace(FINE, activity=Activity((SAVED,) * 3)), []),
    ],
    ids=[
        "fine",
        "near",
        "over",
        "waits",
        "cannot be counted",
        "failures",
        "few failures",
        "low threshold",
        "absolute threshold",
        "off",
        "cheaper",
        "cheapest already",
        "unknown price",
        "useless",
        "useful",
    ],
)
def test_the_advice_fits_the_facts(facts: AdviceFacts, titles: list[str]) -> None:
    assert [each.title for each in advise(facts)] == titles


def test_the_most_urgent_comes_first() -> None:
    facts = replace(
        FINE,
        threshold=replace(USUAL, share=0.3),
        sessions=[SessionAlert("near", "Near", 0.9), SessionAlert("x", "X", 0.5, "no key")],
    )
    found = advise(facts)
    assert [each.tone for each in found] == ["bad", "warm", "warm"]
    assert found[0].path == "/s/x"
