"""Recall in Responses: calls, results and reasoning are items beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from enfold.server.proxy.recall.blocks import Kind, Places, visible
from enfold.server.proxy.recall.usage import added
from enfold.server.proxy.replies.loose import mapping, mappings, number, text
from enfold.server.proxy.replies.reply import Called
from enfold.server.proxy.replies.responses import ENDS
from enfold.server.proxy.replies.sse import Event

GOES_ON = frozenset({"completed"})
"""How a reply ends whose calls are whole."""
_BEGINS = frozenset({"response.created", "response.in_progress", "response.queued"})


def results(answers: Sequence[tuple[Called, str]]) -> list[dict[str, Any]]:
    """The items that answer the calls."""
    return [
        {"type": "function_call_output", "call_id": call.id, "output": text}
        for call, text in answers
    ]


def without(items: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """The items without calls of that tool, and without reasoning that led to nothing else."""
    return visible([dict(item) for item in items], lambda item: _kind(item, name))


def joined(bodies: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """The answers of a turn as one. It has the id of the last, from which a client can go on."""
    output = [item for body in bodies for item in without(mappings(body.get("output")), name)]
    used: dict[str, Any] = {}
    for body in bodies:
        used = added(used, mapping(body.get("usage")))
    last = _without_tool(bodies[-1], name)
    return {**last, "output": output, "usage": used or last.get("usage")}


class ResponsesJoin:
    """The streams of a turn as one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._places: Places[tuple[Event, dict[str, Any]]] = Places()
        self._is_first = True
        self._id: Any = None
        self._sequence = 0
        self._before: dict[str, Any] = {}
        self._shown: list[dict[str, Any]] = []
        self._done: dict[int, dict[str, Any]] = {}
        self._end: tuple[Event, dict[str, Any]] | None = None

    def take(self, event: Event, said: dict[str, Any] | None) -> list[Event]:
        """What of the event the client sees now."""
        if said is None:
            return [event]
        kind, at = text(said.get("type")), number(said.get("output_index"))
        if kind in ENDS:
            self._end = (event, said)
            return []
        if kind in _BEGINS:
            whole = _without_tool(mapping(said.get("response")), self._name)
            self._id = self._id or whole.get("id")
            began = (event, {**said, "response": whole})
            return self._numbered([(0, began)]) if self._is_first else []
        if at is None:
            return self._numbered([(0, (event, said))])
        if kind == "response.output_item.added":
            of_item = _kind(mapping(said.get("item")), self._name)
            return self._numbered(self._places.open(at, of_item, (event, said)))
        if kind == "response.output_item.done":
            self._done[at] = mapping(said.get("item"))
        return self._numbered(self._places.more(at, (event, said)))

    def close(self, *, goes_on: bool) -> list[Event]:
        """What the client sees at the end of a reply; nothing of an end that is not the last."""
        shown = self._numbered(self._places.close())
        self._shown += [self._done[at] for at in sorted(self._done) if self._places.is_shown(at)]
        if self._end is not None:
            event, said = self._end
            whole = _without_tool(mapping(said.get("response")), self._name)
            self._before = added(self._before, mapping(whole.get("usage")))
            if not goes_on:
                whole |= {"output": self._shown, "usage": self._before or whole.get("usage")}
                # The library refuses a stream that ends under another name than it began.
                whole["id"] = self._id or whole.get("id")
                shown += self._numbered([(0, (event, {**said, "response": whole}))])
        self._places.begin()
        self._is_first = False
        self._done, self._end = {}, None
        return shown

    def _numbered(self, placed: Iterable[tuple[int, tuple[Event, dict[str, Any]]]]) -> list[Event]:
        """The events under the client's indexes, one number after the other."""
        shown: list[Event] = []
        for place, (event, said) in placed:
            now = dict(said)
            if "sequence_number" in said:
                now["sequence_number"] = self._sequence
                self._sequence += 1
            if "output_index" in said:
                now["output_index"] = place
            is_same = now == said and said.get("type") not in _BEGINS | ENDS
            shown.append(event if is_same else event.with_json(now))
        return shown


def _kind(item: Mapping[str, Any], name: str) -> Kind:
    if item.get("type") == "function_call" and item.get("name") == name:
        return "hidden"
    return "reasoning" if item.get("type") == "reasoning" else "shown"


def _without_tool(response: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The answer without the tool that the client did not offer, which providers repeat."""
    tools = response.get("tools")
    if not isinstance(tools, list):
        return dict(response)
    return {**response, "tools": [each for each in tools if mapping(each).get("name") != name]}
