"""A session: a conversation stored whole and sent as its view. Every door works with this."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from enfold import pipeline, records
from enfold.budget import AUTO_FLOOR, FREED_WITH_CACHE, Action, Decision
from enfold.engine import compression
from enfold.engine.changes import read_change
from enfold.engine.recall import RECALL_TOKENS, RecallAnswer, answer
from enfold.engine.results import Prepared, Preview, StandingMessage, Status, preview
from enfold.engine.state import (
    BY_CUTOFF,
    CallOptions,
    ClientModel,
    KeepAmount,
    MessageInput,
    RecentState,
    SessionState,
    as_messages,
    check_changes,
    decide_for,
    keeping,
    message_of,
    message_rows,
    prompt_variant,
    read_drafts,
    read_model,
    read_session_settings,
    read_state,
    retention_of,
    search_text,
    view_of,
    whole_text,
)
from enfold.errors import (
    BlockedError,
    CompressionError,
    InputError,
    NotFoundError,
    StoreError,
    SummaryError,
    UncompressibleError,
)
from enfold.history import last_user_message
from enfold.llm.calls import Connection
from enfold.llm.costs import prices
from enfold.messages import Message, Tool, ToolCall, ToolResult
from enfold.modelconfig import ModelConfig
from enfold.pipeline import FALLBACKS, Outcome, Request
from enfold.receipt import Receipt, RestorableBy
from enfold.records import CURRENT_TIP, AppendPlace, MessageDraft, SearchScope, SessionUpdate
from enfold.refill import shortened_to
from enfold.retention import requested_tokens, split
from enfold.settings import Settings, change
from enfold.standing_instructions import StandingMessages, Why, find_standing
from enfold.store import catalog, outbox, sessions, snapshots, tree
from enfold.store.database import Database
from enfold.store.search import search
from enfold.store.store import Result
from enfold.summaries import Summarizer
from enfold.summaries.local import LOCAL
from enfold.tokens import Tokenizer, compute_async, count_async
from enfold.tokens.apart import count_apart
from enfold.view import ShownMessage, View

if TYPE_CHECKING:
    from enfold.engine.engine import Engine
    from enfold.engine.profiles import Roster


_Trigger: TypeAlias = Literal["requested", "early", "due"]
"""The reason of a compression: a person's request, the early mark, or a request that needs it."""
_KEPT: Mapping[_Trigger, tuple[Action, ...]] = {
    "requested": (),
    "early": ("keep",),
    "due": ("keep", "should"),
}
"""The decisions after which the view stays unchanged, by trigger."""


_MAX_SMALL_GAINS = 10_000
"""Sessions that are remembered because their last compression freed too little."""
_KEPT_IN_STEPS: KeepAmount = ("messages", 2)
"""Messages kept verbatim in a step of a long compression, until the next step."""


class _Decided(NamedTuple):
    """A session's state, its view, and whether the view must be compressed."""

    state: SessionState
    model: ModelConfig
    view: View
    decision: Decision


_log = logging.getLogger("enfold.engine")
_RECORDED_QUESTION = 1_000
"""Characters of a recall's question that are recorded."""
_INPUT_IN_PART = "the new input exceeds the model's window; only part of it is sent"
_HISTORY_SHARE = 6
"""Divisor: the history keeps up to 1/6 of the limit if an input exceeds the rest."""


def _fitting_pending(found: _Decided, pending: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the pending input, in part if no compression of the history makes room for it."""
    _, model, view, decision = found
    limit = decision.limit + decision.load.pending
    if limit <= 0:
        return pending  # the system prompt and the tools exceed the window by themselves
    room = int(limit * pipeline.SHORTENED_SHARE) - min(view.tokens, limit // _HISTORY_SHARE)
    return shortened_to(pending, room, model.tokenizer)


class Session:
    """One conversation. Made by `Engine.session`."""

    def __init__(
        self, engine: Engine, record: records.SessionRecord, tip: str | None = None
    ) -> None:
        self._engine = engine
        self._store = engine.store
        self._events = engine.events.within(
            record.namespace, records.listing_namespace(record.namespace)
        )
        self.key = record.key
        """The session's key in the store."""
        self.id = record.id
        self.tip = tip
        """The tip of the branch. None: the session's current branch."""
        self.namespace = record.namespace

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def at(self, tip: str | None) -> Session:
        """Return the same session at the end of another of its branches."""
        other = copy(self)
        other.tip = tip
        return other

    async def append(
        self,
        *given: MessageInput,
        after: str | AppendPlace | None = None,
        dialect: str = "auto",
        forward_only: bool = False,
    ) -> tuple[str, ...]:
        """Add messages at the end of the branch, or after another message; return their ids.

        What is there already is recognised and not written twice. After any message but the last
        this makes a branch. With `forward_only` the session does not go back to what it knows.
        """
        read = partial(read_drafts, dialect=dialect)
        place = (self.tip or CURRENT_TIP) if after is None else after
        recent = self._engine.recent_views.get(self.key)
        # If the model has changed since, the next view counts these messages anew.
        tokenizer = await self.tokenizer() if recent is None else recent.view.tokenizer
        written = await count_apart(read, given, tokenizer)
        if recent is None or place is not CURRENT_TIP or forward_only:
            stored = await self._store.append(
                tree.append, self.key, written, place, forward_only=forward_only
            )
        else:
            stored = await self._append_at_tip(written)
        if self.tip is not None and stored:
            self.tip = stored[-1].id
        return tuple(row.id for row in stored)

    async def _append_at_tip(
        self, written: Sequence[MessageDraft]
    ) -> tuple[records.StoredMessage, ...]:
        """Append to the current branch, and keep the new state without reading it again."""
        recent_views = self._engine.recent_views
        recent = recent_views.state_of(self.key)

        def append(db: Database) -> tuple[tree.Appended, bool]:
            holds = recent is not None and recent.version == self._store.version()
            return tree.extend(db, self.key, written), holds

        (appended, holds), version = await self._store.append_versioned(append)
        after = None
        if recent is not None and holds and version is not None:
            after = recent.after(appended, version)
        recent_views.put_state(self.key, after)
        return appended.messages

    async def tokenizer(self) -> str:
        """Return the name of the tokenizer of the session's model."""
        id, model = await self._store.read(read_model, self.key, self._engine.static_settings)
        return (model or await self._engine.profiles.config_of(id)).tokenizer

    def _report_failures(
        self, record: records.SessionRecord, *, automatic: bool
    ) -> AbstractAsyncContextManager[None]:
        static = self._engine.static_settings
        return compression.report_failures(
            self._store, self._events, record, static, automatic=automatic
        )

    async def prepare(
        self,
        pending: MessageInput | None = None,
        *,
        system: str = "",
        tools: Iterable[Tool] = (),
        max_output: int | None = None,
        wait: bool | None = True,
        **settings: Any,
    ) -> Prepared:
        """The view to send next, compressed first if that is due.

        `pending` is what the user says next: it is counted and sent, and stored with `append` once
        the model has answered. One that exceeds the window is sent in part. `settings` hold for
        this call alone. If `wait` is False, a compression is queued from the early mark on, and
        the view waits for it only at the hard limit. None leaves that to the setting
        `background`.
        """
        given = as_messages(() if pending is None else (pending,))
        options = CallOptions(given, system, tuple(tools), max_output, settings)
        found = await self._decide(options)
        fitting = given
        if given and found.decision.action == "must":
            fitting = await compute_async(_fitting_pending, found, given)
        if fitting != given:
            options = replace(options, pending=fitting)
            found = await self._decide(options)
            prepared = await self._prepare(found, options, wait=wait)
            return replace(prepared, warnings=(*prepared.warnings, _INPUT_IN_PART))
        return await self._prepare(found, options, wait=wait)

    async def _prepare(
        self, found: _Decided, options: CallOptions, *, wait: bool | None
    ) -> Prepared:
        state, _, view, decision = found
        given = options.pending
        in_background = state.settings.background if wait is None else not wait
        is_blocked = state.rows.session.blocked is not None
        prepared = Prepared(view, decision, pending=given)
        if in_background and decision.action != "keep" and decision.can_wait and not is_blocked:
            if view.tip is not None:
                await self._engine.queue.put(outbox.COMPRESSION, self.key, view.tip)
            return prepared
        if decision.action != "must":
            return prepared
        if compression.is_acknowledged(state.rows.session):
            await compression.use_acknowledgement(self._store, state.rows.session)
            return replace(prepared, warnings=(compression.ACCEPTED,))
        try:
            compression.refuse_if_blocked(state.rows.session, state.settings.on_failure)
            outcome = await self.compress_due(options)
        except BlockedError:
            if state.settings.on_failure != "pass":
                raise
            return replace(prepared, warnings=(compression.PASSED,))
        _, _, view, decision = await self._decide(options)
        return Prepared(view, decision, outcome, given, outcome.warnings)

    async def compress(
        self,
        *,
        force: bool = True,
        keep_tokens: int | None = None,
        keep_messages: int | None = None,
        restorable_by: RestorableBy = "store",
        writer: Connection | None = None,
        **settings: Any,
    ) -> Outcome:
        """Compress the session now; without `force` only if it is due.

        `keep_tokens` or `keep_messages` replaces the retention, and `settings` the settings, for
        this run alone. `restorable_by` says how the caller can get back what leaves the view.
        `writer` is a model with the caller's key, which writes the summary; it is not stored.
        """
        if not force and not (status := await self.status(**settings)).needs_compression:
            return Outcome("kept", status.decision.tokens, status.decision.tokens)
        record = await self.record()
        keep = keeping(keep_tokens, keep_messages)
        async with self._report_failures(record, automatic=False):
            request = CallOptions(settings=settings, restorable_by=restorable_by, writer=writer)
            done = await self._compress(request, keep=keep)
        if done.compressed:
            await compression.unblock(self._store, self._events, record, acknowledged=False)
        return done

    async def compress_due(self, request: CallOptions) -> Outcome:
        """Compress because it is due for that request; a failure blocks the session."""
        record = await self.record()
        try:
            async with self._report_failures(record, automatic=True):
                done = await self._compress(request, "due")
        except CompressionError as error:
            raise await compression.block(self._store, self._events, record, error) from error
        await compression.unblock(self._store, self._events, record, acknowledged=False)
        return done

    async def compress_early(self, request: CallOptions) -> Outcome:
        """Compress before it is due, if the view is past the early mark.

        A failure is an error and blocks nothing: the compression comes again when it is due.
        """
        record = await self.record()
        async with self._report_failures(record, automatic=True):
            return await self._compress(request, "early")

    async def compress_step(self, request: CallOptions) -> Outcome:
        """Compress this branch as far as possible, because a longer one cannot be read at once."""
        return await self._compress(request, keep=_KEPT_IN_STEPS)

    async def retry(self, **settings: Any) -> Outcome:
        """Repeat the compression that failed. `settings` apply to this call only."""
        return await self.compress_due(CallOptions(settings=settings))

    async def acknowledge(self) -> None:
        """Accept the risk: the next request is sent without the compression that failed."""
        record = await self.record()
        await compression.unblock(self._store, self._events, record, acknowledged=True)

    async def preview(
        self,
        *,
        keep_tokens: int | None = None,
        keep_messages: int | None = None,
        **settings: Any,
    ) -> Preview:
        """Return the expected result of `compress`; no model is called, nothing is written."""
        options, roster = CallOptions(settings=settings), await self._engine.profiles.roster()
        found = await self._decide(options)
        keep = keeping(keep_tokens, keep_messages)
        request = await self._request(found, options, roster, keep=keep)
        return await preview(request, roster.price)

    async def status(
        self,
        pending: MessageInput | None = None,
        *,
        system: str = "",
        tools: Iterable[Tool] = (),
        **settings: Any,
    ) -> Status:
        """Return the used part of the context, and the part that a compression would keep."""
        given = as_messages(() if pending is None else (pending,))
        options = CallOptions(given, system, tuple(tools), settings=settings)
        state, model, view, decision = await self._decide(options)
        policy = retention_of(state, model, decision.limit)
        counts = [shown.tokens for shown in view.shown]
        divided = split(view.messages, counts, policy)
        standing = await asyncio.to_thread(self._standing, state, view)
        return Status(
            needs_compression=decision.action == "must",
            current_token_count=decision.load.total,
            context_limit=decision.limit,
            threshold_token_count=decision.threshold_tokens,
            utilization=decision.utilization,
            retention_token_budget=requested_tokens(counts, policy),
            retained_message_count=len(view.shown) - len(divided.middle),
            compressible_message_count=len(divided.middle) + state.rows.skipped,
            estimated_tokens=decision.load.estimate,
            summary_tokens=view.summary_tokens,
            standing_tokens=standing.instruction_tokens,
            messages=state.rows.depth,
            tokenizer=model.tokenizer,
            model=model.id,
            threshold_source=decision.threshold.source,
            tool_tokens=sum(
                shown.tokens
                for shown in view.shown
                if any(isinstance(part, ToolCall | ToolResult) for part in shown.message.parts)
            ),
            tokens_per_turn=_recent_pace(view),
            blocked=(state.rows.session.blocked or {}).get("reason"),
            decision=decision,
        )

    async def summaries(self) -> tuple[records.Snapshot, ...]:
        """Return all summaries of the session, newest first, undone ones too."""
        return await self._store.read(snapshots.of_kind, self.key, "summary")

    async def receipt(self, snapshot: str) -> Receipt:
        """Return the receipt of a compression: the fate of every exact item it removed."""
        change = await self._store.read(read_change, self.key, snapshot)
        return await asyncio.to_thread(change.receipt)

    async def memories(self) -> tuple[records.Snapshot, ...]:
        """Return the session's entries in long-term memory, newest first."""
        return await self._store.read(snapshots.of_kind, self.key, "memory")

    async def history(
        self, *, before: str | None = None, after: str | None = None, limit: int = 50
    ) -> tuple[records.StoredMessage, ...]:
        """Return a page of the branch, with summarized messages; the last one by default."""
        return await self._store.read(
            tree.page, self.key, self.tip, before=before, after=after, limit=limit
        )

    async def messages(self) -> tuple[Message, ...]:
        """Return all messages of the branch as they were stored; `history` reads them in pages."""
        rows = await self._store.read(tree.path, self.key)
        return tuple(message_of(row) for row in rows)

    async def message(self, id: str) -> records.StoredMessage:
        """Return one message of the branch as it was written, summarized or not."""
        return await self._store.read(tree.on_branch, self.key, id, self.tip)

    async def find_shown(self, reference: str) -> str | None:
        """Return the id of the newest message of the view with a marker or a tool call's result.

        The reference is the whole marker, such as `⟨ Content suppressed ⟩`, or the call's id.
        """
        state, model = await self._state(BY_CUTOFF)
        for shown in reversed(view_of(state.rows, model.tokenizer).shown):
            results = [part for part in shown.message.parts if isinstance(part, ToolResult)]
            if any(part.call_id == reference for part in results) or (
                reference.startswith("⟨ ") and reference in whole_text(shown.message)
            ):
                return shown.id
        return None

    async def look(self, reading: Callable[[Database, SearchScope], Result]) -> Result:
        """Run a function of the store on this branch."""
        return await self._store.read(reading, SearchScope(session=self.key, tip=self.tip))

    async def search(
        self, query: str, *, limit: int = 20, best_first: bool = False, on_branch: bool = False
    ) -> Sequence[records.Hit]:
        """Return the messages of the history, or of this branch, that have all the words."""
        where = SearchScope(
            session=self.key, tip=self.tip if on_branch else None, on_branch=on_branch
        )
        return await self._store.read(search, query, where, limit=limit, best_first=best_first)

    async def recall(
        self,
        question: str = "",
        *,
        reference: str = "",
        start: int = 0,
        around: int = 0,
        tokens: int = RECALL_TOKENS,
    ) -> RecallAnswer:
        """Return the passages of this branch that answer a question, verbatim and in order.

        Or, by its reference (an id, or a position such as `7`), one message from the character
        `start` on, with `around` neighbours on each side. A marker of the view and the id of a tool
        call are references to the message that was shortened. The lines have at most `tokens`
        tokens. `str` of the answer is what a model is shown.
        """
        found = await answer(
            self, question, reference=reference, start=start, around=around, tokens=tokens
        )
        await self.record_recall(question or reference)
        return found

    async def record_recall(self, question: str) -> None:
        """Record a question to the full history, for the activity."""
        try:
            await self._store.write(catalog.add_recall, self.key, question[:_RECORDED_QUESTION])
        except StoreError as error:
            # The answer is more important than its place in the statistics.
            _log.warning("session %s: a recall was not recorded: %s", self.id, error)

    async def pin(self, message: str) -> None:
        """Keep a message of this branch in the view, word for word, in every later compression."""
        row = await self.message(message)
        await self._store.write(sessions.set_pin, self.key, row.id, pinned=True)

    async def unpin(self, message: str) -> None:
        """Take back a pin; a message that stands without one is released instead.

        Later compressions may summarize a released message. `pin` makes it stand again.
        """
        row = await self.message(message)
        await self._store.write(sessions.remove_pin, self.key, row.id)

    async def pins(self) -> tuple[StandingMessage, ...]:
        """Return the pinned and the standing messages of this branch, each with the reason."""
        state, model = await self._state()
        view = view_of(state.rows, model.tokenizer)
        standing = await asyncio.to_thread(self._standing, state, view)
        found = [_standing_message(view.shown[each.index], each.why) for each in standing.messages]
        missing = {id for id, is_pinned in state.pins.items() if is_pinned}
        missing.difference_update(shown.id for shown in view.shown)

        def read_missing(db: Database) -> list[StandingMessage]:
            messages = []
            for id in missing:
                row = tree.get(db, self.key, id)
                if tree.on_path(db, tree.tip_node(db, self.key, self.tip).key, [row.key]):
                    shown = ShownMessage(row.id, message_of(row), row.tokens, depth=row.depth)
                    messages.append(_standing_message(shown, "pinned", in_view=False))
            return sorted(messages, key=lambda each: each.position)

        return (*await self._store.read(read_missing), *found)

    def _standing(self, state: SessionState, view: View) -> StandingMessages:
        """Return instructions, pins and rules of the view, without other words of people."""
        counts = [shown.tokens for shown in view.shown]
        return find_standing(view.messages, counts, view.tokenizer, pins=_marks(state, view))

    async def undo(self, *, to_earlier_text: bool = False) -> records.Snapshot | None:
        """Undo the compression in use and return it; None if there is none.

        Earlier texts of a summary that was edited or written anew are undone with it. With
        `to_earlier_text` the last of them is used again.
        """
        state, _ = await self._state()
        if state.rows.snapshot is None:
            return None
        undo = snapshots.undo if to_earlier_text else snapshots.undo_versions
        return await self._store.write(undo, self.key, state.rows.snapshot.id)

    async def regenerate(self, **settings: Any) -> Outcome:
        """Write the summary in use again, with the same cutoff."""
        state, _ = await self._state(settings)
        if state.rows.snapshot is None:
            raise NotFoundError(f"session {self.id!r} has no summary in its view to write again")
        async with self._report_failures(state.rows.session, automatic=False):
            return await self._compress(
                CallOptions(settings=settings), replaces=state.rows.snapshot
            )

    async def edit_summary(self, text: str) -> records.Snapshot:
        """Replace the text of the summary in use; the old text stays on record."""
        state, model = await self._state()
        current = state.rows.snapshot
        if current is None or current.text is None:
            raise NotFoundError(f"session {self.id!r} has no summary in its view to edit")
        if not text.strip():
            raise InputError("a summary cannot be empty; undo it instead")
        draft = compression.draft_edited_summary(current, text, model.tokenizer)
        return await self._store.write(snapshots.record, self.key, draft, expected=current.id)

    async def delete_summary(self, id: str) -> records.Snapshot:
        """Stop using a summary and delete its text, with its texts before it was edited."""
        return await self._store.write(snapshots.erase, self.key, id)

    async def learn_limit(self, model: str, window: int) -> None:
        """Store the window that a provider's error names, if it is smaller than known."""
        await self._engine.models.learn_limit(model, window)

    async def record_usage(self, used: records.UsageEvent) -> None:
        """Record the usage of a call of a model for this session."""
        await self._store.write(catalog.add_usage, [replace(used, session=self.key)])

    async def usage(self, *, since: int = 0) -> Sequence[records.UsageTotal]:
        """Return the usage of the session's calls, by purpose, profile and model."""
        return await self._store.read(catalog.usage_of_session, self.key, since=since)

    async def branches(self) -> tuple[records.Branch, ...]:
        """Return every branch with its last message."""
        return await self._store.read(tree.branches, self.key)

    async def switch(self, tip: str | None) -> None:
        """Continue after another message; None continues before the first message."""
        await self._store.write(tree.set_tip, self.key, tip)

    async def step_back(self) -> Message | None:
        """Go on from before the last message, which is given; None if there is none.

        It stays in the store, on a branch of its own.
        """
        last = await self._store.write(tree.step_back, self.key)
        return None if last is None else message_of(last)

    async def configure(self, *, title: str | None = None, **settings: Any) -> None:
        """Give the session a title, or settings of its own; None unsets one."""

        def configure(db: Database) -> None:
            check_changes(db, settings)
            changed = change(sessions.get(db, self.key).settings, settings)
            kept = {name: value for name, value in changed.items() if value is not None}
            sessions.update(db, self.key, SessionUpdate(title=title, settings=kept))

        await self._store.write(configure)

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
        self,
        call: Mapping[str, Any] | None = None,
        *,
        without: Collection[str] = (),
        earlier: records.ViewRows | None = None,
    ) -> tuple[SessionState, ModelConfig]:
        """Return state and model; they are read unless nothing was committed since the last time.

        Snapshots `without` which the state is wanted are left out of account. Rows of an `earlier`
        view are not read again.
        """
        recent_views = self._engine.recent_views
        view, cached = recent_views.get(self.key), recent_views.state_of(self.key)
        call, version, tip = call or {}, self._store.version(), self.tip
        if cached is not None and cached.is_of(version, call, tip) and not without:
            state = cached.state
        else:
            if earlier is None and view is not None:
                earlier = view.rows
            static = self._engine.static_settings
            state = await self._store.read(
                read_state, self.key, call, static, tip=tip, without=without, earlier=earlier
            )
            if version is not None and not without:
                recent_views.put_state(self.key, RecentState(state, version, dict(call), tip))
        if state.model is not None:
            return state, state.model
        model = await self._engine.profiles.config_of(state.model_id)
        return state, model.within(state.settings.window)

    async def _decide(
        self,
        options: CallOptions,
        *,
        without: Collection[str] = (),
        earlier: records.ViewRows | None = None,
    ) -> _Decided:
        """Return the state and the decision; rows of an `earlier` view are not read again."""
        state, model = await self._state(options.settings, without=without, earlier=earlier)
        recent = self._engine.recent_views.get(self.key)
        same = () if recent is None else recent.first_of(state.rows, model.tokenizer)

        def read(_new: Sequence[object], _tokenizer: Tokenizer) -> tuple[View, Decision]:
            return decide_for(state, model, options, same)

        # What has to be decoded and counted.
        stored = (row.body for row in message_rows(state.rows)[len(same) :])
        new = (*options.pending, options.system, *stored)
        view, decision = await count_async(read, new, model.tokenizer)
        if not without:
            self._engine.recent_views.put(self.key, state.rows, view)
        return _Decided(state, model, view, decision)

    async def _compress(
        self,
        options: CallOptions,
        trigger: _Trigger = "requested",
        *,
        keep: KeepAmount | None = None,
        replaces: records.Snapshot | None = None,
    ) -> Outcome:
        """Run the pipeline under the session's lease, on the state that is found then."""
        is_automatic = trigger != "requested"
        state, _ = await self._state(options.settings)
        session = state.rows.session
        if state.rows.skipped:
            await self._compress_oldest(options, state)
        async with compression.session_lease(self._store, session, state.settings.timeout):
            without: Collection[str] = ()
            if replaces is not None:
                without = await self._store.read(snapshots.wordings, self.key, replaces.id)
            found = await self._decide(options, without=without, earlier=state.rows)
            if found.state.rows.skipped:
                raise UncompressibleError(
                    f"the oldest {found.state.rows.skipped:,} messages are not summarized yet; "
                    "compress the session again"
                )
            shown, since = found.state.rows.snapshot, options.requested_at
            # The view may have been compressed since a background request.
            is_done = since is not None and shown is not None and shown.created_at >= since
            if is_done or found.decision.action in _KEPT[trigger]:
                return Outcome("kept", found.view.tokens, found.view.tokens)
            roster = await self._engine.profiles.roster()
            request = await self._request(found, options, roster, keep=keep, is_due=is_automatic)
            if trigger == "early":
                # Another attempt follows when it is due; a makeshift summary would be in its way.
                request = replace(request, fallback=None)
            if replaces is not None:
                request = replace(request, split=compression.split_of(replaces, request.view))
            if is_automatic and self._comes_too_soon(found.decision, request):
                return Outcome("no_gain", request.tokens_before, request.tokens_before)
            run = compression.CompressionRun(
                self._store,
                self._events,
                found.state.rows.session,
                request,
                usage=roster.used,
                shown=shown,
                replaces=replaces,
            )
            outcome = await run.run()
        if is_automatic:
            return self._note_gain(request, outcome)
        if outcome.compressed and outcome.tokens_before < AUTO_FLOOR:
            note = f"only {outcome.tokens_before:,} tokens were there to compress"
            return replace(outcome, warnings=(*outcome.warnings, note))
        return outcome

    async def _compress_oldest(self, options: CallOptions, state: SessionState) -> None:
        """Summarize the oldest messages of a branch that is too long to be read at once, in steps.

        Each step is a compression of the branch as it once was, and its summary continues that of
        the step before.
        """
        step = replace(options, pending=(), requested_at=None)
        while end := await self._store.read(
            snapshots.oldest_part,
            self.key,
            self.tip,
            share_across_branches=state.settings.share_across_branches,
        ):
            done = await self.at(end).compress_step(step)
            if not done.compressed:
                raise UncompressibleError(
                    f"the messages up to {end} could not be summarized: {done.outcome}"
                )

    def _comes_too_soon(self, decision: Decision, request: Request) -> bool:
        """Return True if the last compression freed too little and the view grew little since."""
        last = self._engine.small_gains.get(self.key)
        if last is None or decision.tokens > decision.hard_tokens:
            return False
        return request.tokens_before - last < pipeline.minimum_gain(request)

    def _note_gain(self, request: Request, outcome: Outcome) -> Outcome:
        """Remember a compression that frees too little, and add a warning."""
        freed = outcome.tokens_before - outcome.tokens_after
        if outcome.outcome == "kept" or freed >= (wanted := pipeline.minimum_gain(request)):
            self._engine.small_gains.pop(self.key, None)
            return outcome
        if len(self._engine.small_gains) >= _MAX_SMALL_GAINS:
            self._engine.small_gains.pop(next(iter(self._engine.small_gains)))
        self._engine.small_gains[self.key] = outcome.tokens_after
        return replace(
            outcome,
            warnings=(*outcome.warnings, pipeline.small_gain_warning(freed, wanted)),
        )

    async def _request(
        self,
        found: _Decided,
        options: CallOptions,
        roster: Roster,
        *,
        keep: KeepAmount | None = None,
        is_due: bool = False,
    ) -> Request:
        """Return the request of the pipeline for the view that was decided on."""
        state, model, sent, decision = found
        settings = state.settings
        own = options.client_model
        if own is not None and own.connection.name == model.id:
            options = replace(options, client_model=replace(own, config=model))
        summarizer, notes = _summarizer(roster, state, options)
        by_profile = partial(roster.named, settings=settings, profile=state.rows.session.profile)
        view = sent
        if any(shown.points_to for shown in sent.shown):
            view = await self._store.read(compression.without_pointers, self.key, sent)
        # The decision counts estimates; the pipeline works with exact counts alone.
        wanted = decision.goal
        if options.discards_cache:
            wanted = min(wanted, int(decision.limit * FREED_WITH_CACHE))
        goal = max(1, wanted - sent.estimate)
        provider, _, name = model.id.partition(":")
        request = Request(
            view=view,
            strategy=self._engine.strategy(settings, summarizer, by_profile, notes),
            # A person who compresses a short conversation wants a fifth of that to stay.
            retention=retention_of(
                state, model, decision.limit if is_due else min(decision.limit, view.tokens), keep
            ),
            pins=_marks(state, view),
            limit=decision.limit,
            words_share=settings.words_share,
            goal=goal,
            target=goal if is_due or view.tokens > goal else None,
            summary_tokens=settings.summary_tokens,
            is_due=is_due,
            prompt_variant=prompt_variant(settings),
            allowed=max(decision.threshold_tokens, decision.ceiling) - sent.estimate,
            sent_view=sent,
            static_tokens=decision.load.system + decision.load.tools,
            share_across_branches=settings.share_across_branches,
            hides_recent=settings.share_across_branches and not options.has_one_branch,
            reply_start=None if is_due or settings.share_across_branches else _reply_start(view),
            restorable_by=options.restorable_by,
            author=summarizer.name,
            timeout=settings.timeout,
            fallback=FALLBACKS.get(settings.on_failure),
            prices=prices(provider, name, state.own_prices),
            must_pay=options.must_pay,
        )
        allowed = decision.threshold_tokens - sent.estimate
        return await compute_async(pipeline.with_reachable_goal, request, allowed)


def _marks(state: SessionState, view: View) -> dict[int, bool]:
    """Return the pins of the messages that the view shows, by index."""
    return {
        index: state.pins[shown.id]
        for index, shown in enumerate(view.shown)
        if shown.id in state.pins
    }


def _reply_start(view: View) -> int | None:
    """Return the index of the reply to the last user message; None if there is no reply."""
    question = last_user_message(view.messages)
    return question + 1 if question is not None and question + 1 < len(view.shown) else None


_RECENT_TURNS = 10
"""The number of turns over which the pace of a conversation is averaged."""


def _recent_pace(view: View) -> int:
    """Return the average tokens of the newest turns in the view; 0 without a user message."""
    turns = tokens = pending = 0
    for shown in reversed(view.shown):
        pending += shown.tokens
        if shown.message.role == "user":
            turns, tokens, pending = turns + 1, tokens + pending, 0
        if turns == _RECENT_TURNS:
            break
    return tokens // turns if turns else 0


_EXCERPT = 200
"""Characters of a message's text in a list."""


def _standing_message(shown: ShownMessage, why: Why, *, in_view: bool = True) -> StandingMessage:
    text = " ".join(search_text(shown.message).split())
    return StandingMessage(
        message=shown.id,
        position=shown.depth,
        role=shown.message.role,
        why=why,
        tokens=shown.tokens,
        in_view=in_view,
        text=text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…",
    )


def _summarizer(
    roster: Roster, state: SessionState, options: CallOptions
) -> tuple[Summarizer, tuple[str, ...]]:
    """Return the summarizer of the session, and the notes for the report.

    If there is none, because a key is missing for instance, and `on_failure` is `local`, it is the
    built-in one.
    """
    settings, profile = state.settings, state.rows.session.profile
    if options.writer is not None:
        model = ClientModel(roster.gateway, options.writer)
        unset = settings.model_copy(update={"summarizer": None})
        return roster.summarizer(unset, None, model), state.notes
    notes = state.notes
    named = settings.summarizer
    is_gone = named is not None and named not in {*roster.summarizers, *roster.stored.profiles}
    if is_gone and settings.sources["summarizer"] != "call":
        notes = (*notes, f"the summarizer {named!r} does not exist; the usual one writes instead")
        settings = settings.model_copy(update={"summarizer": None})
    try:
        return roster.summarizer(settings, profile, options.client_model), notes
    except SummaryError as error:
        if settings.on_failure != "local":
            raise
        note = f"the built-in summarizer writes the summary, because no other can: {error}"
        return roster.summarizers[LOCAL], (*notes, note)
