"""Access tokens and namespaces, for the owner; and the audit log, for everybody their own."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from enfold.errors import InputError, NotFoundError
from enfold.records import AccessToken, check_name
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
from enfold.server.headers import name_in

router = APIRouter(prefix="/api", tags=["access"], route_class=StrictRoute)


class TokenShape(Shape):
    """An access token without its secret."""

    id: str = Field(description="To delete it by.")
    name: str = Field(description="Whose it is.")
    namespace: str = Field(description="Where its sessions are; empty for the owner's.")
    created_at: int = Field(description="Milliseconds since 1970.")


class NewTokenName(Shape):
    """Whose token is to be made."""

    name: str = Field(min_length=1, max_length=64, description="Whose it is.")
    model_config = example(name="ann")


class MadeToken(TokenShape):
    """A token that was made."""

    token: str = Field(description="The token itself, which is shown this once.")


class DeletedToken(Shape):
    """A token that was deleted, and what became of its sessions."""

    name: str = Field(description="Whose it was.")
    namespace: str = Field(description="Where its sessions are, for `x-enfold-namespace`.")
    sessions_deleted: int = Field(description="Its sessions that were deleted with it.")
    sessions_left: int = Field(description="Its sessions that are still there.")


class NamespaceShape(Shape):
    """Where somebody's sessions are."""

    namespace: str = Field(description="Its name, for `x-enfold-namespace`.")
    token: str | None = Field(description="The name of its access token; null if it has none.")
    sessions: int = Field(description="How many sessions there are.")


class DeletedSessions(Shape):
    """What was deleted."""

    sessions_deleted: int = Field(description="How many sessions that were.")


class AuditShape(Shape):
    """Something that was done."""

    seq: int = Field(description="Grows with every entry.")
    at: int = Field(description="Milliseconds since 1970.")
    actor: str = Field(description="The token's name; empty for somebody on the machine itself.")
    action: str = Field(description="Method and route; or UI, and what was done there.")
    status: int = Field(description="What was answered.")
    request_id: str = Field(description="What the log has more under; empty for the web UI.")
    session: str | None = Field(description="Which session it was about; null for none.")
    counts: dict[str, int] = Field(description="Figures, such as tokens; never words.")


@router.get("/tokens", name="tokens", summary="List access tokens")
async def list_tokens(engine: TheEngine, _: TheOwner) -> list[TokenShape]:
    """By name; their secrets are not stored."""
    return [_shown(row) for row in await engine.access.tokens()]


@router.post("/tokens", name="add_token", summary="Make an access token", status_code=201)
async def add_token(new: NewTokenName, engine: TheEngine, _: TheOwner) -> MadeToken:
    """With a namespace of its own: its sessions are nobody else's."""
    row, token = await engine.access.add_token(new.name)
    return MadeToken(**_shown(row).model_dump(), token=token)


@router.delete("/tokens/{token}", name="delete_token", summary="Delete an access token")
async def delete_token(
    token: Annotated[str, Path(description="The token's id, as the list has it.")],
    engine: TheEngine,
    known: TheTokens,
    request: Request,
    _: TheOwner,
    *,
    with_sessions: Annotated[
        bool, Query(description="Delete its sessions too, with all that is in them.")
    ] = False,
) -> DeletedToken:
    """By its id. Other servers on the same database may take it for five seconds more.

    Its sessions stay, unless they are to go too; the owner sees them with `x-enfold-namespace`.
    """
    row = await engine.access.token(token)
    if with_sessions and not row.namespace:
        raise InputError(
            "the first token shares its sessions with the command line; delete them one by one",
            place="with_sessions",
        )
    await engine.access.delete_token(token)
    known.forget(token)  # before its sessions go: it could begin new ones
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
) -> list[NamespaceShape]:
    """Where others have sessions, by name; also of tokens that were deleted."""
    check_name("namespace", after)
    return [
        NamespaceShape(namespace=each.name, token=each.token, sessions=each.sessions)
        for each in await engine.access.namespaces(limit=limit, after=after)
    ]


@router.delete(
    "/namespaces/{namespace}", name="delete_namespace", summary="Delete all sessions of one"
)
async def delete_namespace(
    namespace: Annotated[str, Path(description="Its name, as the list has it.")],
    engine: TheEngine,
    request: Request,
    _: TheOwner,
) -> DeletedSessions:
    """Everything that was said in it is gone. An access token that it has stays good."""
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
) -> list[AuditShape]:
    """Who changed what in your namespace, newest first: ids and counts, never text."""
    found = await engine.access.audit(caller.namespace, limit=limit, before=before)
    return [
        AuditShape(
            seq=entry.seq,
            at=entry.at,
            actor=entry.actor,
            action=entry.action,
            status=entry.status,
            request_id=entry.request_id,
            session=entry.session,
            counts=dict(entry.counts),
        )
        for entry in found
    ]


def _shown(row: AccessToken) -> TokenShape:
    return TokenShape(id=row.id, name=row.name, namespace=row.namespace, created_at=row.created_at)
