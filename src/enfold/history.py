"""History: one branch of messages, its legal cut points, and the parts that no edit may change.

The rules that providers enforce are stated here once; no strategy derives them again.

- A tool call and its result stay on the same side of a cut, parallel calls and results with other
  messages in between included. A call whose result is still to come forbids every cut after it.
- The items of one reply are one unit if one of them is reasoning: the reasoning, the text and the
  calls of a reply stay or leave together.
- Inside a running tool loop a cut may lie between complete groups of calls and results.
- The last message of a user stays verbatim, and the tail is never empty (`retention` sees to both).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from enfold.messages import Message, Reasoning, ToolCall, ToolResult
from enfold.text.harness import person_only

_JOINED = frozenset({ToolCall, ToolResult, Reasoning})
"""Parts that may join a message to others."""
_SIGNATURES = ("thoughtSignature", "thought_signature")
"""Fields of Gemini's parts that sign the reasoning before a call or a text."""


def cut_points(messages: Sequence[Message]) -> tuple[int, ...]:
    """Return every index at which the messages may be divided into before and after, in order.

    0 is always one; the number of messages is one unless a tool loop is open at the end.
    """
    size = len(messages)
    if _JOINED.isdisjoint({type(part) for message in messages for part in message.parts}):
        return tuple(range(size + 1))
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
    """Return the index of the last message that a person wrote.

    Without one it is the last message of a user: clients add such messages too.
    """
    last = None
    for index in range(len(messages) - 1, -1, -1):
        if is_from_user(messages[index]):
            last = index if last is None else last
            if person_only(messages[index]) is not None:
                return index
    return last


def is_from_user(message: Message) -> bool:
    """True for a user's own words or files; a message of tool results alone is not that."""
    return message.role == "user" and any(
        not isinstance(part, ToolResult) for part in message.parts
    )


def answers_a_call(message: Message) -> bool:
    """True if the message holds a tool's result, so that it cannot stand without the call."""
    return any(isinstance(part, ToolResult) for part in message.parts)


def open_loop_start(messages: Sequence[Message]) -> int:
    """Return the index at which the running tool loop begins.

    A loop is running while the model's answer is still to come: the history ends with a tool's
    result or with a call. Without a running loop the number of messages is returned.
    """
    size = len(messages)
    if not size or not (_is_result(messages[-1]) or _has_call(messages[-1])):
        return size
    start = last_user_message(messages)
    return 0 if start is None else start + 1


def signed_replies(messages: Sequence[Message]) -> Iterator[int]:
    """Yield the indexes of replies that no edit may change, because providers check them.

    In a running tool loop these are the replies with reasoning or a signature. Where reasoning is
    an item of its own, all items of its reply, anywhere in the history: an edit of one item cannot
    drop the reasoning, which belongs to the reply as it was.
    """
    loop = open_loop_start(messages)
    for index in range(loop, len(messages)):
        if messages[index].role == "assistant" and _is_signed(messages[index]):
            yield index
    for start, stop in _replies_with_reasoning_items(messages):
        yield from range(start, stop)


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


def _units(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Yield the first and last index of every run of messages that no cut may divide."""
    waiting: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall):
                waiting.setdefault(part.id, []).append(index)
            elif isinstance(part, ToolResult) and waiting.get(part.call_id):
                yield waiting[part.call_id].pop(), index
    yield from ((start, stop - 1) for start, stop in _replies_with_reasoning_items(messages))
    last_reply = last_reply_start(messages)
    for index in chain.from_iterable(waiting.values()):
        if index >= last_reply:
            yield index, len(messages)


def _replies_with_reasoning_items(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Yield start and stop of every run of the model's messages that has a reasoning item.

    A reasoning item at the end of such a run also needs the message that follows it.
    """
    start = 0
    for is_reply, group in groupby(messages, lambda message: message.role == "assistant"):
        run = list(group)
        stop = start + len(run)
        if is_reply and any(map(_is_reasoning, run)):
            yield start, min(stop + _is_reasoning(run[-1]), len(messages))
        start = stop


def last_reply_start(messages: Sequence[Message]) -> int:
    """Return where the model's latest reply begins, if only tool results have come since.

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


def _is_signed(message: Message) -> bool:
    """Return True if a reply has reasoning, or a part that carries a signature of reasoning."""
    return any(
        isinstance(part, Reasoning) or any(key in part.extras for key in _SIGNATURES)
        for part in message.parts
    )
