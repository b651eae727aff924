"""One compression of one branch: plan, condense, validate, record. Nothing is written on failure.

A lease keeps others from doing the same work at the same time, in this process or another. The
record is only made if the snapshot that applied at the start still applies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from enfold.acceptance import accept
from enfold.budget import FREED_TARGET, Decision
from enfold.condensation import Condensation, Task
from enfold.engine.originals import originals, still_holding, without_pointers
from enfold.engine.recording import record, tokens_after
from enfold.engine.results import Compression, Outcome, Preview
from enfold.errors import NoGainError, NotFoundError, SummaryError, UncompressibleError, facts
from enfold.events import (
    CompressionFailed,
    CompressionFinished,
    CompressionProgress,
    CompressionStarted,
    Events,
)
from enfold.llm.comparison import savings
from enfold.llm.prices import Prices
from enfold.messages import Message
from enfold.planning import Aim, Plan, plan, plan_for
from enfold.receipt import Means
from enfold.retention import Retention, Split, zones
from enfold.store import records, snapshots
from enfold.store.store import Store
from enfold.strategies.contract import Prices as PriceOf
from enfold.strategies.contract import Strategy
from enfold.view import Shown, View

NATIVE = "native"
"""The strategy whose result the plan foretells, because all it does is fold."""

CANCELLED = "cancelled"
"""The code under which listeners are told of a compression that was called off."""

NOTHING_SAID: Mapping[int, Message] = {}


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
    restorable_by: Means | None = "store"
    """How what leaves the view can be had again through this door. None: it cannot."""
    prices: Prices | None = None
    """Of the session's model: what makes savings known. None is unknown."""
    price_of: PriceOf | None = None
    """What those who write summaries take: what makes a preview's cost known."""
    instead_of: records.Snapshot | None = None
    """A summary to write anew, with the same cutoff. The view is that of before it was made."""
    usage: Sequence[records.UsageEvent] = ()
    """What the summaries have used so far; it grows while they are written."""
    pointerless: View | None = None
    """The view without edits that point to other messages. None: not made yet."""

    @property
    def basis(self) -> View:
        """The view to work on."""
        return self.pointerless or self.view

    @property
    def counts(self) -> tuple[int, ...]:
        """The exact counts of the messages to work on."""
        return tuple(shown.tokens for shown in self.basis.shown)

    @property
    def goal(self) -> int:
        """Where the compression should end."""
        return max(1, int(self.decision.limit * FREED_TARGET) - self.view.estimate)


async def without_pointers_in(store: Store, job: Job) -> Job:
    """The job with a view to work on in which no message points to another."""
    view = await store.read(without_pointers, job.session.key, job.view)
    return replace(job, pointerless=view)


def planned(job: Job) -> Plan:
    """How tight the compression must be."""
    view = job.basis
    aim = Aim(
        job.retention,
        job.goal,
        job.summary_tokens,
        view.summary_tokens,
        view.summary_at,
        view.settled,
    )
    same = _same_split(job, job.instead_of) if job.instead_of is not None else None
    return plan(view.messages, job.counts, aim) if same is None else plan_for(job.counts, same, aim)


def _same_split(job: Job, snapshot: records.Snapshot) -> Split | None:
    """The division that a snapshot made, in the view of before; None if it folded nothing."""
    if not snapshot.content.get("messagesIncluded"):
        return None
    places = {shown.id: index for index, shown in enumerate(job.basis.shown)}
    last = places.get(snapshot.content["messageRange"]["lastMessageId"])
    if last is None:
        raise NotFoundError("what the summary folds is no longer on this branch")
    at = next(
        i for i, entry in enumerate(snapshot.manifest) if isinstance(entry, records.Summarized)
    )
    head = sum(_length(entry, places) for entry in snapshot.manifest[:at])
    kept = [entry.first for entry in snapshot.manifest[at:] if isinstance(entry, records.Kept)]
    return Split(
        head=head,
        cut=last + 1,
        pinned=next((places[id] for id in kept if places[id] < last), None),
        tail_tokens=sum(job.counts[last + 1 :]),
        overshoot=0,
    )


def _length(entry: records.ManifestEntry, places: Mapping[str, int]) -> int:
    """How many messages an entry shows."""
    if isinstance(entry, records.Kept):
        return places[entry.last] - places[entry.first] + 1
    return 1


async def preview(store: Store, job: Job) -> Preview:
    """What the compression would come to; no model is asked."""
    job = await without_pointers_in(store, job)
    made = planned(job)
    task = _task(job, made)
    touched = job.strategy.touches(task)
    before = job.view.tokens
    folds_only = job.strategy.id == NATIVE
    reduction = None if folds_only else await job.strategy.estimate_reduction(task)
    after = made.most if reduction is None else reduction.tokens_after
    return Preview(
        messages=len(touched),
        kept_messages=len(job.view.shown) - len(touched),
        tokens_before=before,
        tokens_after=min(before, after) if touched else before,
        summary_tokens=made.summary_tokens if touched and folds_only else 0,
        author=job.author,
        warnings=_warnings(job, made, after) if touched and folds_only else (),
        strategy=job.strategy.id,
        cost=(await job.strategy.estimate_cost(task, job.price_of)).dollars if touched else 0.0,
        steps=reduction.steps if reduction is not None and touched else (),
    )


async def compress(store: Store, events: Events, job: Job) -> Compression:
    """Do it, and say what came of it."""
    job = await without_pointers_in(store, job)
    made = planned(job)
    if job.strategy.id == NATIVE:
        _refuse_hopeless(job, made)
    said = await store.read(originals, job.session.key, job.basis, made.split.folded)
    task = _task(job, made, said)
    touched = job.strategy.touches(task)
    if not touched:
        outcome: Outcome = "nothing_to_compress" if job.view.snapshot is None else "nothing_new"
        return Compression(outcome, job.view.tokens, job.view.tokens)
    events.emit(
        CompressionStarted(
            job.session.id,
            messages=len(touched),
            tokens=sum(task.counts[index] for index in touched),
            strategy=job.strategy.id,
            automatic=job.automatic,
        )
    )
    started = monotonic()
    step = "summarizing" if job.strategy.id == NATIVE else "condensing"
    events.emit(CompressionProgress(job.session.id, step, len(touched)))
    try:
        answer, still = await _answer(job, task)
    except NoGainError as error:
        if job.automatic:
            raise
        events.emit(_ended(job, facts(error).code, str(error)))
        return Compression("no_gain", job.view.tokens, job.view.tokens, warnings=(str(error),))
    except asyncio.CancelledError:
        events.emit(_ended(job, CANCELLED, "it was called off; nothing was changed"))
        raise
    events.emit(CompressionProgress(job.session.id, "recording", len(touched)))
    snapshot = await _record(store, job, task, answer, still)
    finished = _finished(job, made, answer, snapshot, monotonic() - started)
    events.emit(
        CompressionFinished(
            job.session.id,
            snapshot=snapshot.id,
            messages=finished.messages + finished.edited,
            tokens_before=finished.tokens_before,
            tokens_after=finished.tokens_after,
            seconds=finished.seconds,
            author=finished.author or "",
            automatic=job.automatic,
            warnings=finished.warnings,
            strategy=finished.strategy or "",
            cost=finished.cost,
            steps=tuple(
                (step.name, step.tokens_before, step.tokens_after) for step in finished.steps
            ),
        )
    )
    return finished


def _ended(job: Job, code: str, reason: str) -> CompressionFailed:
    """What listeners are told of a compression that is over without a result or an error."""
    return CompressionFailed(
        job.session.id, code, reason, retryable=code == CANCELLED, automatic=job.automatic
    )


async def _answer(job: Job, task: Task) -> tuple[Condensation, Mapping[int, Shown]]:
    """The strategy's answer, in time and fit for use, and what is still shown as it was."""
    try:
        async with asyncio.timeout(job.timeout):
            answer = await job.strategy.condense(task)
    except TimeoutError:
        raise SummaryError(
            f"the summary by {job.author!r} was given up after {job.timeout:g} s; try again"
        ) from None
    answer = await asyncio.to_thread(accept, task, answer)
    still = {index: job.view.shown[index] for index in still_holding(job.view, answer)}
    tokens = tokens_after(task, answer, still)
    if tokens >= job.view.tokens:
        raise NoGainError(
            f"{answer.strategy}: {job.view.tokens:,} tokens became {tokens:,}; nothing was changed"
        )
    after = tokens + job.view.estimate
    if job.automatic and after > job.decision.threshold_tokens:
        raise UncompressibleError(
            f"the strategy {answer.strategy} ends at {after:,} tokens, and "
            f"{job.decision.threshold_tokens:,} are allowed; use a model with a larger window, or "
            "another strategy"
        )
    return answer, still


async def _record(
    store: Store, job: Job, task: Task, answer: Condensation, still: Mapping[int, Shown]
) -> records.SnapshotDraft:
    recording = record(
        job.basis,
        task,
        answer,
        before=job.view.tokens,
        automatic=job.automatic,
        instead_of=job.instead_of,
        still=still,
    )
    await store.write(
        snapshots.record,
        job.session.key,
        recording.draft,
        snapshots.Beside(edits=recording.edits, flush=recording.flush, usage=tuple(job.usage)),
        expected=job.instead_of.id if job.instead_of is not None else job.view.snapshot,
        share_across_branches=job.share_across_branches,
    )
    return recording.draft


def _refuse_hopeless(job: Job, made: Plan) -> None:
    """What must stay is too much: say so once, before a model is asked."""
    least = job.basis.tokens if made.folds_nothing else made.most
    most = least + job.view.estimate
    if job.automatic and most > job.decision.threshold_tokens:
        raise UncompressibleError(
            f"what must stay verbatim takes {most:,} tokens with the shortest summary, and "
            f"{job.decision.threshold_tokens:,} are allowed; use a model with a larger window, or "
            f"branch before message {job.view.shown[made.split.cut].id}"
        )


def _task(job: Job, made: Plan, said: Mapping[int, Message] = NOTHING_SAID) -> Task:
    view = job.basis
    divided = replace(made.split, cut=made.split.head) if made.folds_nothing else made.split
    load = job.decision.load
    return Task(
        messages=view.messages,
        counts=job.counts,
        split=divided,
        tokenizer=view.tokenizer,
        previous=view.summary,
        previous_tokens=view.summary_tokens,
        previous_at=view.summary_at,
        summary_tokens=made.summary_tokens,
        show_recent=not job.share_across_branches,
        target=job.goal if job.automatic or view.tokens > job.goal else None,
        is_due=job.automatic,
        zones=zones(job.counts, job.retention),
        beside=load.system + load.tools,
        restorable_by=job.restorable_by,
        originals=said,
    )


def _finished(
    job: Job,
    made: Plan,
    answer: Condensation,
    snapshot: records.SnapshotDraft,
    seconds: float,
) -> Compression:
    folded, after = answer.summary, snapshot.content["newTokenCount"]
    return Compression(
        "compressed",
        tokens_before=job.view.tokens,
        tokens_after=after,
        messages=len(folded.indexes) if folded is not None else 0,
        edited=len(answer.edits),
        snapshot=snapshot.id,
        cutoff=snapshot.cutoff,
        summary=folded.text if folded is not None else None,
        author=snapshot.author,
        strategy=answer.strategy,
        seconds=seconds - (answer.receipt.seconds if answer.receipt is not None else 0.0),
        receipt=answer.receipt,
        cost=answer.cost,
        saved=savings(job.view.tokens, after, job.prices).later_turn,
        steps=answer.steps,
        operations=answer.operations,
        warnings=(*_warnings(job, made, after), *answer.warnings),
    )


def _warnings(job: Job, made: Plan, after: int) -> tuple[str, ...]:
    warnings: list[str] = []
    if made.split.overshoot:
        warnings.append(
            f"{made.split.tail_tokens:,} tokens stay verbatim, {made.split.overshoot:,} more than "
            "asked for: tool calls stay with their results, and the last user message stays"
        )
    if made.is_tightened:
        warnings.append("the context is tight: less stays verbatim, or the summary is shorter")
    if after + job.view.estimate > job.goal:
        warnings.append("the context is critically limited: the next compression is not far away")
    return tuple(warnings)
