"""The recorder: keeps a response while it is relayed, and writes its usage afterwards.

Chunks are passed on as they arrive. Only the end waits, and only where the client may refer to the
response at once: by then it must be stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from enfold import wire
from enfold.amounts import CallUsage
from enfold.engine.recognition import ClientHistory
from enfold.errors import InputError, StoreError
from enfold.llm.costs import Prices, prices
from enfold.llm.summarizer import cost_of_call
from enfold.records import UsageEvent
from enfold.server.callers import Header
from enfold.wire import Wire
from enfold.wire.replies import Reply, reply_reader

SaveReply: TypeAlias = Callable[[Reply], Awaitable[None]]

_THREAD_BYTES = 50_000
"""Bytes from which a response is parsed in a thread."""
_LAST_EVENT_BYTES = 64
"""The longest beginning of a last event; it may be cut by the end of a chunk."""
_WRITE_INTERVAL = 1.0
"""Seconds during which usage is collected before it is written."""
_MAX_WAITING = 10_000
"""Calls that wait at most while the store cannot be reached. Further calls are not counted."""

_log = logging.getLogger("enfold.proxy")


@dataclass(frozen=True)
class RecordedResponse:
    """A response that was relayed."""

    wire: Wire
    headers: Sequence[Header]
    chunks: list[bytes] = field(default_factory=list, repr=False)

    @cached_property
    def reply(self) -> Reply:
        """The content of the response."""
        reader = reply_reader(self.wire.reply_parser(), self.headers)
        for chunk in self.chunks:
            reader.feed(chunk)
        return reader.end()


class ResponseRecorder:
    """Records one response while it is relayed."""

    def __init__(
        self,
        response: RecordedResponse,
        on_close: Callable[[RecordedResponse], None],
        save: SaveReply | None,
    ) -> None:
        """`save` is awaited before the client receives the end, `on_close` is called at the end."""
        self._response = response
        self._on_close = on_close
        self._save = save
        self._is_stream = any(b"event-stream" in value for _, value in response.headers)
        self._tail = b""
        self._is_held = False

    def feed(self, chunk: bytes) -> bool:
        """Record a chunk; return True if it must not be sent before the reply is saved."""
        self._response.chunks.append(chunk)
        if self._save is not None and not self._is_held:
            recent = self._tail + chunk
            self._tail = recent[-_LAST_EVENT_BYTES:]
            stored = self._response.wire.stored_responses
            is_last = stored is not None and stored.last_event.search(recent) is not None
            self._is_held = not self._is_stream or is_last
        return self._is_held

    def is_complete(self) -> bool:
        """Return True if the reply has an end, or is an error."""
        reply, last = self._response.reply, b"".join(self._response.chunks[-2:])
        return reply.finish is not None or b'"error"' in last or b'"promptFeedback"' in last

    async def finish(self) -> None:
        """Save the complete reply."""
        if self._save is None:
            return
        if sum(map(len, self._response.chunks)) < _THREAD_BYTES:
            reply = self._response.reply
        else:
            reply = await asyncio.to_thread(lambda: self._response.reply)
        await self._save(reply)

    def close(self) -> None:
        """End the recording; clients often disconnect right after the last event."""
        self._on_close(self._response)


@dataclass(frozen=True, slots=True)
class ProxiedCall:
    """A client's call of a model, and the response to it."""

    namespace: str
    session: str | None
    """The session's name. None: the conversation has none yet."""
    model: str
    """In the form `provider:model`."""
    response: RecordedResponse
    history: ClientHistory | None = None
    """The history that was sent. With the reply it names the session of a new conversation."""
    hidden_usage: Sequence[CallUsage] = ()
    """The usage of replies before the last one, if the model called recall."""

    def history_with_reply(self) -> ClientHistory | None:
        """Return the history that the client will send next; None if it will not be recognised."""
        if self.history is None or not self.response.reply.messages:
            return None
        parse = wire.get(self.response.wire.dialect).parse_message
        try:
            return self.history.followed_by(map(parse, self.response.reply.messages))
        except InputError:
            return None

    def usage_event(self, prices_of: Callable[[str], Prices | None]) -> UsageEvent:
        """Return the record of the call's usage."""
        # The response has the input of its last request only; each request is paid for.
        usage = self.response.reply.usage.with_input_of(self.hidden_usage)
        history = self.history_with_reply()
        name = self.session
        if name is None and history is not None:
            name = history.session_name(self.namespace)
        return UsageEvent(
            kind="reply",
            model=self.model,
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cache_read_tokens,
            output_tokens=usage.output_tokens,
            cost=cost_of_call(usage, prices_of(self.model)),
            message_id=None if history is None else history.ids[-1],
            namespace=self.namespace,
            session_name=name,
        )


class UsageWriter:
    """Collects calls, and writes their usage in batches."""

    def __init__(
        self,
        write: Callable[[Sequence[UsageEvent]], Awaitable[None]],
        on_usage: Callable[[UsageEvent], None] | None = None,
    ) -> None:
        """`write` stores events, `on_usage` is called for each call once its cost is known."""
        self._write_events = write
        self._on_usage = on_usage
        self._waiting: list[ProxiedCall] = []
        self._unwritten: list[UsageEvent] = []
        self._flush = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, call: ProxiedCall) -> None:
        """Write the usage of a call soon."""
        if len(self._waiting) + len(self._unwritten) >= _MAX_WAITING:
            return
        self._waiting.append(call)
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def idle(self) -> None:
        """Wait until everything is written, or writing has failed."""
        self._flush.set()
        if self._task is not None:
            await self._task
        self._flush.clear()

    async def _run(self) -> None:
        try:
            while self._waiting or self._unwritten:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_WRITE_INTERVAL):
                        await self._flush.wait()
                is_flushing = self._flush.is_set()
                if not await self._write() and is_flushing:
                    return
        finally:
            self._task = None

    async def _write(self) -> bool:
        waiting, self._waiting = self._waiting, []
        events = await asyncio.to_thread(_usage_events, waiting)
        if self._on_usage is not None:
            for event in events:
                self._on_usage(event)
        self._unwritten += events
        try:
            await self._write_events(self._unwritten)
        except StoreError as error:
            _log.warning("the usage of %d calls is not written yet: %s", len(events), error)
            return False
        self._unwritten = []
        return True


def _usage_events(calls: Sequence[ProxiedCall]) -> list[UsageEvent]:
    found: dict[str, Prices | None] = {}

    def prices_of(model: str) -> Prices | None:
        if model not in found:
            provider, _, name = model.partition(":")
            found[model] = prices(provider, name)
        return found[model]

    return [call.usage_event(prices_of) for call in calls]
