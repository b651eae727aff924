"""Messages and parts: values that cannot change, and the text that can be read in them."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Message,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
    text_of,
)

PARTS: list[Part] = [
    Text("hello"),
    ToolCall("1", "search", {"q": "rain"}),
    ToolResult("1", (Text("wet"), Data({"mm": 4}))),
    Attachment("map.png", "image/png", 70),
    Reasoning("it rains"),
    Data([1, 2]),
    Unknown({"type": "hologram"}),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_part_cannot_change_and_can_be_replaced(part: Part) -> None:
    with pytest.raises(FrozenInstanceError):
        part.extras = {}  # type: ignore[misc]  # what must fail
    changed = replace(part, extras={"cache": True})
    assert changed.extras == {"cache": True}
    assert part.extras != changed.extras


def test_a_whole_conversation_can_be_pickled() -> None:
    message = Message("assistant", tuple(PARTS), id="m1")
    conversation = Conversation((message,), system=Message("system"), tools=(Tool("search"),))
    assert pickle.loads(pickle.dumps(conversation)) == conversation


def test_an_attachments_content_stays_out_of_its_description() -> None:
    assert "c2VjcmV0" not in repr(Attachment("a.txt", data="c2VjcmV0"))


def test_text_of_reads_texts_and_tool_results_only() -> None:
    assert text_of(tuple(PARTS)) == "hello\n\nwet"


def test_text_of_leaves_no_gap_for_empty_texts() -> None:
    assert text_of((Text("a"), Text(""), ToolResult("1"), Text("b"))) == "a\n\nb"
