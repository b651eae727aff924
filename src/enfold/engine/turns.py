"""Turns: a user's message and the model's answer, stored so that a failure loses neither.

A turn stores the user's message, prepares the view, asks the model, and stores the answer. A turn
that ends early leaves a session that can be continued:

- The user's message is stored before anything else. A compression or a model that fails leaves it
  without an answer; `answer` asks again.
- A turn that is cancelled keeps what it had received, marked as interrupted: somebody read it. What
  came before a failure is dropped, because the answer is asked for again.

Doors show a turn while it runs; what they hear is in `Progress`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

from enfold.amounts import CallUsage
from enfold.engine.results import Prepared
from enfold.engine.session import Session
from enfold.engine.state import message_of
from enfold.errors import BadReplyError, ContextOverflowError, NotFoundError
from enfold.llm.calls import Call, Connection, Delta, Ending, Gateway, ModelReply
from enfold.llm.costs import Prices
from enfold.llm.providers import dialect_of
from enfold.llm.summarizer import cost_of_call
from enfold.messages import Message, Text, ToolCall, text_of
from enfold.records import StoredMessage, UsageEvent
from enfold.text.sentences import shorten_title, title_from

_TITLE_PROMPT = (
    "Write a title for this conversation: at most six words, in its language, without quotes. "
    "Answer with the title only."
)
_TITLE_TOKENS = 256
"""Tokens for a title: models that reason need some before they write."""
_TITLED_MESSAGES = 4
"""A conversation with more messages keeps its title."""
_TITLED_CHARACTERS = 2_000
"""Characters of each message that a title is written from."""
INTERRUPTED = "interrupted"
"""The field of a stored answer that was stopped while it was written."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Answerer:
    """The model that answers, and how it is reached."""

    gateway: Gateway
    connection: Connection
    profile: str | None = None
    """The profile's name, for the record of usage."""
    prices: Prices | None = None
    """None is unknown."""
    system: str = ""
    """The system prompt; it is sent with every turn and not stored."""


@dataclass(frozen=True, slots=True)
class QuestionStored:
    """The user's message is stored; nothing else has happened yet."""

    message: str
    """Its id."""


Progress: TypeAlias = Prepared | QuestionStored | Delta
"""The progress of a turn, in this order: question stored, view prepared, pieces of text."""
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


async def ask(
    session: Session, text: str, answerer: Answerer, listen: Listener, **settings: Any
) -> Answer:
    """Store a user message and have the model answer it. `settings` apply to this turn only."""
    question = await store_question(session, text, listen)
    return await _answer(session, question, answerer, listen, settings)


async def store_question(session: Session, text: str, listen: Listener) -> str:
    """Store a user message at the end of the branch and return its id."""
    (question,) = await _to_its_end(session.append(text))
    listen(QuestionStored(question))
    return question


async def answer(session: Session, answerer: Answerer, listen: Listener, **settings: Any) -> Answer:
    """Have the model answer the last user message, which has no answer yet."""
    question = await unanswered(session)
    if question is None:
        raise NotFoundError(f"session {session.id!r}: nothing waits for an answer")
    return await _answer(session, question.id, answerer, listen, settings)


async def write_title(session: Session, answerer: Answerer) -> str | None:
    """Have the model name a conversation after its first answer; return the new title.

    None if the title stays: a person wrote it, the first message is short enough to be one, or
    the setting `model_titles` is off.
    """
    record = await session.record()
    rows = await session.history(limit=_TITLED_MESSAGES + 1)
    shown = [message_of(row) for row in rows]
    is_cut = bool(rows) and record.title == title_from(shown) != text_of(shown[0].parts).strip()
    is_wanted = (await session.settings()).model_titles
    if not (is_wanted and is_cut and len(rows) <= _TITLED_MESSAGES):
        return None
    text = "\n\n".join(f"{each.role}: {text_of(each.parts)[:_TITLED_CHARACTERS]}" for each in shown)
    call = Call((Message("user", (Text(f"{_TITLE_PROMPT}\n\n{text}"),)),), max_tokens=_TITLE_TOKENS)
    reply = await answerer.gateway.complete(answerer.connection, call)
    cost = cost_of_call(reply.usage, answerer.prices)
    await _record_usage(session, None, reply, answerer, cost)
    lines = text_of(reply.message.parts).strip().splitlines()
    title = shorten_title(lines[0].strip(" \t\"'“”„«»*#.")) if lines else ""
    if not title or (await session.record()).title != record.title:
        return None
    await session.configure(title=title)
    return title


async def unanswered(session: Session) -> StoredMessage | None:
    """Return the last user message if it has no answer yet."""
    last = await session.history(limit=1)
    return last[0] if last and last[0].role == "user" else None


async def _answer(
    session: Session,
    question: str,
    answerer: Answerer,
    listen: Listener,
    settings: Mapping[str, Any],
) -> Answer:
    # Settings of this turn alone cannot hold for a later compression.
    wait = True if settings else None
    prepared = await session.prepare(system=answerer.system, wait=wait, **settings)
    listen(prepared)
    started = perf_counter()
    pieces: list[str] = []

    def take(delta: Delta) -> None:
        pieces.append(delta.text)
        listen(delta)

    try:
        reply = await _receive(prepared, answerer, take)
    except asyncio.CancelledError:
        if (text := "".join(pieces)).strip():
            partial = {"role": "assistant", "content": text, INTERRUPTED: True}
            await _to_its_end(session.append(partial, after=question, dialect="enfold"))
        raise
    except ContextOverflowError as error:
        if error.window is not None:
            await session.learn_limit(answerer.connection.name, error.window)
        raise
    seconds = perf_counter() - started
    (stored,) = await _to_its_end(session.append(reply.message, after=question))
    cost = cost_of_call(reply.usage, answerer.prices)
    await _record_usage(session, stored, reply, answerer, cost)
    text = text_of(reply.message.parts)
    return Answer(stored, text, reply.ending, prepared, reply.usage, cost, seconds)


async def _receive(
    prepared: Prepared, answerer: Answerer, take: Callable[[Delta], None]
) -> ModelReply:
    """Return the reply; raise `BadReplyError` if it has no text or calls a tool."""
    dialect, model = dialect_of(answerer.connection.provider), answerer.connection.name
    call = Call(prepared.view.messages_for(dialect), system=answerer.system or None)
    async with aclosing(answerer.gateway.stream(answerer.connection, call)) as items:
        async for item in items:
            if not isinstance(item, ModelReply):
                take(item)
                continue
            parts = item.message.parts
            if any(isinstance(part, ToolCall) for part in parts):
                raise BadReplyError(f"{model} called a tool, and none was offered; ask again")
            if not text_of(parts).strip():
                raise BadReplyError(f"{model} returned an empty answer; ask again")
            return item
    raise BadReplyError(f"{model} ended its answer without completing it")


def is_interrupted(message: Message) -> bool:
    """True for an answer that was stopped while it was written."""
    return bool(message.extras.get(INTERRUPTED)) and message.dialect == "enfold"


async def _record_usage(
    session: Session, stored: str | None, reply: ModelReply, answerer: Answerer, cost: float | None
) -> None:
    """Record the usage of an answer, or of a title, which is no message."""
    kind = "title" if stored is None else "reply"
    model, profile = answerer.connection.name, answerer.profile
    used = UsageEvent.of(kind, reply.usage, cost, model=model, profile=profile, message_id=stored)
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
