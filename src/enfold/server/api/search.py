"""Search: words in everything that was ever said in your sessions, folded or not."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from enfold.server.api.shapes import Limit, Shape, StrictRoute, TheCaller, TheEngine

router = APIRouter(prefix="/api", tags=["search"], route_class=StrictRoute)


class HitShape(Shape):
    """A message that was found."""

    session: str = Field(description="Where it was said.")
    message: str = Field(description="The message's id.")
    depth: int = Field(description="Its place on its branch; the first is 1.")
    role: str = Field(description="Who said it.")
    created_at: int = Field(description="Milliseconds since 1970.")
    snippet: str = Field(description="What was found, with some text around it.")
    snippet_start: int = Field(description="Where the snippet begins, in characters.")
    start: int = Field(description="Where in the message it begins, in characters.")
    end: int = Field(description="Where it ends.")
    rank: float | None = Field(description="Greater is better; null if the newest come first.")


@router.get("/search", name="find", summary="Search")
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
) -> list[HitShape]:
    """In one session or in all of yours."""
    if session is not None:
        place = await engine.find(session, namespace=caller.namespace)
        hits = await place.search(q, limit=limit, best_first=best)
    else:
        hits = await engine.search(q, namespace=caller.namespace, limit=limit, best_first=best)
    return [
        HitShape(
            session=hit.session_id,
            message=hit.message,
            depth=hit.depth,
            role=hit.role,
            created_at=hit.created_at,
            snippet=hit.snippet,
            snippet_start=hit.snippet_start,
            start=hit.start,
            end=hit.end,
            rank=hit.rank,
        )
        for hit in hits
    ]
