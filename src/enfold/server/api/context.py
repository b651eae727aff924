"""A session's context: status, the view to send, compression, summaries and events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Header, Path, Query, Request
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
    CallSettings,
    Shape,
    StrictRoute,
    TheCaller,
    TheFeeds,
    TheSession,
    count,
    example,
    run_in_thread_if_large,
)

router = APIRouter(prefix="/api", tags=["context"], route_class=StrictRoute)


class ToolShape(Shape):
    """A tool of the request."""

    name: str = Field(description="The tool's name.")
    description: str = Field("", description="The tool's description.")
    parameters: dict[str, Any] | None = Field(
        None, description="A JSON schema; null if the tool has no parameters."
    )


class CheckOptions(CallSettings):
    """The parts of the next request besides the history. They are counted, not stored."""

    pending: str | dict[str, Any] | None = Field(None, description="The next user message.")
    system: str = Field("", description="The system prompt.")
    tools: list[ToolShape] = Field(
        default_factory=list, max_length=1_000, description="The tools of the request."
    )
    max_output: int | None = Field(None, ge=1, description="The longest reply in tokens.")
    model_config = example(pending="And where do the boats moor?", system="Be brief.")

    def message(self) -> Message | None:
        """Return the next user message."""
        if self.pending is None:
            return None
        try:
            (message,) = as_messages((self.pending,))
        except InputError as error:
            raise error.at("body.pending") from None
        return message

    def engine_tools(self) -> tuple[Tool, ...]:
        """Return the tools as values of the engine."""
        return tuple(Tool(each.name, each.description, each.parameters) for each in self.tools)


class PrepareOptions(CheckOptions):
    """The parts of the next request and the dialect of the view."""

    dialect: str = Field(wire.CHAT_COMPLETIONS, description="The dialect of the view.")
    model_config = example(pending="And where do the boats moor?", dialect=wire.MESSAGES)


class CompressOptions(CallSettings):
    """Options of one compression."""

    keep_tokens: int | None = Field(
        None, ge=0, le=10**9, description="Number of recent tokens kept verbatim."
    )
    force: bool = Field(default=True, description="Compress even if it is not due.")
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
    """Return how full the context is and what a compression would keep."""
    return await session.status()


@router.post("/sessions/{session}/check", name="check", summary="Check before sending")
async def check(options: CheckOptions, session: TheSession, request: Request) -> Status:
    """Return the status with the parts of the next request counted in."""
    return await session.status(
        await run_in_thread_if_large(request, options.message),
        system=options.system,
        tools=options.engine_tools(),
        **options.checked(),
    )


@router.post("/sessions/{session}/prepare", name="prepare", summary="Get the view to send")
async def prepare(options: PrepareOptions, session: TheSession, request: Request) -> PreparedView:
    """Return the messages to send to the model; compress first if that is due."""
    wire.get(options.dialect)  # an unknown dialect is an error before anything is compressed
    prepared = await session.prepare(
        await run_in_thread_if_large(request, options.message),
        system=options.system,
        tools=options.engine_tools(),
        max_output=options.max_output,
        **options.checked(),
    )
    await _read_receipt(prepared.compression)
    return PreparedView(
        prepared.render(options.dialect),
        prepared.decision,
        prepared.compression,
        prepared.warnings,
    )


@router.post("/sessions/{session}/preview", name="preview", summary="Preview a compression")
async def preview(options: CompressOptions, session: TheSession) -> Preview:
    """Return the expected result of a compression. No model is called, nothing is stored."""
    return await session.preview(keep_tokens=options.keep_tokens, **options.checked())


@router.post("/sessions/{session}/compress", name="compress", summary="Compress now")
async def compress(options: CompressOptions, session: TheSession, request: Request) -> Outcome:
    """Summarize the old messages."""
    done = await session.compress(
        force=options.force, keep_tokens=options.keep_tokens, **options.checked()
    )
    return await _finish(done, request)


@router.post("/sessions/{session}/retry", name="retry", summary="Retry a failed compression")
async def retry(session: TheSession, request: Request) -> Outcome:
    """Repeat the compression that failed and blocked the session. Success unblocks it."""
    return await _finish(await session.retry(), request)


@router.post(
    "/sessions/{session}/acknowledge", name="acknowledge", summary="Continue without a compression"
)
async def acknowledge(session: TheSession) -> Status:
    """Unblock a session whose compression failed. Requests continue, with a warning."""
    await session.acknowledge()
    return await session.status()


_TO_EARLIER_TEXT = "Of a summary that was edited, only go back to its earlier text."


@router.post("/sessions/{session}/undo", name="undo", summary="Undo a compression")
async def undo(
    session: TheSession,
    to_earlier_text: Annotated[bool, Query(description=_TO_EARLIER_TEXT)] = False,  # noqa: FBT002 - a query's name
) -> UndoneSnapshot:
    """Undo the compression in use: the view has the original messages again."""
    undone = await session.undo(to_earlier_text=to_earlier_text)
    return UndoneSnapshot(None if undone is None else undone.id)


async def _finish(done: Outcome, request: Request) -> Outcome:
    """Add the figures to the audit log and return the outcome, its receipt read."""
    count(
        request.scope,
        messages=done.messages,
        tokens_before=done.tokens_before,
        tokens_after=done.tokens_after,
    )
    await _read_receipt(done)
    return done


async def _read_receipt(done: Outcome | None) -> None:
    """Find the figures of the receipt, which the answer shows, without blocking other requests."""
    if done is not None and done.receipt is not None:
        await asyncio.to_thread(done.receipt.read)


summaries_router = APIRouter(prefix="/api", tags=["summaries"], route_class=StrictRoute)

_MOST_ITEMS = 10_000

SummaryId: TypeAlias = Annotated[str, Path(description="The summary's id.")]


class NewText(Shape):
    """A new text for the summary in use."""

    text: str = Field(min_length=1, max_length=1_000_000, description="The summary's new text.")
    model_config = example(text="They agreed that the boats moor at the north quay.")


class RegenerateOptions(CallSettings):
    """Options for writing the summary again."""

    model_config = example(settings={"style": "detailed"})


@summaries_router.get("/sessions/{session}/summaries", name="list", summary="List summaries")
async def list_summaries(session: TheSession) -> Sequence[Snapshot]:
    """Return all summaries of a session, newest first, also those that were undone."""
    return await session.summaries()


@summaries_router.get("/sessions/{session}/memories", name="memories", summary="List memories")
async def list_memories(session: TheSession) -> Sequence[Snapshot]:
    """Return the session's entries in long-term memory, newest first."""
    return await session.memories()


@summaries_router.post("/sessions/{session}/regenerate", name="regenerate", summary="Regenerate it")
async def regenerate(options: RegenerateOptions, session: TheSession, request: Request) -> Outcome:
    """Write the summary in use again, for the same messages."""
    return await _finish(await session.regenerate(**options.checked()), request)


@summaries_router.put("/sessions/{session}/summary", name="edit", summary="Edit the summary")
async def edit(new: NewText, session: TheSession) -> Snapshot:
    """Replace the text of the summary in use. The old snapshot stays stored."""
    return await session.edit_summary(new.text)


@summaries_router.delete(
    "/sessions/{session}/summaries/{summary}",
    name="delete",
    summary="Delete a summary",
    status_code=204,
)
async def delete(summary: SummaryId, session: TheSession) -> None:
    """Undo a summary and delete its text. The messages that it replaced stay."""
    await session.delete_summary(summary)


@summaries_router.get(
    "/sessions/{session}/summaries/{summary}/receipt", name="receipt", summary="Receipt"
)
async def receipt(
    summary: SummaryId,
    session: TheSession,
    limit: Annotated[
        int, Query(ge=0, le=_MOST_ITEMS, description="The most items listed per state.")
    ] = 200,
) -> dict[str, Any]:
    """Return the state of each exact item that left the view: kept, restorable or lost."""
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
    session: Annotated[str | None, Query(description="Only events of this session.")] = None,
    last_event_id: Annotated[
        str | None,
        Header(description="The id of the last event received."),
    ] = None,
) -> AsyncIterable[ServerSentEvent]:
    """Stream the start, progress, end and failure of compressions, and blocked sessions.

    If several processes share a PostgreSQL database, the events of all of them are sent.
    """
    feed = feeds.of(caller.namespace)
    queue = feed.listen(last_event_id)
    async for sent in feed.follow(queue, session):
        yield ServerSentEvent(data=payload(sent.event), event=sent.event.name, id=sent.id)
