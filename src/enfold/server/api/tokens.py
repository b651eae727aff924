"""Access tokens, for the owner; and the audit log, for everybody their own."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from enfold.server.api.shapes import (
    Limit,
    Shape,
    StrictRoute,
    TheCaller,
    TheEngine,
    TheOwner,
    example,
)
from enfold.store import access
from enfold.store.access import AccessToken

router = APIRouter(prefix="/api", tags=["access"], route_class=StrictRoute)


class TokenShape(Shape):
    """An access token without its secret."""

    id: str = Field(description="To delete it by.")
    name: str = Field(description="Whose it is.")
    created_at: int = Field(description="Milliseconds since 1970.")


class NewTokenName(Shape):
    """Whose token is to be made."""

    name: str = Field(min_length=1, max_length=64, description="Whose it is.")
    model_config = example(name="ann")


class MadeToken(TokenShape):
    """A token that was made."""

    token: str = Field(description="The token itself, which is shown this once.")


class AuditShape(Shape):
    """Something that was done."""

    seq: int = Field(description="Grows with every entry.")
    at: int = Field(description="Milliseconds since 1970.")
    actor: str = Field(description="The token's name; empty for somebody on the machine itself.")
    action: str = Field(description="Method and route.")
    status: int = Field(description="What was answered.")
    request_id: str = Field(description="What the log has more under.")
    session: str | None = Field(description="Which session it was about; null for none.")
    counts: dict[str, int] = Field(description="Figures, such as tokens; never words.")


@router.get("/tokens", name="tokens", summary="List access tokens")
async def list_tokens(engine: TheEngine, _: TheOwner) -> list[TokenShape]:
    """By name; their secrets are not stored."""
    return [_shown(row) for row in await engine.store.read(access.tokens)]


@router.post("/tokens", name="add_token", summary="Make an access token", status_code=201)
async def add_token(new: NewTokenName, engine: TheEngine, _: TheOwner) -> MadeToken:
    """With a namespace of its own: its sessions are nobody else's."""
    token = access.new_token()
    row = await engine.store.write(access.add, new.name, token)
    return MadeToken(id=row.id, name=row.name, created_at=row.created_at, token=token)


@router.delete(
    "/tokens/{token}", name="delete_token", summary="Delete an access token", status_code=204
)
async def delete_token(
    token: Annotated[str, Path(description="The token's id, as the list has it.")],
    engine: TheEngine,
    _: TheOwner,
) -> Response:
    """By its id. It may still open for a few seconds; its sessions stay and nobody sees them."""
    await engine.store.write(access.delete, token)
    return Response(status_code=204)


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
    found = await engine.store.read(access.logged, caller.namespace, limit=limit, before=before)
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
    return TokenShape(id=row.id, name=row.name, created_at=row.created_at)
