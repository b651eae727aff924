"""Turns: a user's message and the model's answer, stored so that a failure loses neither.

A turn prepares the view, stores what the user said, asks the model, and stores the answer. Whatever
ends it early leaves a session that can be gone on with:

- Before the user's words are stored (a compression failed, the session is blocked) nothing is.
- From then on they stay. A model that fails leaves them without an answer; `answer` asks again.
- A turn that is cancelled keeps what it had received, marked as interrupted: somebody read it. What
  came before a failure is dropped, because the answer is asked for again.

Doors show a turn while it runs; what they hear is in `Progress`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

from enfold.amounts import CallUsage
from enfold.engine.results import Prepared
from enfold.engine.session import Session
from enfold.errors import BadReplyError, NotFoundError
from enfold.llm.calls import Call, Connection, Delta, Ending, Gateway, ModelReply
from enfold.llm.prices import Prices
from enfold.llm.providers import dialect_of
from enfold.llm.summarizer import cost_of_call
from enfold.messages import Message, ToolCall, text_of
from enfold.records import StoredMessage, UsageEvent

INTERRUPTED = "interrupted"
"""The field of a stored answer that was stopped while it was written."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Answerer:
    """The model that answers, and how it is reached."""

    gateway: Gateway
    connection: Connection
    profile: str | None = None
    """The profile's name, for the record of what was used."""
    prices: Prices | None = None
    """None is unknown."""
    system: str = ""
    """The system prompt; it is sent with every turn and not stored."""


@dataclass(frozen=True, slots=True)
class QuestionStored:
    """The user's words are stored, and the model is asked now."""

    message: str
    """Their id."""


Progress: TypeAlias = Prepared | QuestionStored | Delta
"""What a turn tells while it runs: the view, that the question is stored, pieces of text."""
Listener: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Answer:
    """A turn that came to its end."""

    message: str
    """The stored answer's id."""
    text: str
    ending: Ending
    prepared: Prepared
    usage: CallUsage
    cost: float | None
    """In US dollars. None is unknown."""
    seconds: float
    """From the question to the last word."""


@dataclass(slots=True)
class _Received:
    """The received part of an answer."""

    listen: Listener
    pieces: list[str] = field(default_factory=list)

    def take(self, delta: Delta) -> None:
        self.pieces.append(delta.text)
        self.listen(delta)


async def ask(
    session: Session, text: str, answerer: Answerer, listen: Listener, **settings: Any
) -> Answer:
    """One turn: the user says the text, and the model answers. `settings` hold for it alone."""
    prepared = await session.prepare(text, system=answerer.system, **settings)
    listen(prepared)
    (question,) = await _to_its_end(session.append(text, after=prepared.view.tip))
    return await _answer(session, question, prepared, answerer, listen)


async def answer(session: Session, answerer: Answerer, listen: Listener, **settings: Any) -> Answer:
    """The answer to what the user said last, which has none yet."""
    question = await unanswered(session)
    if question is None:
        raise NotFoundError(f"session {session.id!r}: nothing waits for an answer")
    prepared = await session.prepare(system=answerer.system, **settings)
    listen(prepared)
    return await _answer(session, question.id, prepared, answerer, listen)


async def unanswered(session: Session) -> StoredMessage | None:
    """Return the last user message if it has no answer yet."""
    last = await session.history(limit=1)
    return last[0] if last and last[0].role == "user" else None


async def _answer(
    session: Session, question: str, prepared: Prepared, answerer: Answerer, listen: Listener
) -> Answer:
    listen(QuestionStored(question))
    started = perf_counter()
    received = _Received(listen)
    try:
        reply = await _receive(prepared, answerer, received)
    except asyncio.CancelledError:
        await _keep_interrupted(session, question, "".join(received.pieces))
        raise
    seconds = perf_counter() - started
    (stored,) = await _to_its_end(session.append(reply.message, after=question))
    cost = cost_of_call(reply.usage, answerer.prices)
    await _record_usage(session, stored, reply, answerer, cost)
    text = text_of(reply.message.parts)
    return Answer(stored, text, reply.ending, prepared, reply.usage, cost, seconds)


async def _receive(prepared: Prepared, answerer: Answerer, received: _Received) -> ModelReply:
    dialect = dialect_of(answerer.connection.provider)
    messages = (*prepared.view.messages_for(dialect), *prepared.pending)
    call = Call(messages, system=answerer.system or None)
    async with aclosing(answerer.gateway.stream(answerer.connection, call)) as items:
        async for item in items:
            if isinstance(item, ModelReply):
                return _checked(item, answerer.connection)
            received.take(item)
    raise BadReplyError(f"{answerer.connection.name} ended its answer without completing it")


def _checked(reply: ModelReply, connection: Connection) -> ModelReply:
    """Return the reply; raise `BadReplyError` if it has no text or calls a tool."""
    if any(isinstance(part, ToolCall) for part in reply.message.parts):
        raise BadReplyError(f"{connection.name} called a tool, and none was offered; ask again")
    if not text_of(reply.message.parts).strip():
        raise BadReplyError(f"{connection.name} answered nothing; ask again")
    return reply


async def _keep_interrupted(session: Session, question: str, text: str) -> None:
    if text.strip():
        partial = {"role": "assistant", "content": text, INTERRUPTED: True}
        await _to_its_end(session.append(partial, after=question, dialect="enfold"))


def is_interrupted(message: Message) -> bool:
    """True for an answer that was stopped while it was written."""
    return bool(message.extras.get(INTERRUPTED)) and message.dialect == "enfold"


async def _record_usage(
    session: Session, stored: str, reply: ModelReply, answerer: Answerer, cost: float | None
) -> None:
    used = UsageEvent(
        kind="reply",
        profile=answerer.profile,
        model=answerer.connection.name,
        input_tokens=reply.usage.input_tokens,
        cached_tokens=reply.usage.cache_read_tokens,
        output_tokens=reply.usage.output_tokens,
        cost=cost,
        message_id=stored,
    )
    await session.record_usage(used)


async def _to_its_end(work: Awaitable[Result]) -> Result:
    """Return the result of the work, which ends first even if the caller is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((task,))
        task.result()  # that it failed is worse news than that it was interrupted
        raise
