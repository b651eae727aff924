"""Summaries: read, written anew, edited, deleted; and the receipts of compressions."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from enfold.server.api.context import CompressionShape, compression_shape
from enfold.server.api.shapes import Shape, StrictRoute, TheSession, checked, count, example
from enfold.store.records import Snapshot

router = APIRouter(prefix="/api", tags=["summaries"], route_class=StrictRoute)

_MOST_ITEMS = 10_000

SummaryId: TypeAlias = Annotated[str, Path(description="The summary's id.")]


class SummaryShape(Shape):
    """A summary, and what it stands for."""

    id: str = Field(description="The snapshot's id.")
    text: str | None = Field(description="Null if it was deleted, or there never was one.")
    author: str = Field(description="A model, the built-in summarizer, or user.")
    strategy: str = Field(description="Which strategy made it.")
    tokens: int | None = Field(description="Of the summary; null where there is none.")
    cutoff: str | None = Field(description="The last message that it covers.")
    parent: str | None = Field(description="The end of the branch when it was made.")
    previous: str | None = Field(description="The one that was in use before.")
    undone: bool = Field(description="Whether it was taken back.")
    range: dict[str, Any] | None = Field(
        description="The first and the last message that it stands for."
    )
    warnings: list[str] = Field(description="What there is to say of how it came about.")
    created_at: int = Field(description="Milliseconds since 1970.")


class NewText(Shape):
    """Other words for the summary in use."""

    text: str = Field(min_length=1, max_length=1_000_000, description="The summary's new words.")
    model_config = example(text="They agreed that the boats moor at the north quay.")


class Rewriting(Shape):
    """How the summary is to be written anew."""

    settings: dict[str, Any] = Field(default_factory=dict, description="For this call alone.")
    model_config = example(settings={"style": "detailed"})


@router.get("/sessions/{session}/summaries", name="list", summary="List summaries")
async def list_summaries(session: TheSession) -> list[SummaryShape]:
    """All of the session, newest first, undone ones too."""
    return [shown(snapshot) for snapshot in await session.summaries()]


@router.get("/sessions/{session}/memories", name="memories", summary="List memories")
async def list_memories(session: TheSession) -> list[SummaryShape]:
    """What long-term memory has kept of the session, newest first."""
    return [shown(snapshot) for snapshot in await session.memories()]


@router.post("/sessions/{session}/regenerate", name="regenerate", summary="Write it anew")
async def regenerate(
    rewriting: Rewriting, session: TheSession, request: Request
) -> CompressionShape:
    """The summary in use is written once more, for the same messages."""
    done = await session.regenerate(**checked(rewriting.settings))
    count(request.scope, tokens_before=done.tokens_before, tokens_after=done.tokens_after)
    return compression_shape(done)


@router.put("/sessions/{session}/summary", name="edit", summary="Edit the summary")
async def edit(new: NewText, session: TheSession) -> SummaryShape:
    """Other words in place of the summary in use; the old ones stay on record."""
    return shown(await session.edit_summary(new.text))


@router.delete(
    "/sessions/{session}/summaries/{summary}",
    name="delete",
    summary="Delete a summary",
    status_code=204,
)
async def delete(summary: SummaryId, session: TheSession) -> Response:
    """Stop using it, and delete its words. The messages that it stood for are still there."""
    await session.delete_summary(summary)
    return Response(status_code=204)


@router.get("/sessions/{session}/summaries/{summary}/receipt", name="receipt", summary="Receipt")
async def receipt(
    summary: SummaryId,
    session: TheSession,
    limit: Annotated[
        int, Query(ge=0, le=_MOST_ITEMS, description="Items named of each fate.")
    ] = 200,
) -> dict[str, Any]:
    """What became of every exact item that left the view: kept, restorable or lost."""
    return (await session.receipt(summary)).as_json(limit)


def shown(snapshot: Snapshot) -> SummaryShape:
    """A summary as the API has it."""
    return SummaryShape(
        id=snapshot.id,
        text=snapshot.text,
        author=snapshot.author,
        strategy=snapshot.strategy,
        tokens=snapshot.token_count,
        cutoff=snapshot.cutoff,
        parent=snapshot.parent,
        previous=snapshot.previous,
        undone=snapshot.undone,
        range=snapshot.content.get("messageRange"),
        warnings=snapshot.content.get("warnings") or [],
        created_at=snapshot.created_at,
    )
