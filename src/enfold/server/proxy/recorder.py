"""Hearing: an answer is listened to while it passes, and read when it is whole.

Pieces go on as they come. Only the end waits, and only where a client may refer to the answer at
once: by then it has to be known here too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from enfold import wire
from enfold.engine.recognition import ClientHistory
from enfold.errors import InputError, StoreError
from enfold.llm.prices import Prices, prices
from enfold.llm.summarizer import cost_of_call
from enfold.records import UsageEvent
from enfold.server.headers import Header
from enfold.store import Database, Store, catalog, sessions
from enfold.wire import Wire
from enfold.wire.replies import Reply, reply_reader

Keep: TypeAlias = Callable[[Reply], Awaitable[None]]

_LARGE = 50_000
"""Bytes from which an answer is read beside the event loop."""
_LONGEST_END = 64


@dataclass(frozen=True)
class Heard:
    """An answer as it passed."""

    form: Wire
    headers: Sequence[Header]
    chunks: list[bytes] = field(default_factory=list, repr=False)

    @cached_property
    def reply(self) -> Reply:
        """What it said."""
        reader = reply_reader(self.form.reply_parser(), self.headers)
        for chunk in self.chunks:
            reader.feed(chunk)
        return reader.end()


class Ear:
    """Listens to one answer."""

    def __init__(self, heard: Heard, done: Callable[[Heard], None], keep: Keep | None) -> None:
        """`keep` is awaited before the client has the end, `done` is called after everything."""
        self._heard = heard
        self._done = done
        self._keep = keep
        self._is_stream = any(b"event-stream" in value for _, value in heard.headers)
        self._tail = b""
        self._waits = False

    def hear(self, chunk: bytes) -> bool:
        """Take a piece; True if it has to wait for the end."""
        self._heard.chunks.append(chunk)
        if self._keep is not None and not self._waits:
            look = self._tail + chunk
            self._tail = look[-_LONGEST_END:]
            self._waits = not self._is_stream or self._is_end(look)
        return self._waits

    def _is_end(self, chunk: bytes) -> bool:
        stored = self._heard.form.stored_responses
        return stored is not None and stored.last_event.search(chunk) is not None

    async def ended(self) -> None:
        """All has come."""
        if self._keep is not None:
            await self._keep(await self._read())

    def close(self) -> None:
        """Nothing more comes; many clients hang up as soon as they have heard the last word."""
        self._done(self._heard)

    async def _read(self) -> Reply:
        if sum(map(len, self._heard.chunks)) < _LARGE:
            return self._heard.reply
        return await asyncio.to_thread(lambda: self._heard.reply)


_PAUSE = 1.0
"""Seconds in which answers gather before they are written."""
_MOST = 10_000
"""So many wait at most while the store cannot be reached; what comes then is not counted."""

_log = logging.getLogger("enfold.proxy")


@dataclass(frozen=True, slots=True)
class Answered:
    """A call of a client, and the answer to it."""

    namespace: str
    session: str | None
    """The session's name. None: there is none yet."""
    model: str
    """As provider:model."""
    heard: Heard
    begun: ClientHistory | None = None
    """What was asked, where a session is named after the reply too."""

    def name(self) -> str | None:
        """What the session is called, or will be once the client sends the answer back."""
        if self.session is not None or self.begun is None:
            return self.session
        read = wire.get(self.heard.form.dialect).parse_message
        try:
            return self.begun.followed_by(map(read, self.heard.reply.messages)).name()
        except InputError:
            return None  # what cannot be read here will not be recognised either

    def event(self, prices_of: Callable[[str], Prices | None]) -> UsageEvent:
        """What is to be written of it."""
        usage = self.heard.reply.usage
        return UsageEvent(
            kind="reply",
            model=self.model,
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cache_read_tokens,
            output_tokens=usage.output_tokens,
            cost=cost_of_call(usage, prices_of(self.model)),
            namespace=self.namespace,
            session_name=self.name(),
        )


class Accounts:
    """Takes answers, and writes what they used."""

    def __init__(self, store: Store, tell: Callable[[UsageEvent], None] | None = None) -> None:
        """`tell` is told of each call once it is priced."""
        self._store = store
        self._tell = tell
        self._waiting: list[Answered] = []
        self._unwritten: list[tuple[Answered, UsageEvent]] = []
        self._hurry = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None

    def add(self, answered: Answered) -> None:
        """Count a call, soon."""
        if len(self._waiting) + len(self._unwritten) >= _MOST:
            return
        self._waiting.append(answered)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_soon())

    async def idle(self) -> None:
        """Wait until all is written, or cannot be."""
        self._hurry.set()
        if self._writing is not None:
            await self._writing
        self._hurry.clear()

    async def _write_soon(self) -> None:
        try:
            while self._waiting or self._unwritten:
                hurried = await self._pause()
                if not await self._write() and hurried:
                    return
        finally:
            self._writing = None

    async def _pause(self) -> bool:
        """True if somebody waits for it."""
        try:
            async with asyncio.timeout(_PAUSE):
                return await self._hurry.wait()
        except TimeoutError:
            return False

    async def _write(self) -> bool:
        waiting, self._waiting = self._waiting, []
        priced = await asyncio.to_thread(_priced, waiting)
        if self._tell is not None:
            for _, event in priced:
                self._tell(event)
        self._unwritten += priced
        try:
            await self._store.write(_record, self._unwritten)
        except StoreError as error:
            _log.warning("the usage of %d calls is not written yet: %s", len(priced), error)
            return False
        self._unwritten = []
        return True


def _priced(answered: Sequence[Answered]) -> list[tuple[Answered, UsageEvent]]:
    known: dict[str, Prices | None] = {}

    def prices_of(model: str) -> Prices | None:
        if model not in known:
            provider, _, name = model.partition(":")
            known[model] = prices(provider, name)
        return known[model]

    return [(each, each.event(prices_of)) for each in answered]


def _record(db: Database, priced: Sequence[tuple[Answered, UsageEvent]]) -> None:
    keys = {
        (each.namespace, name): sessions.find(db, each.namespace, name)
        for each, event in priced
        if (name := event.session_name) is not None
    }
    events = []
    for each, event in priced:
        session = keys.get((each.namespace, event.session_name or ""))
        claimed = event if session is None else replace(event, session=session.key)
        events.append(claimed)
    catalog.add_usage(db, events)
