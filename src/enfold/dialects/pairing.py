"""Pairing: which result belongs to which call, on wires that leave it to name and order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from enfold.messages import Message, Part, ToolCall, ToolResult


def pair_calls(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages with every call's and result's id and name filled in where the wire has none.

    A call without an id is `name#n`, counted over the conversation. A result without one belongs
    to the first unanswered call of its name in the model's latest turn: providers that need no ids
    accept results for that turn only, so calls left open before it were interrupted.
    """
    pairs = _Pairs()
    return tuple(pairs.fill(message) for message in messages)


class _Pairs:
    """The calls met so far on the way through one conversation."""

    def __init__(self) -> None:
        self._numbers: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._open: list[ToolCall] = []
        self._speaker = ""

    def fill(self, message: Message) -> Message:
        if message.role == "assistant" and self._speaker != "assistant":
            self._open = []
        self._speaker = message.role
        if not any(isinstance(part, ToolCall | ToolResult) for part in message.parts):
            return message
        return replace(message, parts=tuple(self._fill_part(part) for part in message.parts))

    def _fill_part(self, part: Part) -> Part:
        match part:
            case ToolCall():
                return self._fill_call(part)
            case ToolResult():
                return self._fill_result(part)
        return part

    def _fill_call(self, call: ToolCall) -> ToolCall:
        if not call.id:
            call = replace(call, id=self._next_id(call.name))
        self._names[call.id] = call.name
        self._open.append(call)
        return call

    def _fill_result(self, result: ToolResult) -> ToolResult:
        answered = next((call for call in self._open if _answers(result, call)), None)
        self._open = [call for call in self._open if call is not answered]
        call_id = result.call_id or (answered.id if answered else self._next_id(result.name))
        return replace(result, call_id=call_id, name=result.name or self._names.get(call_id, ""))

    def _next_id(self, name: str) -> str:
        self._numbers[name] += 1
        return f"{name}#{self._numbers[name]}"


def _answers(result: ToolResult, call: ToolCall) -> bool:
    if result.call_id:
        return result.call_id == call.id
    return result.name in ("", call.name)
