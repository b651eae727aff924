"""History: one branch as the model sees it, and where it may be cut.

The rules that providers enforce are stated here once; no strategy derives them again.

- A tool call and its result stay on the same side of a cut, parallel calls and results with other
  messages in between included. A call whose result is still to come forbids every cut after it.
- A reasoning item and the item that follows it are one unit.
- The last thing a user said stays verbatim, and the tail is never empty (`retention` sees to both).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from enfold.messages import Message, Reasoning, ToolCall, ToolResult


def cut_points(messages: Sequence[Message]) -> tuple[int, ...]:
    """Every index at which the messages may be divided into before and after, in order.

    0 is always one; the number of messages is one unless a tool loop is open at the end.
    """
    size = len(messages)
    blocked = [0] * (size + 2)
    for start, end in _units(messages):
        blocked[start + 1] += 1
        blocked[end + 1] -= 1
    points: list[int] = []
    depth = 0
    for index in range(size + 1):
        depth += blocked[index]
        if depth == 0:
            points.append(index)
    return tuple(points)


def last_user_message(messages: Sequence[Message]) -> int | None:
    """The index of the last message in which a person said something."""
    for index in range(len(messages) - 1, -1, -1):
        if is_said_by_user(messages[index]):
            return index
    return None


def is_said_by_user(message: Message) -> bool:
    """True for a user's own words or files; a message of tool results alone is not that."""
    return message.role == "user" and any(
        not isinstance(part, ToolResult) for part in message.parts
    )


def answers_a_call(message: Message) -> bool:
    """True if the message holds a tool's result, so that it cannot stand without the call."""
    return any(isinstance(part, ToolResult) for part in message.parts)


def open_loop_start(messages: Sequence[Message]) -> int:
    """Where the running tool loop begins: from there on nothing may be edited.

    A loop is open while the model still owes its answer: the history ends with a tool's result or
    with a call. Providers check that what the model said inside it is unchanged. Without an open
    loop the answer is the number of messages.
    """
    size = len(messages)
    if not size or not (_is_result(messages[-1]) or _has_call(messages[-1])):
        return size
    start = last_user_message(messages)
    return 0 if start is None else start + 1


def orphans(messages: Sequence[Message]) -> tuple[int, ...]:
    """Indexes of messages that hold a tool result without its call before it."""
    calls: set[str] = set()
    found: list[int] = []
    for index, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall):
                calls.add(part.id)
            elif isinstance(part, ToolResult) and part.call_id not in calls:
                found.append(index)
                break
    return tuple(found)


def unanswered(messages: Sequence[Message]) -> tuple[int, ...]:
    """Indexes of messages that hold a tool call without its result after it."""
    waiting: dict[str, int] = {}
    for index, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall):
                waiting[part.id] = index
            elif isinstance(part, ToolResult):
                waiting.pop(part.call_id, None)
    return tuple(sorted(set(waiting.values())))


def follows_reasoning(messages: Sequence[Message], index: int) -> bool:
    """True if the item before is reasoning: the two are one unit, and neither may be edited."""
    return index > 0 and _is_reasoning(messages[index - 1])


def _units(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """First and last index of every run of messages that no cut may divide."""
    waiting: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall):
                waiting.setdefault(part.id, []).append(index)
            elif isinstance(part, ToolResult) and waiting.get(part.call_id):
                yield waiting[part.call_id].pop(), index
        if _is_reasoning(message) and index + 1 < len(messages):
            yield index, index + 1
    last_reply = _last_reply_start(messages)
    for index in _flatten(waiting.values()):
        if index >= last_reply:
            yield index, len(messages)


def _last_reply_start(messages: Sequence[Message]) -> int:
    """Where the model's latest reply begins, if only tool results have come since.

    Only its calls can still be answered; older calls without a result were interrupted.
    """
    index = len(messages)
    while index and _is_result(messages[index - 1]):
        index -= 1
    while index and messages[index - 1].role == "assistant":
        index -= 1
    return index


def _is_result(message: Message) -> bool:
    return bool(message.parts) and all(isinstance(part, ToolResult) for part in message.parts)


def _has_call(message: Message) -> bool:
    return any(isinstance(part, ToolCall) for part in message.parts)


def _is_reasoning(message: Message) -> bool:
    return bool(message.parts) and all(isinstance(part, Reasoning) for part in message.parts)


def _flatten(lists: Iterable[list[int]]) -> Iterator[int]:
    return (item for items in lists for item in items)
