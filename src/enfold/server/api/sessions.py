"""Sessions: made, listed, named, forked, switched between branches, deleted."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import Field

from enfold.engine import Session
from enfold.engine.transfer import fork_session
from enfold.errors import InputError
from enfold.server.api.shapes import (
    Limit,
    Shape,
    StrictRoute,
    TheCaller,
    TheEngine,
    TheSession,
    checked,
    example,
)
from enfold.store import records, sessions
from enfold.store.records import SessionMark, new_id

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


class SessionShape(Shape):
    """A session: a tree of messages, and the branch it is on."""

    id: str = Field(description="Its name, which is unique in your namespace.")
    title: str = Field(description="What it is about.")
    model: str | None = Field(description="As provider:model; null for the settings' model.")
    profile: str | None = Field(description="Which profile answers and condenses; null for none.")
    tip: str | None = Field(description="The last message of the current branch.")
    messages: int = Field(description="In the current branch, folded or not.")
    tokens: int = Field(description="Of these messages, as counted when they were stored.")
    settings: dict[str, Any] = Field(description="What is set for this session alone.")
    blocked: str | None = Field(description="Why the session waits; null while it does not.")
    created_at: int = Field(description="Milliseconds since 1970.")
    updated_at: int = Field(description="Milliseconds since 1970.")
    model_config = example(**_FESTIVAL)


class SessionPage(Shape):
    """Some sessions, the last used first."""

    sessions: list[SessionShape] = Field(description="The sessions.")
    next: str | None = Field(description="Give it as `after` for the next page; null at the end.")


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


class BranchShape(Shape):
    """A path from the first message to one that nothing follows."""

    tip: str = Field(description="Its last message.")
    messages: int = Field(description="How many it has.")
    tokens: int = Field(description="Of these messages.")
    created_at: int = Field(description="Of its last message, in milliseconds since 1970.")
    current: bool = Field(description="Whether the session is on it.")


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
    return SessionPage(sessions=[shown(record) for record in page], next=more)


@router.post("/sessions", name="create", summary="Make a session", status_code=201)
async def create_session(new: NewSession, engine: TheEngine, caller: TheCaller) -> SessionShape:
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
    return await _read(engine, session)


@router.get("/sessions/{session}", name="get", summary="Show a session")
async def get_session(session: TheSession, engine: TheEngine) -> SessionShape:
    """How full its context is says `GET /api/sessions/{session}/status`."""
    return await _read(engine, session)


@router.patch("/sessions/{session}", name="change", summary="Change a session")
async def change_session(
    changes: SessionChanges, session: TheSession, engine: TheEngine
) -> SessionShape:
    """Its title, its model, its profile, or its own settings."""
    if changes.settings:
        await session.configure(**checked(changes.settings))
    if changes.profile:
        await engine.profiles.require(changes.profile)
    await engine.store.write(
        sessions.update,
        session.key,
        sessions.Changes(title=changes.title, model=changes.model, profile=changes.profile),
    )
    return await _read(engine, session)


@router.delete("/sessions/{session}", name="delete", summary="Delete a session", status_code=204)
async def delete_session(session: TheSession) -> Response:
    """With its messages, its summaries and everything else that belongs to it."""
    await session.delete()
    return Response(status_code=204)


@router.post("/sessions/{session}/fork", name="fork", summary="Fork a session", status_code=201)
async def fork(new: Fork, session: TheSession, engine: TheEngine) -> SessionShape:
    """A new session that begins with this one's messages; the two then go their own ways."""
    made = await fork_session(engine, session, new.id or new_id(), at=new.at)
    return await _read(engine, made)


@router.get("/sessions/{session}/branches", name="branches", summary="List branches")
async def list_branches(session: TheSession, engine: TheEngine) -> list[BranchShape]:
    """Every branch by its last message, oldest first."""
    record = await engine.store.read(sessions.get, session.key)
    return [
        BranchShape(
            tip=branch.tip,
            messages=branch.depth,
            tokens=branch.tokens,
            created_at=branch.created_at,
            current=branch.tip == record.tip,
        )
        for branch in await session.branches()
    ]


@router.put("/sessions/{session}/tip", name="switch", summary="Switch to another branch")
async def switch(tip: Tip, session: TheSession, engine: TheEngine) -> SessionShape:
    """What is appended next follows that message, which makes a branch unless it is a tip."""
    await session.switch(tip.tip)
    return await _read(engine, session)


async def _read(engine: TheEngine, session: Session) -> SessionShape:
    return shown(await engine.store.read(sessions.get, session.key))


def shown(record: records.Session) -> SessionShape:
    """A session as the API has it."""
    return SessionShape(
        id=record.id,
        title=record.title,
        model=record.model,
        profile=record.profile,
        tip=record.tip,
        messages=record.depth,
        tokens=record.tokens,
        settings=dict(record.settings),
        blocked=(record.blocked or {}).get("reason"),
        created_at=record.created_at,
        updated_at=record.updated_at,
    )


def _mark(after: str) -> SessionMark:
    updated_at, _, key = after.partition(".")
    if not (updated_at.isdecimal() and key.isdecimal() and len(after) < 40):  # noqa: PLR2004
        raise InputError("expected the `next` of the page before", place="query.after")
    return SessionMark(int(updated_at), int(key))
