"""A reply: what a model said in one answer, in whichever form it was said."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from enfold.amounts import CallUsage
from enfold.errors import InputError
from enfold.jsontext import dumps, loads


@dataclass(frozen=True, slots=True)
class Called:
    """A tool that the model calls."""

    id: str
    """As results refer to it; empty where the provider gives none."""
    name: str
    arguments: str
    """As JSON, or whatever else the model wrote."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What was read of an answer."""

    id: str | None = None
    """The provider's name for it."""
    usage: CallUsage = CallUsage()  # noqa: RUF009, frozen
    calls: tuple[Called, ...] = ()
    finish: str | None = None
    """Why it ended, in the provider's word. None: it did not, or broke off."""
    messages: tuple[Mapping[str, Any], ...] = ()
    """The model's own words, as the messages of a request that goes on from there."""


class Gathering(Protocol):
    """Puts a reply of one form together."""

    def take(self, event: Mapping[str, Any]) -> None:
        """One event of a stream."""
        ...

    def take_whole(self, body: Any) -> None:
        """An answer that was not streamed."""
        ...

    def reply(self) -> Reply:
        """What there is by now."""
        ...


def mapping(value: Any) -> dict[str, Any]:
    """The object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    """The objects of an array; none for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """The text; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def number(value: Any) -> int | None:
    """The whole number; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def total(*values: Any) -> int | None:
    """The sum of the numbers among them, of which the first must be one."""
    if number(values[0]) is None:
        return None
    return sum(number(value) or 0 for value in values)


_BLANK = re.compile(rb"\r?\n\r?\n|\r\r")
"""The end of an event."""
_LONGEST_BLANK = 4


@dataclass(frozen=True, slots=True)
class Event:
    """One event, and the bytes that it came with."""

    raw: bytes
    """To its end, the blank line included."""

    @property
    def data(self) -> bytes:
        """What it says; empty for a comment."""
        lines = self.raw.splitlines()
        said = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
        return said[0] if len(said) == 1 else b"\n".join(said)

    def json(self) -> dict[str, Any] | None:
        """What it says, where that is a JSON object."""
        data = self.data
        if not data.startswith(b"{"):
            return None
        try:
            found = loads(data)
        except InputError:
            return None
        return found if isinstance(found, dict) else None

    def with_json(self, value: Any) -> Event:
        """The same kind of event that says something else."""
        names = [line for line in self.raw.splitlines() if line.startswith(b"event:")]
        return Event(b"\n".join([*names, b"data: " + dumps(value), b"", b""]))


class Events:
    """Takes chunks, gives events."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that are whole with this chunk."""
        start, look = 0, max(0, len(self._rest) - _LONGEST_BLANK)
        self._rest += chunk
        found: list[Event] = []
        for blank in _BLANK.finditer(self._rest, look):
            found.append(Event(bytes(self._rest[start : blank.end()])))
            start = blank.end()
        if start:
            self._rest = self._rest[start:]
        return found

    def end(self) -> list[Event]:
        """The last event, where a stream ends without a blank line."""
        last = [Event(bytes(self._rest))] if self._rest else []
        self._rest = bytearray()
        return last


def added(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers summed at every level, lists one after the other; of anything else the second."""
    total = dict(first)
    for key, value in second.items():
        total[key] = _sum(total.get(key), value)
    return total


def _sum(first: Any, second: Any) -> Any:
    match first, second:
        case _, None:
            return first
        case {}, {}:
            return added(first, second)
        case list(), list():
            return [*first, *second]
        case bool(), _:
            return second
        case int() | float(), int() | float():
            return first + second
    return second


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
