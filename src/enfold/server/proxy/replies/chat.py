"""Replies of Chat Completions: one message, whose streamed pieces are put together by index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enfold.llm.calls import CallUsage
from enfold.server.proxy.replies.loose import mapping, mappings, number, text
from enfold.server.proxy.replies.reply import Called, Reply


class ChatGathering:
    """A reply of Chat Completions. Of several choices it is the first."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._usage = CallUsage()
        self._finish: str | None = None
        self._message: dict[str, Any] = {"role": "assistant"}
        self._pieces: dict[str, list[str]] = {}
        self._calls: dict[int, dict[str, Any]] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """One chunk."""
        self._take_beside(event)
        for choice in mappings(event.get("choices")):
            if choice.get("index", 0) == 0:
                self._take_delta(mapping(choice.get("delta")))
                self._finish = text(choice.get("finish_reason")) or self._finish

    def take_whole(self, body: Any) -> None:
        """The answer that is no stream."""
        self._take_beside(mapping(body))
        for choice in mappings(mapping(body).get("choices"))[:1]:
            said = dict(mapping(choice.get("message")))
            self._calls = dict(enumerate(mappings(said.pop("tool_calls", None))))
            self._message |= {key: value for key, value in said.items() if value not in (None, [])}
            self._finish = text(choice.get("finish_reason")) or None

    def reply(self) -> Reply:
        """What there is by now."""
        calls = [self._calls[index] for index in sorted(self._calls)]
        said = {key: "".join(pieces) for key, pieces in self._pieces.items()}
        message = {**self._message, **said}
        if calls:
            message["tool_calls"] = calls
        is_empty = set(message) == {"role"}
        return Reply(
            id=self._id,
            usage=self._usage,
            calls=tuple(map(_called, calls)),
            finish=self._finish,
            messages=() if is_empty else (message,),
        )

    def _take_beside(self, body: Mapping[str, Any]) -> None:
        self._id = text(body.get("id")) or self._id
        if isinstance(body.get("usage"), dict):
            self._usage = _usage(body["usage"])

    def _take_delta(self, delta: Mapping[str, Any]) -> None:
        for key, value in delta.items():
            if key == "tool_calls":
                for place, piece in enumerate(mappings(value)):
                    _put(self._calls.setdefault(number(piece.get("index", place)) or 0, {}), piece)
            elif key == "role":
                self._message["role"] = value
            elif isinstance(value, str):
                self._pieces.setdefault(key, []).append(value)
            elif isinstance(value, list):
                before = self._message.get(key)
                self._message[key] = [*before, *value] if isinstance(before, list) else value
            elif value is not None:
                self._message[key] = value


def _put(call: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """A piece of a call added to what came before; only arguments come in several."""
    for key, value in piece.items():
        if key == "index" or value is None:
            continue
        if not isinstance(value, dict):
            call[key] = value
            continue
        inner = call[key] = dict(mapping(call.get(key)))
        for name, part in value.items():
            is_more = name in {"arguments", "input"} and isinstance(part, str)
            inner[name] = text(inner.get(name)) + part if is_more else part


def _called(call: Mapping[str, Any]) -> Called:
    said = mapping(call.get("function")) or mapping(call.get("custom"))
    return Called(
        id=text(call.get("id")),
        name=text(said.get("name")),
        arguments=text(said.get("arguments")) or text(said.get("input")),
    )


def _usage(used: Mapping[str, Any]) -> CallUsage:
    details = mapping(used.get("prompt_tokens_details"))
    return CallUsage(
        input_tokens=number(used.get("prompt_tokens")),
        output_tokens=number(used.get("completion_tokens")),
        cache_read_tokens=number(details.get("cached_tokens")),
        cache_write_tokens=number(details.get("cache_write_tokens")),
    )
