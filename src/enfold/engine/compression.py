"""Compressions of stored sessions: preview, run, record; leases and blocked sessions.

The steps are those of `enfold.pipeline`. This module reads what they need from the store and
records what comes out. Nothing is written if a step fails. A lease keeps two processes from doing
the same work, and a snapshot is only recorded if the one that applied at the start still applies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any
from uuid import uuid4

from enfold import pipeline, wire
from enfold.amounts import track_spending
from enfold.condensation import Condensation, EditedMessage, Plan, SummarizedMessages
from enfold.engine.state import SETTLED, VARIANT, SettingsLevel, message_of, read_model
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
from enfold.pipeline import NATIVE, Outcome, Request
from enfold.records import (
    POINTS_TO,
    EditDraft,
    EditReference,
    KeptRange,
    ManifestEntry,
    SessionKey,
    SessionRecord,
    SessionUpdate,
    Snapshot,
    SnapshotDraft,
    StoredMessage,
    SummaryPlace,
    UsageEvent,
)
from enfold.retention import Split
from enfold.store import catalog, outbox, sessions, snapshots, tree
from enfold.store.database import Database
from enfold.store.store import Store
from enfold.summaries import Summary, summary_tokens
from enfold.summaries.request import OnPart
from enfold.tokens import compute_async, count_message
from enfold.view import ShownMessage, View
from enfold.wire import estimate

ADDED = snapshots.ADDED
WARNINGS = "warnings"
"""The field of a snapshot's content that holds the warnings of its compression."""
CANCELLED = "cancelled"
"""The code of the event for a compression that was cancelled."""
ACCEPTED = "the risk was acknowledged: sent without the compression that is due"
PASSED = "sent without the compression that is due: it failed, and on_failure is pass"
LEASE_SECONDS = 10.0
"""Seconds that other processes wait for one that died. A living process renews its lease."""
_POLL_SECONDS = 0.05

_log = logging.getLogger("enfold.engine")


# Reading what a request needs.


def without_pointers(db: Database, key: SessionKey, view: View) -> View:
    """Return the view with the original of every message whose edit points to another message."""
    indexes = [index for index, shown in enumerate(view.shown) if shown.points_to]
    shown = list(view.shown)
    for index, row in zip(indexes, _rows(db, key, view, indexes), strict=True):
        message = message_of(row)
        is_counted = row.tokenizer == view.tokenizer
        tokens = row.tokens if is_counted else count_message(message, view.tokenizer)
        shown[index] = ShownMessage(row.id, message, tokens, row.estimate, depth=row.depth)
    return replace(view, shown=tuple(shown))


def _rows(db: Database, key: SessionKey, view: View, indexes: list[int]) -> list[StoredMessage]:
    ends = [(view.shown[index].id,) * 2 for index in indexes]
    return [row for (row,) in tree.segments(db, key, ends)] if ends else []


def split_of(snapshot: Snapshot, view: View) -> Split | None:
    """Return the division that a snapshot made of the view before it; None without a summary."""
    if not snapshots.added_messages(snapshot):
        return None
    places = {shown.id: index for index, shown in enumerate(view.shown)}
    last = places.get(snapshot.content["messageRange"]["lastMessageId"])
    if last is None:
        raise NotFoundError("the messages that the summary replaces are no longer on this branch")
    at = next(i for i, entry in enumerate(snapshot.manifest) if isinstance(entry, SummaryPlace))
    head = 0
    for entry in snapshot.manifest[:at]:
        head += 1
        if isinstance(entry, KeptRange):
            head += places[entry.last] - places[entry.first]
    kept = [
        index
        for entry in snapshot.manifest[at:]
        if isinstance(entry, KeptRange)
        for index in range(places[entry.first], places[entry.last] + 1)
    ]
    return Split(
        head=head,
        cut=last + 1,
        tail_tokens=sum(shown.tokens for shown in view.shown[last + 1 :]),
        kept=frozenset(index for index in kept if head <= index < last),
    )


# Running the pipeline.


@dataclass(frozen=True, slots=True)
class CompressionRun:
    """A compression of a stored session."""

    store: Store
    events: Events
    session: SessionRecord
    request: Request
    usage: Sequence[UsageEvent]
    """It grows while the strategy calls models; it is recorded even if the compression fails."""
    shown: Snapshot | None
    """The snapshot that the view shows; the new summary stands for its messages too."""
    replaces: Snapshot | None
    """A snapshot whose summary is written again, with the same cutoff."""

    async def run(self) -> Outcome:
        """Run the compression and record it."""
        outcome = None
        try:
            outcome = await self._run()
        finally:
            if self.usage and (outcome is None or not outcome.compressed):
                spent = [replace(event, session=self.session.key) for event in self.usage]
                await self.store.write(catalog.add_usage, spent)
        return outcome

    async def _run(self) -> Outcome:
        request, session, emit = self.request, self.session, self.events.emit
        before, automatic = request.tokens_before, request.is_due
        # Other requests go on meanwhile: a plan of a long view takes a moment.
        plan = await compute_async(pipeline.make_plan, request)
        pipeline.refuse_impossible(request, plan)
        plan = await self._with_originals(plan)
        touched = await compute_async(request.strategy.touches, plan)
        if not touched:
            is_first = request.view.snapshot is None
            return Outcome("nothing_to_compress" if is_first else "nothing_new", before, before)
        if automatic and _frees_too_little(request, plan):
            return Outcome("no_gain", before, before)
        tokens = sum(plan.counts[index] for index in touched)
        name = request.strategy.id
        emit(CompressionStarted(session.id, len(touched), tokens, name, automatic=automatic))
        step = "summarizing" if name == NATIVE else "condensing"
        emit(CompressionProgress(session.id, step, len(touched)))
        request = replace(
            request,
            on_part=_part_reporter(self.events, session.id, step, len(touched)),
            parts=StoredParts(self.store, session.key),
        )
        started_at = monotonic()
        failed = partial(CompressionFailed, session.id, automatic=automatic)
        try:
            with track_spending() as spent:
                answer = await pipeline.run_strategy(request, plan, self._record_fallback)
        except UncompressibleError:
            await self._forget_parts()
            raise
        except NoGainError as error:
            await self._forget_parts()
            # A view that can be sent as it is never blocks a session.
            is_sendable = request.allowed is not None and before <= request.allowed
            if automatic and not is_sendable:
                raise
            emit(failed(facts(error).code, str(error), retryable=False))
            return Outcome("no_gain", before, before, warnings=(str(error),), cost=spent.total())
        except asyncio.CancelledError:
            emit(failed(CANCELLED, "it was cancelled; nothing was changed", retryable=True))
            raise
        emit(CompressionProgress(session.id, "recording", len(touched)))
        outcome = pipeline.make_outcome(request, plan, answer, seconds=monotonic() - started_at)
        outcome = await self._record(answer, outcome)
        emit(_finished(session, outcome, automatic=automatic))
        return outcome

    async def _forget_parts(self) -> None:
        """Forget the finished parts: another attempt with them would end in the same way."""
        await self.store.write(snapshots.forget_parts, self.session.key)

    async def _with_originals(self, plan: Plan) -> Plan:
        """Return the plan with the originals of the edited messages in its middle."""
        view = self.request.view
        edited = [index for index in plan.split.middle if view.shown[index].edit is not None]
        if not edited:
            return plan
        rows = await self.store.read(_rows, self.session.key, view, edited)
        originals = {index: message_of(row) for index, row in zip(edited, rows, strict=True)}
        return replace(plan, originals=originals)

    async def _record_fallback(self, error: CompressionError) -> None:
        key, id = self.session.key, self.session.id
        _log.warning("session %s: truncated, because no summary was made: %s", id, error)
        await self.store.write(catalog.add_failure, key, facts(error).code, automatic=True)

    async def _record(self, answer: Condensation, outcome: Outcome) -> Outcome:
        """Store the snapshot; return the outcome with its id."""
        request, summary = self.request, answer.summary
        draft, edits = self._draft(answer, outcome)
        flush = [request.view.shown[index].id for index in summary.indexes] if summary else []
        extras = snapshots.SnapshotExtras(edits=edits, flush=flush, usage=tuple(self.usage))
        await self.store.write(
            snapshots.record,
            self.session.key,
            draft,
            extras,
            expected=draft.previous,
            tip=request.view.tip,
            share_across_branches=request.share_across_branches,
        )
        return replace(outcome, snapshot=draft.id, cutoff=draft.cutoff)

    def _draft(
        self, answer: Condensation, outcome: Outcome
    ) -> tuple[SnapshotDraft, tuple[EditDraft, ...]]:
        """Return the snapshot of an accepted answer, and the edits that belong to it."""
        view, summary, replaces = self.request.view, answer.summary, self.replaces
        edits = {edit.index: _draft_edit(view, edit) for edit in answer.edits}
        covered, cutoff = _covered(view, answer, replaces)
        token_count = summary.tokens if summary is not None else None
        if summary is None and view.summary is not None:
            token_count = view.summary_tokens
        pointers = pipeline.pointers_that_hold(self.request, answer)
        draft = SnapshotDraft(
            content=_content(self.request, answer, outcome, self.shown),
            cutoff=cutoff,
            parent=_parent(self.request, covered),
            manifest=_joined(_manifest(view, answer, covered, edits, pointers)),
            token_count=token_count,
            tokenizer=view.tokenizer,
            previous=replaces.id if replaces is not None else view.snapshot,
            strategy=answer.strategy,
            author=outcome.author or "",
        )
        return draft, tuple(edits.values())


@dataclass(frozen=True, slots=True)
class StoredParts:
    """The parts of a session's summary that is not complete yet."""

    store: Store
    session: SessionKey

    async def get(self, key: str) -> Summary | None:
        """Return a part that an earlier attempt wrote; None if none did."""
        try:
            found = await self.store.read(snapshots.part, self.session, key)
        except StoreError as error:
            _log.warning("a part of a summary could not be read: %s", error)
            return None
        if found is None:
            return None
        return Summary(found["text"], found["author"], found["tokens"], notes=tuple(found["notes"]))

    async def keep(self, key: str, summary: Summary) -> None:
        """Store a part until the compression is recorded."""
        content = {name: getattr(summary, name) for name in ("text", "author", "tokens", "notes")}
        try:
            await self.store.write(snapshots.keep_part, self.session, key, content)
        except StoreError as error:
            # The summary is complete: only another attempt would miss this part.
            _log.warning("a part of a summary could not be stored: %s", error)


def _part_reporter(events: Events, session: str, step: str, messages: int) -> OnPart:
    """Return a function that emits an event for each part of a summary that has several."""
    first, started_at = 0, 0.0

    def report(part: int, parts: int) -> None:
        nonlocal first, started_at
        if parts == 1:
            return
        if part <= first or not first:
            first, started_at = part, monotonic()
        seconds = None
        if part > first:
            seconds = (monotonic() - started_at) / (part - first) * (parts - part + 1)
        events.emit(CompressionProgress(session, step, messages, part, parts, seconds))

    return report


def _frees_too_little(request: Request, plan: Plan) -> bool:
    """Return True if a native summary does not pay and the request can be sent without one."""
    is_native = request.strategy.id == NATIVE and not plan.split.is_empty
    if not is_native or request.allowed is None or request.tokens_before > request.allowed:
        return False
    return request.tokens_before - plan.expected_tokens < pipeline.minimum_gain(request)


def _finished(session: SessionRecord, outcome: Outcome, *, automatic: bool) -> CompressionFinished:
    return CompressionFinished(
        session.id,
        snapshot=outcome.snapshot or "",
        messages=outcome.messages + outcome.edited,
        tokens_before=outcome.tokens_before,
        tokens_after=outcome.tokens_after,
        seconds=outcome.seconds,
        author=outcome.author or "",
        automatic=automatic,
        warnings=outcome.warnings,
        strategy=outcome.strategy or "",
        cost=outcome.cost,
        steps=tuple((step.name, step.tokens_before, step.tokens_after) for step in outcome.steps),
    )


# Drafting the snapshot.


def draft_edited_summary(snapshot: Snapshot, text: str, tokenizer: str) -> SnapshotDraft:
    """Return the snapshot with a summary that a person wrote."""
    return SnapshotDraft(
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


def _draft_edit(view: View, edit: EditedMessage) -> EditDraft:
    shown = view.shown[edit.index]
    sources = {source.message for each in edit.shortenings for source in each.sources}
    points_to = {view.shown[index].id for index in sources} | set(shown.points_to)
    return EditDraft(
        message=shown.id,
        body=dumps(wire.get(edit.message.dialect).render_message(edit.message)),
        tokens=edit.tokens,
        tokenizer=view.tokenizer,
        estimate=estimate(edit.message),
        ledger={POINTS_TO: sorted(points_to)} if points_to else None,
    )


def _covered(view: View, answer: Condensation, replaces: Snapshot | None) -> tuple[int, str | None]:
    """Return how many of the shown messages the snapshot covers, and its cutoff."""
    if answer.edits:
        return len(view.shown), view.tip
    covered, cutoff = view.covered, view.cutoff
    if replaces is not None:
        places = {shown.id: index for index, shown in enumerate(view.shown)}
        at = places.get(replaces.cutoff or "", -1)
        covered, cutoff = (at + 1, replaces.cutoff) if at >= covered else (covered, cutoff)
    last = max(answer.summary.indexes) if answer.summary is not None else -1
    return (last + 1, view.shown[last].id) if last >= covered else (covered, cutoff)


def _parent(request: Request, covered: int) -> str | None:
    """Return the message that must be on a branch for the snapshot to apply there.

    It is the tip. A summary that was written without the last reply applies to other replies to
    the same question too.
    """
    start = request.reply_start
    if start is None or covered > start:
        return request.view.tip
    return request.view.shown[start - 1].id


def _content(
    request: Request, answer: Condensation, outcome: Outcome, shown: Snapshot | None
) -> dict[str, Any]:
    view, summary = request.view, answer.summary
    touched = summary.indexes if summary is not None else [edit.index for edit in answer.edits]
    first, last = view.shown[min(touched)].id, view.shown[max(touched)].id
    included = outcome.messages
    if shown is not None and view.summary is not None and shown.message_range is not None:
        first = shown.message_range["firstMessageId"]
        last = last if summary is not None else shown.message_range["lastMessageId"]
        included += shown.content.get("messagesIncluded", 0)
    if summary is None:
        settled = view.settled if view.summary is not None else 0
    else:
        end = max(summary.indexes)
        settled = sum(
            not isinstance(entry, SummarizedMessages) and entry.index < end
            for entry in answer.entries
        )
    return {
        "summaryText": summary.text if summary is not None else view.summary,
        "messageRange": {"firstMessageId": first, "lastMessageId": last},
        "tip": view.tip,
        "compressionType": "auto" if request.is_due else "manual",
        **({VARIANT: request.prompt_variant} if request.prompt_variant and summary else {}),
        "messagesIncluded": included,
        ADDED: outcome.messages,
        "messagesEdited": outcome.edited,
        "receipt": answer.receipt.notes_as_json() if answer.receipt is not None else None,
        WARNINGS: list(answer.warnings),
        SETTLED: settled,
        "originalTokenCount": outcome.tokens_before,
        "newTokenCount": outcome.tokens_after,
    }


def _manifest(
    view: View,
    answer: Condensation,
    covered: int,
    edits: Mapping[int, EditDraft],
    pointers: Mapping[int, ShownMessage],
) -> Iterator[tuple[ManifestEntry, int]]:
    """Yield the manifest entries of the covered messages, each with its depth on the branch."""
    earlier_at = view.summary_at if answer.summary is None and view.summary is not None else None
    for entry in answer.entries:
        if isinstance(entry, SummarizedMessages):
            yield SummaryPlace(), 0
            continue
        if entry.index >= covered:
            break
        if entry.index == earlier_at:
            yield SummaryPlace(), 0
        shown = pointers.get(entry.index, view.shown[entry.index])
        edit = edits[entry.index].id if entry.index in edits else shown.edit
        yield KeptRange(shown.id, shown.id) if edit is None else EditReference(edit), shown.depth
    if earlier_at is not None and earlier_at >= covered:
        yield SummaryPlace(), 0


def _joined(entries: Iterable[tuple[ManifestEntry, int]]) -> tuple[ManifestEntry, ...]:
    """Return the entries, with kept messages that follow each other joined into one range."""
    joined: list[ManifestEntry] = []
    end = 0
    for entry, depth in entries:
        last = joined[-1] if joined else None
        match last, entry:
            case KeptRange(first), KeptRange(last=newest) if depth == end + 1:
                joined[-1] = KeptRange(first, newest)
            case _:
                joined.append(entry)
        end = depth
    return tuple(joined)


# One compression at a time.


@asynccontextmanager
async def session_lease(
    store: Store, session: SessionRecord, wait: float, *, seconds: float = LEASE_SECONDS
) -> AsyncIterator[None]:
    """Hold the right to compress the session; wait at most `wait` seconds for it."""
    name, holder = f"compress:{session.key}", uuid4().hex
    deadline = monotonic() + wait
    while not await store.write(outbox.acquire, name, holder, seconds=seconds, session=session.key):
        if monotonic() > deadline:
            raise SummaryError(
                f"session {session.id!r} is already being compressed; gave up after {wait:g} s"
            )
        await asyncio.sleep(_POLL_SECONDS)
    renewing = asyncio.create_task(_renew(store, name, holder, seconds), name="enfold lease")
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.shield(store.write(outbox.release, name, holder))


async def _renew(store: Store, name: str, holder: str, seconds: float) -> None:
    """Renew the lease until cancelled."""
    while True:
        await asyncio.sleep(seconds / 3)
        try:
            await store.write(outbox.renew, name, holder, seconds=seconds)
        except StoreError as error:
            # Another process may now start too; only the first of the two is recorded.
            _log.warning("a lease could not be renewed: %s", error)


# Failures, and sessions that they block.


def is_acknowledged(session: SessionRecord) -> bool:
    """Return True if requests are sent although a compression failed."""
    return session.blocked is not None and bool(session.blocked.get("acknowledged"))


async def use_acknowledgement(store: Store, session: SessionRecord) -> None:
    """End the block, because an acknowledgement covers one request: the next one tries again."""
    await store.write(sessions.update, session.key, SessionUpdate(blocked={}))


def refuse_if_blocked(session: SessionRecord, on_failure: str) -> None:
    """Raise `BlockedError` if the session is blocked and `on_failure` is `block`."""
    if on_failure == "block" and session.blocked is not None and not is_acknowledged(session):
        raise _blocked_error(session, session.blocked)


@asynccontextmanager
async def report_failures(
    store: Store,
    events: Events,
    session: SessionRecord,
    static_settings: Sequence[SettingsLevel],
    *,
    automatic: bool,
) -> AsyncIterator[None]:
    """Log, emit and count compression errors raised inside the block, then let them pass."""
    try:
        yield
    except (CompressionError, TokenCountError) as error:
        found = facts(error)
        model, _ = await store.read(read_model, session.key, static_settings)
        # Ids, counts and the cause, never message text.
        _log.error(
            "compression failed: session=%s messages=%d tokens=%d model=%s code=%s automatic=%s "
            "cause=%s",
            session.id,
            session.depth,
            session.tokens,
            model,
            found.code,
            automatic,
            error,
        )
        failed = CompressionFailed(session.id, found.code, str(error), found.retryable, automatic)
        events.emit(failed)
        await store.write(catalog.add_failure, session.key, found.code, automatic=automatic)
        raise


async def block(
    store: Store, events: Events, session: SessionRecord, error: CompressionError
) -> BlockedError:
    """Block the session and return the error to raise."""
    blocked = {"reason": str(error), "code": facts(error).code, "acknowledged": False}
    await store.write(sessions.update, session.key, SessionUpdate(blocked=blocked))
    events.emit(SessionBlocked(session.id, str(error)))
    return _blocked_error(session, blocked)


async def unblock(
    store: Store, events: Events, session: SessionRecord, *, acknowledged: bool
) -> None:
    """End the block; with `acknowledged` only for the next request, which is sent as it is."""
    if session.blocked is None:
        return
    blocked = {**session.blocked, "acknowledged": True} if acknowledged else {}
    await store.write(sessions.update, session.key, SessionUpdate(blocked=blocked))
    events.emit(SessionUnblocked(session.id, acknowledged))


def _blocked_error(session: SessionRecord, blocked: Mapping[str, Any]) -> BlockedError:
    message = (
        f"session {session.id!r}: {blocked.get('reason')}. Nothing was sent; retry the "
        "compression, or acknowledge the risk to go on without it"
    )
    return BlockedError(message, session=session.id, cause=str(blocked.get("code", "")))
