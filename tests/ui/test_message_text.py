"""A message in plain text, part by part."""

from __future__ import annotations

from enfold.messages import (
    Attachment,
    Data,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from enfold.ui.message_text import TextSection, sections


def test_every_part_can_be_read() -> None:
    message = Message(
        "assistant",
        (
            Reasoning("First this."),
            Text("Hello."),
            ToolCall("1", "read", {"path": "a.txt"}),
            ToolCall("2", "write", '{"broken'),
            ToolResult("1", (Text("line"), Data({"n": 1})), name="read"),
            ToolResult("2", (Text("no"),), is_error=True),
            Attachment("plan.pdf", "application/pdf", 1_234),
            Attachment(),
            Unknown({"kind": "new"}),
        ),
    )
    assert sections(message) == (
        TextSection("First this.", "Reasoning"),
        TextSection("Hello."),
        TextSection('{"path":"a.txt"}', "Call of read", is_code=True),
        TextSection('{"broken', "Call of write", is_code=True),
        TextSection("line", "Result of read", is_code=True),
        TextSection('{"n":1}', "Result of read", is_code=True),
        TextSection("no", "Error", is_code=True),
        TextSection("plan.pdf, application/pdf, 1,234 bytes", "Attachment"),
        TextSection("unnamed", "Attachment"),
        TextSection("(unknown kind of content)", "Other"),
    )


def test_opaque_reasoning_says_that_it_is() -> None:
    assert sections(Message("assistant", (Reasoning(),)))[0].text == "(not readable)"
