"""Testing: conversation builders and fakes, for enfold's own tests and for yours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from enfold.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult
from enfold.summaries import Summary, SummaryRequest
from enfold.tokens import get


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


Reply: TypeAlias = str | Exception | Callable[[SummaryRequest], Awaitable[str]]
"""A text, an error to raise, or a function that gives a text in its own time."""


class ScriptedSummarizer:
    """A summarizer that says what it is told to, and remembers what it was asked.

    The last reply is given again and again.
    """

    def __init__(
        self, *replies: Reply, name: str = "scripted", max_input: int | None = None
    ) -> None:
        self.name = name
        self.max_input = max_input
        self.requests: list[SummaryRequest] = []
        self.script(*replies)

    def script(self, *replies: Reply) -> None:
        """What to say from now on."""
        self._replies = list(replies or ("A summary.",))

    async def summarize(self, request: SummaryRequest) -> Summary:
        """The next reply of the script."""
        self.requests.append(request)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        text = reply if isinstance(reply, str) else await reply(request)
        return Summary(text, self.name, get(request.tokenizer).count(text))
