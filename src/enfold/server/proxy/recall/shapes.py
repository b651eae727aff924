"""How each form of request and reply has calls and results: the one table of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from enfold.server.proxy.recall import chat, gemini, messages, responses
from enfold.server.proxy.replies.reply import Called
from enfold.server.proxy.replies.sse import Event

Values: TypeAlias = Sequence[Mapping[str, Any]]


class Join(Protocol):
    """The streams of a turn as one."""

    def take(self, event: Event, said: dict[str, Any] | None) -> list[Event]:
        """What of the event the client sees now."""
        ...

    def close(self, *, goes_on: bool) -> list[Event]:
        """What the client sees at the end of a reply, which may not be the last."""
        ...


@dataclass(frozen=True, slots=True)
class Shape:
    """What has to be done in one form."""

    goes_on: frozenset[str]
    """How a reply ends whose calls are whole."""
    results: Callable[[Sequence[tuple[Called, str]]], list[dict[str, Any]]]
    """The messages that answer calls."""
    without: Callable[[Values, str], list[dict[str, Any]]]
    """Messages without calls of the tool of that name."""
    joined: Callable[[Values, str], dict[str, Any]]
    """Whole answers as the one that the client sees, without calls of that tool."""
    join: Callable[[str], Join]
    """The same for streams."""
    merged: Callable[[Values, Mapping[str, Any]], dict[str, Any]] | None = None
    """Results in one message with the client's own. None: they are messages of their own."""


SHAPES: Mapping[str, Shape] = {
    "openai": Shape(chat.GOES_ON, chat.results, chat.without, chat.joined, chat.ChatJoin),
    "openai-responses": Shape(
        responses.GOES_ON,
        responses.results,
        responses.without,
        responses.joined,
        responses.ResponsesJoin,
    ),
    "anthropic": Shape(
        messages.GOES_ON,
        messages.results,
        messages.without,
        messages.joined,
        messages.MessagesJoin,
        messages.merged,
    ),
    "gemini": Shape(
        gemini.GOES_ON,
        gemini.results,
        gemini.without,
        gemini.joined,
        gemini.GeminiJoin,
        gemini.merged,
    ),
}
"""By dialect."""
