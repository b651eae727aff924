"""Transcripts: one conversation of a file, with all its branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from enfold.errors import DialectError, NotFoundError
from enfold.history import last_reply_start
from enfold.messages import NOTHING, Conversation, Extras, Message, Tool, ToolCall, ToolResult


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """A message and its place in the tree."""

    message: Message
    id: str
    """Unique in the transcript; generated if the file gives none, or the same twice."""
    parent_id: str | None = None
    """None at the beginning of a branch."""
    extras: Extras = field(default_factory=lambda: NOTHING, repr=False)
    """The file's other fields of the message: times, costs, flags."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation of a file."""

    entries: tuple[TranscriptEntry, ...]
    """The messages in file order, but none before its parent."""
    dialect: str = "enfold"
    id: str = ""
    """The id in the file; empty if there is none."""
    title: str = ""
    tip: str | None = None
    """The entry that ends the active branch. None if that branch is empty."""
    system: Message | None = None
    tools: tuple[Tool, ...] = ()
    format: str = ""
    """The name of the file's format."""
    body: Extras | None = field(default=None, repr=False)
    """The request body it came in, as `Conversation.extras` has it."""
    extras: Extras = field(default_factory=lambda: NOTHING, repr=False)
    """The file's fields of the whole conversation, and notes of the reader."""

    def conversation(self, tip: str | None = None) -> Conversation:
        """Return the branch that ends at `tip`, or the active one."""
        return Conversation(
            messages=tuple(entry.message for entry in self.branch(tip)),
            dialect=self.dialect,
            system=self.system,
            tools=self.tools,
            extras=self.body,
        )

    def whole(self) -> Conversation:
        """Return all branches in one, as the file has them."""
        messages = tuple(entry.message for entry in self.entries)
        return replace(self.conversation(), messages=messages)

    def branch(self, tip: str | None = None) -> tuple[TranscriptEntry, ...]:
        """Return the entries from the root to `tip`, or to the end of the active branch."""
        by_id = {entry.id: entry for entry in self.entries}
        branch: list[TranscriptEntry] = []
        at = self.tip if tip is None else tip
        while at is not None:
            if at not in by_id:
                raise NotFoundError(f"no entry {at!r} in this transcript")
            branch.append(by_id[at])
            at = by_id[at].parent_id
        return tuple(reversed(branch))

    @property
    def leaves(self) -> tuple[str, ...]:
        """The ids of the entries without a successor: the end of every branch."""
        parents = {entry.parent_id for entry in self.entries}
        return tuple(entry.id for entry in self.entries if entry.id not in parents)


class Ids:
    """The entry ids of one transcript; missing and repeated ones are generated."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, given: Any) -> str:
        """Return the given id if it is a text and new; else one such as `#7` or `m3#7`."""
        name = given if isinstance(given, str) else ""
        unique = name or f"#{len(self._taken)}"
        number = len(self._taken)
        while unique in self._taken:
            unique = f"{name}#{number}"
            number += 1
        self._taken.add(unique)
        return unique


def parents_first(parents: Mapping[str, str | None]) -> list[str]:
    """Return all ids in their order, except that none comes before its parent."""
    placed: dict[str, None] = {}
    for start in parents:
        waiting: dict[str, None] = {}
        at: str | None = start
        while at is not None and at not in placed:
            if at in waiting:
                raise DialectError(f"the parents of message {at!r} form a circle")
            waiting[at] = None
            at = parents[at]
        placed.update(dict.fromkeys(reversed(waiting)))
    return list(placed)


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem and its place."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


def problems(messages: Sequence[Message]) -> tuple[Problem, ...]:
    """Return the problems of the messages of one branch, in their order.

    Calls of the last reply may still wait for their results. A result on a wire without call ids
    cannot be checked.
    """
    found = list(_unpaired(messages))
    first: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message.id is not None and (before := first.setdefault(message.id, index)) != index:
            found.append((index, f"the id {message.id!r} is that of messages[{before}] too"))
    return tuple(Problem(f"messages[{index}]", reason) for index, reason in sorted(found))


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
    may_wait = last_reply_start(messages)
    for call_id, index in calls.items():
        if call_id not in answered and index < may_wait:
            yield index, f"the call {call_id!r} has no result"


def _calls_and_results(messages: Sequence[Message]) -> Iterator[tuple[int, ToolCall | ToolResult]]:
    for index, message in enumerate(messages):
        for part in message.parts:
            match part:
                case ToolCall(id=call_id) | ToolResult(call_id=call_id) if call_id:
                    yield index, part
