"""Sessions: made, listed, named, forked, switched between branches, deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from enfold import wire
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
)
from enfold.wire import AUTO

router = APIRouter(prefix="/api", tags=["sessions"], route_class=StrictRoute)

_FESTIVAL: dict[str, Any] = {
    "id": "festival",
    "title": "The harbour festival",
    "model": "openai:gpt-4o",
    "profile": None,
    "tip": "2de8d65c79991aa982dd29788f98fb5d",
    "messages": 42,
    "tokens": 18_230,
    "settings": {"threshold": 0.8},
    "blocked": None,
    "created_at": 1_700_000_000_000,
    "updated_at": 1_700_000_360_000,
}


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A page of sessions, the last used first."""

    sessions: list[SessionRecord]
    """The sessions."""
    next: str | None
    """Value of `after` for the next page; null at the end."""


class NewSession(Shape):
    """A session to be made."""

    id: str | None = Field(
        None, min_length=1, max_length=256, description="Its name; null for one made up."
    )
    title: str | None = Field(None, max_length=1_000, description="What it is about.")
    model: str | None = Field(None, max_length=256, description="As provider:model.")
    profile: str | None = Field(
        None, max_length=256, description="Which profile answers and condenses."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, description="What is set for this session alone."
    )
    model_config = example(id="festival", title="The harbour festival")


class SessionChanges(Shape):
    """New values; what is absent stays as it is."""

    title: str | None = Field(None, max_length=1_000, description="What it is about.")
    model: str | None = Field(None, max_length=256, description='As provider:model; "" for none.')
    profile: str | None = Field(None, max_length=256, description='"" for none.')
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Settings of this session alone; null unsets one."
    )
    model_config = example(settings={"threshold": 0.8})


class Fork(Shape):
    """A session to be made from the beginning of another."""

    id: str | None = Field(
        None, min_length=1, max_length=256, description="Its name; null for one made up."
    )
    at: str | None = Field(
        None, description="The last message to be taken along; null for the tip."
    )
    model_config = example(id="festival, by boat")


class Tip(Shape):
    """Where to go on from."""

    tip: str | None = Field(description="Any message of the session; null for before the first.")
    model_config = example(tip=_FESTIVAL["tip"])


@router.get("/sessions", name="list", summary="List sessions")
async def list_sessions(
    engine: TheEngine,
    caller: TheCaller,
    limit: Limit = 50,
    after: Annotated[str | None, Query(description="The last page's `next`.")] = None,
) -> SessionPage:
    """The last used first."""
    mark = None if after is None else _mark(after)
    found = await engine.sessions(namespace=caller.namespace, limit=limit + 1, after=mark)
    page = found[:limit]
    more = f"{page[-1].updated_at}.{page[-1].key}" if len(found) > limit else None
    return SessionPage(page, more)


@router.post("/sessions", name="create", summary="Make a session", status_code=201)
async def create_session(new: NewSession, engine: TheEngine, caller: TheCaller) -> SessionRecord:
    """A session that is there already is given back, with the new values."""
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
    """How full its context is says `GET /api/sessions/{session}/status`."""
    return await session.record()


@router.patch("/sessions/{session}", name="change", summary="Change a session")
async def change_session(changes: SessionChanges, session: TheSession) -> SessionRecord:
    """Its title, its model, its profile, or its own settings."""
    if changes.settings:
        await session.configure(**checked(changes.settings))
    await session.update(title=changes.title, model=changes.model, profile=changes.profile)
    return await session.record()


@router.delete("/sessions/{session}", name="delete", summary="Delete a session", status_code=204)
async def delete_session(session: TheSession) -> Response:
    """With its messages, its summaries and everything else that belongs to it."""
    await session.delete()
    return Response(status_code=204)


@router.post("/sessions/{session}/fork", name="fork", summary="Fork a session", status_code=201)
async def fork(new: Fork, session: TheSession, engine: TheEngine) -> SessionRecord:
    """A new session that begins with this one's messages; the two then go their own ways."""
    made = await fork_session(engine, session, new.id or new_id(), at=new.at)
    return await made.record()


@router.get("/sessions/{session}/branches", name="branches", summary="List branches")
async def list_branches(session: TheSession) -> Sequence[Branch]:
    """Every branch by its last message, oldest first."""
    return await session.branches()


@router.put("/sessions/{session}/tip", name="switch", summary="Switch to another branch")
async def switch(tip: Tip, session: TheSession) -> SessionRecord:
    """What is appended next follows that message, which makes a branch unless it is a tip."""
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
_TEA = {
    "id": "2de8d65c79991aa982dd29788f98fb5d",
    "parent": None,
    "depth": 1,
    "role": "user",
    "dialect": "openai",
    "tokens": 11,
    "tokenizer": "o200k_base",
    "estimate": 0,
    "created_at": 1_700_000_000_000,
    "message": {"role": "user", "content": "Where do the boats moor?"},
}


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A page of messages of a branch, oldest first."""

    messages: Sequence[StoredMessage]
    """The messages."""


class NewMessages(Shape):
    """Messages to be added."""

    messages: list[str | dict[str, Any]] = Field(
        min_length=1,
        max_length=_MOST,
        description="Messages of a dialect; a text is what the user says.",
    )
    dialect: str = Field(AUTO, description="The wire format, recognised if it is not named.")
    after: str | None = Field(
        None, description="The message that they follow; null for the end of the branch."
    )
    model_config = example(messages=[_TEA["message"]])


@dataclass(frozen=True, slots=True)
class AppendedMessages:
    """The ids of the messages, in order."""

    ids: Sequence[str]
    """The ids, also of messages that were stored before."""


@messages_router.get("/sessions/{session}/messages", name="list", summary="Read the history")
async def read_history(
    session: TheSession,
    limit: Limit = 50,
    before: Annotated[str | None, Query(description="Those before this message.")] = None,
    after: Annotated[str | None, Query(description="Those after this message.")] = None,
) -> HistoryPage:
    """The last messages of the branch, or a page before or after one of them."""
    if before is not None and after is not None:
        raise InputError("give before or after, not both", place="query.before")
    rows = await session.history(before=before, after=after, limit=limit)
    return HistoryPage(rows)


@messages_router.post(
    "/sessions/{session}/messages", name="append", summary="Append messages", status_code=201
)
async def append(new: NewMessages, session: TheSession, request: Request) -> AppendedMessages:
    """What is there already is recognised. After any message but the last it makes a branch."""
    messages = parsed(new.messages, new.dialect)
    count(request.scope, messages=len(messages))
    return AppendedMessages(await session.append(*messages, after=new.after))


@messages_router.get(
    "/sessions/{session}/messages/{message}", name="get", summary="Read one message"
)
async def read_message(
    message: Annotated[str, Path(description="The message's id.")], session: TheSession
) -> StoredMessage:
    """One message of the branch, folded or not."""
    return await session.message(message)


def parsed(given: list[str | dict[str, Any]], dialect: str) -> tuple[Message, ...]:
    """The messages that were sent; an array of one wire format is read as one."""
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
            description='Words that must all occur; "in quotes" they must stand together.',
            examples=['"mooring plan" harbour'],
        ),
    ],
    session: Annotated[str | None, Query(description="Only in this session.")] = None,
    best: Annotated[bool, Query(description="Best first, instead of newest first.")] = False,  # noqa: FBT002 - a query's name
    limit: Limit = 20,
) -> Sequence[Hit]:
    """In one session or in all of yours."""
    if session is not None:
        place = await engine.find(session, namespace=caller.namespace)
        return await place.search(q, limit=limit, best_first=best)
    return await engine.search(q, namespace=caller.namespace, limit=limit, best_first=best)
