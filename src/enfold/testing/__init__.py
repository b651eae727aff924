"""Testing: conversation builders and fakes, for enfold's own tests and for yours."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from enfold.amounts import CallUsage
from enfold.llm.calls import Call, Connection, Delta, Ending
from enfold.llm.calls import ModelReply as WholeReply
from enfold.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult, text_of
from enfold.summaries import Summary, SummaryRequest
from enfold.tokens import count_messages, get


def system(text: str) -> Message:
    """Return a system message."""
    return Message("system", (Text(text),))


def user(text: str, *more: Part) -> Message:
    """Return a user message, with further parts if given."""
    return Message("user", (Text(text), *more))


def assistant(text: str = "", *calls: ToolCall, thinking: str = "") -> Message:
    """Return an assistant message with reasoning, text and calls, each if given."""
    reasoning: tuple[Part, ...] = (Reasoning(thinking),) if thinking else ()
    words: tuple[Part, ...] = (Text(text),) if text else ()
    return Message("assistant", (*reasoning, *words, *calls))


def call(id: str, name: str = "read", arguments: Mapping[str, Any] | None = None) -> ToolCall:
    """Return a tool call."""
    return ToolCall(id, name, arguments or {})


def result(call_id: str, text: str = "done", *, is_error: bool = False) -> Message:
    """Return a message with a tool result."""
    return Message("tool", (ToolResult(call_id, (Text(text),), is_error),))


Reply: TypeAlias = str | Exception | Callable[[SummaryRequest], Awaitable[str]]
"""A text, an error to raise, or an async function that returns a text."""


class ScriptedSummarizer:
    """A summarizer with scripted replies; it records the requests.

    The last reply is repeated.
    """

    def __init__(
        self, *replies: Reply, name: str = "scripted", max_input: int | None = None
    ) -> None:
        self.name = name
        self.max_input = max_input
        self.requests: list[SummaryRequest] = []
        self.script(*replies)

    def script(self, *replies: Reply) -> None:
        """Set the next replies."""
        self._replies = list(replies or ("A summary.",))

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return the next reply of the script."""
        self.requests.append(request)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        text = reply if isinstance(reply, str) else await reply(request)
        return Summary(text, self.name, get(request.tokenizer).count(text))


Answer: TypeAlias = (
    str | WholeReply | Exception | Callable[[Connection, Call], Awaitable[str | WholeReply]]
)
"""A text, a whole reply, an error to raise, or an async function that returns one."""


class ScriptedGateway:
    """A gateway with scripted answers; it records the calls.

    The last answer is repeated. It needs no network and no key.
    """

    def __init__(self, *answers: Answer) -> None:
        self.calls: list[Call] = []
        """The calls it received."""
        self.connections: list[Connection] = []
        """The connection of each call."""
        self.abandoned: list[Call] = []
        """Calls that were cancelled, or whose stream was closed early."""
        self.script(*answers)

    def script(self, *answers: Answer) -> None:
        """Set the next answers."""
        self._answers = list(answers or ("An answer.",))

    async def complete(self, connection: Connection, call: Call) -> WholeReply:
        """Return the next answer of the script."""
        self.connections.append(connection)
        self.calls.append(call)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        try:
            given = await answer(connection, call) if callable(answer) else answer
        except asyncio.CancelledError:
            self.abandoned.append(call)
            raise
        return given if isinstance(given, WholeReply) else reply(given, connection, call)

    async def stream(
        self, connection: Connection, call: Call
    ) -> AsyncGenerator[Delta | WholeReply, None]:
        """Yield the next answer word by word, then the whole reply."""
        whole = await self.complete(connection, call)
        words = re.split(r"(?<=\s)(?=\S)", text_of(whole.message.parts))
        try:
            for word in filter(None, words):
                yield Delta(word)
        except GeneratorExit:
            self.abandoned.append(call)
            raise
        yield whole


def reply(text: str, connection: Connection, call: Call, *, ending: Ending = "stop") -> WholeReply:
    """Return a reply with this text, and its usage as a provider would report it."""
    words = (system(call.system), *call.messages) if call.system else call.messages
    usage = CallUsage(
        input_tokens=sum(count_messages(words)),
        output_tokens=get("o200k_base").count(text),
        cache_read_tokens=0,
        cache_write_tokens=0,
    )
    return WholeReply(assistant(text), usage, ending, connection.model)
