"""Sessions, their branches and messages, and search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from enfold import wire
from enfold.engine.recall import MAX_AROUND, RECALL_TOKENS, RecallAnswer
from enfold.engine.results import StandingMessage
from enfold.engine.state import as_messages
from enfold.engine.transfer import fork_session
from enfold.errors import InputError
from enfold.messages import Message
from enfold.records import Branch, Hit, SessionCursor, SessionRecord, StoredMessage, new_id
from enfold.server.api.shapes import (
    Limit,
    Shape,
    StrictRoute,
    TheCaller,
    TheEngine,
    TheSession,
    checked,
    count,
    example,
    run_in_thread_if_large,
)
from enfold.wire import AUTO

router = APIRouter(prefix="/api", tags=["sessions"], route_class=StrictRoute)


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A page of sessions, most recently used first."""

    sessions: list[SessionRecord]
    """The sessions."""
    next: str | None
    """Value of `after` for the next page; null at the end."""


class NewSession(Shape):
    """A session to create."""

    id: str | None = Field(
        None, min_length=1, max_length=256, description="The session's name; null for a random one."
    )
    title: str | None = Field(None, max_length=1_000, description="The title, for people.")
    model: str | None = Field(None, max_length=256, description="As provider:model.")
    profile: str | None = Field(
        None, max_length=256, description="The profile that answers and condenses."
    )
    settings: dict[str, Any] = Field(default_factory=dict, description="Settings of this session.")
    model_config = example(id="festival", title="The harbour festival")


class SessionChanges(Shape):
    """New values of a session; absent fields stay as they are."""

    title: str | None = Field(None, max_length=1_000, description="The title, for people.")
    model: str | None = Field(None, max_length=256, description='As provider:model; "" for none.')
    profile: str | None = Field(None, max_length=256, description='"" for none.')
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Settings of this session; null unsets one."
    )
    model_config = example(settings={"threshold": 0.8})


class Fork(Shape):
    """A session to create from the beginning of another."""

    id: str | None = Field(
        None, min_length=1, max_length=256, description="The session's name; null for a random one."
    )
    at: str | None = Field(None, description="The last message to copy; null for the tip.")
    model_config = example(id="festival, by boat")


class Tip(Shape):
    """The message after which the session continues."""

    tip: str | None = Field(description="A message of the session; null for an empty branch.")
    model_config = example(tip="2de8d65c79991aa982dd29788f98fb5d")


@router.get("/sessions", name="list", summary="List sessions")
async def list_sessions(
    engine: TheEngine,
    caller: TheCaller,
    limit: Limit = 50,
    after: Annotated[str | None, Query(description="The last page's `next`.")] = None,
) -> SessionPage:
    """Return the sessions, most recently used first."""
    mark = None if after is None else _mark(after)
    found = await engine.sessions(namespace=caller.namespace, limit=limit + 1, after=mark)
    page = found[:limit]
    more = f"{page[-1].updated_at}.{page[-1].key}" if len(found) > limit else None
    return SessionPage(page, more)


@router.post("/sessions", name="create", summary="Create a session", status_code=201)
async def create_session(new: NewSession, engine: TheEngine, caller: TheCaller) -> SessionRecord:
    """Create a session. An existing session of that name gets the new values."""
    session = await engine.session(
        new.id or new_id(),
        namespace=caller.namespace,
        title=new.title,
        model=new.model,
        profile=new.profile,
    )
    if new.settings:
        await session.configure(**checked(new.settings))
    return await session.record()


@router.get("/sessions/{session}", name="get", summary="Show a session")
async def get_session(session: TheSession) -> SessionRecord:
    """Return a session. `GET /api/sessions/{session}/status` has the figures of its context."""
    return await session.record()


@router.patch("/sessions/{session}", name="change", summary="Change a session")
async def change_session(changes: SessionChanges, session: TheSession) -> SessionRecord:
    """Change the title, the model, the profile or settings of a session."""
    if changes.settings:
        await session.configure(**checked(changes.settings))
    await session.update(title=changes.title, model=changes.model, profile=changes.profile)
    return await session.record()


@router.delete("/sessions/{session}", name="delete", summary="Delete a session", status_code=204)
async def delete_session(session: TheSession) -> None:
    """Delete a session with all its data."""
    await session.delete()


@router.post("/sessions/{session}/fork", name="fork", summary="Fork a session", status_code=201)
async def fork(new: Fork, session: TheSession, engine: TheEngine) -> SessionRecord:
    """Create a session that starts with this session's messages."""
    made = await fork_session(engine, session, new.id or new_id(), at=new.at)
    return await made.record()


@router.get("/sessions/{session}/branches", name="branches", summary="List branches")
async def list_branches(session: TheSession) -> Sequence[Branch]:
    """Return all branches, oldest first."""
    return await session.branches()


@router.put("/sessions/{session}/tip", name="switch", summary="Switch to another branch")
async def switch(tip: Tip, session: TheSession) -> SessionRecord:
    """Continue after this message. Unless it is a tip, the next message starts a branch."""
    await session.switch(tip.tip)
    return await session.record()


def _mark(after: str) -> SessionCursor:
    updated_at, _, key = after.partition(".")
    if not (updated_at.isdecimal() and key.isdecimal() and len(after) < 40):  # noqa: PLR2004
        raise InputError("expected the `next` of the page before", place="query.after")
    return SessionCursor(int(updated_at), int(key))


messages_router = APIRouter(prefix="/api", tags=["messages"], route_class=StrictRoute)

_MOST = 10_000
"""Messages in one request."""

MessageId: TypeAlias = Annotated[str, Path(description="The message's id.")]


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A page of messages of a branch, oldest first."""

    messages: Sequence[StoredMessage]
    """The messages."""


class NewMessages(Shape):
    """Messages to append."""

    messages: list[str | dict[str, Any]] = Field(
        min_length=1,
        max_length=_MOST,
        description="Messages in a dialect; a text is a user message.",
    )
    dialect: str = Field(AUTO, description="The dialect; auto recognises it.")
    after: str | None = Field(
        None, description="The message they follow; null for the end of the branch."
    )
    model_config = example(messages=[{"role": "user", "content": "Where do the boats moor?"}])


@dataclass(frozen=True, slots=True)
class AppendedMessages:
    """The ids of the messages, in order."""

    ids: Sequence[str]
    """The ids, also of messages that were stored before."""


@messages_router.get("/sessions/{session}/messages", name="list", summary="Read the history")
async def read_history(
    session: TheSession,
    limit: Limit = 50,
    before: Annotated[str | None, Query(description="Only messages before this one.")] = None,
    after: Annotated[str | None, Query(description="Only messages after this one.")] = None,
) -> HistoryPage:
    """Return the last messages of the branch, or a page before or after a message."""
    if before is not None and after is not None:
        raise InputError("use before or after, not both", place="query.before")
    rows = await session.history(before=before, after=after, limit=limit)
    return HistoryPage(rows)


@messages_router.post(
    "/sessions/{session}/messages", name="append", summary="Append messages", status_code=201
)
async def append(new: NewMessages, session: TheSession, request: Request) -> AppendedMessages:
    """Append messages; stored ones are recognised. After an earlier message they start a branch."""
    messages = await run_in_thread_if_large(request, _parse, new.messages, new.dialect)
    count(request.scope, messages=len(messages))
    return AppendedMessages(await session.append(*messages, after=new.after))


@messages_router.get(
    "/sessions/{session}/messages/{message}", name="get", summary="Read one message"
)
async def read_message(message: MessageId, session: TheSession) -> StoredMessage:
    """Return one message of the branch, summarized or not."""
    return await session.message(message)


@messages_router.post(
    "/sessions/{session}/messages/{message}/pin", name="pin", summary="Pin", status_code=204
)
async def pin(message: MessageId, session: TheSession) -> None:
    """Keep a message in the view, verbatim, through all compressions."""
    await session.pin(message)


@messages_router.delete(
    "/sessions/{session}/messages/{message}/pin", name="unpin", summary="Unpin", status_code=204
)
async def unpin(message: MessageId, session: TheSession) -> None:
    """Let compressions summarize a message again, pinned or standing for another reason."""
    await session.unpin(message)


@messages_router.get("/sessions/{session}/pins", name="pins", summary="List pinned messages")
async def list_pins(session: TheSession) -> Sequence[StandingMessage]:
    """Return the pinned and the standing messages, each with the reason and its tokens."""
    return await session.pins()


def _parse(given: list[str | dict[str, Any]], dialect: str) -> tuple[Message, ...]:
    """Return the messages of a request."""
    if dialect != AUTO:
        wire.get(dialect)
    try:
        if all(isinstance(each, Mapping) for each in given):
            return wire.parse(given, dialect).messages
        return as_messages(given, dialect)
    except InputError as error:
        raise error.at("body") from None


search_router = APIRouter(prefix="/api", tags=["search"], route_class=StrictRoute)


@search_router.get("/search", name="find", summary="Search")
async def find(
    engine: TheEngine,
    caller: TheCaller,
    q: Annotated[
        str,
        Query(
            min_length=1,
            max_length=1_000,
            description='Words that must all occur; "in quotes" as a phrase.',
            examples=['"mooring plan" harbour'],
        ),
    ],
    session: Annotated[str | None, Query(description="Only in this session.")] = None,
    best: Annotated[bool, Query(description="Best match first, instead of newest first.")] = False,  # noqa: FBT002 - a query's name
    limit: Limit = 20,
) -> Sequence[Hit]:
    """Search one session, or all your sessions."""
    if session is not None:
        place = await engine.find(session, namespace=caller.namespace)
        return await place.search(q, limit=limit, best_first=best)
    return await engine.search(q, namespace=caller.namespace, limit=limit, best_first=best)


@search_router.get("/sessions/{session}/recall", name="recall", summary="Recall")
async def recall(
    session: TheSession,
    question: Annotated[
        str,
        Query(
            max_length=4_000,
            description="A question in plain words, which may name a date or a file.",
            examples=["When do the lanterns arrive?"],
        ),
    ] = "",
    reference: Annotated[
        str,
        Query(
            max_length=512,
            description=(
                "Instead of a question: a message id or position, a marker or a tool call id."
            ),
            examples=[""],
        ),
    ] = "",
    start: Annotated[
        int, Query(ge=0, description="With a reference: the character to go on from.")
    ] = 0,
    around: Annotated[
        int,
        Query(
            ge=0, le=MAX_AROUND, description="With a reference: neighbours to return on each side."
        ),
    ] = 0,
    tokens: Annotated[
        int, Query(ge=1, le=100_000, description="Tokens of the answer, at most.")
    ] = RECALL_TOKENS,
) -> RecallAnswer:
    """Return the messages of the session's branch that answer a question, summarized or not.

    Or one message by its reference, with its neighbours.
    """
    return await session.recall(
        question, reference=reference, start=start, around=around, tokens=tokens
    )
