"""Events: what happens to your sessions, as it happens."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from enfold.events import payload
from enfold.server.api.shapes import TheCaller, TheFeeds

router = APIRouter(prefix="/api", tags=["events"])


@router.get(
    "/events",
    name="stream",
    summary="Listen to events",
    response_class=EventSourceResponse,
)
async def stream(
    feeds: TheFeeds,
    caller: TheCaller,
    session: Annotated[str | None, Query(description="Only of this session.")] = None,
    last_event_id: Annotated[
        str | None, Header(description="Of the last event seen; what came after it is told first.")
    ] = None,
) -> AsyncIterable[ServerSentEvent]:
    """Compressions that start, come further, finish and fail; sessions that are blocked or not.

    Where several processes share a PostgreSQL database, the events of all of them.
    """
    feed = feeds.of(caller.namespace)
    queue = feed.listen(last_event_id)
    async for told in feed.follow(queue, session):
        yield ServerSentEvent(data=payload(told.event), event=told.event.name, id=told.id)
