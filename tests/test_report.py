"""The report of a condensation, in words and as data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from enfold.amounts import duration
from enfold.condensation import Step
from enfold.jsontext import dumps, loads
from enfold.report import Report

REPORT = Report(
    "smart",
    8_500,
    2_800,
    1.8,
    steps=(
        Step("lossless_prelude", 8_500, 5_200),
        Step("Truncate", 5_200, 3_800, {"truncate tool_results": 1_400}),
        Step("Suppress", 3_800, 2_800),
    ),
    operations=("lossless_completed", "pass-1_completed", "pass-2_completed", "skip_pass-3"),
    warnings=("a summary was written by the local summarizer",),
    cost=0.0,
    saved=0.0036,
)


def test_people_read_what_happened_in_which_order() -> None:
    assert str(REPORT).splitlines() == [
        "Condensed with the Smart strategy:",
        " - Lossless prelude: 8,500 → 5,200 tokens (-39%)",
        " - Pass 1 (Truncate): 5,200 → 3,800 tokens (-27%)",
        "   - Truncate tool results: -1,400 tokens",
        " - Pass 2 (Suppress): 3,800 → 2,800 tokens (-26%)",
        " - Total reduction: 67%, 8,500 → 2,800 tokens (saved $0.0036 a request)",
        " - Cost: $0.00",
        " - Time: 1.8 seconds",
        " - Operations: lossless_completed, pass-1_completed, pass-2_completed, skip_pass-3",
        " - Warning: a summary was written by the local summarizer",
    ]


def test_content_that_stays_to_fill_the_target_is_named() -> None:
    filled = replace(REPORT, tokens_after=3_100)
    assert " - Content that fits the target stays: 2,800 → 3,100 tokens" in str(filled).splitlines()
    assert "fits the target" not in str(REPORT)


def test_unknown_figures_are_called_unknown_or_left_out() -> None:
    text = str(Report("native", 1_000, 250, 0.25, steps=(Step("prune", 1_000, 1_000),)))
    assert " - Prune: 1,000 tokens, unchanged" in text
    assert " - Cost: unknown" in text
    assert "saved" not in text


def test_a_strategy_of_another_package_keeps_its_name() -> None:
    assert str(Report("acme-squeeze", 10, 5, 0)).startswith("Condensed with the acme-squeeze ")


def test_a_report_without_changes_says_so() -> None:
    assert str(Report("", 10, 10, 0, warnings=("there is nothing to summarize",))).splitlines() == [
        "Nothing was condensed:",
        " - Total reduction: 0%, 10 → 10 tokens",
        " - Cost: unknown",
        " - Time: 0 ms",
        " - Warning: there is nothing to summarize",
    ]


def test_programs_get_the_same_as_data() -> None:
    assert loads(dumps(REPORT.as_json())) == {
        "strategy": "smart",
        "tokens_before": 8_500,
        "tokens_after": 2_800,
        "reduction": pytest.approx(0.6706, abs=1e-4),
        "seconds": 1.8,
        "cost": 0.0,
        "saved": 0.0036,
        "operations": list(REPORT.operations),
        "steps": [
            {
                "name": step.name,
                "tokens_before": step.tokens_before,
                "tokens_after": step.tokens_after,
                "reduction": step.reduction,
                **({"saved_by": dict(step.saved_by)} if step.saved_by else {}),
            }
            for step in REPORT.steps
        ],
        "warnings": list(REPORT.warnings),
    }
    unknown = Report("native", 0, 0, 0.0).as_json()
    assert (unknown["cost"], unknown["saved"], unknown["reduction"]) == (None, None, 0.0)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0123, "12 ms"), (1.84, "1.8 seconds"), (90, "1.5 minutes")]
)
def test_times_have_a_unit(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown
