"""Recall in the proxy: a model looks up what was folded, and its client does not notice.

Once a summary is in use, requests with tools get one more: `recall`. When the model calls it, the
proxy answers from the history of that branch and asks again; the client gets one reply. What was
really said is stored, and sent in place of what the client saw on the turns after it, with the
same bytes, so that a provider's cache goes on to hit.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus
from typing import Any, TypeAlias

from enfold import records, wire
from enfold.budget import Decision
from enfold.engine import Session
from enfold.engine.recall import quote, recall, recall_found, text_budget
from enfold.engine.recognition import ClientHistory
from enfold.errors import EnfoldError, InputError, NotFoundError, StoreError, UnavailableError
from enfold.identity import content_hash
from enfold.jsontext import dumps, loads
from enfold.messages import Message, Text, ToolCall
from enfold.server.headers import Header
from enfold.server.proxy.bodies import Body
from enfold.server.proxy.calls import refusal
from enfold.server.proxy.upstream import Answer, Arriving, Whole, is_stream
from enfold.wire import Wire
from enfold.wire.contract import StreamJoiner
from enfold.wire.recall_tool import add_recall_tool
from enfold.wire.replies import EventParser, Reply, ReplyParser, ServerSentEvent

MOST = 3
"""So many recalls are answered in one turn."""
_TOKENS = 2_000
"""So many tokens has an answer at most."""
_FEWEST = 500
"""Tokens below which an answer says nothing."""

TOO_MANY = (
    f"Not answered: at most {MOST} recalls are answered in one turn. Go on with what you have."
)
_NO_ROOM = "Not answered: there is no room left for it. Go on with what you have."
_HOW = 'Give either {"query": "words to find"} or {"reference": "…", "start": 0}.'


@dataclass(frozen=True, slots=True)
class RecallOffer:
    """A request with the recall tool among its tools."""

    body: Body
    name: str
    """The tool's name in this request."""

    @property
    def note(self) -> str:
        """The sentence about the tool that stands next to a summary."""
        return f"The tool `{self.name}` finds their exact words."


def offer_recall(body: Body, setting: str) -> RecallOffer | None:
    """Return the request with the recall tool; None if it does not get the tool."""
    added = add_recall_tool(body.form, body.fields, setting)
    if added is None:
        return None
    tools, name = added
    return RecallOffer(replace(body, fields={**body.fields, "tools": tools}), name)


def share(decision: Decision) -> int:
    """Tokens that one answer may have, so that all that a turn can ask for fit."""
    return min(_TOKENS, (decision.limit - decision.tokens) // (MOST + 1))


async def answer(session: Session, arguments: str, *, max_tokens: int) -> str:
    """What the model reads; a call that cannot be answered is told why."""
    if max_tokens < _FEWEST:
        return _NO_ROOM
    try:
        given = loads(arguments or "{}")
        return await _answer(session, given if isinstance(given, dict) else {}, max_tokens)
    except (InputError, NotFoundError) as error:
        return f"Not answered: {error}. {_HOW}"
    except StoreError as error:
        # A reply may be half said by now; the model can go on without, and no client fails.
        _log.warning("session %s: a recall was not answered: %s", session.id, error)
        return "Not answered: the history cannot be read now. Go on with what you have."


async def _answer(session: Session, given: dict[str, Any], max_tokens: int) -> str:
    query, reference, start = given.get("query"), given.get("reference"), given.get("start")
    if isinstance(reference, str) and reference.strip():
        begin = start if isinstance(start, int) else 0
        room = text_budget(1, max_tokens)
        passage = await recall(session, reference.strip(), start=begin, max_tokens=room)
        return quote([passage])
    if isinstance(query, str) and query.strip():
        return quote(await recall_found(session, query, max_tokens=text_budget(0, max_tokens)))
    raise InputError("neither a query nor a reference was given")


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
    history: ClientHistory,
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
        merge = wire.WIRES[dialect].recall.merge_results
        if merge is None:
            instead[start] = (*said, *map(dumps, exchange.held))
        else:
            instead[end] = (dumps(merge(exchange.held, loads(sent[end]))),)
    return instead


def _read(content: bytes) -> Exchange:
    found = loads(content)
    return Exchange(found["name"], tuple(found["said"]), tuple(found["held"]))


@lru_cache(maxsize=_REMEMBERED)
def _parsed(raw: bytes, dialect: str) -> Message | None:
    """The message; None for what a provider said in a way that is not known here."""
    try:
        return wire.get(dialect).parse_message(loads(raw))
    except EnfoldError:
        return None


Ask: TypeAlias = Callable[[bytes], AbstractAsyncContextManager[Answer]]

_log = logging.getLogger("enfold.proxy")
_BROKE_OFF = "the provider failed while it answered; try again"


@dataclass(frozen=True, slots=True)
class Recall:
    """What a turn needs to recall."""

    form: Wire
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
        self._format = recall.form.recall
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
                parser = self._recall.form.reply_parser()
                parser.read_body(body)
                reply = parser.reply()
                if not await self._goes_on(reply):
                    break
                arriving = await stack.enter_async_context(self._again())
            await self._keep(reply)
            if len(bodies) > 1 or self._calls(reply):
                raw = dumps(self._format.join_bodies(bodies, self._recall.name))
            return Whole(arriving.status, arriving.headers, raw)

    async def _stream(self, arriving: Answer) -> AsyncIterator[bytes]:
        joiner = self._format.joiner(self._recall.name)
        async with AsyncExitStack() as stack:
            while True:
                parser, events = self._recall.form.reply_parser(), EventParser()
                async for chunk in arriving.chunks():
                    if shown := _take(events.feed(chunk), parser, joiner):
                        yield shown
                if shown := _take(events.end(), parser, joiner):
                    yield shown
                reply = parser.reply()
                goes_on = await self._goes_on(reply)
                if not goes_on:
                    await self._keep(reply)
                yield b"".join(event.raw for event in joiner.end_reply(is_last=not goes_on))
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
        return self._recall.form.stream_error(found)

    def _again(self) -> AbstractAsyncContextManager[Answer]:
        return self._ask(self._recall.resend([dumps(each) for each in self._said]))

    def _calls(self, reply: Reply) -> bool:
        return any(call.name == self._recall.name for call in reply.calls)

    async def _goes_on(self, reply: Reply) -> bool:
        """Whether the model is to be asked again; its recalls are answered then, or held."""
        calls = [call for call in reply.calls if call.name == self._recall.name]
        if not calls or reply.finish not in self._format.complete_finishes or self._recalls > MOST:
            return False
        answers = []
        for call in calls:
            self._recalls += 1
            answers.append((call, await self._answer(call.arguments)))
        results = self._format.results(answers)
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
        last = own if self._held else self._format.without_calls(own, self._recall.name)
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
        stored = self._recall.form.stored_responses
        if self._recall.keeps_items or stored is None:
            return list(reply.messages)
        return stored.resendable(reply.messages)


def _take(events: list[ServerSentEvent], parser: ReplyParser, joiner: StreamJoiner) -> bytes:
    shown: list[ServerSentEvent] = []
    for event in events:
        said = event.json()
        if said is not None:
            parser.add_event(said)
        shown += joiner.add(event, said)
    return b"".join(event.raw for event in shown)


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = loads(raw)
    except InputError:
        return None
    return found if isinstance(found, dict) else None
