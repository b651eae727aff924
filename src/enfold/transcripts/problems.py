"""Problems: what a provider would refuse in a conversation that can be read all the same.

Real logs have them: a program was stopped in the middle of a call, a line was written twice. They
are told, not raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from enfold.messages import Message, ToolCall, ToolResult


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


def problems(messages: Sequence[Message]) -> tuple[Problem, ...]:
    """What is wrong with the messages of one branch, in their order.

    Calls of the last reply may still wait for their results. A result on a wire without call ids
    cannot be checked.
    """
    found = [*_repeated_ids(messages), *_unpaired(messages)]
    return tuple(Problem(f"messages[{index}]", reason) for index, reason in sorted(found))


def _repeated_ids(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    first: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message.id is not None and first.setdefault(message.id, index) != index:
            yield index, f"the id {message.id!r} is that of messages[{first[message.id]}] too"


def _unpaired(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    calls: dict[str, int] = {}
    answered: set[str] = set()
    for index, part in _calls_and_results(messages):
        if isinstance(part, ToolCall):
            if part.id in calls:
                yield index, f"the call id {part.id!r} is used in messages[{calls[part.id]}] too"
            calls[part.id] = index
            answered.discard(part.id)
        elif part.call_id not in calls:
            yield index, f"a tool result without its call {part.call_id!r} before it"
        elif part.call_id in answered:
            yield index, f"a second result of the call {part.call_id!r}"
        else:
            answered.add(part.call_id)
    may_wait = _last_reply(messages)
    for call_id, index in calls.items():
        if call_id not in answered and index < may_wait:
            yield index, f"the call {call_id!r} has no result"


def _calls_and_results(
    messages: Sequence[Message],
) -> Iterator[tuple[int, ToolCall | ToolResult]]:
    for index, message in enumerate(messages):
        for part in message.parts:
            match part:
                case ToolCall(id=known) | ToolResult(call_id=known) if known:
                    yield index, part


def _last_reply(messages: Sequence[Message]) -> int:
    """Where the model's latest reply begins, if only results have come since."""
    index = len(messages)
    while index and _is_results(messages[index - 1]):
        index -= 1
    while index and messages[index - 1].role == "assistant":
        index -= 1
    return index


def _is_results(message: Message) -> bool:
    return bool(message.parts) and all(isinstance(part, ToolResult) for part in message.parts)
