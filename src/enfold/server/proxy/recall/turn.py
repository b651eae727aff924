"""A turn with recall: the model asks, the proxy answers and asks again, the client sees one reply.

Text goes to the client as it comes. The end of a reply waits until it is known to be the last, and
until what was really said is stored.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeAlias

from enfold.engine import Session
from enfold.errors import EnfoldError, InputError, NotFoundError, StoreError, UnavailableError
from enfold.jsontext import dumps, loads
from enfold.server.headers import Header
from enfold.server.proxy.bodies import Form
from enfold.server.proxy.recall.answering import MOST, TOO_MANY, answer
from enfold.server.proxy.recall.exchange import Exchange
from enfold.server.proxy.recall.shapes import SHAPES, Join
from enfold.server.proxy.refusals import refusal
from enfold.server.proxy.replies.reading import GATHERINGS
from enfold.server.proxy.replies.reply import Gathering, Reply
from enfold.server.proxy.replies.sse import Event, Events
from enfold.server.proxy.upstream import Answer, Arriving, Whole, is_stream
from enfold.store import records

Ask: TypeAlias = Callable[[bytes], AbstractAsyncContextManager[Answer]]

_log = logging.getLogger("enfold.proxy")
_BROKE_OFF = "the provider failed while it answered; try again"


@dataclass(frozen=True, slots=True)
class Recall:
    """What a turn needs to recall."""

    form: Form
    name: str
    """Of the tool, in this request."""
    session: Session
    """At the end of what is recorded of the request's branch."""
    message: str
    """The identity of the last message that came."""
    snapshot: str
    room: int
    """Tokens that one answer may have."""
    resend: Callable[[Sequence[bytes]], bytes]
    """The request with these messages after its own."""
    keep: Callable[[records.Exchange], Awaitable[None]]
    """Stores what was really said."""
    keeps_items: bool = True
    """Whether the provider keeps reasoning, so that a mention of it is enough."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer that several answers make up, still arriving."""

    status: int
    headers: list[Header]
    _chunks: AsyncIterator[bytes]
    length: None = None

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        return self._chunks


class RecallTurn:
    """One turn."""

    def __init__(self, recall: Recall, ask: Ask) -> None:
        self._recall = recall
        self._ask = ask
        self._shape = SHAPES[recall.form.dialect]
        self._said: list[Mapping[str, Any]] = []
        self._held: list[dict[str, Any]] = []
        self._recalls = 0

    async def answered(self, first: Answer) -> Arriving:
        """The one answer that the client gets. A stream goes on while it is read."""
        if is_stream(first):
            return Streamed(first.status, first.headers, self._stream(first))
        return await self._whole(first)

    async def _whole(self, arriving: Answer) -> Whole:
        bodies: list[dict[str, Any]] = []
        async with AsyncExitStack() as stack:
            while True:
                raw = await arriving.read()
                body = _object(raw)
                if arriving.status >= HTTPStatus.BAD_REQUEST or body is None:
                    return Whole(arriving.status, arriving.headers, raw)
                bodies.append(body)
                gathering = self._gathering()
                gathering.take_whole(body)
                reply = gathering.reply()
                if not await self._goes_on(reply):
                    break
                arriving = await stack.enter_async_context(self._again())
            await self._keep(reply)
            if len(bodies) > 1 or self._calls(reply):
                raw = dumps(self._shape.joined(bodies, self._recall.name))
            return Whole(arriving.status, arriving.headers, raw)

    async def _stream(self, arriving: Answer) -> AsyncIterator[bytes]:
        join = self._shape.join(self._recall.name)
        async with AsyncExitStack() as stack:
            while True:
                gathering, events = self._gathering(), Events()
                async for chunk in arriving.chunks():
                    if shown := _take(events.feed(chunk), gathering, join):
                        yield shown
                if shown := _take(events.end(), gathering, join):
                    yield shown
                reply = gathering.reply()
                goes_on = await self._goes_on(reply)
                if not goes_on:
                    await self._keep(reply)
                yield b"".join(event.raw for event in join.close(goes_on=goes_on))
                if not goes_on:
                    return
                try:
                    arriving = await stack.enter_async_context(self._again())
                except EnfoldError as error:
                    yield self._failure(error)
                    return
                if arriving.status >= HTTPStatus.BAD_REQUEST:
                    yield self._failure(await arriving.read())
                    return

    def _failure(self, said: bytes | EnfoldError) -> bytes:
        """What ends a stream that has begun well: the provider's own error, or ours."""
        found = (_object(said) or {}) if isinstance(said, bytes) else {}
        if "error" not in found:
            failed = said if isinstance(said, EnfoldError) else UnavailableError(_BROKE_OFF)
            _, _, body = refusal(failed, self._recall.form.upstream)
            found = loads(body)
        if self._recall.form.upstream == "anthropic":
            return b"event: error\ndata: " + dumps(found) + b"\n\n"
        # Google's client takes lines that are no data for a part of its JSON, and knows an error
        # by its first key.
        return b"data: " + dumps({"error": found["error"]}) + b"\n\n"

    def _gathering(self) -> Gathering:
        return GATHERINGS[self._recall.form.dialect]()

    def _again(self) -> AbstractAsyncContextManager[Answer]:
        return self._ask(self._recall.resend([dumps(each) for each in self._said]))

    def _calls(self, reply: Reply) -> bool:
        return any(call.name == self._recall.name for call in reply.calls)

    async def _goes_on(self, reply: Reply) -> bool:
        """Whether the model is to be asked again; its recalls are answered then, or held."""
        calls = [call for call in reply.calls if call.name == self._recall.name]
        if not calls or reply.finish not in self._shape.goes_on or self._recalls > MOST:
            return False
        answers = []
        for call in calls:
            self._recalls += 1
            answers.append((call, await self._answer(call.arguments)))
        results = self._shape.results(answers)
        if len(calls) < len(reply.calls):
            self._held = results
            return False
        self._said += [*self._own(reply), *results]
        return True

    async def _answer(self, arguments: str) -> str:
        if self._recalls > MOST:
            return TOO_MANY
        return await answer(self._recall.session, arguments, max_tokens=self._recall.room)

    async def _keep(self, reply: Reply) -> None:
        """Store what was really said, if the client saw less."""
        if not self._said and not self._held:
            return
        own = self._own(reply)
        last = own if self._held else self._shape.without(own, self._recall.name)
        said = (*self._said, *last)
        exchange = Exchange(self._recall.name, said, tuple(self._held))
        record = exchange.record(
            self._recall.form.dialect, self._recall.message, self._recall.snapshot
        )
        try:
            await self._recall.keep(record)
        except (NotFoundError, StoreError) as error:
            # The client gets its reply all the same; only the provider's cache will miss.
            _log.warning("session %s: an exchange was not kept: %s", self._recall.session.id, error)

    def _own(self, reply: Reply) -> list[Mapping[str, Any]]:
        """What the model said, as it can be sent again."""
        if self._recall.keeps_items or not any(map(_is_lost, reply.messages)):
            return list(reply.messages)
        return [_unkept(item) for item in reply.messages if not _is_lost(item)]


def _take(events: list[Event], gathering: Gathering, join: Join) -> bytes:
    shown: list[Event] = []
    for event in events:
        said = event.json()
        if said is not None:
            gathering.take(said)
        shown += join.take(event, said)
    return b"".join(event.raw for event in shown)


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = loads(raw)
    except InputError:
        return None
    return found if isinstance(found, dict) else None


def _is_lost(item: Mapping[str, Any]) -> bool:
    """Reasoning that the provider did not keep, and did not give."""
    return item.get("type") == "reasoning" and not item.get("encrypted_content")


def _unkept(item: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in item.items() if key != "id"}
