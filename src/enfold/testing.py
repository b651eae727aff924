"""Testing: conversation builders and fakes, for enfold's own tests and for yours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enfold.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult


def system(text: str) -> Message:
    """A system message."""
    return Message("system", (Text(text),))


def user(text: str, *more: Part) -> Message:
    """A user's message, with further parts if given."""
    return Message("user", (Text(text), *more))


def assistant(text: str = "", *calls: ToolCall, thinking: str = "") -> Message:
    """A model's message: thinking, text and calls, each if given."""
    reasoning: tuple[Part, ...] = (Reasoning(thinking),) if thinking else ()
    words: tuple[Part, ...] = (Text(text),) if text else ()
    return Message("assistant", (*reasoning, *words, *calls))


def call(id: str, name: str = "read", arguments: Mapping[str, Any] | None = None) -> ToolCall:
    """A tool call."""
    return ToolCall(id, name, arguments or {})


def result(call_id: str, text: str = "done", *, is_error: bool = False) -> Message:
    """A tool's result, as a message of its own."""
    return Message("tool", (ToolResult(call_id, (Text(text),), is_error),))
