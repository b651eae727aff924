"""Replies of Gemini: every piece of a stream is an answer of its own form, with more parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enfold.jsontext import dump_text
from enfold.llm.calls import CallUsage
from enfold.server.proxy.replies.loose import mapping, mappings, number, text, total
from enfold.server.proxy.replies.reply import Called, Reply


class GeminiGathering:
    """A reply of Gemini. Of several candidates it is the first."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._usage = CallUsage()
        self._finish: str | None = None
        self._parts: list[dict[str, Any]] = []

    def take(self, event: Mapping[str, Any]) -> None:
        """One piece."""
        self._id = text(event.get("responseId")) or self._id
        if isinstance(event.get("usageMetadata"), dict):
            self._usage = _usage(event["usageMetadata"])
        for candidate in mappings(event.get("candidates"))[:1]:
            for part in mappings(mapping(candidate.get("content")).get("parts")):
                self._add(part)
            self._finish = text(candidate.get("finishReason")) or self._finish

    def take_whole(self, body: Any) -> None:
        """The answer that is no stream of events: an object, or an array of the pieces."""
        for piece in mappings(body) or [mapping(body)]:
            self.take(piece)

    def reply(self) -> Reply:
        """What there is by now."""
        calls = (mapping(part.get("functionCall")) for part in self._parts)
        return Reply(
            id=self._id,
            usage=self._usage,
            calls=tuple(_called(call) for call in calls if call),
            finish=self._finish,
            messages=({"role": "model", "parts": list(self._parts)},) if self._parts else (),
        )

    def _add(self, part: dict[str, Any]) -> None:
        """Texts that follow each other are one, unless one of them is signed."""
        last = self._parts[-1] if self._parts else {}
        if _kind(part) is not None and _kind(part) == _kind(last):
            self._parts[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            self._parts.append(part)


def _kind(part: Mapping[str, Any]) -> bool | None:
    """For nothing but text, whether it is a thought; None for anything else."""
    is_text = isinstance(part.get("text"), str) and set(part) <= {"text", "thought"}
    return bool(part.get("thought")) if is_text else None


def _called(call: Mapping[str, Any]) -> Called:
    arguments = dump_text(mapping(call.get("args")))
    return Called(text(call.get("id")), text(call.get("name")), arguments)


def _usage(used: Mapping[str, Any]) -> CallUsage:
    return CallUsage(
        input_tokens=total(used.get("promptTokenCount"), used.get("toolUsePromptTokenCount")),
        output_tokens=total(used.get("candidatesTokenCount"), used.get("thoughtsTokenCount")),
        cache_read_tokens=number(used.get("cachedContentTokenCount")),
    )
