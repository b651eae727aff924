"""Replies of models, read from the bytes that a provider sends.

    reader = ReplyReader(wire.reply_parser(), headers)
    async for chunk in chunks:
        reader.feed(chunk)
    reply = reader.end()

A reader never fails. What it cannot read is missing from the reply.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from enfold.amounts import CallUsage
from enfold.errors import InputError
from enfold.jsontext import dumps, loads

TEXT_SEPARATOR = "\n\n"
"""Stands between the texts of two replies that are joined into one text."""
_READ_LIMIT = 64 * 2**20
"""Bytes of a reply that are read at most. The client still receives the rest."""
_GZIP_OR_ZLIB = 47
"""The `wbits` of zlib: a window of 15 bits, and either header."""
_ENCODINGS = frozenset({b"gzip", b"x-gzip", b"deflate"})
_EVENT_END = re.compile(rb"\r?\n\r?\n|\r\r")
_LONGEST_EVENT_END = 4


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A tool call in a reply."""

    id: str
    """Empty where the provider gives none."""
    name: str
    arguments: str
    """JSON text, which may be broken."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The content of a provider's reply."""

    id: str | None = None
    usage: CallUsage = CallUsage()  # noqa: RUF009, frozen
    calls: tuple[CalledTool, ...] = ()
    finish: str | None = None
    """The provider's finish reason. None: the reply is incomplete."""
    messages: tuple[Mapping[str, Any], ...] = ()
    """The model's messages, in the form in which a later request can send them."""


class ReplyParser(Protocol):
    """Builds a `Reply` from the events of a stream, or from a body that is not streamed."""

    def add_event(self, event: Mapping[str, Any]) -> None:
        """Read one event of a stream."""
        ...

    def read_body(self, body: Any) -> None:
        """Read a reply that is not streamed."""
        ...

    def reply(self) -> Reply:
        """Return what has been read so far."""
        ...


class StreamJoiner:
    """Joins the streams of one turn, so that the client receives a single stream.

    Of the first reply the client receives the beginning, of the last one the end, with the usage of
    all.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        """The tool whose calls are hidden."""
        self._id: Any = None
        self._is_first = True
        self._has_calls = False
        self._usage_before: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._closing: list[tuple[ServerSentEvent, Any]] = []
        """The events at the end of a reply and their data, held back until its end."""

    def add(self, event: ServerSentEvent, data: dict[str, Any] | None) -> list[ServerSentEvent]:
        """Return the events that the client receives now; `data` is the event's JSON object.

        The end of a reply is held back.
        """
        raise NotImplementedError

    def end_reply(self, *, is_last: bool) -> list[ServerSentEvent]:
        """Return the events that the client receives at the end of one of the replies."""
        raise NotImplementedError

    def _begin_next(self) -> None:
        """Forget one reply before the next one begins, except its usage."""
        self._is_first = False
        self._usage_before, self._usage = join_usage(self._usage_before, self._usage), {}
        self._closing = []


def error_event(body: Mapping[str, Any]) -> bytes:
    """Return an error as the event that ends a stream, in the form of most providers.

    It has no other fields and no event name: some client libraries take other lines for JSON, and
    recognise an error by its first key.
    """
    return b"data: " + dumps({"error": body["error"]}) + b"\n\n"


def as_mapping(value: Any) -> dict[str, Any]:
    """Return the object; an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def mappings_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects in an array; none for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def first_mapping(value: Any) -> dict[str, Any]:
    """Return the first object in an array; an empty one if there is none."""
    return next(iter(mappings_in(value)), {})


def as_text(value: Any) -> str:
    """Return the text; an empty one for any other value."""
    return value if isinstance(value, str) else ""


def as_integer(value: Any) -> int | None:
    """Return the integer; None for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def sum_integers(first: Any, *others: Any) -> int | None:
    """Return the sum of the values that are integers; None if the first is none."""
    if as_integer(first) is None:
        return None
    return sum(as_integer(value) or 0 for value in (first, *others))


_OUTPUT_FIELDS = ("output", "completion", "candidates", "thoughts", "server_tool_use")
"""Prefixes of usage fields that count tokens which the model wrote or used."""
_TOTAL_FIELDS = ("total_tokens", "totalTokenCount")


def join_usage(before: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usage of two replies as one: the input of the last, the output of both.

    Clients take the input for the size of their context, and compact by it. It must be that of the
    last request.
    """
    joined = {**before, **{key: value for key, value in last.items() if value is not None}}
    outputs = [key for key in before if key.startswith(_OUTPUT_FIELDS)]
    for key in outputs:
        joined[key] = _add_values(before[key], last.get(key))
    for key in _TOTAL_FIELDS:
        if (total := as_integer(last.get(key))) is not None:
            joined[key] = total + sum(as_integer(before[name]) or 0 for name in outputs)
    return joined


def _add_values(first: Any, second: Any) -> Any:
    match first, second:
        case _, None:
            return first
        case {}, {}:
            return {**first, **{key: _add_values(first.get(key), second[key]) for key in second}}
        case list(), list():
            return [*first, *second]
        case bool(), _:
            return second
        case int() | float(), int() | float():
            return first + second
    return second


def joined_usage(bodies: Iterable[Mapping[str, Any]], key: str = "usage") -> dict[str, Any]:
    """Return the usage objects of several reply bodies as one."""
    joined: dict[str, Any] = {}
    for body in bodies:
        joined = join_usage(joined, as_mapping(body.get(key)))
    return joined


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One server-sent event."""

    raw: bytes
    """Its bytes, with the blank line at the end."""

    @property
    def data(self) -> bytes:
        """The event's data; empty for a comment."""
        lines = self.raw.splitlines()
        data = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
        return data[0] if len(data) == 1 else b"\n".join(data)

    def json(self) -> dict[str, Any] | None:
        """Return the data if it is a JSON object."""
        data = self.data
        if not data.startswith(b"{"):
            return None
        try:
            value = loads(data)
        except InputError:
            return None
        return value if isinstance(value, dict) else None

    def with_json(self, value: Any) -> ServerSentEvent:
        """Return an event of the same name with other data."""
        names = [line for line in self.raw.splitlines() if line.startswith(b"event:")]
        return ServerSentEvent(b"\n".join([*names, b"data: " + dumps(value), b"", b""]))


class EventParser:
    """Splits a stream of bytes into events."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that are complete with this chunk."""
        start, search_from = 0, max(0, len(self._rest) - _LONGEST_EVENT_END)
        self._rest += chunk
        events: list[ServerSentEvent] = []
        for blank in _EVENT_END.finditer(self._rest, search_from):
            events.append(ServerSentEvent(bytes(self._rest[start : blank.end()])))
            start = blank.end()
        if start:
            self._rest = self._rest[start:]
        return events

    def end(self) -> list[ServerSentEvent]:
        """Return the last event if the stream ended without a blank line."""
        last = [ServerSentEvent(bytes(self._rest))] if self._rest else []
        self._rest = bytearray()
        return last


class ReplyReader:
    """Reads a reply, compressed or not, from chunks of any size."""

    def __init__(self, parser: ReplyParser, headers: Iterable[tuple[bytes, bytes]]) -> None:
        values = {name.lower(): value for name, value in headers}
        encoding = values.get(b"content-encoding", b"").strip().lower()
        self._parser = parser
        self._is_stream = b"text/event-stream" in values.get(b"content-type", b"").lower()
        self._events = EventParser()
        self._body: list[bytes] = []
        is_compressed = encoding in _ENCODINGS
        self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB) if is_compressed else None
        is_readable = is_compressed or encoding in {b"", b"identity"}
        self._bytes_left = _READ_LIMIT if is_readable else 0

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes; stop at the limit, and where they cannot be decompressed."""
        if self._bytes_left <= 0:
            return
        if self._decompressor is not None:
            try:
                chunk = self._decompressor.decompress(chunk, self._bytes_left)
            except zlib.error:
                self._bytes_left = 0
                return
        self._bytes_left -= len(chunk)
        if self._bytes_left < 0:
            self._body.clear()
        elif self._is_stream:
            self._parse(self._events.feed(chunk))
        else:
            self._body.append(chunk)

    def end(self) -> Reply:
        """Return the reply; also one that was cut off."""
        if self._is_stream:
            self._parse(self._events.end())
            return self._parser.reply()
        try:
            self._parser.read_body(loads(b"".join(self._body)))
        except InputError:
            return Reply()
        return self._parser.reply()

    def _parse(self, events: Iterable[ServerSentEvent]) -> None:
        for event in events:
            if data := event.json():
                self._parser.add_event(data)


Block = TypeVar("Block")
Visibility: TypeAlias = Literal["shown", "hidden", "reasoning"]
"""Hidden blocks are recall calls. Reasoning is shown or hidden with the blocks that follow it."""


def visible_blocks(
    blocks: Iterable[Block], visibility_of: Callable[[Block], Visibility]
) -> list[Block]:
    """Return the blocks that the client receives."""
    positions: BlockPositions[Block] = BlockPositions()
    shown = [
        placed
        for index, block in enumerate(blocks)
        for placed in positions.open(index, visibility_of(block), block)
    ]
    return [block for _, block in (*shown, *positions.close())]


class BlockPositions(Generic[Block]):
    """Assigns the blocks of several replies their positions in the reply that the client receives.

    Reasoning is held back until the next block: a provider refuses reasoning that is not followed
    by the block that it led to, so reasoning before a hidden block is hidden with it.
    """

    def __init__(self) -> None:
        self._next = 0
        self.begin_reply()

    def begin_reply(self) -> None:
        """Begin another reply; its blocks come after those that were shown."""
        self._positions: dict[int, int | None] = {}
        self._held: dict[int, list[Block]] = {}
        self._led_to_hidden = False

    def open(self, index: int, visibility: Visibility, item: Block) -> list[tuple[int, Block]]:
        """Begin a block. Return the items to show now, each with its position."""
        if visibility == "shown":
            return [*self._release(), (self._assign(index), item)]
        if visibility == "hidden":
            self._positions[index] = None
            self._led_to_hidden = True
            return []
        if self._led_to_hidden:
            self._hide_held()
        self._held[index] = [item]
        return []

    def extend(self, index: int, item: Block) -> list[tuple[int, Block]]:
        """Continue or end a block. Return the items to show now, each with its position."""
        if index in self._held:
            self._held[index].append(item)
            return []
        position = self._positions[index] if index in self._positions else self._assign(index)
        return [] if position is None else [(position, item)]

    def close(self) -> list[tuple[int, Block]]:
        """End the reply. Return the items to show now, each with its position."""
        if self._led_to_hidden:
            self._hide_held()
        return self._release()

    def is_shown(self, index: int) -> bool:
        """Return True if the client receives that block of the reply."""
        return self._positions.get(index) is not None

    def _assign(self, index: int) -> int:
        position = self._positions[index] = self._next
        self._next += 1
        return position

    def _release(self) -> list[tuple[int, Block]]:
        shown: list[tuple[int, Block]] = []
        for index, items in self._held.items():
            position = self._assign(index)
            shown += [(position, item) for item in items]
        self._held = {}
        self._led_to_hidden = False
        return shown

    def _hide_held(self) -> None:
        self._positions |= dict.fromkeys(self._held)
        self._held = {}
        self._led_to_hidden = False
