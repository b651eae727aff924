"""Blocks of a reply that the client sees: not recall, nor reasoning that led to nothing else.

Reasoning is signed for what follows it, and providers refuse it where that is missing. What a
client keeps must be right without recall too, so reasoning waits until it is known what it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Literal, TypeAlias, TypeVar

Block = TypeVar("Block")
Item = TypeVar("Item")
Kind: TypeAlias = Literal["shown", "hidden", "reasoning"]


def visible(blocks: Iterable[Block], kind_of: Callable[[Block], Kind]) -> list[Block]:
    """Those of the blocks that the client sees."""
    places: Places[Block] = Places()
    shown = [
        placed
        for at, block in enumerate(blocks)
        for placed in places.open(at, kind_of(block), block)
    ]
    return [block for _, block in (*shown, *places.close())]


class Places(Generic[Item]):
    """Where blocks of a stream stand for the client; its items are parts of a stream, or blocks."""

    def __init__(self) -> None:
        self._next = 0
        self.begin()

    def begin(self) -> None:
        """Another reply begins, whose blocks stand after those that were shown."""
        self._places: dict[int, int | None] = {}
        self._held: dict[int, list[Item]] = {}
        self._led_to_hidden = False

    def open(self, at: int, kind: Kind, item: Item) -> list[tuple[int, Item]]:
        """What is shown now that a block begins, each with its place."""
        if kind == "shown":
            return [*self._release(), (self._place(at), item)]
        if kind == "hidden":
            self._places[at] = None
            self._led_to_hidden = True
            return []
        if self._led_to_hidden:
            self._drop()
        self._held[at] = [item]
        return []

    def more(self, at: int, item: Item) -> list[tuple[int, Item]]:
        """What is shown now that a block goes on or ends."""
        if at in self._held:
            self._held[at].append(item)
            return []
        place = self._places[at] if at in self._places else self._place(at)
        return [] if place is None else [(place, item)]

    def close(self) -> list[tuple[int, Item]]:
        """What is shown now that the reply is at its end."""
        if self._led_to_hidden:
            self._drop()
        return self._release()

    def is_shown(self, at: int) -> bool:
        """Whether the client sees that block of the reply."""
        return self._places.get(at) is not None

    def _place(self, at: int) -> int:
        place = self._places[at] = self._next
        self._next += 1
        return place

    def _release(self) -> list[tuple[int, Item]]:
        shown = [
            (place, item)
            for at, items in self._held.items()
            for place in (self._place(at),)
            for item in items
        ]
        self._held = {}
        self._led_to_hidden = False
        return shown

    def _drop(self) -> None:
        self._places |= dict.fromkeys(self._held)
        self._held = {}
        self._led_to_hidden = False
