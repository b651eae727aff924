"""Recall in the proxy: the model looks up messages that are not in its view, unseen by the client.

Once a summary is in use, requests with tools get one more tool: `recall`. When the model calls it,
the proxy answers from the history of the branch and sends the request again; the client receives
one reply. The full exchange is stored. On later turns it is sent in place of the reply that the
client has, with the same bytes, so that the provider's prompt cache keeps hitting.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, TypeAlias

from enfold import records, wire
from enfold.amounts import CallUsage
from enfold.budget import Decision
from enfold.engine import Session
from enfold.engine.recall import answer, text_budget
from enfold.engine.recognition import ClientHistory
from enfold.errors import EnfoldError, InputError, NotFoundError, StoreError, UnavailableError
from enfold.identity import content_hash
from enfold.jsontext import dumps, loads
from enfold.messages import Message, Text, ToolCall
from enfold.server.access import Header
from enfold.server.proxy.bodies import RequestBody, parse_message
from enfold.server.proxy.client import error_response
from enfold.server.proxy.upstream import (
    BufferedResponse,
    RelayedResponse,
    UpstreamResponse,
    is_stream,
)
from enfold.wire import Wire
from enfold.wire.replies import EventParser, Reply, ReplyParser, ServerSentEvent, StreamJoiner
from enfold.wire.request_additions import add_recall_tool

CallUpstream: TypeAlias = Callable[[bytes], AbstractAsyncContextManager[UpstreamResponse]]
"""Sends the client's request with another body."""

MAX_RECALLS = 3
"""Recalls that are answered in one turn."""
TOO_MANY_RECALLS = (
    f"Not answered: at most {MAX_RECALLS} recalls are answered in one turn. "
    "Go on with what you have."
)
_MAX_ANSWER_TOKENS = 2_000
_MIN_ANSWER_TOKENS = 500
"""A shorter answer would not help the model."""
_MIN_LEFT_TOKENS = 250
"""Tokens that answers leave for the calls themselves."""
_NO_SPACE = "Not answered: there is no room left for it. Go on with what you have."
_USAGE = 'Give either {"query": "words to find"} or {"reference": "…", "start": 0}.'
_PROVIDER_FAILED = "the provider failed while it answered; try again"
_MAX_PARSED = 4_096
"""Parsed messages that are cached."""

_log = logging.getLogger("enfold.proxy")


@dataclass(frozen=True, slots=True)
class RecallOffer:
    """A request with the recall tool among its tools."""

    body: RequestBody
    name: str
    """The tool's name in this request."""

    @property
    def note(self) -> str:
        """The sentence about the tool that stands next to a summary."""
        return f"The tool `{self.name}` finds their exact words."


def offer_recall(body: RequestBody, setting: str, lead: int = 0) -> RecallOffer | None:
    """Return the request with the recall tool; None if it does not get the tool.

    `lead` is the number of system messages at the beginning: one of them may declare the tools.
    """
    added = add_recall_tool(body.wire, body.fields, setting, body.messages[:lead])
    if added is None:
        return None
    if added.field is not None:
        body = replace(body, fields={**body.fields, "tools": added.field})
    if added.message is not None:
        index, raw = added.message
        body = replace(body, messages=(*body.messages[:index], raw, *body.messages[index + 1 :]))
    return RecallOffer(body, added.name)


def answer_budget(decision: Decision) -> tuple[int, int]:
    """Return how many recalls of a turn are answered, and the maximum tokens of each answer.

    All answers fit into the window. Where little is left of it, they are fewer, not too short.
    """
    left = decision.limit - decision.tokens
    number = max(0, min(MAX_RECALLS, (left - _MIN_LEFT_TOKENS) // _MIN_ANSWER_TOKENS))
    tokens = max(_MIN_ANSWER_TOKENS, left // (number + 1))
    return number, min(_MAX_ANSWER_TOKENS, tokens)


async def answer_recall(
    session: Session, arguments: str, *, max_tokens: int, earlier: Sequence[Session] = ()
) -> str:
    """Return the answer to a call of the tool, or the reason why there is none.

    `earlier` is the session at the ends of the histories that the client compacted to this one.
    """
    try:
        given = loads(arguments or "{}")
        values = given if isinstance(given, dict) else {}
        found = await _find_passages((session, *earlier), values, max_tokens)
        await session.record_recall(str(values.get("query") or values.get("reference")))
    except (InputError, NotFoundError) as error:
        return f"Not answered: {error}. {_USAGE}"
    except StoreError as error:
        # Part of the reply may have been sent already. The model can go on without the answer.
        _log.warning("session %s: a recall was not answered: %s", session.id, error)
        return "Not answered: the history cannot be read now. Go on with what you have."
    return found


async def _find_passages(
    histories: Sequence[Session], given: dict[str, Any], max_tokens: int
) -> str:
    """Return the answer of the first history that has one, else that of the first history."""
    query, reference = given.get("query"), given.get("reference")
    start, around = (
        value if isinstance(value := given.get(name), int) else 0 for name in ("start", "around")
    )
    if isinstance(reference, str) and reference.strip():
        budget = text_budget(0 if around else 1, max_tokens)
        find = partial(answer, reference=reference, start=start, around=around, tokens=budget)
        for history in histories[:-1]:
            with suppress(NotFoundError):
                return str(await find(history))
        return str(await find(histories[-1]))
    if isinstance(query, str) and query.strip():
        budget = text_budget(0, max_tokens)
        answers = [await answer(histories[0], query, tokens=budget)]
        for history in histories[1:]:
            if answers[-1].fits:
                break
            answers.append(await answer(history, query, tokens=budget))
        return str(answers[-1] if answers[-1].fits else answers[0])
    raise InputError("neither a query nor a reference was given")


@dataclass(frozen=True, slots=True)
class RecallExchange:
    """The full messages of a turn with recalls."""

    name: str
    """The tool's name."""
    messages: tuple[Mapping[str, Any], ...]
    """The model's messages, and the results of its recalls."""
    held: tuple[Mapping[str, Any], ...] = ()
    """Results of recalls that are sent with the results of the client's tools."""

    def record(self, dialect: str, message: str, snapshot: str) -> records.Exchange:
        """Return its record: after that message, under that snapshot."""
        content = dumps({"name": self.name, "said": self.messages, "held": self.held})
        shown = reply_hash([dumps(each) for each in self.messages], dialect, self.name)
        return records.Exchange(snapshot, message, shown, dialect, content)

    @staticmethod
    def read(content: bytes) -> RecallExchange:
        """Return the exchange of a record's content."""
        found = loads(content)
        return RecallExchange(found["name"], tuple(found["said"]), tuple(found["held"]))


def find_replacements(
    exchanges: Iterable[records.Exchange],
    history: ClientHistory,
    sent: Sequence[bytes],
    *,
    dialect: str,
    name: str,
) -> dict[int, tuple[bytes, ...]]:
    """Return the full exchanges that replace messages of the client, by their index.

    An exchange is recognised by the message before it and by the part that the client received. A
    reply that the client changed is sent as the client has it.
    """
    replacements: dict[int, tuple[bytes, ...]] = {}
    for stored in exchanges:
        if stored.dialect != dialect or stored.message not in history.ids:
            continue
        start = history.ids.index(stored.message) + 1
        later = range(start, len(sent))
        end = next((i for i in later if history.roles[i] != "assistant"), len(sent))
        if start == end or stored.shown != reply_hash(sent[start:end], dialect, name):
            continue
        exchange = RecallExchange.read(stored.content)
        if exchange.name == name:
            replacements |= _replace_range(exchange, start, end, sent, dialect)
    return replacements


def _replace_range(
    exchange: RecallExchange, start: int, end: int, sent: Sequence[bytes], dialect: str
) -> dict[int, tuple[bytes, ...]]:
    """Return the replacements of the messages from start to end, and of the results after them."""
    if exchange.held and end == len(sent):
        return {}
    messages = tuple(map(dumps, exchange.messages))
    removed: dict[int, tuple[bytes, ...]] = dict.fromkeys(range(start + 1, end), ())
    replacements = removed | {start: messages}
    if exchange.held:
        merge = wire.WIRES[dialect].recall.merge_results
        if merge is None:
            replacements[start] = (*messages, *map(dumps, exchange.held))
        else:
            replacements[end] = (dumps(merge(exchange.held, loads(sent[end]))),)
    return replacements


def reply_hash(raws: Iterable[bytes], dialect: str, name: str) -> str:
    """Return a hash of a reply as the client has it: its texts, however spaced, and other calls."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    for raw in raws:
        message = _parse_or_none(raw, dialect)
        if message is None or message.role != "assistant":
            continue
        texts += (part.text for part in message.parts if isinstance(part, Text))
        calls += (
            ToolCall("", part.name, part.arguments)
            for part in message.parts
            if isinstance(part, ToolCall) and part.name != name
        )
    text = "".join("".join(texts).split())
    return content_hash(Message("assistant", (Text(text), *calls)))


@lru_cache(maxsize=_MAX_PARSED)
def _parse_or_none(raw: bytes, dialect: str) -> Message | None:
    try:
        return parse_message(raw, dialect)
    except EnfoldError:
        return None


@dataclass(frozen=True, slots=True)
class RecallContext:
    """Everything that recalls of one turn need."""

    wire: Wire
    name: str
    """The tool's name in this request."""
    session: Session
    """The session at the last recorded message of the request's branch."""
    message: str
    """The identity of the last message of the request."""
    snapshot: str
    answers: int
    """The number of recalls that are answered; the window has no space for more."""
    answer_tokens: int
    """The maximum tokens of one answer."""
    resend: Callable[[Sequence[bytes]], bytes]
    """Returns the request with more messages at its end."""
    save: Callable[[records.Exchange], Awaitable[None]]
    earlier: Sequence[Session] = ()
    """The session at the ends of the histories that the client compacted to this one."""
    keeps_items: bool = True
    """True if the provider stores reasoning, so that a reference to it is enough."""


@dataclass(frozen=True, slots=True)
class JoinedStream:
    """A stream that is joined from several responses."""

    status: int
    headers: list[Header]
    _chunks: AsyncIterator[bytes]
    length: None = None

    def whole_body(self) -> None:
        """Return None, because the body is still arriving."""
        return

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
        return self._chunks


class RecallLoop:
    """Answers the recalls of one turn, and joins the model's replies into one."""

    def __init__(self, context: RecallContext, call_upstream: CallUpstream) -> None:
        self._context = context
        self._call_upstream = call_upstream
        self._format = context.wire.recall
        self._messages: list[Mapping[str, Any]] = []
        self._held: list[dict[str, Any]] = []
        self._recalls = 0
        self.hidden_usage: list[CallUsage] = []
        """The usage of the replies before the last one, which the client does not receive whole."""

    async def run(self, first: UpstreamResponse) -> RelayedResponse:
        """Return the one response that the client receives. A stream goes on while it is read."""
        if is_stream(first):
            return JoinedStream(first.status, first.headers, self._stream(first))
        return await self._buffer(first)

    async def _buffer(self, response: UpstreamResponse) -> BufferedResponse:
        bodies: list[dict[str, Any]] = []
        async with AsyncExitStack() as stack:
            while True:
                raw = await response.read()
                body = _parse_object(raw)
                if response.status >= HTTPStatus.BAD_REQUEST or body is None:
                    return BufferedResponse(response.status, response.headers, raw)
                bodies.append(body)
                parser = self._context.wire.reply_parser()
                parser.read_body(body)
                reply = parser.reply()
                if not await self._must_resend(reply):
                    break
                response = await stack.enter_async_context(self._resend())
            await self._save(reply)
            if len(bodies) > 1 or any(call.name == self._context.name for call in reply.calls):
                raw = dumps(self._format.join_bodies(bodies, self._context.name))
            return BufferedResponse(response.status, response.headers, raw)

    async def _stream(self, response: UpstreamResponse) -> AsyncIterator[bytes]:
        joiner = self._format.joiner(self._context.name)
        async with AsyncExitStack() as stack:
            while True:
                parser, events = self._context.wire.reply_parser(), EventParser()
                async for chunk in response.chunks():
                    if visible := _join_events(events.feed(chunk), parser, joiner):
                        yield visible
                if visible := _join_events(events.end(), parser, joiner):
                    yield visible
                reply = parser.reply()
                if response.ends_with_connection and reply.finish is None:
                    raise response.broken_off()
                is_last = not await self._must_resend(reply)
                if is_last:
                    await self._save(reply)
                yield b"".join(event.raw for event in joiner.end_reply(is_last=is_last))
                if is_last:
                    return
                try:
                    response = await stack.enter_async_context(self._resend())
                except EnfoldError as error:
                    yield self._error_event(error)
                    return
                if response.status >= HTTPStatus.BAD_REQUEST:
                    yield self._error_event(await response.read())
                    return

    def _error_event(self, failure: bytes | EnfoldError) -> bytes:
        """Return the event that ends a stream: the provider's error, or enfold's."""
        body = (_parse_object(failure) or {}) if isinstance(failure, bytes) else {}
        if "error" not in body:
            if isinstance(failure, bytes):
                failure = UnavailableError(_PROVIDER_FAILED)
            _, _, raw = error_response(failure, self._context.wire.upstream)
            body = loads(raw)
        return self._context.wire.stream_error(body)

    def _resend(self) -> AbstractAsyncContextManager[UpstreamResponse]:
        return self._call_upstream(self._context.resend([dumps(each) for each in self._messages]))

    async def _must_resend(self, reply: Reply) -> bool:
        """Answer the recalls of a reply; return True if the request is to be sent again.

        If the model calls the client's tools too, the client answers them first: the results of
        the recalls are held until its next request.
        """
        calls = [call for call in reply.calls if call.name == self._context.name]
        is_complete = reply.finish in self._format.complete_finishes
        if not calls or not is_complete or self._recalls > MAX_RECALLS:
            return False
        answers = []
        for call in calls:
            self._recalls += 1
            answers.append((call, await self._answer(call.arguments)))
        results = self._format.results(answers)
        if len(calls) < len(reply.calls):
            self._held = results
            return False
        self._messages += [*self._resendable(reply), *results]
        self.hidden_usage.append(reply.usage)
        return True

    async def _answer(self, arguments: str) -> str:
        if self._recalls > MAX_RECALLS:
            return TOO_MANY_RECALLS
        context = self._context
        if self._recalls > context.answers:
            return _NO_SPACE
        return await answer_recall(
            context.session,
            arguments,
            max_tokens=context.answer_tokens,
            earlier=context.earlier,
        )

    async def _save(self, reply: Reply) -> None:
        """Store the full exchange, if the client received less."""
        if not self._messages and not self._held:
            return
        context = self._context
        last = self._resendable(reply)
        if not self._held:
            last = self._format.without_calls(last, context.name)
        exchange = RecallExchange(context.name, (*self._messages, *last), tuple(self._held))
        record = exchange.record(context.wire.dialect, context.message, context.snapshot)
        try:
            await context.save(record)
        except (NotFoundError, StoreError) as error:
            # The client still receives its reply; only the provider's prompt cache will miss.
            _log.warning("session %s: an exchange was not kept: %s", context.session.id, error)

    def _resendable(self, reply: Reply) -> Sequence[Mapping[str, Any]]:
        """Return the model's messages as they can be sent again."""
        stored = self._context.wire.stored_responses
        if self._context.keeps_items or stored is None:
            return list(reply.messages)
        return stored.resendable(reply.messages)


def _join_events(events: list[ServerSentEvent], parser: ReplyParser, joiner: StreamJoiner) -> bytes:
    visible: list[ServerSentEvent] = []
    for event in events:
        data = event.json()
        if data is not None:
            parser.add_event(data)
        visible += joiner.add(event, data)
    return b"".join(event.raw for event in visible)


def _parse_object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = loads(raw)
    except InputError:
        return None
    return found if isinstance(found, dict) else None
