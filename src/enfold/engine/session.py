"""A session: a conversation stored whole and sent as its view. Every door works with this."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from enfold import records
from enfold.budget import AUTO_FLOOR
from enfold.engine import compression
from enfold.engine import compression as blocking
from enfold.engine.changes import read_change
from enfold.engine.compression import Job, draft_edited_summary, session_lease
from enfold.engine.presets import check_strategies
from enfold.engine.results import Outcome, Prepared, Preview, Status
from enfold.engine.state import (
    CallOptions,
    KeepAmount,
    MessageInput,
    SessionState,
    as_messages,
    decide_for,
    drafts,
    is_done_since,
    keeping,
    message_of,
    read_model,
    read_session_settings,
    read_state,
    retention_of,
)
from enfold.errors import BlockedError, CompressionError, InputError, NotFoundError
from enfold.llm.prices import prices
from enfold.messages import Message, Tool
from enfold.receipt import Receipt, RestorableBy
from enfold.records import CURRENT_TIP, AppendPlace, SearchScope, SessionUpdate
from enfold.retention import split
from enfold.settings import Settings, check
from enfold.store import catalog, sessions, snapshots, tree
from enfold.store.database import Database
from enfold.store.search import search
from enfold.store.store import Result
from enfold.strategies.native import keeping_instructions
from enfold.summaries import Summarizer

if TYPE_CHECKING:
    from enfold.engine.engine import Engine
    from enfold.modelconfig import ModelConfig


class Session:
    """One conversation. Made by `Engine.session`."""

    def __init__(
        self, engine: Engine, record: records.SessionRecord, tip: str | None = None
    ) -> None:
        self._engine = engine
        self._store = engine.store
        self._events = engine.events.within(record.namespace)
        self.key = record.key
        """What the store knows it by."""
        self.id = record.id
        self.tip = tip
        """Where the branch ends that this works on. None: the one that the session is on."""
        self.namespace = record.namespace

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def at(self, tip: str | None) -> Session:
        """The same session, worked on at the end of another of its branches."""
        other = copy(self)
        other.tip = tip
        return other

    async def append(
        self,
        *said: MessageInput,
        after: str | AppendPlace | None = None,
        dialect: str = "auto",
        forward_only: bool = False,
    ) -> tuple[str, ...]:
        """Add messages at the end of the branch, or after another message; their ids.

        What is there already is recognised and not written twice. After any message but the last
        this makes a branch. With `forward_only` the session does not go back to what it knows.
        """
        messages = as_messages(said, dialect)
        tokenizer = await self.tokenizer()
        place = CURRENT_TIP if after is None else after
        stored = await self._store.write(
            tree.append, self.key, drafts(messages, tokenizer), place, forward_only=forward_only
        )
        return tuple(row.id for row in stored)

    async def tokenizer(self) -> str:
        """Who counts for the session's model."""
        id, model = await self._store.read(read_model, self.key, self._engine.static_settings)
        return (model or await self._engine.models.get(id)).tokenizer

    async def prepare(
        self,
        pending: MessageInput | None = None,
        *,
        system: str = "",
        tools: Iterable[Tool] = (),
        max_output: int | None = None,
        **settings: Any,
    ) -> Prepared:
        """The view to send next, compressed first if that is due.

        `pending` is what the user says next: it is counted and sent, and stored with `append` once
        the model has answered. `settings` hold for this call alone.
        """
        given = as_messages(() if pending is None else (pending,))
        request = CallOptions(given, system, tuple(tools), max_output, settings)
        state, model = await self._state(settings)
        view, decision = decide_for(state, model, request)
        if decision.action != "must":
            return Prepared(view, decision, pending=given)
        if blocking.is_acknowledged(state.rows.session):
            return Prepared(view, decision, pending=given, warnings=(blocking.ACCEPTED,))
        try:
            blocking.refuse_if_blocked(state.rows.session, state.settings.on_failure)
            done = await self.make_room(request)
        except BlockedError:
            if state.settings.on_failure != "pass":
                raise
            return Prepared(view, decision, pending=given, warnings=(blocking.PASSED,))
        state, model = await self._state(settings)
        view, decision = decide_for(state, model, request)
        return Prepared(view, decision, done, given, done.warnings)

    async def compress(
        self,
        *,
        force: bool = True,
        keep_tokens: int | None = None,
        keep_messages: int | None = None,
        asked_at: int | None = None,
        restorable_by: RestorableBy = "store",
        **settings: Any,
    ) -> Outcome:
        """Compress now; without `force` only if it is due, with `asked_at` unless done since then.

        `keep_tokens` or `keep_messages` is the retention of this run alone, and so are `settings`.
        `restorable_by` is how whoever is asked can have again what leaves the view.
        """
        if not force and not (status := await self.status(**settings)).needs_compression:
            return Outcome("kept", status.decision.tokens, status.decision.tokens)
        record = await self.record()
        keep = keeping(keep_tokens, keep_messages)
        async with blocking.report_failures(self._store, self._events, record, automatic=False):
            request = CallOptions(settings=settings, asked_at=asked_at, restorable_by=restorable_by)
            done = await self._compress(request, keep=keep)
        if done.compressed:
            await blocking.unblock(self._store, self._events, record, acknowledged=False)
        return done

    async def make_room(self, request: CallOptions) -> Outcome:
        """Compress because it is due for that request; a failure blocks the session."""
        record = await self.record()
        try:
            async with blocking.report_failures(self._store, self._events, record, automatic=True):
                done = await self._compress(request, automatic=True)
        except CompressionError as error:
            raise await blocking.block(self._store, self._events, record, error) from error
        await blocking.unblock(self._store, self._events, record, acknowledged=False)
        return done

    async def retry(self) -> Outcome:
        """Try again the compression whose failure blocked the session."""
        return await self.make_room(CallOptions())

    async def acknowledge(self) -> None:
        """Accept the risk: requests go on without the compression that failed."""
        record = await self.record()
        await blocking.unblock(self._store, self._events, record, acknowledged=True)

    async def preview(
        self,
        *,
        keep_tokens: int | None = None,
        keep_messages: int | None = None,
        **settings: Any,
    ) -> Preview:
        """What `compress` would do; no model is asked and nothing is written."""
        state, model = await self._state(settings)
        job = await self._job(state, model, CallOptions(), keep=keeping(keep_tokens, keep_messages))
        return await compression.preview(self._store, job)

    async def status(
        self,
        pending: MessageInput | None = None,
        *,
        system: str = "",
        tools: Iterable[Tool] = (),
        **settings: Any,
    ) -> Status:
        """How full the context is, and what a compression would keep."""
        given = as_messages(() if pending is None else (pending,))
        state, model = await self._state(settings)
        view, decision = decide_for(state, model, CallOptions(given, system, tuple(tools)))
        policy = retention_of(state, model)
        divided = split(view.messages, [shown.tokens for shown in view.shown], policy)
        return Status(
            needs_compression=decision.action == "must",
            current_token_count=decision.load.total,
            context_limit=decision.limit,
            threshold_token_count=decision.threshold_tokens,
            utilization=decision.utilization,
            retention_token_budget=int(policy.amount),
            retained_message_count=len(view.shown) - len(divided.middle),
            compressible_message_count=len(divided.middle),
            estimated_tokens=decision.load.estimate,
            summary_tokens=view.summary_tokens,
            messages=state.rows.depth,
            tokenizer=model.tokenizer,
            model=model.id,
            threshold_source=decision.threshold.source,
            blocked=(state.rows.session.blocked or {}).get("reason"),
            decision=decision,
        )

    async def summaries(self) -> tuple[records.Snapshot, ...]:
        """All summaries of the session, newest first, undone ones too."""
        return await self._store.read(snapshots.of_kind, self.key, "summary")

    async def receipt(self, snapshot: str) -> Receipt:
        """What became of every exact item of what a compression took out of the view."""
        change = await self._store.read(read_change, self.key, snapshot)
        return await asyncio.to_thread(change.receipt)

    async def memories(self) -> tuple[records.Snapshot, ...]:
        """What long-term memory has kept of the session, newest first."""
        return await self._store.read(snapshots.of_kind, self.key, "memory")

    async def history(
        self, *, before: str | None = None, after: str | None = None, limit: int = 50
    ) -> tuple[records.StoredMessage, ...]:
        """A page of the branch as it was said, folded or not; the last one by default."""
        return await self._store.read(
            tree.page, self.key, self.tip, before=before, after=after, limit=limit
        )

    async def messages(self) -> tuple[Message, ...]:
        """The whole branch as it was said; `history` reads it in pages."""
        rows = await self._store.read(tree.path, self.key)
        return tuple(message_of(row) for row in rows)

    async def history_range(self, first: int, last: int) -> tuple[records.StoredMessage, ...]:
        """Return the messages of the branch from one position to another; the first is 1."""
        return await self._store.read(tree.between, self.key, self.tip, first, last)

    async def messages_between(self, first: str, last: str) -> tuple[records.StoredMessage, ...]:
        """Return the messages from one to another that follows it, both included."""
        (found,) = await self._store.read(tree.segments, self.key, [(first, last)])
        return found

    async def message(self, id: str) -> records.StoredMessage:
        """One message of the branch as it was said, folded or not."""
        return await self._store.read(tree.on_branch, self.key, id, self.tip)

    async def look(self, reading: Callable[[Database, SearchScope], Result]) -> Result:
        """What is found on the branch, where that function of the store looks."""
        return await self._store.read(reading, SearchScope(session=self.key, tip=self.tip))

    async def search(
        self, query: str, *, limit: int = 20, best_first: bool = False, on_branch: bool = False
    ) -> Sequence[records.Hit]:
        """Where in the whole history, or on this branch, the words occur, newest or best first."""
        where = SearchScope(
            session=self.key, tip=self.tip if on_branch else None, on_branch=on_branch
        )
        return await self._store.read(search, query, where, limit=limit, best_first=best_first)

    async def undo(self) -> records.Snapshot | None:
        """Take back the compression in use: what it replaced is shown again. None if none is."""
        state, _ = await self._state()
        if state.rows.snapshot is None:
            return None
        return await self._store.write(snapshots.undo, self.key, state.rows.snapshot.id)

    async def regenerate(self, **settings: Any) -> Outcome:
        """Write the summary in use anew, with the same cutoff."""
        state, _ = await self._state(settings)
        if state.rows.snapshot is None:
            raise NotFoundError(f"session {self.id!r} shows no summary that could be written anew")
        async with blocking.report_failures(
            self._store, self._events, state.rows.session, automatic=False
        ):
            return await self._compress(
                CallOptions(settings=settings), instead_of=state.rows.snapshot
            )

    async def edit_summary(self, text: str) -> records.Snapshot:
        """Put other words in place of the summary in use; the old ones stay on record."""
        state, model = await self._state()
        current = state.rows.snapshot
        if current is None or current.text is None:
            raise NotFoundError(f"session {self.id!r} shows no summary that could be edited")
        if not text.strip():
            raise InputError("a summary cannot be empty; undo it instead")
        draft = draft_edited_summary(current, text, model.tokenizer)
        return await self._store.write(snapshots.record, self.key, draft, expected=current.id)

    async def delete_summary(self, id: str) -> records.Snapshot:
        """Stop using a summary and delete its words."""
        return await self._store.write(snapshots.erase, self.key, id)

    async def record_usage(self, used: records.UsageEvent) -> None:
        """Keep what a call of a model used; it counts for this session."""
        await self._store.write(catalog.add_usage, [replace(used, session=self.key)])

    async def usage(self, *, since: int = 0) -> Sequence[records.UsageTotal]:
        """Return the usage of the session's calls, by purpose, profile and model."""
        return await self._store.read(catalog.usage_of_session, self.key, since=since)

    async def branches(self) -> tuple[records.Branch, ...]:
        """Every branch, by its last message."""
        return await self._store.read(tree.branches, self.key)

    async def switch(self, tip: str | None) -> None:
        """Go on from another message; None is before the first."""
        await self._store.write(tree.set_tip, self.key, tip)

    async def step_back(self) -> Message | None:
        """Go on from before the last message, which is given; None if there is none.

        It stays in the store, on a branch of its own.
        """
        last = await self._store.write(tree.step_back, self.key)
        return None if last is None else message_of(last)

    async def configure(self, *, title: str | None = None, **settings: Any) -> None:
        """Give the session a title, or settings of its own; None unsets one."""
        record = await self.record()
        given = dict(check(name, value) for name, value in settings.items())
        check_strategies(given)
        if given.get("preset") is not None:
            await self._engine.presets.get(given["preset"])
        kept = {k: v for k, v in {**record.settings, **given}.items() if v is not None}
        changes = SessionUpdate(title=title, settings=kept)
        await self._store.write(sessions.update, self.key, changes)

    async def settings(self) -> Settings:
        """Return the settings in force for the session, each with the level that set it."""
        return await self._store.read(read_session_settings, self.key, self._engine.static_settings)

    async def update(
        self, *, title: str | None = None, model: str | None = None, profile: str | None = None
    ) -> None:
        """Change the title, the model or the profile. None keeps a value, "" unsets it."""
        if profile:
            await self._engine.profiles.require(profile)
        changes = SessionUpdate(title=title, model=model, profile=profile)
        await self._store.write(sessions.update, self.key, changes)

    async def delete(self) -> None:
        """Delete the session and everything that belongs to it."""
        await self._store.write(sessions.delete, self.key)

    async def record(self) -> records.SessionRecord:
        """Return the session's stored record: title, model, profile, tip and settings."""
        return await self._store.read(sessions.get, self.key)

    async def _state(
        self, call: Mapping[str, Any] | None = None, *, without: Collection[str] = ()
    ) -> tuple[SessionState, ModelConfig]:
        state = await self._store.read(
            read_state,
            self.key,
            call or {},
            self._engine.static_settings,
            tip=self.tip,
            without=without,
        )
        return state, state.model or await self._engine.models.get(state.model_id)

    async def _compress(
        self,
        request: CallOptions,
        *,
        automatic: bool = False,
        keep: KeepAmount | None = None,
        instead_of: records.Snapshot | None = None,
    ) -> Outcome:
        state, _ = await self._state(request.settings)
        async with session_lease(self._store, state.rows.session, state.settings.timeout):
            without: Collection[str] = ()
            if instead_of is not None:
                without = await self._store.read(snapshots.wordings, self.key, instead_of.id)
            state, model = await self._state(request.settings, without=without)
            provider, _, name = model.id.partition(":")
            known = prices(provider, name, state.own_prices)
            job = await self._job(state, model, request, keep=keep)
            job = replace(job, automatic=automatic, instead_of=instead_of, prices=known)
            if (automatic and job.decision.action != "must") or is_done_since(state, request):
                return Outcome("kept", job.view.tokens, job.view.tokens)
            done = await compression.compress(self._store, self._events, job)
        if done.compressed and not automatic and done.tokens_before < AUTO_FLOOR:
            note = f"only {done.tokens_before:,} tokens were there to compress"
            return replace(done, warnings=(*done.warnings, note))
        return done

    async def _job(
        self,
        state: SessionState,
        model: ModelConfig,
        request: CallOptions,
        *,
        keep: KeepAmount | None = None,
    ) -> Job:
        view, decision = decide_for(state, model, request)
        roster = await self._engine.profiles.roster()
        summarizer = roster.summarizer(state.settings, state.rows.session.profile, request.own)

        def by_profile(name: str) -> Summarizer:
            return roster.summarizer(state.settings.model_copy(update={"summarizer": name}), None)

        return Job(
            session=state.rows.session,
            view=view,
            decision=decision,
            strategy=self._engine.strategy(state.settings, summarizer, by_profile, state.notes),
            author=summarizer.name,
            retention=keeping_instructions(retention_of(state, model, keep), view.messages),
            summary_tokens=state.settings.summary_tokens,
            share_across_branches=state.settings.share_across_branches,
            timeout=state.settings.timeout,
            may_truncate=state.settings.on_failure == "truncate",
            restorable_by=request.restorable_by,
            usage=roster.used,
            price_of=roster.price,
        )
