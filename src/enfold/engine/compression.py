"""One compression of one branch: plan, condense, validate, record. Nothing is written on failure.

A lease keeps others from doing the same work at the same time, in this process or another. The
record is only made if the snapshot that applied at the start still applies.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from uuid import uuid4

from enfold.budget import FREED_TARGET, Decision
from enfold.condensation import Condensation, Folded, Task, validate
from enfold.engine.results import Compression, Outcome, Preview
from enfold.errors import NoGainError, NotFoundError, SummaryError, UncompressibleError
from enfold.events import CompressionFinished, CompressionProgress, CompressionStarted, Events
from enfold.planning import Aim, Plan, plan, plan_for
from enfold.retention import Retention, Split
from enfold.store import leases, records, snapshots
from enfold.store.store import Store
from enfold.strategies.contract import Strategy
from enfold.view import View

_POLL_SECONDS = 0.05
_SPARE_SECONDS = 30.0
"""How much longer a lease lasts than the work it is for may take."""


@dataclass(frozen=True, slots=True)
class Job:
    """A compression to do."""

    session: records.Session
    view: View
    decision: Decision
    strategy: Strategy
    author: str
    """Who will write the summary."""
    retention: Retention
    summary_tokens: int | None = None
    share_across_branches: bool = False
    automatic: bool = False
    timeout: float = 120.0
    instead_of: records.Snapshot | None = None
    """A summary to write anew, with the same cutoff. The view is that of before it was made."""

    @property
    def counts(self) -> tuple[int, ...]:
        """The exact counts of the messages shown."""
        return tuple(shown.tokens for shown in self.view.shown)

    @property
    def goal(self) -> int:
        """Where the compression should end."""
        return max(1, int(self.decision.limit * FREED_TARGET) - self.view.estimate)


@asynccontextmanager
async def alone(store: Store, session: records.Session, seconds: float) -> AsyncIterator[None]:
    """Wait until nobody else compresses the session, then be the one who does."""
    name, holder = f"compress:{session.key}", uuid4().hex
    deadline = monotonic() + seconds
    lasting = seconds + _SPARE_SECONDS
    while not await store.write(leases.acquire, name, holder, seconds=lasting, session=session.key):
        if monotonic() > deadline:
            raise SummaryError(
                f"another compression of session {session.id!r} runs for {seconds:g} s; try again"
            )
        await asyncio.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        await asyncio.shield(store.write(leases.release, name, holder))


def planned(job: Job) -> Plan:
    """How tight the compression must be."""
    view = job.view
    aim = Aim(
        job.retention,
        job.goal,
        job.summary_tokens,
        view.summary_tokens,
        view.summary_at,
        view.settled,
    )
    if job.instead_of is not None:
        return plan_for(job.counts, _same_split(job, job.instead_of), aim)
    return plan(view.messages, job.counts, aim)


def _same_split(job: Job, snapshot: records.Snapshot) -> Split:
    """The division that a snapshot made, in the view of before."""
    places = {shown.id: index for index, shown in enumerate(job.view.shown)}
    if snapshot.cutoff not in places:
        raise NotFoundError("what the summary folds is no longer on this branch")
    at = next(
        i for i, entry in enumerate(snapshot.manifest) if isinstance(entry, records.Summarized)
    )
    kept = [entry.first for entry in snapshot.manifest[at:] if isinstance(entry, records.Kept)]
    cut = places[snapshot.cutoff] + 1
    return Split(
        head=at,
        cut=cut,
        pinned=places[kept[0]] if kept else None,
        tail_tokens=sum(job.counts[cut:]),
        overshoot=0,
    )


def preview(job: Job) -> Preview:
    """What the compression would come to at most; no model is asked."""
    made = planned(job)
    folds = _folds(made)
    before = job.view.tokens
    return Preview(
        messages=len(folds),
        kept_messages=len(job.view.shown) - len(folds),
        tokens_before=before,
        tokens_after=min(before, made.most) if folds else before,
        summary_tokens=made.summary_tokens if folds else 0,
        author=job.author,
        warnings=_warnings(job, made) if folds else (),
    )


async def compress(store: Store, events: Events, job: Job) -> Compression:
    """Do it, and say what came of it."""
    made = planned(job)
    _refuse_hopeless(job, made)
    folds = _folds(made)
    if not folds:
        outcome: Outcome = "nothing_to_compress" if job.view.snapshot is None else "nothing_new"
        return Compression(outcome, job.view.tokens, job.view.tokens)
    events.emit(
        CompressionStarted(
            job.session.id,
            messages=len(folds),
            tokens=sum(job.counts[index] for index in folds),
            strategy=job.strategy.id,
            automatic=job.automatic,
        )
    )
    started = monotonic()
    task = _task(job, made)
    events.emit(CompressionProgress(job.session.id, "summarizing", len(folds)))
    try:
        async with asyncio.timeout(job.timeout):
            answer = await job.strategy.condense(task)
    except TimeoutError:
        raise SummaryError(
            f"the summary by {job.author!r} was given up after {job.timeout:g} s; try again"
        ) from None
    try:
        validate(task, answer)
    except NoGainError as error:
        if job.automatic:
            raise
        return Compression("no_gain", task.tokens, task.tokens, warnings=(str(error),))
    events.emit(CompressionProgress(job.session.id, "recording", len(folds)))
    snapshot = await _record(store, job, made, task, answer)
    finished = _finished(job, made, task, answer, snapshot, monotonic() - started)
    events.emit(
        CompressionFinished(
            job.session.id,
            snapshot=snapshot.id,
            messages=finished.messages,
            tokens_before=finished.tokens_before,
            tokens_after=finished.tokens_after,
            seconds=finished.seconds,
            author=finished.author or "",
            automatic=job.automatic,
            warnings=finished.warnings,
        )
    )
    return finished


def _folds(made: Plan) -> tuple[int, ...]:
    """The messages that would be folded."""
    if made.folds_nothing:
        return ()
    return tuple(index for index in made.split.folded if index != made.split.pinned)


def _refuse_hopeless(job: Job, made: Plan) -> None:
    """What must stay is too much: say so once, before a model is asked."""
    least = job.view.tokens if made.folds_nothing else made.most
    most = least + job.view.estimate
    if job.automatic and most > job.decision.threshold_tokens:
        raise UncompressibleError(
            f"what must stay verbatim takes {most:,} tokens with the shortest summary, and "
            f"{job.decision.threshold_tokens:,} are allowed; use a model with a larger window, or "
            f"branch before message {job.view.shown[made.split.cut].id}"
        )


def _task(job: Job, made: Plan) -> Task:
    view = job.view
    return Task(
        messages=view.messages,
        counts=job.counts,
        split=made.split,
        tokenizer=view.tokenizer,
        previous=view.summary,
        previous_tokens=view.summary_tokens,
        previous_at=view.summary_at,
        summary_tokens=made.summary_tokens,
        show_recent=not job.share_across_branches,
    )


async def _record(
    store: Store, job: Job, made: Plan, task: Task, answer: Condensation
) -> records.SnapshotDraft:
    folded = answer.summary
    ids = [shown.id for shown in job.view.shown]
    summarized = folded.indexes if folded is not None else ()
    draft = records.SnapshotDraft(
        content={
            "summaryText": folded.text if folded is not None else None,
            "messageRange": {
                "firstMessageId": ids[summarized[0]] if summarized else None,
                "lastMessageId": ids[made.split.cut - 1],
            },
            "compressionType": "auto" if job.automatic else "manual",
            "originalTokenCount": task.tokens,
            "newTokenCount": answer.tokens(task),
            "messagesIncluded": len(summarized),
        },
        cutoff=ids[made.split.cut - 1],
        parent=job.view.tip,
        manifest=tuple(_manifest(job, made, answer)),
        token_count=folded.tokens if folded is not None else None,
        tokenizer=job.view.tokenizer,
        previous=job.instead_of.id if job.instead_of is not None else job.view.snapshot,
        strategy=answer.strategy,
        author=folded.author if folded is not None else answer.strategy,
    )
    await store.write(
        snapshots.record,
        job.session.key,
        draft,
        snapshots.Beside(flush=[ids[index] for index in summarized]),
        expected=job.instead_of.id if job.instead_of is not None else job.view.snapshot,
        share_across_branches=job.share_across_branches,
    )
    return draft


def _manifest(job: Job, made: Plan, answer: Condensation) -> list[records.ManifestEntry]:
    """What is shown of the messages up to the cutoff."""
    entries: list[records.ManifestEntry] = []
    for entry in answer.entries:
        if isinstance(entry, Folded):
            entries.append(records.Summarized())
        elif entry.index < made.split.cut:
            shown = job.view.shown[entry.index]
            entries.append(
                records.Edited(shown.edit) if shown.edit else records.Kept(shown.id, shown.id)
            )
    return entries


def _finished(
    job: Job,
    made: Plan,
    task: Task,
    answer: Condensation,
    snapshot: records.SnapshotDraft,
    seconds: float,
) -> Compression:
    folded = answer.summary
    return Compression(
        "compressed",
        tokens_before=task.tokens,
        tokens_after=answer.tokens(task),
        messages=len(folded.indexes) if folded is not None else 0,
        snapshot=snapshot.id,
        cutoff=snapshot.cutoff,
        summary=folded.text if folded is not None else None,
        author=snapshot.author,
        seconds=seconds,
        steps=answer.steps,
        warnings=(*_warnings(job, made), *answer.warnings),
    )


def _warnings(job: Job, made: Plan) -> tuple[str, ...]:
    warnings: list[str] = []
    if made.split.overshoot:
        warnings.append(
            f"{made.split.tail_tokens:,} tokens stay verbatim, {made.split.overshoot:,} more than "
            "asked for: tool calls stay with their results, and the last user message stays"
        )
    if made.is_tightened:
        warnings.append("the context is tight: less stays verbatim, or the summary is shorter")
    if made.most + job.view.estimate > job.goal:
        warnings.append("the context is critically limited: the next compression is not far away")
    return tuple(warnings)
