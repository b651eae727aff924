"""Recall in Gemini: calls and results are parts of contents, and streamed pieces are answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from enfold.server.proxy.recall.chat import BETWEEN
from enfold.server.proxy.recall.usage import added
from enfold.server.proxy.replies.loose import mapping, mappings, text
from enfold.server.proxy.replies.reply import Called
from enfold.server.proxy.replies.sse import Event

GOES_ON = frozenset({"STOP"})
"""How a reply ends whose calls are whole."""


def results(answers: Sequence[tuple[Called, str]]) -> list[dict[str, Any]]:
    """The content that answers the calls."""
    parts = [
        {
            "functionResponse": {
                **({"id": call.id} if call.id else {}),
                "name": call.name,
                "response": {"result": text},
            }
        }
        for call, text in answers
    ]
    return [{"role": "user", "parts": parts}]


def merged(held: Sequence[Mapping[str, Any]], message: Mapping[str, Any]) -> dict[str, Any]:
    """The client's own results with the held ones before them."""
    ours = [part for each in held for part in each["parts"]]
    return {**message, "parts": [*ours, *mappings(message.get("parts"))]}


def without(messages: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """The contents without calls of that tool."""
    return [{**each, "parts": _seen(mappings(each.get("parts")), name)} for each in messages]


def joined(bodies: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """The answers of a turn as one."""
    parts: list[dict[str, Any]] = []
    used: dict[str, Any] = {}
    for body in bodies:
        seen = _seen(_parts(body), name)
        parts += _spaced(seen) if any(map(_is_text, parts)) else seen
        used = added(used, mapping(body.get("usageMetadata")))
    last = _with_parts(bodies[-1], parts)
    return {**last, "usageMetadata": used} if used else last


class GeminiJoin:
    """The streams of a turn as one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._id: Any = None
        self._is_first = True
        self._spoke = False
        self._is_between = False
        self._before: dict[str, Any] = {}
        self._used: dict[str, Any] = {}
        self._closing: list[tuple[Event, dict[str, Any]]] = []

    def take(self, event: Event, said: dict[str, Any] | None) -> list[Event]:
        """What of the event the client sees now."""
        if said is None or "error" in said:
            return [event]
        if self._is_first and self._id is None:
            self._id = said.get("responseId")
        self._used = mapping(said.get("usageMetadata")) or self._used
        parts = _parts(said)
        now = self._with(said, self._seen_parts(parts))
        ends = any(each.get("finishReason") for each in mappings(said.get("candidates")))
        if ends or self._closing:
            self._closing.append((event, now))
            return []
        if parts and not _parts(now):
            return []
        return [event if now == said else event.with_json(now)]

    def close(self, *, goes_on: bool) -> list[Event]:
        """What the client sees at the end of a reply; of an end that is not the last, its parts."""
        closing = self._closing
        if goes_on:
            closing = [(event, _unended(said)) for event, said in closing if _parts(said)]
        shown = [
            event if said == event.json() else event.with_json(said) for event, said in closing
        ]
        self._is_first = False
        self._is_between = self._spoke
        self._before, self._used = added(self._before, self._used), {}
        self._closing = []
        return shown

    def _with(self, said: dict[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
        now = _with_parts(said, parts) if _parts(said) else dict(said)
        if not self._is_first:
            if self._id is not None:
                now["responseId"] = self._id
            if used := mapping(said.get("usageMetadata")):
                now["usageMetadata"] = added(self._before, used)
        return now

    def _seen_parts(self, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        seen = _seen(parts, self._name)
        if any(map(_is_text, seen)):
            seen = _spaced(seen) if self._is_between else seen
            self._spoke, self._is_between = True, False
        return seen


def _parts(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    candidate = (mappings(body.get("candidates")) or [{}])[0]
    return mappings(mapping(candidate.get("content")).get("parts"))


def _with_parts(body: Mapping[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    candidate = (mappings(body.get("candidates")) or [{}])[0]
    content = {**mapping(candidate.get("content")), "parts": parts}
    return {**body, "candidates": [{**candidate, "content": content}]}


def _unended(body: Mapping[str, Any]) -> dict[str, Any]:
    """A piece that is not the last after all."""
    candidate = mappings(body.get("candidates"))[0]
    left = {key: value for key, value in candidate.items() if key != "finishReason"}
    return {**body, "candidates": [left]}


def _seen(parts: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [part for part in parts if mapping(part.get("functionCall")).get("name") != name]


def _is_text(part: Mapping[str, Any]) -> bool:
    return bool(text(part.get("text"))) and not part.get("thought")


def _spaced(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts with a gap before their first text."""
    at = next((place for place, part in enumerate(parts) if _is_text(part)), None)
    if at is None:
        return parts
    return [*parts[:at], {**parts[at], "text": BETWEEN + parts[at]["text"]}, *parts[at + 1 :]]
