"""One compression of one branch: plan, condense, validate, record. Nothing is written on failure.

A lease keeps others from doing the same work at the same time, in this process or another. The
record is only made if the snapshot that applied at the start still applies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from time import monotonic

from enfold.acceptance import accept
from enfold.condensation import Condensation, Task
from enfold.engine.jobs import Job, planned, task_of, without_pointers_in
from enfold.engine.originals import originals, still_holding
from enfold.engine.recording import record, tokens_after
from enfold.engine.results import Compression, Outcome, Preview
from enfold.errors import (
    CompressionError,
    NoGainError,
    SummaryError,
    UncompressibleError,
    facts,
)
from enfold.events import (
    CompressionFailed,
    CompressionFinished,
    CompressionProgress,
    CompressionStarted,
    Events,
)
from enfold.llm.comparison import savings
from enfold.planning import Plan
from enfold.store import activity, catalog, records, snapshots
from enfold.store.store import Store
from enfold.strategies.lastresort import truncated
from enfold.view import Shown

NATIVE = "native"
"""The strategy whose result the plan foretells, because all it does is fold."""

CANCELLED = "cancelled"
"""The code under which listeners are told of a compression that was called off."""

_log = logging.getLogger("enfold.engine")


async def preview(store: Store, job: Job) -> Preview:
    """What the compression would come to; no model is asked."""
    job = await without_pointers_in(store, job)
    made = planned(job)
    task = task_of(job, made)
    touched = job.strategy.touches(task)
    before = job.view.tokens
    if not touched:
        return Preview(
            messages=0,
            kept_messages=len(job.view.shown),
            tokens_before=before,
            tokens_after=before,
            summary_tokens=0,
            author=job.author,
            strategy=job.strategy.id,
            cost=0.0,
        )
    estimate = await job.strategy.estimate(task, job.price_of)
    folds_only = job.strategy.id == NATIVE
    after = made.most if folds_only else estimate.reduction.tokens_after
    return Preview(
        messages=len(touched),
        kept_messages=len(job.view.shown) - len(touched),
        tokens_before=before,
        tokens_after=min(before, after),
        summary_tokens=made.summary_tokens if folds_only else 0,
        author=job.author,
        warnings=_warnings(job, made, after) if folds_only else (),
        strategy=job.strategy.id,
        cost=estimate.cost.dollars,
        steps=() if folds_only else estimate.reduction.steps,
    )


async def compress(store: Store, events: Events, job: Job) -> Compression:
    """Do it, and say what came of it. What was asked in vain is on record too: it has its price."""
    done = None
    try:
        done = await _compress(store, events, job)
    finally:
        if job.usage and (done is None or not done.compressed):
            in_vain = [replace(event, session=job.session.key) for event in job.usage]
            await store.write(catalog.add_usage, in_vain)
    return done


async def _compress(store: Store, events: Events, job: Job) -> Compression:
    job = await without_pointers_in(store, job)
    made = planned(job)
    if job.strategy.id == NATIVE:
        _refuse_hopeless(job, made)
    said = await store.read(originals, job.session.key, job.basis, made.split.folded)
    task = task_of(job, made, said)
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
        answer, still = await _answer(store, job, task)
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


async def _answer(store: Store, job: Job, task: Task) -> tuple[Condensation, Mapping[int, Shown]]:
    """What is to be shown, fit for use, and what of it is still shown as it was."""
    try:
        return await _fit(job, task, await _asked(job, task))
    except CompressionError as error:
        if not (job.automatic and job.may_truncate):
            raise
        _log.warning(
            "session %s: truncated, because no summary was made: %s", job.session.id, error
        )
        await store.write(activity.add_failure, job.session.key, facts(error).code, automatic=True)
        return await _truncated(job, task, error)


async def _truncated(
    job: Job, task: Task, error: CompressionError
) -> tuple[Condensation, Mapping[int, Shown]]:
    """What the last resort makes of it; the error, if that does not help either."""
    most = job.decision.threshold_tokens - job.view.estimate
    task = replace(task, target=min(job.goal, most))
    try:
        return await _fit(job, task, await asyncio.to_thread(truncated, task, str(error)))
    except CompressionError as other:
        raise type(error)(f"{error}; nor did it help to truncate: {other}") from error


async def _asked(job: Job, task: Task) -> Condensation:
    """The strategy's answer, in time."""
    try:
        async with asyncio.timeout(job.timeout):
            return await job.strategy.condense(task)
    except TimeoutError:
        raise SummaryError(
            f"the summary by {job.author!r} was given up after {job.timeout:g} s; try again"
        ) from None


async def _fit(
    job: Job, task: Task, answer: Condensation
) -> tuple[Condensation, Mapping[int, Shown]]:
    """The answer, if it may be used, and what of it is still shown as it was."""
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
