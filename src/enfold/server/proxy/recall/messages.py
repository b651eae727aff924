"""Recall in Messages: calls are blocks of the assistant, results blocks of the user's turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from enfold.server.proxy.recall.blocks import Kind, Places, visible
from enfold.server.proxy.recall.usage import added
from enfold.server.proxy.replies.loose import mapping, mappings, number
from enfold.server.proxy.replies.reply import Called
from enfold.server.proxy.replies.sse import Event

GOES_ON = frozenset({"tool_use"})
"""How a reply ends whose calls are whole."""


def results(answers: Sequence[tuple[Called, str]]) -> list[dict[str, Any]]:
    """The message that answers the calls."""
    blocks = [
        {"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in answers
    ]
    return [{"role": "user", "content": blocks}]


def merged(held: Sequence[Mapping[str, Any]], message: Mapping[str, Any]) -> dict[str, Any]:
    """The client's own results with the held ones before them."""
    ours = [block for each in held for block in each["content"]]
    theirs = message.get("content")
    said = [{"type": "text", "text": theirs}] if isinstance(theirs, str) else theirs or []
    return {**message, "content": [*ours, *said]}


def without(messages: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """The messages without calls of that tool."""
    return [
        {**message, "content": [b for b in mappings(message["content"]) if not _calls(b, name)]}
        for message in messages
    ]


def joined(bodies: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """The answers of a turn as one."""
    content = [
        block
        for body in bodies
        for block in visible(mappings(body.get("content")), lambda b: _kind(b, name))
    ]
    used: dict[str, Any] = {}
    for body in bodies:
        used = added(used, mapping(body.get("usage")))
    calls = any(block.get("type") == "tool_use" for block in content)
    reason = _reason(bodies[-1].get("stop_reason"), calls=calls)
    return {**bodies[-1], "content": content, "stop_reason": reason, "usage": used}


class MessagesJoin:
    """The streams of a turn as one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._places: Places[tuple[Event, dict[str, Any]]] = Places()
        self._is_first = True
        self._calls = False
        self._before: dict[str, Any] = {}
        self._used: dict[str, Any] = {}
        self._closing: list[tuple[Event, dict[str, Any]]] = []

    def take(self, event: Event, said: dict[str, Any] | None) -> list[Event]:
        """What of the event the client sees now."""
        if said is None:
            return [event]
        at = number(said.get("index")) or 0
        match said.get("type"):
            case "message_start":
                self._use(mapping(said.get("message")))
                return [event] if self._is_first else []
            case "content_block_start":
                kind = _kind(mapping(said.get("content_block")), self._name)
                self._calls |= kind == "shown" and said["content_block"].get("type") == "tool_use"
                return _numbered(self._places.open(at, kind, (event, said)))
            case "content_block_delta" | "content_block_stop":
                return _numbered(self._places.more(at, (event, said)))
            case "message_delta" | "message_stop":
                self._use(said)
                self._closing.append((event, said))
                return []
        return [event]

    def close(self, *, goes_on: bool) -> list[Event]:
        """What the client sees at the end of a reply; nothing of an end that is not the last."""
        shown = _numbered(self._places.close())
        if not goes_on:
            shown += [self._closed(event, said) for event, said in self._closing]
        self._places.begin()
        self._is_first = False
        self._before, self._used = added(self._before, self._used), {}
        self._closing = []
        return shown

    def _use(self, said: Mapping[str, Any]) -> None:
        given = mapping(said.get("usage"))
        self._used |= {key: value for key, value in given.items() if value is not None}

    def _closed(self, event: Event, said: dict[str, Any]) -> Event:
        if said.get("type") != "message_delta":
            return event
        delta = mapping(said.get("delta"))
        now = {**delta, "stop_reason": _reason(delta.get("stop_reason"), calls=self._calls)}
        if self._is_first and now == delta:
            return event
        usage = added(self._before, {**mapping(said.get("usage")), **self._used})
        return event.with_json({**said, "delta": now, "usage": usage})


def _kind(block: Mapping[str, Any], name: str) -> Kind:
    if _calls(block, name):
        return "hidden"
    return "reasoning" if block.get("type") in ("thinking", "redacted_thinking") else "shown"


def _calls(block: Mapping[str, Any], name: str) -> bool:
    return block.get("type") == "tool_use" and block.get("name") == name


def _reason(reason: Any, *, calls: bool) -> Any:
    """No reply ends for calls that the client does not see."""
    return "end_turn" if reason == "tool_use" and not calls else reason


def _numbered(placed: Iterable[tuple[int, tuple[Event, dict[str, Any]]]]) -> list[Event]:
    return [
        event if said.get("index") == place else event.with_json({**said, "index": place})
        for place, (event, said) in placed
    ]
