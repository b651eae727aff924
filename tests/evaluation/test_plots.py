"""Pictures of what was measured."""

from __future__ import annotations

from enfold.evaluation.plots import draw
from enfold.evaluation.running import Outcome
from enfold.evaluation.summing import summaries


def test_plots_are_drawn(outcomes: list[Outcome]) -> None:
    picture = draw(summaries(outcomes))
    assert picture.startswith("<svg")
    assert "native, " in picture
    assert picture.count("<polyline") == 2
    assert draw([]).endswith("</svg>\n")
