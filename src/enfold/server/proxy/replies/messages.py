"""Replies of Messages: content blocks, each opened, written and closed under its index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enfold.errors import InputError
from enfold.jsontext import dump_text, loads
from enfold.llm.calls import CallUsage
from enfold.server.proxy.replies.loose import mapping, mappings, number, text, total
from enfold.server.proxy.replies.reply import Called, Reply

_TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""What each kind of piece adds to, under the same name."""


class MessagesGathering:
    """A reply of Messages."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._used: dict[str, Any] = {}
        self._finish: str | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """One event."""
        at = number(event.get("index")) or 0
        match event.get("type"):
            case "message_start":
                message = mapping(event.get("message"))
                self._id = text(message.get("id")) or None
                self._use(message)
            case "content_block_start":
                self._blocks[at] = dict(mapping(event.get("content_block")))
            case "content_block_delta":
                self._take_delta(at, mapping(event.get("delta")))
            case "message_delta":
                self._finish = text(mapping(event.get("delta")).get("stop_reason")) or self._finish
                self._use(event)

    def take_whole(self, body: Any) -> None:
        """The answer that is no stream."""
        body = mapping(body)
        self._id = text(body.get("id")) or None
        self._finish = text(body.get("stop_reason")) or None
        self._blocks = dict(enumerate(mappings(body.get("content"))))
        self._use(body)

    def reply(self) -> Reply:
        """What there is by now."""
        blocks = [self._block(index) for index in sorted(self._blocks)]
        return Reply(
            id=self._id,
            usage=_usage(self._used),
            calls=tuple(_called(block) for block in blocks if block.get("type") == "tool_use"),
            finish=self._finish,
            messages=({"role": "assistant", "content": blocks},) if blocks else (),
        )

    def _use(self, said: Mapping[str, Any]) -> None:
        """Counts grow while a reply is written, and the later are right."""
        given = mapping(said.get("usage"))
        self._used |= {key: value for key, value in given.items() if value is not None}

    def _take_delta(self, at: int, delta: Mapping[str, Any]) -> None:
        kind = text(delta.get("type"))
        if name := _TEXTS.get(kind):
            self._pieces.setdefault((at, name), []).append(text(delta.get(name)))
        elif kind == "input_json_delta":
            self._pieces.setdefault((at, "input"), []).append(text(delta.get("partial_json")))
        elif kind == "citations_delta":
            block = self._blocks.setdefault(at, {})
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]

    def _block(self, index: int) -> dict[str, Any]:
        block = dict(self._blocks[index])
        for (at, name), pieces in self._pieces.items():
            if at == index:
                said = "".join(pieces)
                block[name] = _input(said) if name == "input" else text(block.get(name)) + said
        return block


def _input(said: str) -> Any:
    """A call's input; as text where the model did not get to its end."""
    try:
        return loads(said) if said else {}
    except InputError:
        return said


def _called(block: Mapping[str, Any]) -> Called:
    given = block.get("input")
    arguments = given if isinstance(given, str) else dump_text(given)
    return Called(text(block.get("id")), text(block.get("name")), arguments)


def _usage(used: Mapping[str, Any]) -> CallUsage:
    read, written = used.get("cache_read_input_tokens"), used.get("cache_creation_input_tokens")
    return CallUsage(
        input_tokens=total(used.get("input_tokens"), read, written),
        output_tokens=number(used.get("output_tokens")),
        cache_read_tokens=number(read),
        cache_write_tokens=number(written),
    )
