"""Transcripts: what a file says of one conversation, all its branches included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from enfold.errors import DialectError, NotFoundError
from enfold.messages import NOTHING, Conversation, Extras, Message, Tool


def _nothing() -> Extras:
    return NOTHING


@dataclass(frozen=True, slots=True)
class Entry:
    """A message and its place in the tree."""

    message: Message
    id: str
    """Unique in the transcript. Where the file gives none, or the same twice, one is made up."""
    parent_id: str | None = None
    """None where a branch begins."""
    extras: Extras = field(default_factory=_nothing, repr=False)
    """What the file says of the message beside its content: times, costs, flags."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation of a file."""

    entries: tuple[Entry, ...]
    """In file order, but no message before its parent."""
    dialect: str = "enfold"
    id: str = ""
    """As the file gives it; empty where it does not."""
    title: str = ""
    tip: str | None = None
    """The entry that ends the active branch. None where nothing was said, or all taken back."""
    system: Message | None = None
    tools: tuple[Tool, ...] = ()
    format: str = ""
    """The name of the file's format."""
    body: Extras | None = field(default=None, repr=False)
    """The request body it came in, as `Conversation.extras` has it."""
    extras: Extras = field(default_factory=_nothing, repr=False)
    """What the file says of the conversation as a whole, and what was noticed while reading it."""

    def conversation(self, tip: str | None = None) -> Conversation:
        """The branch that ends at `tip`, or the active one."""
        return Conversation(
            messages=tuple(entry.message for entry in self.branch(tip)),
            dialect=self.dialect,
            system=self.system,
            tools=self.tools,
            extras=self.body,
        )

    def whole(self) -> Conversation:
        """All branches in one, as the file has them."""
        messages = tuple(entry.message for entry in self.entries)
        return replace(self.conversation(), messages=messages)

    def branch(self, tip: str | None = None) -> tuple[Entry, ...]:
        """The entries from the root to `tip`, or to the end of the active branch."""
        by_id = {entry.id: entry for entry in self.entries}
        return tuple(_branch(by_id, self.tip if tip is None else tip))

    def branches(self) -> Iterator[tuple[Entry, ...]]:
        """Every branch, in the order of `leaves`."""
        by_id = {entry.id: entry for entry in self.entries}
        for leaf in self.leaves:
            yield tuple(_branch(by_id, leaf))

    @property
    def leaves(self) -> tuple[str, ...]:
        """The ids of the entries that no other follows: the end of every branch."""
        parents = {entry.parent_id for entry in self.entries}
        return tuple(entry.id for entry in self.entries if entry.id not in parents)


def _branch(by_id: Mapping[str, Entry], tip: str | None) -> list[Entry]:
    entries: list[Entry] = []
    at = tip
    while at is not None:
        if at not in by_id:
            raise NotFoundError(f"no entry {at!r} in this transcript")
        entries.append(by_id[at])
        at = by_id[at].parent_id
    entries.reverse()
    return entries


class Ids:
    """Entry ids of one transcript: as the file gives them, made up where that does not do."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, given: Any) -> str:
        """The given id, if it is a text that no entry has yet; else one like `#7` or `m3#7`."""
        name = given if isinstance(given, str) else ""
        unique = name or f"#{len(self._taken)}"
        number = len(self._taken)
        while unique in self._taken:
            unique = f"{name}#{number}"
            number += 1
        self._taken.add(unique)
        return unique


def parents_first(parents: Mapping[str, str | None]) -> list[str]:
    """All ids in their order, except that none comes before its parent."""
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
