"""Exchanges: what was really said in a turn, found again and sent in place of what a client saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from enfold import dialects
from enfold.engine.recognition import History
from enfold.errors import EnfoldError
from enfold.identity import content_hash
from enfold.jsontext import dumps, loads
from enfold.messages import Message, Text, ToolCall
from enfold.server.proxy.recall.shapes import SHAPES
from enfold.store import records

_REMEMBERED = 4_096


@dataclass(frozen=True, slots=True)
class Exchange:
    """The messages of a turn: what the model said, and what it was answered."""

    name: str
    """Of the tool that it called."""
    said: tuple[Mapping[str, Any], ...]
    held: tuple[Mapping[str, Any], ...] = ()
    """Results that wait for those of the client's own tools."""

    def record(self, dialect: str, message: str, snapshot: str) -> records.Exchange:
        """As it is stored: after a message, under a snapshot."""
        content = dumps({"name": self.name, "said": self.said, "held": self.held})
        shown = shown_key([dumps(each) for each in self.said], dialect, self.name)
        return records.Exchange(snapshot, message, shown, dialect, content)


def put_back(
    exchanges: Iterable[records.Exchange],
    history: History,
    sent: Sequence[bytes],
    *,
    dialect: str,
    name: str,
) -> dict[int, tuple[bytes, ...]]:
    """What goes out in place of messages that were sent, by their index.

    An exchange is recognised by the message that it follows and by what the client saw of it, so
    a reply that the client changed goes out as the client has it.
    """
    roles = history.roles
    instead: dict[int, tuple[bytes, ...]] = {}
    for stored in exchanges:
        if stored.dialect != dialect or stored.message not in history.ids:
            continue
        start = history.ids.index(stored.message) + 1
        end = next((i for i in range(start, len(sent)) if roles[i] != "assistant"), len(sent))
        if start == end or stored.shown != shown_key(sent[start:end], dialect, name):
            continue
        instead |= _in_place(_read(stored.content), start, end, sent, dialect, name)
    return instead


def shown_key(raws: Iterable[bytes], dialect: str, name: str) -> str:
    """A hash of what a client sees of a reply: its words, however spaced, and its own calls."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    for raw in raws:
        message = _parsed(raw, dialect)
        if message is None or message.role != "assistant":
            continue
        texts += (part.text for part in message.parts if isinstance(part, Text))
        calls += (
            ToolCall("", part.name, part.arguments)
            for part in message.parts
            if isinstance(part, ToolCall) and part.name != name
        )
    said = "".join("".join(texts).split())
    return content_hash(Message("assistant", (Text(said), *calls)))


def _in_place(
    exchange: Exchange, start: int, end: int, sent: Sequence[bytes], dialect: str, name: str
) -> dict[int, tuple[bytes, ...]]:
    """What stands for the messages from start to end, and for the results after them."""
    said = tuple(map(dumps, exchange.said))
    if exchange.name != name or (exchange.held and end == len(sent)):
        return {}
    gone: dict[int, tuple[bytes, ...]] = dict.fromkeys(range(start + 1, end), ())
    instead = gone | {start: said}
    if exchange.held:
        merged = SHAPES[dialect].merged
        if merged is None:
            instead[start] = (*said, *map(dumps, exchange.held))
        else:
            instead[end] = (dumps(merged(exchange.held, loads(sent[end]))),)
    return instead


def _read(content: bytes) -> Exchange:
    found = loads(content)
    return Exchange(found["name"], tuple(found["said"]), tuple(found["held"]))


@lru_cache(maxsize=_REMEMBERED)
def _parsed(raw: bytes, dialect: str) -> Message | None:
    """The message; None for what a provider said in a way that is not known here."""
    try:
        return dialects.get(dialect).parse_message(loads(raw))
    except EnfoldError:
        return None
