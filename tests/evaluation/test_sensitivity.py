"""The evidence by each rule, beside the newest messages."""

from __future__ import annotations

import json

from enfold.evaluation.measures import NEWEST, RULES
from enfold.evaluation.report import (
    SENSITIVITY_COLUMNS,
    RuleSummary,
    by_rule,
    sensitivity_rows,
    summaries,
)
from enfold.evaluation.run import CaseResult


def test_every_rule_has_a_row_next_to_the_newest(outcomes: list[CaseResult]) -> None:
    found = by_rule(summaries(outcomes))
    assert [(each.half, each.rule) for each in found] == [
        (half, rule.name) for half in ("all", "tuning", "reporting") for rule in RULES
    ]
    assert {each.strategy for each in found} == {"native"}
    assert {each.newest for each in found[1:4]} == {0.0}
    assert found[0].times is None
    assert all(len(row) == len(SENSITIVITY_COLUMNS) for row in sensitivity_rows(found))
    assert json.loads(json.dumps([each.as_json() for each in found]))[3]["reached"] is True


def test_the_newest_may_be_missing(outcomes: list[CaseResult]) -> None:
    others = [each for each in outcomes if each.way.strategy != NEWEST]
    assert {each.newest for each in by_rule(summaries(others))} == {None}


def test_aims_are_met_or_not() -> None:
    assert RuleSummary("all", "native", "quoted", 4, 0.1, 0.2, 0.8, 0.85).meets == (True, True)
    assert RuleSummary("all", "native", "quoted", 4, 0.11, 0.2, 0.8, 0.84).meets == (False, False)
