"""Context: how full a session is, the view to send, and compressing it."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import Field

from enfold import wire
from enfold.budget import Decision
from enfold.engine import Outcome, Preview, Status
from enfold.engine.state import as_messages
from enfold.errors import InputError
from enfold.events import payload
from enfold.messages import Message, Tool
from enfold.records import Snapshot
from enfold.server.api.shapes import (
    Shape,
    StrictRoute,
    TheCaller,
    TheFeeds,
    TheSession,
    checked,
    count,
    example,
)

router = APIRouter(prefix="/api", tags=["context"], route_class=StrictRoute)


class ToolShape(Shape):
    """A tool that the model is offered."""

    name: str = Field(description="As the model calls it.")
    description: str = Field("", description="What it is for.")
    parameters: dict[str, Any] | None = Field(
        None, description="A JSON schema; null where it takes none."
    )


class Sending(Shape):
    """What is to be sent beside the history. Nothing of it is stored."""

    pending: str | dict[str, Any] | None = Field(None, description="What the user says next.")
    system: str = Field("", description="The system prompt that goes along.")
    tools: list[ToolShape] = Field(
        default_factory=list,
        max_length=1_000,
        description="Tools that the model is offered; they take room too.",
    )
    max_output: int | None = Field(None, ge=1, description="The longest reply.")
    settings: dict[str, Any] = Field(default_factory=dict, description="For this call alone.")
    model_config = example(pending="And where do the boats moor?", system="Be brief.")

    def message(self) -> Message | None:
        """What the user says next, as a message."""
        if self.pending is None:
            return None
        try:
            (message,) = as_messages((self.pending,))
        except InputError as error:
            raise error.at("body.pending") from None
        return message

    def offered(self) -> tuple[Tool, ...]:
        """The tools, as the engine has them."""
        return tuple(Tool(each.name, each.description, each.parameters) for each in self.tools)


class Preparing(Sending):
    """The same, and the wire format to be answered in."""

    dialect: str = Field("openai", description="The wire format of the view.")
    model_config = example(pending="And where do the boats moor?", dialect="anthropic")


class Compressing(Shape):
    """How to compress, this time."""

    keep_tokens: int | None = Field(
        None, ge=0, le=10**9, description="So many of the newest tokens stay as they are."
    )
    force: bool = Field(default=True, description="Even if it is not due.")
    settings: dict[str, Any] = Field(default_factory=dict, description="For this call alone.")
    model_config = example(keep_tokens=2_000, settings={"style": "concise"})


@dataclass(frozen=True, slots=True)
class PreparedView:
    """The view to send to the model."""

    messages: list[Any]
    """The messages in the requested dialect."""
    decision: Decision
    """The decision on the view as it is sent."""
    compression: Outcome | None
    """The compression that was made first; null if none was due."""
    warnings: Sequence[str]
    """Warnings."""


@dataclass(frozen=True, slots=True)
class UndoneSnapshot:
    """The snapshot that was undone."""

    snapshot: str | None
    """The snapshot's id; null if none was in use."""


@router.get("/sessions/{session}/status", name="status", summary="Check the context")
async def read_status(session: TheSession) -> Status:
    """How full it is, and what a compression would keep."""
    return await session.status()


@router.post("/sessions/{session}/check", name="check", summary="Check before sending")
async def check(sending: Sending, session: TheSession) -> Status:
    """The same, with what is about to be sent."""
    return await session.status(
        sending.message(),
        system=sending.system,
        tools=sending.offered(),
        **checked(sending.settings),
    )


@router.post("/sessions/{session}/prepare", name="prepare", summary="Get the view to send")
async def prepare(preparing: Preparing, session: TheSession) -> PreparedView:
    """The history as the model is sent it, compressed first if that is due."""
    wire.get(preparing.dialect)
    prepared = await session.prepare(
        preparing.message(),
        system=preparing.system,
        tools=preparing.offered(),
        max_output=preparing.max_output,
        **checked(preparing.settings),
    )
    return PreparedView(
        prepared.render(preparing.dialect),
        prepared.decision,
        prepared.compression,
        prepared.warnings,
    )


@router.post("/sessions/{session}/preview", name="preview", summary="Preview a compression")
async def preview(compressing: Compressing, session: TheSession) -> Preview:
    """What `compress` would do; no model is asked and nothing is written."""
    return await session.preview(
        keep_tokens=compressing.keep_tokens, **checked(compressing.settings)
    )


@router.post("/sessions/{session}/compress", name="compress", summary="Compress now")
async def compress(compressing: Compressing, session: TheSession, request: Request) -> Outcome:
    """Fold what is old into a summary."""
    done = await session.compress(
        force=compressing.force,
        keep_tokens=compressing.keep_tokens,
        **checked(compressing.settings),
    )
    return _counted(done, request)


@router.post("/sessions/{session}/retry", name="retry", summary="Retry a failed compression")
async def retry(session: TheSession, request: Request) -> Outcome:
    """Once more, after a failure blocked the session. If it succeeds, requests go on."""
    return _counted(await session.retry(), request)


@router.post(
    "/sessions/{session}/acknowledge", name="acknowledge", summary="Go on without a compression"
)
async def acknowledge(session: TheSession) -> Status:
    """Accept the risk after a failure blocked the session: requests go on, with a warning."""
    await session.acknowledge()
    return await session.status()


@router.post("/sessions/{session}/undo", name="undo", summary="Undo a compression")
async def undo(session: TheSession) -> UndoneSnapshot:
    """Take back the compression in use: what it replaced is shown again."""
    undone = await session.undo()
    return UndoneSnapshot(None if undone is None else undone.id)


def _counted(done: Outcome, request: Request) -> Outcome:
    count(
        request.scope,
        messages=done.messages,
        tokens_before=done.tokens_before,
        tokens_after=done.tokens_after,
    )
    return done


summaries_router = APIRouter(prefix="/api", tags=["summaries"], route_class=StrictRoute)

_MOST_ITEMS = 10_000

SummaryId: TypeAlias = Annotated[str, Path(description="The summary's id.")]


class NewText(Shape):
    """Other words for the summary in use."""

    text: str = Field(min_length=1, max_length=1_000_000, description="The summary's new words.")
    model_config = example(text="They agreed that the boats moor at the north quay.")


class Rewriting(Shape):
    """How the summary is to be written anew."""

    settings: dict[str, Any] = Field(default_factory=dict, description="For this call alone.")
    model_config = example(settings={"style": "detailed"})


@summaries_router.get("/sessions/{session}/summaries", name="list", summary="List summaries")
async def list_summaries(session: TheSession) -> Sequence[Snapshot]:
    """All of the session, newest first, undone ones too."""
    return await session.summaries()


@summaries_router.get("/sessions/{session}/memories", name="memories", summary="List memories")
async def list_memories(session: TheSession) -> Sequence[Snapshot]:
    """What long-term memory has kept of the session, newest first."""
    return await session.memories()


@summaries_router.post("/sessions/{session}/regenerate", name="regenerate", summary="Write it anew")
async def regenerate(rewriting: Rewriting, session: TheSession, request: Request) -> Outcome:
    """The summary in use is written once more, for the same messages."""
    done = await session.regenerate(**checked(rewriting.settings))
    count(request.scope, tokens_before=done.tokens_before, tokens_after=done.tokens_after)
    return done


@summaries_router.put("/sessions/{session}/summary", name="edit", summary="Edit the summary")
async def edit(new: NewText, session: TheSession) -> Snapshot:
    """Other words in place of the summary in use; the old ones stay on record."""
    return await session.edit_summary(new.text)


@summaries_router.delete(
    "/sessions/{session}/summaries/{summary}",
    name="delete",
    summary="Delete a summary",
    status_code=204,
)
async def delete(summary: SummaryId, session: TheSession) -> Response:
    """Stop using it, and delete its words. The messages that it stood for are still there."""
    await session.delete_summary(summary)
    return Response(status_code=204)


@summaries_router.get(
    "/sessions/{session}/summaries/{summary}/receipt", name="receipt", summary="Receipt"
)
async def receipt(
    summary: SummaryId,
    session: TheSession,
    limit: Annotated[
        int, Query(ge=0, le=_MOST_ITEMS, description="Items named of each fate.")
    ] = 200,
) -> dict[str, Any]:
    """What became of every exact item that left the view: kept, restorable or lost."""
    return (await session.receipt(summary)).as_json(limit)


events_router = APIRouter(prefix="/api", tags=["events"])


@events_router.get(
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
    async for sent in feed.follow(queue, session):
        yield ServerSentEvent(data=payload(sent.event), event=sent.event.name, id=sent.id)
