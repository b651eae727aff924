"""Context: how full a session is, the view to send, and compressing it."""

from __future__ import annotations

from collections.abc import AsyncIterable
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


class DecisionShape(Shape):
    """Whether a compression is due, and why."""

    action: str = Field(description="keep, should or must.")
    reason: str = Field(description="One word for programs.")
    words: str = Field(description="The same for people, with figures.")
    tokens: int = Field(description="Of the history, as it would be sent.")
    limit: int = Field(description="What the history may take.")
    threshold_tokens: int = Field(description="Above so many a compression must come first.")
    early_tokens: int = Field(description="Above so many one may be made in the background.")
    hard_tokens: int = Field(description="Above so many no reply would fit.")


class StatusShape(Shape):
    """How full a session's context is."""

    needs_compression: bool = Field(description="Whether one is due before the next request.")
    current_token_count: int = Field(description="Of all that would be sent.")
    context_limit: int = Field(description="What the history may take.")
    threshold_token_count: int = Field(description="Above so many a compression is due.")
    utilization: float = Field(description="0 to 1; above 1 where it does not fit.")
    retention_token_budget: int = Field(
        description="So many of the newest tokens stay word for word."
    )
    retained_message_count: int = Field(description="How many messages would stay.")
    compressible_message_count: int = Field(description="How many could be folded.")
    estimated_tokens: int = Field(description="Of the current count, what is an estimate.")
    summary_tokens: int = Field(description="Of the summary in use.")
    messages: int = Field(description="In the whole branch, folded or not.")
    tokenizer: str = Field(description="Who counted.")
    model: str = Field(description="Whose window it is, as provider:model.")
    threshold_source: str = Field(description="The level that set the threshold.")
    blocked: str | None = Field(description="Why the session waits; null while it does not.")
    decision: DecisionShape = Field(description="What follows from it.")


class CompressionShape(Shape):
    """What came of a compression. That there was nothing to do is an outcome, not an error."""

    outcome: str = Field(
        description="compressed, kept, no_gain, nothing_new or nothing_to_compress."
    )
    compressed: bool = Field(description="Whether a snapshot was recorded.")
    tokens_before: int = Field(description="Of the view before.")
    tokens_after: int = Field(description="Of the view since.")
    reduction: float = Field(description="The share that is gone, 0 to 1.")
    messages: int = Field(description="How many were folded.")
    edited: int = Field(description="How many are shown with other content.")
    snapshot: str | None = Field(description="The snapshot's id; null if there is none.")
    cutoff: str | None = Field(description="The last message that it stands for.")
    summary: str | None = Field(description="The summary's words; null if nothing was folded.")
    author: str | None = Field(description="Who wrote the summary.")
    strategy: str | None = Field(description="Which did it.")
    seconds: float = Field(description="How long it took.")
    cost: float | None = Field(description="In US dollars; null is unknown.")
    saved: float | None = Field(description="With every later request; null is unknown.")
    operations: list[str] = Field(description="What ran and what was left out.")
    steps: list[dict[str, Any]] = Field(description="Tokens before and after each step.")
    warnings: list[str] = Field(description="What went otherwise than it should.")
    receipt: dict[str, Any] | None = Field(description="Figures; the items are in the receipt.")


class PreviewShape(Shape):
    """What a compression would do."""

    messages: int = Field(description="How many would be folded or edited.")
    kept_messages: int = Field(description="How many would stay.")
    tokens_before: int = Field(description="Of the view now.")
    tokens_after: int = Field(description="At most.")
    summary_tokens: int = Field(description="The summary's limit.")
    author: str = Field(description="Who would write it.")
    warnings: list[str] = Field(description="What to know before.")
    strategy: str = Field(description="Which would do it.")
    cost: float | None = Field(description="Expected, in US dollars; null is unknown.")
    steps: list[dict[str, Any]] = Field(description="Where the strategy has several.")


class View(Shape):
    """What to send to the model."""

    messages: list[Any] = Field(description="In the dialect that was asked for.")
    decision: DecisionShape = Field(description="Of the view as it is sent.")
    compression: CompressionShape | None = Field(description="What was compressed on the way.")
    warnings: list[str] = Field(description="What went otherwise than it should.")


class Undone(Shape):
    """What was taken back."""

    snapshot: str | None = Field(description="Null if there was nothing to take back.")


@router.get("/sessions/{session}/status", name="status", summary="Check the context")
async def read_status(session: TheSession) -> StatusShape:
    """How full it is, and what a compression would keep."""
    return status_shape(await session.status())


@router.post("/sessions/{session}/check", name="check", summary="Check before sending")
async def check(sending: Sending, session: TheSession) -> StatusShape:
    """The same, with what is about to be sent."""
    found = await session.status(
        sending.message(),
        system=sending.system,
        tools=sending.offered(),
        **checked(sending.settings),
    )
    return status_shape(found)


@router.post("/sessions/{session}/prepare", name="prepare", summary="Get the view to send")
async def prepare(preparing: Preparing, session: TheSession) -> View:
    """The history as the model is sent it, compressed first if that is due."""
    wire.get(preparing.dialect)
    prepared = await session.prepare(
        preparing.message(),
        system=preparing.system,
        tools=preparing.offered(),
        max_output=preparing.max_output,
        **checked(preparing.settings),
    )
    done = prepared.compression
    return View(
        messages=prepared.render(preparing.dialect),
        decision=_decision(prepared.decision),
        compression=None if done is None else compression_shape(done),
        warnings=list(prepared.warnings),
    )


@router.post("/sessions/{session}/preview", name="preview", summary="Preview a compression")
async def preview(compressing: Compressing, session: TheSession) -> PreviewShape:
    """What `compress` would do; no model is asked and nothing is written."""
    found = await session.preview(
        keep_tokens=compressing.keep_tokens, **checked(compressing.settings)
    )
    return _preview(found)


@router.post("/sessions/{session}/compress", name="compress", summary="Compress now")
async def compress(
    compressing: Compressing, session: TheSession, request: Request
) -> CompressionShape:
    """Fold what is old into a summary."""
    done = await session.compress(
        force=compressing.force,
        keep_tokens=compressing.keep_tokens,
        **checked(compressing.settings),
    )
    return _counted(done, request)


@router.post("/sessions/{session}/retry", name="retry", summary="Retry a failed compression")
async def retry(session: TheSession, request: Request) -> CompressionShape:
    """Once more, after a failure blocked the session. If it succeeds, requests go on."""
    return _counted(await session.retry(), request)


@router.post(
    "/sessions/{session}/acknowledge", name="acknowledge", summary="Go on without a compression"
)
async def acknowledge(session: TheSession) -> StatusShape:
    """Accept the risk after a failure blocked the session: requests go on, with a warning."""
    await session.acknowledge()
    return status_shape(await session.status())


@router.post("/sessions/{session}/undo", name="undo", summary="Undo a compression")
async def undo(session: TheSession) -> Undone:
    """Take back the compression in use: what it replaced is shown again."""
    undone = await session.undo()
    return Undone(snapshot=None if undone is None else undone.id)


def status_shape(status: Status) -> StatusShape:
    """A status as the API has it."""
    return StatusShape(
        needs_compression=status.needs_compression,
        current_token_count=status.current_token_count,
        context_limit=status.context_limit,
        threshold_token_count=status.threshold_token_count,
        utilization=status.utilization,
        retention_token_budget=status.retention_token_budget,
        retained_message_count=status.retained_message_count,
        compressible_message_count=status.compressible_message_count,
        estimated_tokens=status.estimated_tokens,
        summary_tokens=status.summary_tokens,
        messages=status.messages,
        tokenizer=status.tokenizer,
        model=status.model,
        threshold_source=status.threshold_source,
        blocked=status.blocked,
        decision=_decision(status.decision),
    )


def compression_shape(done: Outcome) -> CompressionShape:
    """A compression as the API has it."""
    report = done.report.as_json()
    return CompressionShape(
        outcome=done.outcome,
        compressed=done.compressed,
        tokens_before=done.tokens_before,
        tokens_after=done.tokens_after,
        reduction=done.reduction,
        messages=done.messages,
        edited=done.edited,
        snapshot=done.snapshot,
        cutoff=done.cutoff,
        summary=done.summary,
        author=done.author,
        strategy=done.strategy,
        seconds=done.seconds,
        cost=done.cost,
        saved=done.saved,
        operations=list(done.operations),
        steps=report["steps"],
        warnings=list(done.warnings),
        receipt=None if done.receipt is None else done.receipt.counts_as_json(),
    )


def _counted(done: Outcome, request: Request) -> CompressionShape:
    count(
        request.scope,
        messages=done.messages,
        tokens_before=done.tokens_before,
        tokens_after=done.tokens_after,
    )
    return compression_shape(done)


def _preview(found: Preview) -> PreviewShape:
    return PreviewShape(
        messages=found.messages,
        kept_messages=found.kept_messages,
        tokens_before=found.tokens_before,
        tokens_after=found.tokens_after,
        summary_tokens=found.summary_tokens,
        author=found.author,
        warnings=list(found.warnings),
        strategy=found.strategy,
        cost=found.cost,
        steps=[step.as_json() for step in found.steps],
    )


def _decision(decision: Decision) -> DecisionShape:
    return DecisionShape(
        action=decision.action,
        reason=decision.reason,
        words=str(decision),
        tokens=decision.tokens,
        limit=decision.limit,
        threshold_tokens=decision.threshold_tokens,
        early_tokens=decision.early_tokens,
        hard_tokens=decision.hard_tokens,
    )


summaries_router = APIRouter(prefix="/api", tags=["summaries"], route_class=StrictRoute)

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


@summaries_router.get("/sessions/{session}/summaries", name="list", summary="List summaries")
async def list_summaries(session: TheSession) -> list[SummaryShape]:
    """All of the session, newest first, undone ones too."""
    return [shown(snapshot) for snapshot in await session.summaries()]


@summaries_router.get("/sessions/{session}/memories", name="memories", summary="List memories")
async def list_memories(session: TheSession) -> list[SummaryShape]:
    """What long-term memory has kept of the session, newest first."""
    return [shown(snapshot) for snapshot in await session.memories()]


@summaries_router.post("/sessions/{session}/regenerate", name="regenerate", summary="Write it anew")
async def regenerate(
    rewriting: Rewriting, session: TheSession, request: Request
) -> CompressionShape:
    """The summary in use is written once more, for the same messages."""
    done = await session.regenerate(**checked(rewriting.settings))
    count(request.scope, tokens_before=done.tokens_before, tokens_after=done.tokens_after)
    return compression_shape(done)


@summaries_router.put("/sessions/{session}/summary", name="edit", summary="Edit the summary")
async def edit(new: NewText, session: TheSession) -> SummaryShape:
    """Other words in place of the summary in use; the old ones stay on record."""
    return shown(await session.edit_summary(new.text))


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
    async for told in feed.follow(queue, session):
        yield ServerSentEvent(data=payload(told.event), event=told.event.name, id=told.id)
