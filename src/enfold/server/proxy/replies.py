"""Replies: what a provider's answer says, read from its bytes while they pass.

    reader = replies.reader(form, answer.headers)
    async for chunk in answer.chunks():
        reader.feed(chunk)
        ...                     # the chunk goes on to the client as it is
    reply = reader.end()

A reader never fails: what it cannot understand is left out of the reply, and the bytes are the
client's to judge.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from enfold.errors import InputError
from enfold.jsontext import loads
from enfold.server.headers import Header
from enfold.server.proxy.bodies import Form
from enfold.wire.anthropic import MessagesGathering
from enfold.wire.gemini import GeminiGathering
from enfold.wire.openai import ChatGathering
from enfold.wire.openai_responses import ResponsesGathering
from enfold.wire.replies import Event, Events, Gathering, Reply

_MOST = 64 * 2**20
"""Bytes after which an answer is no longer read; it is relayed all the same."""
_ANY_HEADER = 47
"""To zlib: 15 bits of window, and gzip or zlib, whichever it is."""

GATHERINGS: Mapping[str, Callable[[], Gathering]] = {
    "openai": ChatGathering,
    "openai-responses": ResponsesGathering,
    "anthropic": MessagesGathering,
    "gemini": GeminiGathering,
}
"""Who puts a reply together, by dialect."""


class Reader(Protocol):
    """Takes an answer's bytes as they come, in chunks of any size."""

    def feed(self, chunk: bytes) -> None:
        """The next bytes."""
        ...

    def end(self) -> Reply:
        """What the answer said; also of one that broke off."""
        ...


def reader(form: Form, headers: Iterable[Header]) -> Reader:
    """A reader for the answer with these headers."""
    said = {name.lower(): value for name, value in headers}
    gathering = GATHERINGS[form.dialect]()
    is_stream = b"text/event-stream" in said.get(b"content-type", b"").lower()
    plain = StreamReader(gathering) if is_stream else WholeReader(gathering)
    encoding = said.get(b"content-encoding", b"identity").strip().lower()
    if encoding in {b"identity", b""}:
        return plain
    return Unpacking(plain) if encoding in _ENCODINGS else Unread()


_ENCODINGS = frozenset({b"gzip", b"x-gzip", b"deflate"})


class StreamReader:
    """Reads server-sent events."""

    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering
        self._events = Events()
        self._room = _MOST

    def feed(self, chunk: bytes) -> None:
        """The next bytes."""
        self._room -= len(chunk)
        if self._room >= 0:
            self._take(self._events.feed(chunk))

    def end(self) -> Reply:
        """What was said."""
        self._take(self._events.end())
        return self._gathering.reply()

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            if said := event.json():
                self._gathering.take(said)


class WholeReader:
    """Reads one JSON text, when it is all there."""

    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering
        self._chunks: list[bytes] = []
        self._room = _MOST

    def feed(self, chunk: bytes) -> None:
        """The next bytes."""
        self._room -= len(chunk)
        if self._room >= 0:
            self._chunks.append(chunk)
        else:
            self._chunks.clear()

    def end(self) -> Reply:
        """What was said."""
        try:
            self._gathering.take_whole(loads(b"".join(self._chunks)))
        except InputError:
            return Reply()
        return self._gathering.reply()


class Unpacking:
    """Unpacks what another reader reads."""

    def __init__(self, inner: Reader) -> None:
        self._inner = inner
        self._unpack: zlib._Decompress | None = zlib.decompressobj(_ANY_HEADER)
        self._room = _MOST

    def feed(self, chunk: bytes) -> None:
        """The next bytes."""
        if self._unpack is None:
            return
        try:
            plain = self._unpack.decompress(chunk, self._room)
        except zlib.error:
            self._unpack = None
            return
        self._room -= len(plain)
        self._inner.feed(plain)
        if self._room <= 0:
            self._unpack = None

    def end(self) -> Reply:
        """What was said."""
        return self._inner.end()


class Unread:
    """Reads nothing: the answer is packed in a way that is not known here."""

    def feed(self, chunk: bytes) -> None:
        """The next bytes."""

    def end(self) -> Reply:
        """Nothing is known of it."""
        return Reply()
