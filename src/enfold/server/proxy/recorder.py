"""The recorder: keeps responses, writes their usage, and completes requests that refer to them.

Chunks are passed on as they arrive. Only the end waits, and only where the client may refer to the
response at once: by then it must be stored.

`previous_response_id` and references to items leave out messages that the provider has. If all of
them passed through this proxy, the request is completed: then it can be counted and compressed like
any other. A `conversation` that the provider stores is never known for certain, because other
clients can change it there: its requests are forwarded as they came, and recorded one after the
other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

from enfold import wire
from enfold.amounts import CallUsage
from enfold.engine import Session
from enfold.engine.recognition import ClientHistory, Responses
from enfold.engine.state import message_of
from enfold.errors import InputError, StoreError
from enfold.jsontext import dumps, items
from enfold.llm.costs import Prices, prices
from enfold.llm.summarizer import cost_of_call
from enfold.messages import Conversation
from enfold.records import ResponseItem, StoredMessage, StoredResponse, UsageEvent
from enfold.server.access import Header
from enfold.server.proxy.bodies import RequestBody
from enfold.text.words import is_storable
from enfold.wire import Wire
from enfold.wire.replies import Reply, ReplyReader

SaveReply: TypeAlias = Callable[[Reply], Awaitable[None]]

_THREAD_BYTES = 50_000
"""Bytes from which a response is parsed in a thread."""
_LAST_EVENT_BYTES = 64
"""The longest beginning of a last event; it may be cut by the end of a chunk."""
_WRITE_INTERVAL = 1.0
"""Seconds during which usage is collected before it is written."""
_MAX_BATCH = 200
"""Calls that are written without a wait: each holds a few kilobytes until it is written."""
_MAX_WAITING = 10_000
"""Calls that wait at most while the store cannot be reached. Further calls are not counted."""
_COMPLETE_FINISHES = frozenset({"completed", "incomplete"})

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
        reader = ReplyReader(self.wire.reply_parser(), self.headers)
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
        self._is_stream = b"event-stream" in dict(response.headers).get(b"content-type", b"")
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


@dataclass(slots=True)
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
        usage = self.response.reply.usage
        if self.hidden_usage:
            usage = usage.with_input_of(self.hidden_usage)
        history = self.history_with_reply()
        name = self.session
        if name is None and history is not None:
            name = history.session_name(self.namespace)
        return UsageEvent.of(
            "reply",
            usage,
            cost_of_call(usage, prices_of(self.model)),
            model=self.model,
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
        self._is_flushing = False
        self._is_due = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, call: ProxiedCall) -> None:
        """Write the usage of a call soon."""
        if len(self._waiting) + len(self._unwritten) >= _MAX_WAITING:
            return
        self._waiting.append(call)
        if len(self._waiting) == _MAX_BATCH:
            self._is_due.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def idle(self) -> None:
        """Wait until everything is written, or writing has failed."""
        self._is_flushing = True
        self._is_due.set()
        if self._task is not None:
            await self._task
        self._is_flushing = False
        self._is_due.clear()

    async def _run(self) -> None:
        try:
            while self._waiting or self._unwritten:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_WRITE_INTERVAL):
                        await self._is_due.wait()
                is_flushing = self._is_flushing
                if not is_flushing:
                    self._is_due.clear()
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


@dataclass(slots=True)
class CompletedRequest:
    """A request with all messages that it continues from."""

    body: RequestBody
    session: str | None = None
    """The session of the response that it continues from. None: it does not continue from one."""
    provider_has_view: bool = False
    """True if the provider has a compressed view of the history before, not the whole history."""


def may_be_incomplete(body: RequestBody) -> bool:
    """Return True if requests of this wire may refer to messages that the provider stores."""
    return bool(body.wire.stored_responses or body.wire.external_history_keys)


async def complete_request(
    responses: Responses, namespace: str, body: RequestBody
) -> CompletedRequest | None:
    """Add the messages that the request leaves out; None if they are not all stored."""
    if any(_is_set(body, name) for name in body.wire.external_history_keys):
        return None
    stored = body.wire.stored_responses
    if stored is None:
        return CompletedRequest(body)
    previous = body.field(stored.previous_key) if _is_set(body, stored.previous_key) else None
    references = {
        raw: id for raw in body.messages if (id := stored.referenced_item(raw)) is not None
    }
    if previous is None and not references:
        return CompletedRequest(body)
    if previous is not None and not isinstance(previous, str):
        return None
    found = await responses.chain(namespace, previous, references.values())
    if any(id not in found.items for id in references.values()):
        return None
    sent = [found.items[references[raw]] if raw in references else raw for raw in body.messages]
    if previous is None:
        return CompletedRequest(replace(body, messages=sent))
    if found.response is None:
        return None
    before = (
        *items(found.response.lead),
        *_render_messages(found.messages, body.wire.dialect),
        *(item.content for item in found.response.items),
    )
    completed = replace(body, messages=(*before, *sent), replaced_fields=(stored.previous_key,))
    return CompletedRequest(completed, found.session, found.response.snapshot is not None)


def provider_conversation_id(body: RequestBody) -> str | None:
    """Return the id of the conversation at the provider that a request continues, if it names one.

    Its history is never known for certain, because other clients may change it there.
    """
    # Content that a provider caches is a prefix of many conversations, not one of them.
    names = body.wire.external_history_keys if body.wire.stored_responses is not None else ()
    for name in names:
        value = body.field(name)
        id = value.get("id") if isinstance(value, dict) else value
        if isinstance(id, str) and id and is_storable(id):
            return id
    return None


def can_be_continued(body: RequestBody) -> bool:
    """Return True if a later request can refer to the response to this one."""
    return body.wire.stored_responses is not None and body.field("store") is not False


def is_complete_reply(reply: Reply) -> bool:
    """Return True if a later request can continue from the reply."""
    return reply.id is not None and reply.finish in _COMPLETE_FINISHES


async def save_response(
    responses: Responses,
    session: Session,
    reply: Reply,
    *,
    lead: Iterable[bytes],
    snapshot: str | None,
) -> None:
    """Store the reply to the session's last message, so that a request can continue from it."""
    response_items = tuple(ResponseItem(_item_id(item), dumps(item)) for item in reply.messages)
    stored = StoredResponse(
        session=session.key,
        id=reply.id or "",
        tip=session.tip or "",
        snapshot=snapshot,
        items=response_items,
        lead=b"[" + b",".join(lead) + b"]",
    )
    await responses.put(stored)


def _render_messages(rows: Iterable[StoredMessage], dialect: str) -> Iterator[bytes]:
    """Yield the messages in the dialect; a session may have begun in another one."""
    for row in rows:
        if row.dialect == dialect:
            yield row.body
        else:
            message = Conversation((message_of(row),), dialect=row.dialect)
            yield from map(dumps, wire.render(message, dialect))


def _item_id(item: Mapping[str, Any]) -> str | None:
    id = item.get("id")
    return id if isinstance(id, str) and is_storable(id) else None


def _is_set(body: RequestBody, name: str) -> bool:
    return body.fields.get(name, b"null") != b"null"
