"""One compression of one branch: plan, condense, validate, record. Nothing is written on failure.

A lease keeps others from doing the same work at the same time, in this process or another. The
record is only made if the snapshot that applied at the start still applies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any
from uuid import uuid4

from enfold import records, wire
from enfold.budget import Decision
from enfold.condensation import Condensation, EditedMessage, KeptMessage, SummarizedMessages, accept
from enfold.condensation import Plan as Task
from enfold.engine.results import Outcome as Compression
from enfold.engine.results import OutcomeName, Preview
from enfold.engine.state import POINTS_TO, SETTLED, message_of
from enfold.errors import (
    BlockedError,
    CompressionError,
    NoGainError,
    NotFoundError,
    StoreError,
    SummaryError,
    TokenCountError,
    UncompressibleError,
    facts,
)
from enfold.estimates import estimate
from enfold.events import (
    CompressionFailed,
    CompressionFinished,
    CompressionProgress,
    CompressionStarted,
    Events,
    SessionBlocked,
    SessionUnblocked,
)
from enfold.jsontext import dumps
from enfold.llm.costs import savings
from enfold.llm.prices import Prices
from enfold.messages import Message
from enfold.plan import Aim, SizedSplit, plan, plan_for
from enfold.receipt import RestorableBy
from enfold.records import SessionKey, SessionRecord, SessionUpdate, StoredMessage
from enfold.retention import Retention, Split, zones
from enfold.store import catalog, outbox, sessions, snapshots, tree
from enfold.store import catalog as activity
from enfold.store.database import Database
from enfold.store.store import Store
from enfold.strategies.contract import Prices as PriceOf
from enfold.strategies.contract import Strategy
from enfold.strategies.fallback import truncated
from enfold.summaries import fence_tokens, summary_tokens
from enfold.tokens import count_message
from enfold.view import ShownMessage, View


def without_pointers(db: Database, key: SessionKey, view: View) -> View:
    """The view with messages that point to others as they were said."""
    indexes = [index for index, shown in enumerate(view.shown) if shown.points_to]
    if not indexes:
        return view
    shown = list(view.shown)
    for index, row in zip(indexes, _rows(db, key, view, indexes), strict=True):
        message = message_of(row)
        is_counted = row.tokenizer == view.tokenizer
        tokens = row.tokens if is_counted else count_message(message, view.tokenizer)
        shown[index] = ShownMessage(row.id, message, tokens, row.estimate, depth=row.depth)
    return replace(view, shown=tuple(shown))


def originals(
    db: Database, key: SessionKey, view: View, indexes: Iterable[int]
) -> dict[int, Message]:
    """What the edited messages among these said, by index."""
    edited = [index for index in indexes if view.shown[index].edit is not None]
    rows = _rows(db, key, view, edited)
    return {index: message_of(row) for index, row in zip(edited, rows, strict=True)}


def still_holding(view: View, answer: Condensation) -> frozenset[int]:
    """Indexes of messages whose pointers may be shown again after an answer that knew none.

    That is where nothing was folded, and what a message points to is as it was: kept, and if it
    points elsewhere itself, holding too.
    """
    if answer.summary is not None:
        return frozenset()
    kept = {entry.index for entry in answer.entries if isinstance(entry, KeptMessage)}
    places = {shown.id: index for index, shown in enumerate(view.shown)}
    pointing = {index for index, shown in enumerate(view.shown) if shown.points_to}
    holding = pointing & kept
    while True:
        firm = (kept - pointing) | holding
        still = {
            index
            for index in holding
            if all(places.get(id) in firm for id in view.shown[index].points_to)
        }
        if still == holding:
            return frozenset(holding)
        holding = still


def _rows(db: Database, key: SessionKey, view: View, indexes: list[int]) -> list[StoredMessage]:
    if not indexes:
        return []
    ends = [(view.shown[index].id,) * 2 for index in indexes]
    return [row for (row,) in tree.segments(db, key, ends)]


NOTHING_SAID: Mapping[int, Message] = {}


@dataclass(frozen=True, slots=True)
class Job:
    """A compression to do."""

    session: records.SessionRecord
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
    may_truncate: bool = False
    """Whether what is old may go without a summary, if that is due and none can be had."""
    restorable_by: RestorableBy | None = "store"
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
        """Where the compression should end, in exact counts."""
        return max(1, self.decision.goal - self.view.estimate)


async def without_pointers_in(store: Store, job: Job) -> Job:
    """The job with a view to work on in which no message points to another."""
    view = await store.read(without_pointers, job.session.key, job.view)
    return replace(job, pointerless=view)


def planned(job: Job) -> SizedSplit:
    """How tight the compression must be."""
    view = job.basis
    aim = Aim(
        job.retention,
        job.goal,
        job.summary_tokens,
        view.summary_tokens,
        view.summary_at,
        view.settled,
        fence=fence_tokens(view.tokenizer),
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
        i for i, entry in enumerate(snapshot.manifest) if isinstance(entry, records.SummaryPlace)
    )
    head = sum(_length(entry, places) for entry in snapshot.manifest[:at])
    kept = [entry.first for entry in snapshot.manifest[at:] if isinstance(entry, records.KeptRange)]
    return Split(
        head=head,
        cut=last + 1,
        pinned=next((places[id] for id in kept if places[id] < last), None),
        tail_tokens=sum(job.counts[last + 1 :]),
        overshoot=0,
    )


def _length(entry: records.ManifestEntry, places: Mapping[str, int]) -> int:
    """How many messages an entry shows."""
    if isinstance(entry, records.KeptRange):
        return places[entry.last] - places[entry.first] + 1
    return 1


def plan_of(job: Job, made: SizedSplit, said: Mapping[int, Message] = NOTHING_SAID) -> Task:
    """What a strategy is given; `said` is what edited messages were before."""
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
        static_tokens=load.system + load.tools,
        restorable_by=job.restorable_by,
        originals=said,
    )


WARNINGS = "warnings"
"""The field of a snapshot's content with what there is to say of how it came about."""

NOTHING_STILL: Mapping[int, ShownMessage] = {}


@dataclass(frozen=True, slots=True)
class Recording:
    """What is written of a compression."""

    draft: records.SnapshotDraft
    edits: tuple[records.EditDraft, ...]
    flush: tuple[str, ...]
    """The ids of the messages that were folded, for long-term memory."""


def record(
    view: View,
    plan: Task,
    answer: Condensation,
    *,
    before: int,
    automatic: bool,
    instead_of: records.Snapshot | None = None,
    still: Mapping[int, ShownMessage] = NOTHING_STILL,
) -> Recording:
    """The snapshot of an answer to a view; `instead_of` is one that it replaces.

    `before` is what the view took, and `still` are messages that it goes on to show as they were
    before the compression began.
    """
    folded = answer.summary
    edits = {edit.index: _edit(view, edit, plan.tokenizer) for edit in answer.edits}
    covered, cutoff = _reach(view, answer, instead_of)
    shows_earlier = folded is None and view.summary is not None
    draft = records.SnapshotDraft(
        content={
            **_content(view, answer, automatic=automatic),
            "originalTokenCount": before,
            "newTokenCount": tokens_after(plan, answer, still),
        },
        cutoff=cutoff,
        parent=view.tip,
        manifest=tuple(_joined(_entries(view, answer, covered, edits, still))),
        token_count=folded.tokens
        if folded is not None
        else (view.summary_tokens if shows_earlier else None),
        tokenizer=view.tokenizer,
        previous=instead_of.id if instead_of is not None else view.snapshot,
        strategy=answer.strategy,
        author=folded.author if folded is not None else answer.strategy,
    )
    flush = tuple(view.shown[index].id for index in folded.indexes) if folded is not None else ()
    return Recording(draft, tuple(edits.values()), flush)


def draft_edited_summary(
    snapshot: records.Snapshot, text: str, tokenizer: str
) -> records.SnapshotDraft:
    """The same snapshot with somebody's own words for a summary."""
    return records.SnapshotDraft(
        content={**snapshot.content, "summaryText": text, "receipt": None, WARNINGS: []},
        cutoff=snapshot.cutoff,
        parent=snapshot.parent,
        manifest=snapshot.manifest,
        token_count=summary_tokens(text, tokenizer),
        tokenizer=tokenizer,
        previous=snapshot.id,
        strategy=snapshot.strategy,
        author="user",
    )


def tokens_after(plan: Task, answer: Condensation, still: Mapping[int, ShownMessage]) -> int:
    """What the view takes afterwards."""
    less = sum(plan.counts[index] - shown.tokens for index, shown in still.items())
    return answer.tokens(plan) - less


def _edit(view: View, edit: EditedMessage, tokenizer: str) -> records.EditDraft:
    body = dumps(wire.get(edit.message.dialect).render_message(edit.message))
    shown = view.shown[edit.index]
    sources = {source.message for each in edit.shortenings for source in each.sources}
    points_to = {view.shown[index].id for index in sources} | set(shown.points_to)
    return records.EditDraft(
        message=shown.id,
        body=body,
        tokens=edit.tokens,
        tokenizer=tokenizer,
        estimate=estimate(edit.message),
        ledger={POINTS_TO: sorted(points_to)} if points_to else None,
    )


def _reach(
    view: View, answer: Condensation, instead_of: records.Snapshot | None
) -> tuple[int, str | None]:
    """How many of the messages shown the snapshot covers, and its cutoff."""
    if answer.edits:
        return len(view.shown), view.tip
    covered, cutoff = view.covered, view.cutoff
    if instead_of is not None:
        places = {shown.id: index for index, shown in enumerate(view.shown)}
        at = places.get(instead_of.cutoff or "", -1)
        covered, cutoff = (at + 1, instead_of.cutoff) if at >= covered else (covered, cutoff)
    last = max(answer.summary.indexes) if answer.summary is not None else -1
    return (last + 1, view.shown[last].id) if last >= covered else (covered, cutoff)


def _content(view: View, answer: Condensation, *, automatic: bool) -> dict[str, Any]:
    folded = answer.summary
    touched = folded.indexes if folded is not None else [edit.index for edit in answer.edits]
    if folded is None:
        settled = view.settled if view.summary is not None else 0
    else:
        settled = sum(
            not isinstance(entry, SummarizedMessages) and entry.index < max(folded.indexes)
            for entry in answer.entries
        )
    return {
        "summaryText": folded.text if folded is not None else view.summary,
        "messageRange": {
            "firstMessageId": view.shown[min(touched)].id,
            "lastMessageId": view.shown[max(touched)].id,
        },
        "compressionType": "auto" if automatic else "manual",
        "messagesIncluded": len(folded.indexes) if folded is not None else 0,
        "messagesEdited": len(answer.edits),
        "receipt": answer.receipt.counts_as_json() if answer.receipt is not None else None,
        WARNINGS: list(answer.warnings),
        SETTLED: settled,
    }


def _entries(
    view: View,
    answer: Condensation,
    covered: int,
    edits: Mapping[int, records.EditDraft],
    still: Mapping[int, ShownMessage],
) -> Iterator[tuple[records.ManifestEntry, int]]:
    """What is shown of the messages covered, each with its place in the history."""
    earlier_at = view.summary_at if answer.summary is None and view.summary is not None else None
    for entry in answer.entries:
        if isinstance(entry, SummarizedMessages):
            yield records.SummaryPlace(), 0
            continue
        if entry.index >= covered:
            break
        if entry.index == earlier_at:
            yield records.SummaryPlace(), 0
        shown = still.get(entry.index, view.shown[entry.index])
        if entry.index in edits:
            yield records.EditReference(edits[entry.index].id), shown.depth
        elif shown.edit is not None:
            yield records.EditReference(shown.edit), shown.depth
        else:
            yield records.KeptRange(shown.id, shown.id), shown.depth
    if earlier_at is not None and earlier_at >= covered:
        yield records.SummaryPlace(), 0


def _joined(
    entries: Iterator[tuple[records.ManifestEntry, int]],
) -> Iterator[records.ManifestEntry]:
    """The entries, with messages that follow each other in the history as one stretch."""
    stretch: records.KeptRange | None = None
    end = 0
    for entry, depth in entries:
        if stretch is not None and isinstance(entry, records.KeptRange) and depth == end + 1:
            stretch = records.KeptRange(stretch.first, entry.last)
        else:
            if stretch is not None:
                yield stretch
            stretch = entry if isinstance(entry, records.KeptRange) else None
            if stretch is None:
                yield entry
        end = depth
    if stretch is not None:
        yield stretch


NATIVE = "native"
"""The strategy whose result the plan foretells, because all it does is fold."""

CANCELLED = "cancelled"
"""The code under which listeners are told of a compression that was called off."""

_log = logging.getLogger("enfold.engine")


async def preview(store: Store, job: Job) -> Preview:
    """What the compression would come to; no model is asked."""
    job = await without_pointers_in(store, job)
    made = planned(job)
    plan = plan_of(job, made)
    touched = job.strategy.touches(plan)
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
    estimate = await job.strategy.estimate(plan, job.price_of)
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
    said = await store.read(originals, job.session.key, job.basis, made.split.middle)
    plan = plan_of(job, made, said)
    touched = job.strategy.touches(plan)
    if not touched:
        outcome: OutcomeName = "nothing_to_compress" if job.view.snapshot is None else "nothing_new"
        return Compression(outcome, job.view.tokens, job.view.tokens)
    events.emit(
        CompressionStarted(
            job.session.id,
            messages=len(touched),
            tokens=sum(plan.counts[index] for index in touched),
            strategy=job.strategy.id,
            automatic=job.automatic,
        )
    )
    started = monotonic()
    step = "summarizing" if job.strategy.id == NATIVE else "condensing"
    events.emit(CompressionProgress(job.session.id, step, len(touched)))
    try:
        answer, still = await _answer(store, job, plan)
    except NoGainError as error:
        if job.automatic:
            raise
        events.emit(_ended(job, facts(error).code, str(error)))
        return Compression("no_gain", job.view.tokens, job.view.tokens, warnings=(str(error),))
    except asyncio.CancelledError:
        events.emit(_ended(job, CANCELLED, "it was called off; nothing was changed"))
        raise
    events.emit(CompressionProgress(job.session.id, "recording", len(touched)))
    snapshot = await _record(store, job, plan, answer, still)
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


async def _answer(
    store: Store, job: Job, plan: Task
) -> tuple[Condensation, Mapping[int, ShownMessage]]:
    """What is to be shown, fit for use, and what of it is still shown as it was."""
    try:
        return await _fit(job, plan, await _asked(job, plan))
    except CompressionError as error:
        if not (job.automatic and job.may_truncate):
            raise
        _log.warning(
            "session %s: truncated, because no summary was made: %s", job.session.id, error
        )
        await store.write(activity.add_failure, job.session.key, facts(error).code, automatic=True)
        return await _truncated(job, plan, error)


async def _truncated(
    job: Job, plan: Task, error: CompressionError
) -> tuple[Condensation, Mapping[int, ShownMessage]]:
    """What the last resort makes of it; the error, if that does not help either."""
    most = job.decision.threshold_tokens - job.view.estimate
    plan = replace(plan, target=min(job.goal, most))
    try:
        return await _fit(job, plan, await asyncio.to_thread(truncated, plan, str(error)))
    except CompressionError as other:
        raise type(error)(f"{error}; nor did it help to truncate: {other}") from error


async def _asked(job: Job, plan: Task) -> Condensation:
    """The strategy's answer, in time."""
    try:
        async with asyncio.timeout(job.timeout):
            return await job.strategy.condense(plan)
    except TimeoutError:
        raise SummaryError(
            f"the summary by {job.author!r} was given up after {job.timeout:g} s; try again"
        ) from None


async def _fit(
    job: Job, plan: Task, answer: Condensation
) -> tuple[Condensation, Mapping[int, ShownMessage]]:
    """The answer, if it may be used, and what of it is still shown as it was."""
    answer = await asyncio.to_thread(accept, plan, answer)
    still = {index: job.view.shown[index] for index in still_holding(job.view, answer)}
    tokens = tokens_after(plan, answer, still)
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
    store: Store, job: Job, plan: Task, answer: Condensation, still: Mapping[int, ShownMessage]
) -> records.SnapshotDraft:
    recording = record(
        job.basis,
        plan,
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


def _refuse_hopeless(job: Job, made: SizedSplit) -> None:
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
    made: SizedSplit,
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


def _warnings(job: Job, made: SizedSplit, after: int) -> tuple[str, ...]:
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


LEASE_SECONDS = 10.0
"""How long others wait for a process that died. One that lives renews its lease."""
_POLL_SECONDS = 0.05


@asynccontextmanager
async def session_lease(
    store: Store, session: records.SessionRecord, seconds: float, *, lasting: float = LEASE_SECONDS
) -> AsyncIterator[None]:
    """Wait until nobody else compresses the session, then be the one who does."""
    name, holder = f"compress:{session.key}", uuid4().hex
    deadline = monotonic() + seconds
    while not await store.write(outbox.acquire, name, holder, seconds=lasting, session=session.key):
        if monotonic() > deadline:
            raise SummaryError(
                f"another compression of session {session.id!r} runs for {seconds:g} s; try again"
            )
        await asyncio.sleep(_POLL_SECONDS)
    renewing = asyncio.create_task(_renew(store, name, holder, lasting), name="enfold lease")
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.shield(store.write(outbox.release, name, holder))


async def _renew(store: Store, name: str, holder: str, lasting: float) -> None:
    """Keep the lease for as long as this process lives, and not much longer."""
    while True:
        await asyncio.sleep(lasting / 3)
        try:
            await store.write(outbox.renew, name, holder, seconds=lasting)
        except StoreError as error:
            # Without it another may begin too; what is recorded first is what counts.
            _log.warning("a lease could not be renewed: %s", error)


ACCEPTED = "the risk was acknowledged: sent without the compression that is due"
PASSED = "sent without the compression that is due: it failed, and on_failure is pass"


def is_acknowledged(session: SessionRecord) -> bool:
    """True if requests go on although a compression failed."""
    return session.blocked is not None and bool(session.blocked.get("acknowledged"))


def refuse_if_blocked(session: SessionRecord, on_failure: str) -> None:
    """Raise `BlockedError` while the session waits, which it does with `block` alone."""
    if on_failure == "block" and session.blocked is not None and not is_acknowledged(session):
        words = _words(session.id, str(session.blocked.get("reason")))
        raise BlockedError(words, session=session.id)


@asynccontextmanager
async def report_failures(
    store: Store, events: Events, session: SessionRecord, *, automatic: bool
) -> AsyncIterator[None]:
    """Tell of a compression that fails in here, and of a count that does, and keep count."""
    try:
        yield
    except (CompressionError, TokenCountError) as error:
        _tell(events, session, error, automatic=automatic)
        code = facts(error).code
        await store.write(catalog.add_failure, session.key, code, automatic=automatic)
        raise


def _tell(
    events: Events,
    session: SessionRecord,
    error: CompressionError | TokenCountError,
    *,
    automatic: bool,
) -> None:
    """Log a failure with what is needed to look into it, never with message text, and tell it."""
    known = facts(error)
    _log.error(
        "compression failed: session=%s messages=%d tokens=%d model=%s code=%s automatic=%s",
        session.id,
        session.depth,
        session.tokens,
        session.model,
        known.code,
        automatic,
    )
    events.emit(CompressionFailed(session.id, known.code, str(error), known.retryable, automatic))


async def block(
    store: Store, events: Events, session: SessionRecord, error: CompressionError
) -> BlockedError:
    """Stop the session; the answer is the error to raise."""
    blocked = {"reason": str(error), "code": facts(error).code, "acknowledged": False}
    await store.write(sessions.update, session.key, SessionUpdate(blocked=blocked))
    events.emit(SessionBlocked(session.id, str(error)))
    return BlockedError(_words(session.id, str(error)), session=session.id)


async def unblock(
    store: Store, events: Events, session: SessionRecord, *, acknowledged: bool
) -> None:
    """Let requests go on."""
    if session.blocked is None:
        return
    blocked = {**session.blocked, "acknowledged": True} if acknowledged else {}
    await store.write(sessions.update, session.key, SessionUpdate(blocked=blocked))
    events.emit(SessionUnblocked(session.id, acknowledged))


def _words(session: str, reason: str) -> str:
    return (
        f"session {session!r}: {reason}. Nothing was sent; retry the compression, or acknowledge "
        "the risk to go on without it"
    )
