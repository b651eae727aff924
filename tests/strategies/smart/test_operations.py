"""The effect of an operation on each type of content."""

from __future__ import annotations

import pytest

from enfold.messages import Data, Message, Text, ToolCall, ToolResult
from enfold.strategies.shortened_text import SUPPRESSED
from enfold.strategies.smart.config import (
    IndividualConfig,
    OperationConfig,
    Operations,
    Override,
    Params,
    SomeOperations,
    Summarize,
    Truncate,
)
from enfold.strategies.smart.passes import (
    SUMMARIZED,
    Editor,
    TextToSummarize,
    marked,
    operations_for,
    texts_to_summarize,
)
from enfold.tokens import get

O200K = get("o200k_base")
LONG = "\n".join(f"line {n} of something long" for n in range(40))
MIXED = Message(
    "assistant",
    (
        Text("Short."),
        ToolCall("1", "edit", {"path": "a.py", "edits": [{"new": LONG}]}),
        ToolResult("0", (Text(LONG), Data({"rows": [LONG, 1]}))),
    ),
)
KEEP = OperationConfig(operation="keep")
SUPPRESS = OperationConfig(operation="suppress")
SUMMARIZE = OperationConfig(operation="summarize")
ONE_LINE = OperationConfig(operation="truncate", params=Params(truncate=Truncate(max_lines=1)))


def edit(operations: Operations, summaries: dict[TextToSummarize, str] | None = None) -> Message:
    return Editor(O200K, summaries or {}).edit(MIXED, operations)


def test_to_keep_is_to_leave_the_very_same() -> None:
    assert edit(Operations()) is MIXED


def test_texts_inside_parameters_and_results_are_what_changes() -> None:
    new = edit(Operations(tool_parameters=SUPPRESS, tool_results=ONE_LINE))
    text_part, called, returned = new.parts
    assert text_part == Text("Short.")
    assert isinstance(called, ToolCall)
    assert called.arguments == {"path": "a.py", "edits": [{"new": SUPPRESSED}]}
    assert isinstance(returned, ToolResult)
    text, data = returned.parts
    assert isinstance(text, Text)
    assert text.text == "line 0 of something long\n⟨ ... truncated, 39 of 40 lines ⟩"
    assert isinstance(data, Data)
    assert data.value == {"rows": [text.text, 1]}


def test_texts_with_a_summary_are_replaced_and_others_stay() -> None:
    operations = Operations(message_text=SUMMARIZE, tool_results=SUMMARIZE)
    wanted = list(texts_to_summarize(MIXED, operations, O200K))
    assert wanted == [TextToSummarize(LONG, "tool", Summarize())] * 2
    new = edit(operations, {wanted[0]: marked("Long.")})
    returned = new.parts[2]
    assert isinstance(returned, ToolResult)
    assert returned.parts[0] == Text(f"{SUMMARIZED}\nLong.")
    assert edit(operations) is MIXED


@pytest.mark.parametrize("text", ["Short.", marked("word " * 200), SUPPRESSED + " " + LONG])
def test_short_texts_and_those_done_before_are_not_summarized(text: str) -> None:
    message = Message("user", (Text(text),))
    assert list(texts_to_summarize(message, Operations(message_text=SUMMARIZE), O200K)) == []


def test_later_overrides_of_a_message_are_laid_over_earlier_ones() -> None:
    config = IndividualConfig(
        defaults=Operations(tool_results=SUPPRESS),
        overrides=(
            Override(message_index=3, operations=SomeOperations(tool_results=KEEP)),
            Override(message_index=3, operations=SomeOperations(message_text=SUPPRESS)),
            Override(message_index=4, operations=SomeOperations(tool_parameters=SUPPRESS)),
        ),
    )
    assert operations_for(0, config) == Operations(tool_results=SUPPRESS)
    assert operations_for(3, config) == Operations(message_text=SUPPRESS, tool_results=KEEP)
