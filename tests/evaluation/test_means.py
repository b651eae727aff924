"""Means, for people and for programs."""

from __future__ import annotations

import json

from enfold.evaluation.measures import NEWEST
from enfold.evaluation.report import COLUMNS, as_json, rows, summaries
from enfold.evaluation.run import CaseResult
from tests.evaluation.talks import TALK


def test_means_of_all_and_of_halves(outcomes: list[CaseResult]) -> None:
    found = summaries(outcomes)
    assert [(each.half, each.way.strategy, each.cases) for each in found[:2]] == [
        ("all", NEWEST, 3),
        ("all", "native", 3),
    ]
    assert {each.half for each in found} == {"all", "tuning", "reporting"}
    assert sum(each.cases for each in found) == 12
    assert found[1].restored == found[1].pairs_whole == 1
    table = list(rows(found))
    assert all(len(row) == len(COLUMNS) for row in table)
    assert "–" in table[0]
    values = json.loads(json.dumps(as_json(outcomes)))
    assert len(values["cases"]) == 6
    assert TALK not in json.dumps(values)
