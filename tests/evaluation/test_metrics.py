"""The project's own figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from enfold.evaluation.metrics import Metric, metrics
from tests.evaluation.talks import conversation


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Metric]:
    path = tmp_path_factory.mktemp("metrics") / "talks.jsonl"
    first, second = conversation(1), conversation(2, tools=True)
    answer = "Nine stone, as was noted in the ledger of the harbour master."
    usage = {"input_tokens": 900, "output_tokens": 14}
    messages = first["messages"]
    assert isinstance(messages, list)
    messages.append({"role": "assistant", "content": answer, "usage": usage})
    path.write_text("\n".join(map(json.dumps, (first, second))), encoding="utf-8")
    steps: list[str] = []
    values = {each.name: each for each in metrics([path], least=1_000, on_progress=steps.append)}
    assert steps == ["counting", "condensing", "automatic compressions"]
    return values


def test_counts_are_held_against_what_was_reported(found: dict[str, Metric]) -> None:
    counting = found["counting accuracy"]
    assert counting.value is not None
    assert 0.8 < counting.value <= 1
    assert counting.over == 1


def test_conversations_end_where_they_should(found: dict[str, Metric]) -> None:
    assert (found["compression ratio"].value or 0) > 5
    assert found["automatic success rate"].value == 1
    assert found["users' messages in the view, truncation"].value == 1
    assert found["users' messages in the view, smart"].over == 1
    assert found["conversations given back exactly"].value == 1
    assert (found["overhead of a turn"].value or 9) < 9
    saved = found["condensing cost saved through a profile"]
    assert saved.value is None or saved.value > 0.9


def test_a_conversation_that_cannot_shrink_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    # A long text would be shown in part; calls that wait for their results cannot be shortened.
    function = {"name": "look", "arguments": "{}"}
    calls = [{"id": f"call-{n}", "type": "function", "function": function} for n in range(1_500)]
    waiting = {"role": "assistant", "content": None, "tool_calls": calls}
    path.write_text(json.dumps([{"role": "user", "content": "Go"}, waiting]), encoding="utf-8")
    values = {each.name: each for each in metrics([path])}
    assert values["automatic success rate"].over == 1
    assert values["automatic success rate"].value == 0


def test_metrics_without_data_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "short.json"
    path.write_text(json.dumps([{"role": "user", "content": "Hello"}]), encoding="utf-8")
    values = {each.name: each for each in metrics([path])}
    assert all(each.over == 0 for each in values.values())
    assert values["counting accuracy"].value is None
    assert "unknown" in values["automatic success rate"].shown
    assert values["automatic success rate"].value is None


def test_without_files_the_sample_is_measured() -> None:
    values = {each.name: each for each in metrics([], least=20_000)}
    assert values["compression ratio"].over == 3
    assert (values["compression ratio"].value or 0) > 10
    assert values["automatic success rate"].value == 1
