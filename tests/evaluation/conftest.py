"""Conversations whose first messages answer the questions, measured once for all tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from enfold.evaluation.measures import NEWEST, Method
from enfold.evaluation.run import CaseResult, EvaluationPlan, measure
from tests.evaluation.talks import conversation


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("talks")
    paths = []
    for name, numbers in (("a.jsonl", (1, 2)), ("b.jsonl", (3,))):
        lines = (json.dumps(conversation(number, tools=number == 2)) for number in numbers)
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
        paths.append(folder / name)
    return paths


@pytest.fixture(scope="module")
def outcomes(files: list[Path]) -> list[CaseResult]:
    progress: list[str] = []
    ways = (Method(NEWEST, 0.2), Method("native", 0.2))
    found = measure(files, EvaluationPlan(ways), on_progress=progress.append)
    assert progress == ["talk-1", "talk-2", "talk-3"]
    return found
