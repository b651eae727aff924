"""Pictures of what was measured."""

from __future__ import annotations

from enfold.evaluation.report import draw, summaries
from enfold.evaluation.run import CaseResult


def test_plots_are_drawn(outcomes: list[CaseResult]) -> None:
    picture = draw(summaries(outcomes))
    assert picture.startswith("<svg")
    assert "native, " in picture
    assert picture.count("<polyline") == 2
    assert draw([]).endswith("</svg>\n")
