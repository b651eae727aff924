"""A session: a conversation stored whole and sent as its view. Every door works with this."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from enfold import pipeline, records
from enfold.budget import AUTO_FLOOR, Decision
from enfold.engine import compression
from enfold.engine.changes import read_change
from enfold.engine.presets import check_strategies
from enfold.engine.recall import RECALL_TOKENS, RecallAnswer, recall_found
from enfold.engine.results import Prepared, Preview, StandingMessage, Status
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
    search_text,
    view_of,
)
from enfold.errors import BlockedError, CompressionError, InputError, NotFoundError, SummaryError
from enfold.llm.prices import prices
from enfold.messages import Message, Tool, ToolCall, ToolResult
from enfold.modelconfig import ModelConfig
from enfold.pipeline import FALLBACKS, Outcome, Request
from enfold.receipt import Receipt, RestorableBy
from enfold.records import CURRENT_TIP, AppendPlace, SearchScope, SessionUpdate
from enfold.retention import split
from enfold.settings import Settings, check
from enfold.standing import StandingMessages, Why, find_standing
from enfold.store import catalog, pins, sessions, snapshots, tree
from enfold.store.database import Database
from enfold.store.search import search
from enfold.store.store import Result
from enfold.summaries import Summarizer
from enfold.summaries.local import LOCAL
from enfold.view import ShownMessage, View

if TYPE_CHECKING:
    from enfold.engine.engine import Engine
    from enfold.engine.profiles import Roster


class _Decided(NamedTuple):
    """A session's state, its view, and whether the view must be compressed."""

    state: SessionState
    model: ModelConfig
    view: View
    decision: Decision


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
        *given: MessageInput,
        after: str | AppendPlace | None = None,
        dialect: str = "auto",
        forward_only: bool = False,
    ) -> tuple[str, ...]:
        """Add messages at the end of the branch, or after another message; their ids.

        What is there already is recognised and not written twice. After any message but the last
        this makes a branch. With `forward_only` the session does not go back to what it knows.
        """
        messages = as_messages(given, dialect)
        tokenizer = await self.tokenizer()
        place = CURRENT_TIP if after is None else after
        stored = await self._store.write(
            tree.append, self.key, drafts(messages, tokenizer), place, forward_only=forward_only
        )
        return tuple(row.id for row in stored)

    async def tokenizer(self) -> str:
        """Return the name of the tokenizer of the session's model."""
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
        options = CallOptions(given, system, tuple(tools), max_output, settings)
        state, _, view, decision = await self._decide(options)
        if decision.action != "must":
            return Prepared(view, decision, pending=given)
        if compression.is_acknowledged(state.rows.session):
            return Prepared(view, decision, pending=given, warnings=(compression.ACCEPTED,))
        try:
            compression.refuse_if_blocked(state.rows.session, state.settings.on_failure)
            outcome = await self.compress_due(options)
        except BlockedError:
            if state.settings.on_failure != "pass":
                raise
            return Prepared(view, decision, pending=given, warnings=(compression.PASSED,))
        _, _, view, decision = await self._decide(options)
        return Prepared(view, decision, outcome, given, outcome.warnings)

    async def compress(
        self,
        *,
        force: bool = True,
        keep_tokens: int | None = None,
        keep_messages: int | None = None,
        requested_at: int | None = None,
        restorable_by: RestorableBy = "store",
        **settings: Any,
    ) -> Outcome:
        """Compress the session now; without `force` only if it is due.

        `keep_tokens` or `keep_messages` replaces the retention, and `settings` the settings, for
        this run alone. With `requested_at` nothing is done if a compression happened since then.
        `restorable_by` says how the caller can get back what leaves the view.
        """
        if not force and not (status := await self.status(**settings)).needs_compression:
            return Outcome("kept", status.decision.tokens, status.decision.tokens)
        record = await self.record()
        keep = keeping(keep_tokens, keep_messages)
        async with compression.report_failures(self._store, self._events, record, automatic=False):
            request = CallOptions(
                settings=settings, requested_at=requested_at, restorable_by=restorable_by
            )
            done = await self._compress(request, keep=keep)
        if done.compressed:
            await compression.unblock(self._store, self._events, record, acknowledged=False)
        return done

    async def compress_due(self, request: CallOptions) -> Outcome:
        """Compress because it is due for that request; a failure blocks the session."""
        record = await self.record()
        try:
            async with compression.report_failures(
                self._store, self._events, record, automatic=True
            ):
                done = await self._compress(request, is_due=True)
        except CompressionError as error:
            raise await compression.block(self._store, self._events, record, error) from error
        await compression.unblock(self._store, self._events, record, acknowledged=False)
        return done

    async def retry(self) -> Outcome:
        """Try again the compression whose failure blocked the session."""
        return await self.compress_due(CallOptions())

    async def acknowledge(self) -> None:
        """Accept the risk: requests go on without the compression that failed."""
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
        return await compression.preview(request, roster.price)

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
            retention_token_budget=int(policy.amount),
            retained_message_count=len(view.shown) - len(divided.middle),
            compressible_message_count=len(divided.middle),
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
            blocked=(state.rows.session.blocked or {}).get("reason"),
            decision=decision,
        )

    async def summaries(self) -> tuple[records.Snapshot, ...]:
        """All summaries of the session, newest first, undone ones too."""
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
        """Return one message of the branch as it was written, summarized or not."""
        return await self._store.read(tree.on_branch, self.key, id, self.tip)

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

    async def recall(self, question: str, *, tokens: int = RECALL_TOKENS) -> RecallAnswer:
        """Return the passages of this branch that answer a question, verbatim and in order.

        Their lines have at most `tokens` tokens. `str` of the answer is what a model is shown.
        """
        if not question.strip():
            raise InputError("the question has no words")
        if tokens < 1:
            raise InputError(f"tokens is {tokens}, at least 1 expected")
        return await recall_found(self, question, max_tokens=tokens)

    async def pin(self, message: str) -> None:
        """Keep a message of this branch in the view, word for word, in every later compression."""
        row = await self.message(message)
        await self._store.write(pins.put, self.key, row.id, pinned=True)

    async def unpin(self, message: str) -> None:
        """Take back a pin; a message that stands without one is released instead.

        Later compressions may summarize a released message. `pin` makes it stand again.
        """
        row = await self.message(message)
        await self._store.write(pins.remove, self.key, row.id)

    async def pins(self) -> tuple[StandingMessage, ...]:
        """Return the pinned and the standing messages of this branch, each with the reason."""
        state, model = await self._state()
        view = view_of(state.rows, model.tokenizer)
        standing = await asyncio.to_thread(self._standing, state, view)
        found = [_standing_message(view.shown[each.index], each.why) for each in standing.messages]
        missing = {id for id, is_pinned in state.pins.items() if is_pinned}
        missing.difference_update(shown.id for shown in view.shown)
        return (*await self._store.read(self._pinned_out_of_view, missing), *found)

    def _standing(self, state: SessionState, view: View) -> StandingMessages:
        """Return instructions, pins and rules of the view, without other words of people."""
        counts = [shown.tokens for shown in view.shown]
        marks = _marks(state, view)
        return find_standing(view.messages, counts, view.tokenizer, pins=marks)

    def _pinned_out_of_view(
        self, db: Database, ids: Collection[str]
    ) -> tuple[StandingMessage, ...]:
        found = []
        for id in ids:
            row = tree.get(db, self.key, id)
            if tree.on_path(db, tree.tip_node(db, self.key, self.tip).key, [row.key]):
                shown = ShownMessage(row.id, message_of(row), row.tokens, depth=row.depth)
                found.append(_standing_message(shown, "pinned", in_view=False))
        return tuple(sorted(found, key=lambda each: each.position))

    async def undo(self) -> records.Snapshot | None:
        """Undo the compression in use and return it; None if there is none."""
        state, _ = await self._state()
        if state.rows.snapshot is None:
            return None
        return await self._store.write(snapshots.undo, self.key, state.rows.snapshot.id)

    async def regenerate(self, **settings: Any) -> Outcome:
        """Write the summary in use anew, with the same cutoff."""
        state, _ = await self._state(settings)
        if state.rows.snapshot is None:
            raise NotFoundError(f"session {self.id!r} shows no summary that could be written anew")
        async with compression.report_failures(
            self._store, self._events, state.rows.session, automatic=False
        ):
            return await self._compress(
                CallOptions(settings=settings), replaces=state.rows.snapshot
            )

    async def edit_summary(self, text: str) -> records.Snapshot:
        """Put other words in place of the summary in use; the old ones stay on record."""
        state, model = await self._state()
        current = state.rows.snapshot
        if current is None or current.text is None:
            raise NotFoundError(f"session {self.id!r} shows no summary that could be edited")
        if not text.strip():
            raise InputError("a summary cannot be empty; undo it instead")
        draft = compression.draft_edited_summary(current, text, model.tokenizer)
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
        static = self._engine.static_settings
        state = await self._store.read(
            read_state, self.key, call or {}, static, tip=self.tip, without=without
        )
        if state.model is not None:
            return state, state.model
        model = await self._engine.models.get(state.model_id)
        return state, model.within(state.settings.window)

    async def _decide(self, options: CallOptions, *, without: Collection[str] = ()) -> _Decided:
        state, model = await self._state(options.settings, without=without)
        return _Decided(state, model, *decide_for(state, model, options))

    async def _compress(
        self,
        options: CallOptions,
        *,
        is_due: bool = False,
        keep: KeepAmount | None = None,
        replaces: records.Snapshot | None = None,
    ) -> Outcome:
        """Run the pipeline under the session's lease, on the state that is found then."""
        state, _ = await self._state(options.settings)
        session = state.rows.session
        async with compression.session_lease(self._store, session, state.settings.timeout):
            without: Collection[str] = ()
            if replaces is not None:
                without = await self._store.read(snapshots.wordings, self.key, replaces.id)
            found = await self._decide(options, without=without)
            is_kept = is_due and found.decision.action != "must"
            if is_kept or is_done_since(found.state, options):
                return Outcome("kept", found.view.tokens, found.view.tokens)
            roster = await self._engine.profiles.roster()
            request = await self._request(found, options, roster, keep=keep, is_due=is_due)
            if replaces is not None:
                request = replace(request, split=compression.split_of(replaces, request.view))
            if is_due and self._comes_too_soon(found.decision, request):
                return Outcome("no_gain", request.tokens_before, request.tokens_before)
            outcome = await compression.compress(
                self._store,
                self._events,
                found.state.rows.session,
                request,
                usage=roster.used,
                replaces=replaces,
            )
        if is_due:
            return self._note_gain(request, outcome)
        if outcome.compressed and outcome.tokens_before < AUTO_FLOOR:
            note = f"only {outcome.tokens_before:,} tokens were there to compress"
            return replace(outcome, warnings=(*outcome.warnings, note))
        return outcome

    def _comes_too_soon(self, decision: Decision, request: Request) -> bool:
        """Return True if the last compression freed too little and the view grew little since."""
        last = self._engine.small_gains.get(self.key)
        if last is None or decision.tokens > decision.hard_tokens:
            return False
        return request.tokens_before - last < pipeline.gain_wanted(request)

    def _note_gain(self, request: Request, outcome: Outcome) -> Outcome:
        """Remember a compression that frees too little, and add a warning."""
        freed = outcome.tokens_before - outcome.tokens_after
        if outcome.outcome == "kept" or freed >= (wanted := pipeline.gain_wanted(request)):
            self._engine.small_gains.pop(self.key, None)
            return outcome
        self._engine.small_gains[self.key] = outcome.tokens_after
        return replace(
            outcome,
            warnings=(*outcome.warnings, pipeline.too_little(freed, wanted)),
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
        summarizer, notes = _summarizer(roster, state, options)

        def by_profile(name: str) -> Summarizer:
            return roster.summarizer(settings.model_copy(update={"summarizer": name}), None)

        view = sent
        if any(shown.points_to for shown in sent.shown):
            view = await self._store.read(compression.without_pointers, self.key, sent)
        # The decision counts estimates; the pipeline works with exact counts alone.
        goal = max(1, decision.goal - sent.estimate)
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
            allowed=max(decision.threshold_tokens, min(decision.limit, decision.hard_tokens))
            - sent.estimate,
            sent_view=sent,
            static_tokens=decision.load.system + decision.load.tools,
            share_across_branches=settings.share_across_branches,
            # A proxied conversation is recognised by its cutoff, and has one branch as a rule.
            hides_recent=settings.share_across_branches
            and settings.sources["share_across_branches"] != "call",
            restorable_by=options.restorable_by,
            author=summarizer.name,
            timeout=settings.timeout,
            fallback=FALLBACKS.get(settings.on_failure),
            prices=prices(provider, name, state.own_prices),
        )
        return pipeline.with_reachable_goal(request, decision.threshold_tokens - sent.estimate)


def _marks(state: SessionState, view: View) -> dict[int, bool]:
    """Return the pins of the messages that the view shows, by index."""
    return {
        index: state.pins[shown.id]
        for index, shown in enumerate(view.shown)
        if shown.id in state.pins
    }


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
    try:
        return roster.summarizer(settings, profile, options.client_model), state.notes
    except SummaryError as error:
        if settings.on_failure != "local":
            raise
        note = f"the built-in summarizer writes the summary, because no other can: {error}"
        return roster.summarizers[LOCAL], (*state.notes, note)
