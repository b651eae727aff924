"""The running summary survives a checkpoint, JSON, and the change from LangMem."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from enfold.langgraph import RunningSummary

RUNNING = RunningSummary("They talked.", {"1", "2"}, "2", "1")


@pytest.mark.parametrize("allowed", [True, None, []], ids=["default", "strict", "list"])
def test_checkpointers_load_it_without_a_word(
    allowed: bool | list[type] | None, caplog: pytest.LogCaptureFixture
) -> None:
    serializer = JsonPlusSerializer(allowed_msgpack_modules=allowed)  # type: ignore[arg-type] # as documented
    with caplog.at_level(logging.DEBUG):
        loaded = serializer.loads_typed(serializer.dumps_typed({"running_summary": RUNNING}))
    assert loaded == {"running_summary": RUNNING}
    assert caplog.text == ""


def test_json_can_say_it() -> None:
    assert RunningSummary.from_any(json.loads(json.dumps(RUNNING.as_json()))) == RUNNING


def test_that_of_langmem_is_taken_over() -> None:
    @dataclass
    class Theirs:
        summary: str
        summarized_message_ids: set[str]
        last_summarized_message_id: str | None

    taken = RunningSummary.from_any(Theirs("They talked.", {"1", "2"}, "2"))
    assert taken == RunningSummary("They talked.", {"1", "2"}, "2")
    fields = {"summary": "They talked.", "summarized_message_ids": ["1", "2"]}
    assert RunningSummary.from_any(fields) == RunningSummary("They talked.", {"1", "2"}, None)


@pytest.mark.parametrize("value", ["They talked.", {"summary": ["They", "talked."]}, 3])
def test_an_invalid_running_summary_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="expected a RunningSummary"):
        RunningSummary.from_any(value)
