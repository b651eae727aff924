"""Replies of Responses: items, each of which a stream also brings whole when it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enfold.llm.calls import CallUsage
from enfold.server.proxy.replies.loose import mapping, mappings, number, text
from enfold.server.proxy.replies.reply import Called, Reply

ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""Events that bring the whole answer."""


class ResponsesGathering:
    """A reply of Responses."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._usage = CallUsage()
        self._finish: str | None = None
        self._items: dict[int, dict[str, Any]] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """One event."""
        kind = text(event.get("type"))
        if kind == "response.output_item.done":
            at = number(event.get("output_index"))
            self._items[len(self._items) if at is None else at] = mapping(event.get("item"))
        elif kind in ENDS:
            self.take_whole(event.get("response"))
        elif kind == "response.created":
            self._id = text(mapping(event.get("response")).get("id")) or None

    def take_whole(self, body: Any) -> None:
        """The answer that is no stream."""
        body = mapping(body)
        self._id = text(body.get("id")) or self._id
        self._finish = text(body.get("status")) or None
        if isinstance(body.get("usage"), dict):
            self._usage = _usage(body["usage"])
        if items := mappings(body.get("output")):
            self._items = dict(enumerate(items))

    def reply(self) -> Reply:
        """What there is by now."""
        items = tuple(self._items[index] for index in sorted(self._items))
        return Reply(
            id=self._id,
            usage=self._usage,
            calls=tuple(_called(item) for item in items if text(item.get("type")) in _ARGUMENTS),
            finish=self._finish,
            messages=items,
        )


_ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}


def _called(item: Mapping[str, Any]) -> Called:
    arguments = text(item.get(_ARGUMENTS[item["type"]]))
    return Called(text(item.get("call_id")), text(item.get("name")), arguments)


def _usage(used: Mapping[str, Any]) -> CallUsage:
    details = mapping(used.get("input_tokens_details"))
    return CallUsage(
        input_tokens=number(used.get("input_tokens")),
        output_tokens=number(used.get("output_tokens")),
        cache_read_tokens=number(details.get("cached_tokens")),
        cache_write_tokens=number(details.get("cache_write_tokens")),
    )
