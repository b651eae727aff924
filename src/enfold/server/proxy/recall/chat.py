"""Recall in Chat Completions: calls are a list in the assistant's message, results messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from enfold.server.proxy.recall.usage import added
from enfold.server.proxy.replies.loose import mapping, mappings, number, text
from enfold.server.proxy.replies.reply import Called
from enfold.server.proxy.replies.sse import Event

GOES_ON = frozenset({"tool_calls", "stop"})
"""How a reply ends whose calls are whole."""
BETWEEN = "\n\n"
"""What stands between the texts of two replies, where they become one text."""


def results(answers: Sequence[tuple[Called, str]]) -> list[dict[str, Any]]:
    """The messages that answer the calls."""
    return [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in answers]


def without(messages: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """The messages without calls of that tool."""
    return [_without(message, name) for message in messages]


def joined(bodies: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """The answers of a turn as one."""
    last = dict(bodies[-1])
    choice = (mappings(last.get("choices")) or [{}])[0]
    message = _without(mapping(choice.get("message")), name)
    if texts := [said for body in bodies if (said := _content(body))]:
        message["content"] = BETWEEN.join(texts)
    reason = _reason(choice.get("finish_reason"), calls="tool_calls" in message)
    used: dict[str, Any] = {}
    for body in bodies:
        used = added(used, mapping(body.get("usage")))
    last["choices"] = [{**choice, "message": message, "finish_reason": reason}]
    return {**last, "usage": used} if used else last


class ChatJoin:
    """The streams of a turn as one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._id: Any = None
        self._is_first = True
        self._spoke = False
        self._is_between = False
        self._calls = False
        self._hidden: set[int] = set()
        self._before: dict[str, Any] = {}
        self._used: dict[str, Any] = {}
        self._closing: list[tuple[Event, dict[str, Any] | None]] = []

    def take(self, event: Event, said: dict[str, Any] | None) -> list[Event]:
        """What of the event the client sees now."""
        if said is None:
            return self._kept(event) if event.data else [event]
        if self._is_first and self._id is None:
            self._id = said.get("id")
        self._used = mapping(said.get("usage")) or self._used
        choices = mappings(said.get("choices"))
        if not choices:
            return self._kept(event, said) if "usage" in said else [event]
        delta = mapping(choices[0].get("delta"))
        seen = self._seen(delta)
        now = self._with(said, {**choices[0], "delta": seen})
        if choices[0].get("finish_reason") is None:
            is_nothing = not seen and bool(delta)
            return [] if is_nothing else [event if now == said else event.with_json(now)]
        self._kept(event, self._with(said, {**choices[0], "delta": {}}))
        if not seen:
            return []
        first = {**now, "choices": [{**now["choices"][0], "finish_reason": None}]}
        return [event.with_json({key: first[key] for key in first if key != "usage"})]

    def close(self, *, goes_on: bool) -> list[Event]:
        """What the client sees at the end of a reply; nothing of an end that is not the last."""
        shown = [] if goes_on else [self._closed(event, said) for event, said in self._closing]
        self._is_first = False
        self._is_between = self._spoke
        self._hidden = set()
        self._before, self._used = added(self._before, self._used), {}
        self._closing = []
        return shown

    def _kept(self, event: Event, said: dict[str, Any] | None = None) -> list[Event]:
        self._closing.append((event, said))
        return []

    def _with(self, said: dict[str, Any], choice: dict[str, Any]) -> dict[str, Any]:
        now = {**said, "choices": [choice]}
        if not self._is_first:
            now["id"] = self._id
            if used := mapping(said.get("usage")):
                now["usage"] = added(self._before, used)
        return now

    def _seen(self, delta: dict[str, Any]) -> dict[str, Any]:
        """What of the piece the client sees."""
        seen = dict(delta)
        if not self._is_first:
            seen.pop("role", None)
        if text(seen.get("content")):
            if self._is_between:
                seen["content"] = BETWEEN + seen["content"]
                self._is_between = False
            self._spoke = True
        if "tool_calls" in seen:
            seen["tool_calls"] = self._seen_calls(mappings(seen["tool_calls"]))
            if not seen["tool_calls"]:
                del seen["tool_calls"]
        return seen

    def _seen_calls(self, pieces: list[dict[str, Any]]) -> list[dict[str, Any]]:
        seen = []
        for place, piece in enumerate(pieces):
            at = number(piece.get("index", place)) or 0
            if mapping(piece.get("function")).get("name") == self._name:
                self._hidden.add(at)
            if at not in self._hidden:
                self._calls = True
                before = sum(hidden < at for hidden in self._hidden)
                seen.append({**piece, "index": at - before} if before else piece)
        return seen

    def _closed(self, event: Event, said: dict[str, Any] | None) -> Event:
        if said is None:
            return event
        now = dict(said)
        if choices := mappings(said.get("choices")):
            reason = _reason(choices[0].get("finish_reason"), calls=self._calls)
            now["choices"] = [{**choices[0], "finish_reason": reason}]
        if not self._is_first:
            now["id"] = self._id
            if mapping(said.get("usage")):
                now["usage"] = added(self._before, self._used)
        return event if now == event.json() else event.with_json(now)


def _without(message: Mapping[str, Any], name: str) -> dict[str, Any]:
    left = dict(message)
    calls = [
        call
        for call in mappings(message.get("tool_calls"))
        if mapping(call.get("function")).get("name") != name
    ]
    if calls:
        left["tool_calls"] = calls
    else:
        left.pop("tool_calls", None)
    return left


def _content(body: Mapping[str, Any]) -> str:
    choice = (mappings(body.get("choices")) or [{}])[0]
    return text(mapping(choice.get("message")).get("content"))


def _reason(reason: Any, *, calls: bool) -> Any:
    """No reply ends for calls that the client does not see."""
    return "stop" if reason == "tool_calls" and not calls else reason
