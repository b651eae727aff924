"""Access tokens and namespaces, for the owner, and the audit log of a caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from enfold.engine.access import Namespace
from enfold.errors import InputError, NotFoundError
from enfold.records import AccessToken, AuditEntry, check_name
from enfold.server.access import name_in
from enfold.server.api.shapes import (
    Limit,
    Shape,
    StrictRoute,
    TheCaller,
    TheEngine,
    TheOwner,
    TheTokens,
    count,
    example,
)

router = APIRouter(prefix="/api", tags=["access"], route_class=StrictRoute)


class NewTokenName(Shape):
    """The name of a new token."""

    name: str = Field(min_length=1, max_length=64, description="The token's name.")
    model_config = example(name="ann")


@dataclass(frozen=True, slots=True)
class NewToken(AccessToken):
    """A new token."""

    token: str
    """The token's text, which is shown only once."""


@dataclass(frozen=True, slots=True)
class DeletedToken:
    """A token that was deleted."""

    name: str
    """The token's name."""
    namespace: str
    """The namespace of its sessions, for the header `x-enfold-namespace`."""
    sessions_deleted: int
    """The number of its sessions that were deleted with it."""
    sessions_left: int
    """The number of its sessions that are left."""


@dataclass(frozen=True, slots=True)
class DeletedSessions:
    """The sessions that were deleted."""

    sessions_deleted: int
    """The number of sessions."""


@router.get("/tokens", name="tokens", summary="List access tokens")
async def list_tokens(engine: TheEngine, _: TheOwner) -> Sequence[AccessToken]:
    """Return all tokens by name, without their texts, which are not stored."""
    return await engine.access.tokens()


@router.post("/tokens", name="add_token", summary="Create an access token", status_code=201)
async def add_token(new: NewTokenName, engine: TheEngine, _: TheOwner) -> NewToken:
    """Create a token with a new namespace: no other token reaches its sessions."""
    row, token = await engine.access.add_token(new.name)
    return NewToken(row.id, row.name, row.namespace, row.created_at, token)


@router.delete("/tokens/{token}", name="delete_token", summary="Delete an access token")
async def delete_token(
    token: Annotated[str, Path(description="The token's id.")],
    engine: TheEngine,
    tokens: TheTokens,
    request: Request,
    _: TheOwner,
    *,
    with_sessions: Annotated[bool, Query(description="Delete its sessions too.")] = False,
) -> DeletedToken:
    """Delete a token. Other servers on the same database may accept it for five more seconds.

    Its sessions stay unless `with_sessions` is set; the owner reaches them with the header
    `x-enfold-namespace`.
    """
    row = await engine.access.token(token)
    if with_sessions and not row.namespace:
        raise InputError(
            "the first token shares its sessions with the command line; delete them one by one",
            place="with_sessions",
        )
    await engine.access.delete_token(token)
    tokens.forget(token)  # before its sessions are deleted, so that it cannot start new ones
    deleted = await engine.access.delete_sessions(row.namespace) if with_sessions else 0
    count(request.scope, sessions_deleted=deleted)
    return DeletedToken(
        name=row.name,
        namespace=row.namespace,
        sessions_deleted=deleted,
        sessions_left=await engine.access.count_sessions(row.namespace),
    )


@router.get("/namespaces", name="namespaces", summary="List namespaces")
async def list_namespaces(
    engine: TheEngine,
    _: TheOwner,
    limit: Limit = 50,
    after: Annotated[str, Query(max_length=256, description="The last page's last name.")] = "",
) -> Sequence[Namespace]:
    """Return the namespaces of other callers by name, also those of deleted tokens."""
    check_name("namespace", after)
    return await engine.access.namespaces(limit=limit, after=after)


@router.delete(
    "/namespaces/{namespace}", name="delete_namespace", summary="Delete a namespace's sessions"
)
async def delete_namespace(
    namespace: Annotated[str, Path(description="The namespace's name.")],
    engine: TheEngine,
    request: Request,
    _: TheOwner,
) -> DeletedSessions:
    """Delete all sessions of a namespace. Its access token stays valid."""
    name = name_in(namespace)
    check_name("namespace", name)
    deleted = await engine.access.delete_sessions(name)
    if not deleted:
        raise NotFoundError(f"there are no sessions in a namespace {name!r}")
    count(request.scope, sessions_deleted=deleted)
    return DeletedSessions(sessions_deleted=deleted)


@router.get("/audit", name="audit", summary="Read the audit log")
async def read_audit(
    engine: TheEngine,
    caller: TheCaller,
    limit: Limit = 50,
    before: Annotated[
        int | None, Query(ge=0, le=2**62, description="The last page's smallest `seq`.")
    ] = None,
) -> Sequence[AuditEntry]:
    """Return the changes in your namespace, newest first: ids and counts, never text."""
    return await engine.access.audit(caller.namespace, limit=limit, before=before)
