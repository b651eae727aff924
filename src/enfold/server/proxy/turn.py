"""One turn through the proxy: the request is recognised, and compressed if that is due.

Nothing is decoded without need. A request that needs no change leaves with the bytes that it came
with. The history is recorded while the reply arrives, not before the request is sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Literal, TypeAlias, TypeVar

from enfold import wire
from enfold.budget import Decision, Load, decide
from enfold.engine import Engine, Session, compression
from enfold.engine.profiles import LOCAL
from enfold.engine.recognition import (
    ClientHistory,
    ProxiedConversations,
    RecognisedHistory,
    Recording,
    Sender,
)
from enfold.engine.state import BY_CUTOFF, CallOptions, ClientModel
from enfold.errors import (
    BlockedError,
    CompressionError,
    EnfoldError,
    GatewayError,
    InputError,
    StoreError,
    StoreUnavailableError,
    facts,
)
from enfold.jsontext import dumps
from enfold.llm.calls import Connection
from enfold.llm.gateway import ModelGateway
from enfold.modelconfig import ModelConfig
from enfold.pipeline import Outcome
from enfold.receipt import RestorableBy
from enfold.records import NO_SNAPSHOT, Snapshot
from enfold.server.proxy.assembly import OutgoingMessage, ViewFormat, assemble_view
from enfold.server.proxy.background import (
    EARLIEST,
    BackgroundCompressions,
    SessionName,
    Work,
)
from enfold.server.proxy.bodies import (
    BodyPrefix,
    MessageFacts,
    MessageFactsCache,
    RequestBody,
    parse_message,
    parse_messages,
)
from enfold.server.proxy.client import has_compacted
from enfold.server.proxy.recall import (
    RecallContext,
    RecallOffer,
    answer_budget,
    find_replacements,
    offer_recall,
)
from enfold.server.proxy.recorder import is_complete_reply, save_response
from enfold.server.proxy.summary_request import (
    CallModel,
    ForwardedConversation,
    can_be_continued_by_instruction,
)
from enfold.server.request_log import compression_cause, log_decision
from enfold.strategies import presets
from enfold.summaries import HEADING
from enfold.tokens import DEFAULT
from enfold.wire.replies import Reply
from enfold.wire.request_additions import has_cache_marks, restore_cache_marks

ForwardDecision: TypeAlias = Literal["keep", "reused", "compressed"]
Result = TypeVar("Result")

DIVERGING = "history-keeps-changing"
NOT_COMPRESSED = "compression-failed"
ACKNOWLEDGED = "risk-acknowledged"
TRUNCATED = "truncated"
"""Warnings for the client."""

_MAX_DIVERGING = 2
"""Compressions in a row that the client's next request makes useless, before they stop."""
_MIN_SHARED = 4
"""Messages that two histories share at least if one is a variant of the other."""
_MAX_COMPRESSED = 50
"""Histories that are remembered to find variants; about 80 bytes for each message."""
_MAX_MODELS = 1_000
"""Models that are remembered, and whose limits are asked for: clients may send any name."""
_MIN_WINDOW = 1_000
_FEW_MESSAGES = 20
"""Messages that are given to the store although it may have them: it recognises them, too."""
_MAX_WAITING = 64
"""Maximum branches of a session that wait to be recorded: a flood must not fill memory."""
_RECORD_INTERVAL = 0.1
"""Seconds after a recording until the next: a busy server records many requests at once."""
_MAX_TOGETHER = 1_000
"""Maximum new messages in one transaction; a single request may have more."""

_log = logging.getLogger("enfold.proxy")


def _no_connection() -> None:
    return None


@dataclass(slots=True)
class ProxyRequest:
    """A conversation request of a client."""

    body: RequestBody
    model: str
    """In the form `provider:model`."""
    namespace: str = ""
    client: str | None = None
    """The name of the program that sent it; None if it is not known."""
    window: int | None = None
    """The context window that the program works with; None if it uses the model's."""
    client_session: str | None = None
    """The session id that the program sends; None if it sends none."""
    session: str | None = None
    """The session's name, if the request names it. None: the conversation is recognised."""
    provider_has_view: bool = False
    """True if the provider continues from a compressed view, not from the whole history."""
    prefix: BodyPrefix | None = field(default=None, repr=False)
    """The cached beginning of the body."""
    may_recall: bool = True
    """False if its reply cannot be joined from several."""
    arrived_at: datetime = field(default_factory=partial(datetime.now, UTC))
    """The time of the messages in it that are new: clients send none."""
    connect: Callable[[], Connection | None] = field(default=_no_connection, repr=False)
    """Returns a connection to the model with the client's key, if there is one."""
    call: CallModel | None = field(default=None, repr=False)
    """Sends another body as this request was sent. None: only the connection can be used."""

    @property
    def sender(self) -> Sender:
        """The program and the model."""
        session = self.client_session
        compacted = session is not None and has_compacted(self.body.messages)
        return Sender(self.model, self.client, self.window, session, compacted)


@dataclass(slots=True)
class ForwardedRequest:
    """The body to forward, and the facts for the response headers."""

    raw: bytes
    decision: ForwardDecision
    tokens_before: int
    tokens_after: int
    session: str | None
    warnings: tuple[str, ...] = ()
    analysis: RequestAnalysis | None = field(default=None, repr=False)
    recall: RecallContext | None = None
    """None where the model has no recall tool."""


@dataclass(slots=True)
class RequestAnalysis:
    """A request that is recognised and counted, with the decision about it."""

    request: ProxyRequest
    body: RequestBody
    """The request's body, with the recall tool if it is offered."""
    lead: Sequence[bytes]
    """System messages before the history. They often hold the date, and are never summarized."""
    sent: Sequence[bytes]
    """The messages after them."""
    history: ClientHistory
    name: str | None
    """The session's name; None before the first reply."""
    recognised: RecognisedHistory
    tokenizer: str
    view: tuple[OutgoingMessage, ...]
    """The snapshot's view of the messages; empty without a snapshot."""
    tokens_before: int
    """The tokens of the request as it came."""
    decision: Decision
    replacements: Mapping[int, tuple[bytes, ...]] = field(default_factory=dict)
    """Full exchanges that are sent in place of messages of the client, by index."""
    make_recall: Callable[..., RecallContext] | None = None
    """Makes the context for recalls, given `resend`. None where the tool is not offered."""

    def forward(self, *warnings: str) -> ForwardedRequest:
        """Return the request as it is sent, with the view of its snapshot if there is one."""
        snapshot, body = self.recognised.snapshot, self.body
        forwarded = ForwardedRequest(
            raw=body.raw,
            decision="keep" if snapshot is None else "reused",
            tokens_before=self.tokens_before,
            tokens_after=self.decision.load.total,
            session=self.name,
            warnings=warnings,
            analysis=self,
        )
        if snapshot is not None or self.make_recall is not None:
            messages = self.messages()
            recall = None
            if self.make_recall is not None:
                recall = self.make_recall(resend=partial(_resend, body, messages))
            return replace(forwarded, raw=body.with_messages(messages), recall=recall)
        if self.request.provider_has_view:
            # The snapshot was undone, and the provider would continue from its view.
            return replace(forwarded, raw=body.with_messages(body.messages))
        return forwarded

    def messages(self) -> tuple[bytes, ...]:
        """Return the messages that are sent."""
        snapshot = self.recognised.snapshot
        view = self._view_bytes(snapshot) if snapshot is not None else self._replaced(self.sent, 0)
        return (*self.lead, *view)

    def _view_bytes(self, snapshot: Snapshot) -> list[bytes]:
        cutoff, body = snapshot.cutoff, self.request.body
        covered = 0 if cutoff is None else self.history.ids.index(cutoff) + 1
        view = [message.raw for message in self.view]
        if has_cache_marks(body.raw):
            view = restore_cache_marks(
                body.wire,
                body.field,
                lead=self.lead,
                covered=covered,
                sent=self.sent,
                view=view,
                summary_heading=HEADING,
            )
        stable = len(view) - (len(self.sent) - covered)
        return [*view[:stable], *self._replaced(view[stable:], covered)]

    def _replaced(self, messages: Sequence[bytes], start: int) -> Iterable[bytes]:
        """Return messages of the client from an index on, with full exchanges in their place."""
        if not self.replacements:
            return messages
        later = enumerate(messages, start=start)
        return chain.from_iterable(self.replacements.get(index, (raw,)) for index, raw in later)


def _resend(body: RequestBody, view: tuple[bytes, ...], more: Sequence[bytes]) -> bytes:
    return body.with_messages((*view, *more))


@dataclass(frozen=True, slots=True)
class _CompressedHistory:
    """The messages of a history that was compressed, whatever their order and beginning."""

    namespace: str
    name: str
    contents: frozenset[str]

    @classmethod
    def of(cls, analysis: RequestAnalysis) -> _CompressedHistory:
        history, namespace = analysis.history, analysis.request.namespace
        name = analysis.name or history.whole_name(namespace)
        return cls(namespace, name, frozenset(history.content_hashes))

    def is_variant_of(self, other: _CompressedHistory) -> bool:
        """Return True if this is another session with most of the other's messages."""
        if self.namespace != other.namespace or self.name == other.name:
            return False
        shared = len(self.contents & other.contents)
        return shared >= _MIN_SHARED and 2 * shared > len(other.contents)


class ProxyPipeline:
    """Decides what is forwarded for a request, compresses if that is due, and records."""

    def __init__(
        self,
        engine: Engine,
        conversations: ProxiedConversations,
        background: BackgroundCompressions | None = None,
    ) -> None:
        self._engine = engine
        self._conversations = conversations
        self._facts_cache = MessageFactsCache()
        self._tokenizers: dict[str, str] = {}
        """The tokenizers of models that do not use the default one."""
        self._waiting: dict[SessionName, list[RequestAnalysis]] = {}
        """The requests that are not recorded yet."""
        self._recording: asyncio.Task[None] | None = None
        """Records them."""
        self._record_lock = asyncio.Lock()
        self._limit_tasks: dict[str, asyncio.Task[None]] = {}
        """Requests for the limits of new models, one for each model."""
        self._compressed: deque[_CompressedHistory] = deque(maxlen=_MAX_COMPRESSED)
        """The histories that were compressed last."""
        self._background = background or BackgroundCompressions()

    async def prepare(self, request: ProxyRequest) -> ForwardedRequest:
        """Return the request to forward; raise `BlockedError` if a due compression fails."""
        analysis = await self._analyse(request)
        if analysis.decision.action == "must":
            _warn_of_long_replies(analysis)
        if analysis.decision.action == "must" and not self._can_wait(analysis):
            running = self._background.task((request.namespace, analysis.name or ""))
            if running is not None:
                await asyncio.wait({running})
                analysis = await self._analyse(request)
        if analysis.decision.action == "must" and not self._can_wait(analysis):
            if analysis.name is None:
                # Without a reply it has no name of its own, but it may have been compressed before.
                name = analysis.history.whole_name(request.namespace)
                analysis = await self._analyse(replace(request, session=name))
            if analysis.decision.action == "must":
                return await run_to_completion(self._compress(analysis))
        elif analysis.decision.action == "must" and self._is_diverging(analysis):
            return analysis.forward(DIVERGING)
        self._record_in_background(analysis)
        return analysis.forward()

    def _can_wait(self, analysis: RequestAnalysis) -> bool:
        """Return True if the request is sent as it is, although a compression is due."""
        body, recognised = analysis.request.body, analysis.recognised
        if body.wire.compacts_itself(body.field):
            return True
        is_blocked = recognised.session is not None and recognised.session.blocked is not None
        may_wait = recognised.settings.background and not is_blocked
        return may_wait and analysis.decision.can_wait

    def compress_after_reply(self, forwarded: ForwardedRequest) -> None:
        """Let a session past the early mark be compressed in the background."""
        analysis = forwarded.analysis
        if analysis is None or analysis.name is None:
            return
        decision, body = analysis.decision, analysis.request.body
        if decision.tokens < decision.early_tokens // 2:
            return  # far from the early mark not even the pace matters
        session = analysis.recognised.session
        is_blocked = session is not None and session.blocked is not None
        if not analysis.recognised.settings.background or is_blocked:
            return
        is_near = decision.tokens > decision.early_tokens * EARLIEST
        if is_near and (body.wire.compacts_itself(body.field) or self._is_diverging(analysis)):
            return
        key = (analysis.request.namespace, analysis.name)
        work = partial(self._compress_early, analysis)
        idle_work = self._idle_work(analysis, work)
        self._background.consider(key, decision, len(body.raw), work, idle_work)

    def _idle_work(self, analysis: RequestAnalysis, work: Callable[..., Any]) -> Work | None:
        """Return the compression for the moment when the session is idle; None if it is short.

        The session may be over, so the first one costs nothing: it leaves out what can be left out
        without a model. Later ones may call the model, because the first has saved more than that.
        """
        decision, is_agent = analysis.decision, bool(self._default_strategy(analysis))
        has_saved = analysis.recognised.snapshot is not None
        if decision.action == "should" and (has_saved or not is_agent):
            return work
        is_near = decision.tokens > decision.early_tokens * EARLIEST
        is_automatic = decision.reason in {"fits", "early_mark"}
        return partial(work, by_model=False) if is_agent and is_near and is_automatic else None

    async def prepare_count(self, request: ProxyRequest) -> ForwardedRequest:
        """Return the request with the view that would be sent; nothing is recorded."""
        return (await self._analyse(request)).forward()

    async def prepare_after_overflow(self, request: ProxyRequest) -> ForwardedRequest | None:
        """Return a compressed request after the provider refused it as too long, or None."""
        analysis = await self._analyse(request)
        if self._is_diverging(analysis):
            return None
        compression_cause.set("overflow")
        decision, settings = analysis.decision, analysis.recognised.settings
        # The true limit is below the refused request, whatever limit the model is believed to have.
        refused = max(_MIN_WINDOW, int(decision.tokens * decision.correction))
        options = {
            **BY_CUTOFF,
            **self._default_strategy(analysis),
            "window": min(refused, settings.window or refused),
        }
        try:
            session = await self._record(analysis)
            by = self._restorable_by(analysis)
            outcome = await session.compress(restorable_by=by, **options)
        except CompressionError as error:
            _log.warning("compression after an overflow failed: %s", error)
            return None
        if not outcome.compressed:
            return None
        self._compressed.append(_CompressedHistory.of(analysis))
        after = await self._analyse(replace(request, session=session.id))
        return replace(after.forward(), decision="compressed")

    def _ask_limits(self, request: ProxyRequest) -> None:
        """Ask the provider for the limits of a new model, while its first request goes on."""
        connection = request.connect()
        if (
            connection is None
            or request.model in self._limit_tasks
            or len(self._limit_tasks) > _MAX_MODELS
        ):
            return

        async def ask() -> None:
            try:
                await self._engine.profiles.discover_through(connection)
            except (GatewayError, StoreError) as error:
                _log.info("the limits of %s were not stated: %s", request.model, error)

        self._limit_tasks[request.model] = asyncio.create_task(ask())

    async def learn_limit(self, request: ProxyRequest, error: str) -> None:
        """Store the window that a provider's error names."""
        window = wire.overflow_limit(error)
        if window is None:
            return
        try:
            await self._engine.models.learn_limit(request.model, window)
        except StoreError as failure:
            _log.warning("the limit of %s was not stored: %s", request.model, failure)

    async def save_reply(self, analysis: RequestAnalysis, reply: Reply) -> None:
        """Store a reply that a later request may continue from."""
        if not analysis.sent or not is_complete_reply(reply):
            return
        dialect, snapshot = analysis.body.wire.dialect, analysis.recognised.snapshot
        try:
            messages = [parse_message(dumps(item), dialect) for item in reply.messages]
            history = analysis.history.followed_by(messages)
            name = analysis.name or history.session_name(analysis.request.namespace)
            session = await self._record(analysis, name)
            await save_response(
                self._engine.responses,
                session,
                reply,
                lead=analysis.request.body.messages[: len(analysis.lead)],
                snapshot=None if snapshot is None else snapshot.id,
            )
        except (InputError, StoreError) as error:
            # The client still has its reply; requests that continue from it are passed on as is.
            _log.warning("session %s: a response was not kept: %s", analysis.name, error)

    async def save_provider_conversation(self, request: ProxyRequest, reply: Reply) -> None:
        """Append a request and its reply to the recorded part of the same conversation."""
        if request.session is None or not is_complete_reply(reply):
            return
        dialect, tokenizer = request.body.wire.dialect, self._tokenizers.get(request.model, DEFAULT)
        try:
            sent = await parse_messages(request.body.messages, dialect, request.arrived_at)
            replied = [parse_message(dumps(item), dialect) for item in reply.messages]
            await self._conversations.record_provider_conversation(
                request.namespace, request.session, request.sender, [*sent, *replied], tokenizer
            )
        except (InputError, StoreError) as error:
            _log.warning("session %s: a request was not recorded: %s", request.session, error)

    def cache_sizes(self) -> dict[str, int]:
        """Return the number of entries of each cache."""
        return {
            **self._facts_cache.sizes(),
            **self._background.sizes(),
            "compressed_histories": len(self._compressed),
            "recording": len(self._waiting),
            "limit_requests": len(self._limit_tasks),
            "tokenizers": len(self._tokenizers),
        }

    async def idle(self) -> None:
        """Wait until all histories are recorded and limits are asked for."""
        await run_to_completion(self._record_all())
        await asyncio.gather(*self._limit_tasks.values(), return_exceptions=True)

    async def close(self) -> None:
        """Stop background compressions, and record all histories."""
        await self._background.close()
        await self.idle()
        if self._recording is not None:
            self._recording.cancel()

    async def _analyse(self, request: ProxyRequest) -> RequestAnalysis:
        """Recognise the conversation, assemble its view, count it, and decide."""
        body, dialect = request.body, request.body.wire.dialect
        tokenizer = self._tokenizers.get(request.model, DEFAULT)
        facts = await self._facts(request, tokenizer)
        lead = _count_lead(facts)
        history = _client_history(request.prefix, facts, lead)
        name = request.session or history.session_name(request.namespace)
        recognised = await self._conversations.recognise(
            request.namespace, name, history, request.sender
        )
        if request.session is None and recognised.session is not None:
            name = recognised.session.id
        model = recognised.model
        if model is None:
            config = await self._engine.models.get(request.model)
            self._ask_limits(request)
            model = config.within(recognised.settings.window).within(request.window)
        if model.tokenizer != tokenizer:
            if len(self._tokenizers) < _MAX_MODELS:
                self._tokenizers[request.model] = model.tokenizer
            facts = await self._facts(request, model.tokenizer)
        counted = self._facts_cache.overhead_tokens
        system, tools = await counted(body.overhead, dialect, model.tokenizer)
        if lead:
            system += sum([fact.tokens for fact in facts[:lead]])
        load = _load_of(facts[lead:] if lead else facts, system, tools)
        tokens_before = load.total
        offer = self._offer_recall(request, recognised, lead)
        if offer is not None:
            body = offer.body
            _, tools = await counted(body.overhead, dialect, model.tokenizer)
            if body.messages is not request.body.messages:
                new = await self._facts_cache.facts(body.messages[:lead], dialect, model.tokenizer)
                pairs = zip(facts[:lead], new, strict=True)
                system += sum(after.tokens - before.tokens for before, after in pairs)
            load = replace(load, system=system, tools=tools)
        sent = request.body.messages[lead:]
        view: Sequence[OutgoingMessage] = ()
        if recognised.snapshot is not None:
            rows, role = recognised.view_rows, recognised.settings.summary_role
            form = ViewFormat(dialect, model.tokenizer, summary_role=role)
            form = form if offer is None else replace(form, note=offer.note)
            view = assemble_view(recognised.snapshot, rows, sent, facts[lead:], history, form)
            load = _load_of(view, system, tools)
        analysis = RequestAnalysis(
            request=request,
            body=body,
            lead=body.messages[:lead],
            sent=sent,
            history=history,
            name=name,
            recognised=recognised,
            tokenizer=model.tokenizer,
            view=tuple(view),
            tokens_before=tokens_before,
            decision=decide(load, model.limits, recognised.policy, max_output=body.max_output()),
        )
        return analysis if offer is None else await self._with_recall(analysis, offer, model)

    async def _facts(self, request: ProxyRequest, tokenizer: str) -> list[MessageFacts]:
        """Return the facts of all messages; those of the cached prefix are not computed."""
        prefix, dialect = request.prefix, request.body.wire.dialect
        cached = prefix.facts.get(tokenizer, ()) if prefix is not None else ()
        new = request.body.messages[len(cached) :]
        facts = [*cached, *await self._facts_cache.facts(new, dialect, tokenizer)]
        if prefix is not None:
            prefix.remember_facts(tokenizer, facts)
        return facts

    def _offer_recall(
        self, request: ProxyRequest, recognised: RecognisedHistory, lead: int
    ) -> RecallOffer | None:
        # From the first summary on the tool is always there: the tools are part of the cached
        # prefix.
        if not request.may_recall:
            return None
        # A client that has compacted its history left out what only recall can find.
        is_compacted = bool(recognised.earlier_tips) and not request.body.replaced_fields
        if recognised.snapshot is None and not is_compacted:
            return None
        return offer_recall(request.body, recognised.settings.proxy_recall, lead)

    def _restorable_by(self, analysis: RequestAnalysis) -> RestorableBy:
        """Return "recall" if the model will have the recall tool."""
        request, setting = analysis.request, analysis.recognised.settings.proxy_recall
        lead = len(analysis.lead)
        if request.may_recall and offer_recall(request.body, setting, lead) is not None:
            return "recall"
        return "store"

    async def _with_recall(
        self, analysis: RequestAnalysis, offer: RecallOffer, model: ModelConfig
    ) -> RequestAnalysis:
        """Add the exchanges of earlier recalls, and the context for new ones."""
        recognised, form = analysis.recognised, analysis.body.wire
        replacements = find_replacements(
            recognised.exchanges,
            analysis.history,
            analysis.sent,
            dialect=form.dialect,
            name=offer.name,
        )
        if replacements:
            analysis = await self._with_replacements(analysis, replacements, model)
        session = self._conversations.open_session(recognised)
        if session is None:
            return analysis
        snapshot = recognised.snapshot
        histories = [session.at(tip) for tip in recognised.earlier_tips]
        if recognised.tip is not None:
            # Without a snapshot the model has all of this branch before it.
            histories.insert(0 if snapshot is not None else len(histories), session)
        answers, answer_tokens = answer_budget(analysis.decision)
        make_recall = partial(
            RecallContext,
            wire=form,
            name=offer.name,
            session=histories[0],
            message=analysis.history.ids[-1],
            snapshot=NO_SNAPSHOT if snapshot is None else snapshot.id,
            answers=answers,
            answer_tokens=answer_tokens,
            save=partial(self._engine.responses.put_exchange, session.key),
            earlier=histories[1:],
            keeps_items=analysis.body.field("store") is not False,
        )
        return replace(analysis, make_recall=make_recall)

    async def _with_replacements(
        self,
        analysis: RequestAnalysis,
        replacements: Mapping[int, tuple[bytes, ...]],
        model: ModelConfig,
    ) -> RequestAnalysis:
        """Use the full exchanges, unless that would make a compression due."""
        dialect = analysis.body.wire.dialect
        old = [analysis.sent[index] for index in replacements]
        new = [raw for messages in replacements.values() for raw in messages]
        removed = _load_of(await self._facts_cache.facts(old, dialect, model.tokenizer), 0, 0)
        added = _load_of(await self._facts_cache.facts(new, dialect, model.tokenizer), 0, 0)
        load = analysis.decision.load
        load = replace(
            load,
            history=load.history + added.history - removed.history,
            estimate=load.estimate + added.estimate - removed.estimate,
        )
        max_output = analysis.body.max_output()
        decision = decide(load, model.limits, analysis.recognised.policy, max_output=max_output)
        if decision.action == "must":
            return analysis
        return replace(analysis, decision=decision, replacements=replacements)

    async def _compress(self, analysis: RequestAnalysis) -> ForwardedRequest:
        """Compress the session, and return the request with its new view."""
        recognised, request = analysis.recognised, analysis.request
        if self._is_diverging(analysis):
            return analysis.forward(DIVERGING)
        if recognised.session is not None and compression.is_acknowledged(recognised.session):
            await compression.use_acknowledgement(self._engine.store, recognised.session)
            return analysis.forward(ACKNOWLEDGED)
        load = analysis.decision.load
        try:
            if recognised.session is not None:
                compression.refuse_if_blocked(recognised.session, recognised.settings.on_failure)
            session = await self._record_now(analysis)
            outcome = await self._compress_due(session, analysis)
        except (BlockedError, CompressionError) as error:
            if recognised.settings.on_failure == "pass":
                return analysis.forward(NOT_COMPRESSED)
            cause = error.cause if isinstance(error, BlockedError) else facts(error).code
            log_decision("blocked", analysis.name, analysis.tokens_before, load.total, cause)
            raise
        after = await self._analyse(request)
        forwarded = after.forward(*((TRUNCATED,) if outcome.is_truncated else ()))
        if not outcome.compressed:
            return replace(forwarded, tokens_before=analysis.tokens_before)
        self._compressed.append(_CompressedHistory.of(analysis))
        return replace(forwarded, decision="compressed", tokens_before=analysis.tokens_before)

    async def _compress_due(self, session: Session, analysis: RequestAnalysis) -> Outcome:
        """Compress while a client waits: not for a model that has just failed in the background."""
        key = (analysis.request.namespace, analysis.name or "")
        has_failed = self._background.take_failure(key)
        if has_failed and analysis.recognised.settings.on_failure == "local":
            compression_cause.set("summarizer-failed")
            options = self._options(analysis)
            settings = {**options.settings, "summarizer": LOCAL}
            return await session.compress_due(replace(options, settings=settings))
        async with self._client_model(analysis) as client_model:
            return await session.compress_due(self._options(analysis, client_model))

    async def _compress_early(self, analysis: RequestAnalysis, *, by_model: bool = True) -> None:
        """Compress the session before a request needs it; without a summary if not by a model."""
        compression_cause.set("background")
        session = await self._record_now(analysis)
        options = self._options(analysis)
        settings = {
            **options.settings,
            **self._default_strategy(analysis, summarizes=by_model),
            "early_mark": analysis.recognised.settings.early_mark * EARLIEST,
        }
        options = replace(options, settings=settings, must_pay=not by_model)
        if not by_model:
            await session.compress_early(options)
            return
        async with self._client_model(analysis) as client_model:
            outcome = await session.compress_early(replace(options, client_model=client_model))
        if outcome.compressed:
            self._compressed.append(_CompressedHistory.of(analysis))

    async def _record_now(self, analysis: RequestAnalysis) -> Session:
        """Record the request's messages after those of earlier requests."""
        await run_to_completion(self._record_all())
        return await self._record(analysis)

    def _options(
        self, analysis: RequestAnalysis, client_model: ClientModel | None = None
    ) -> CallOptions:
        load = analysis.decision.load
        return CallOptions(
            max_output=analysis.request.body.max_output(),
            settings={**BY_CUTOFF, **self._default_strategy(analysis)},
            static_tokens=(load.system, load.tools),
            client_model=client_model,
            discards_cache=True,
            restorable_by=self._restorable_by(analysis),
            # The conversation is recognised by its cutoff, and has one branch as a rule.
            has_one_branch=True,
        )

    @asynccontextmanager
    async def _client_model(self, analysis: RequestAnalysis) -> AsyncIterator[ClientModel | None]:
        """Yield the client's model if it may write summaries, with the conversation before it."""
        request, settings = analysis.request, analysis.recognised.settings
        connection = request.connect() if settings.proxy_client_key else None
        async with open_client_model(connection) as model:
            if model is None or request.call is None or request.provider_has_view:
                yield model
                return
            prefix = None
            if can_be_continued_by_instruction(analysis.body):
                key = (request.namespace, analysis.name or "")
                prefix = ForwardedConversation(
                    analysis.body,
                    analysis.messages(),
                    analysis.decision.load.total,
                    request.model,
                    request.call,
                    self._background.is_cached(key),
                )
            yield replace(model, prefix=prefix)

    def _is_diverging(self, analysis: RequestAnalysis) -> bool:
        """Return True if the last two summaries are of no use, because the client changed the past.

        It may have changed its beginning, too: then every request looks like a new conversation,
        and is recognised by the messages that it shares with those that were compressed before.
        """
        if analysis.recognised.snapshot is not None:
            return False
        if analysis.recognised.is_diverging:
            return True
        new = _CompressedHistory.of(analysis)
        return sum(each.is_variant_of(new) for each in self._compressed) >= _MAX_DIVERGING

    def _default_strategy(
        self, analysis: RequestAnalysis, *, summarizes: bool = True
    ) -> Mapping[str, Any]:
        """Return the preset for agents if the request has tools and no strategy is configured."""
        form, settings = analysis.body.wire, analysis.recognised.settings
        has_tools = analysis.decision.load.tools or any(map(form.tools_in, analysis.lead))
        if not has_tools or settings.sources.get("strategy") != "default":
            return {}
        preset = presets.get(presets.AGENT)
        config = dict(preset.config)
        if not summarizes:
            config["passes"] = [each for each in config["passes"] if each["mode"] != "batch"]
        return {"strategy": preset.strategy, "strategy_config": {preset.strategy: config}}

    async def _record(self, analysis: RequestAnalysis, name: str | None = None) -> Session:
        """Record the messages that are new; return the session at the last of them."""
        (session,) = await self._conversations.record(await self._recording_of(analysis, name))
        return session

    async def _recording_of(self, analysis: RequestAnalysis, name: str | None = None) -> Recording:
        request, recognised = analysis.request, analysis.recognised
        new = await parse_messages(
            analysis.sent[recognised.recorded :], request.body.wire.dialect, request.arrived_at
        )
        return Recording(
            request.namespace,
            name or analysis.name or analysis.history.whole_name(request.namespace),
            request.sender,
            recognised,
            new,
            analysis.tokenizer,
        )

    def _record_in_background(self, analysis: RequestAnalysis) -> None:
        """Record new messages while the request is on its way.

        Without other requests this begins at once. A request that continues a waiting one
        replaces it.
        """
        if analysis.name is None or analysis.recognised.recorded >= len(analysis.sent):
            return
        waiting = self._waiting.setdefault((analysis.request.namespace, analysis.name), [])
        if waiting and analysis.history.continues(waiting[-1].history):
            waiting[-1] = analysis
        elif len(waiting) < _MAX_WAITING:  # else the next request brings the same history again
            waiting.append(analysis)
        if self._recording is None:
            self._recording = asyncio.create_task(self._record_waiting())

    async def _record_waiting(self) -> None:
        try:
            while self._waiting:
                await self._record_all()
                await asyncio.sleep(_RECORD_INTERVAL)
        finally:
            self._recording = None

    async def _record_all(self) -> None:
        """Record every request that waits, after those that are being recorded."""
        async with self._record_lock:
            waiting, self._waiting = self._waiting, {}
            await self._record_together(list(chain.from_iterable(waiting.values())))

    async def _record_together(self, analyses: Sequence[RequestAnalysis]) -> None:
        """Record requests in few transactions."""
        together: list[Recording] = []
        for analysis in analyses:
            await asyncio.sleep(0)  # requests go on between two that are parsed
            try:
                recording = await self._recording_of(await self._recognise_again(analysis))
            except EnfoldError as error:
                _warn_of_recording(analysis.name, error)
                continue
            if sum(len(each.messages) for each in (*together, recording)) > _MAX_TOGETHER:
                await self._write_recordings(together)
                together = []
            together.append(recording)
        await self._write_recordings(together)

    async def _recognise_again(self, analysis: RequestAnalysis) -> RequestAnalysis:
        """Leave out messages that were recorded while the request waited."""
        if len(analysis.sent) - analysis.recognised.recorded <= _FEW_MESSAGES:
            return analysis
        request = analysis.request
        recognised = await self._conversations.recognise(
            request.namespace, analysis.name, analysis.history, request.sender
        )
        return replace(analysis, recognised=recognised)

    async def _write_recordings(self, recordings: Sequence[Recording]) -> None:
        try:
            if recordings:
                await self._conversations.record(*recordings)
        except StoreUnavailableError as error:
            for each in recordings:
                _warn_of_recording(each.name, error)
        except EnfoldError as error:
            if len(recordings) == 1:
                _warn_of_recording(recordings[0].name, error)
                return
            # Only one request may be at fault.
            for each in recordings:
                await self._write_recordings([each])


def _warn_of_recording(session: str | None, error: EnfoldError) -> None:
    # Nothing is lost: the next turn brings the same history again.
    _log.warning("session %s: recording failed: %s", session, error)


@asynccontextmanager
async def open_client_model(connection: Connection | None) -> AsyncIterator[ClientModel | None]:
    """Yield the client's model for one compression, if there is a connection to it."""
    if connection is None:
        yield None
        return
    async with ModelGateway() as gateway:
        yield ClientModel(gateway, connection)


def _warn_of_long_replies(analysis: RequestAnalysis) -> None:
    """Warn once per model that a client asks for replies longer than the history's limit."""
    max_output = analysis.body.max_output() or 0
    if max_output > analysis.decision.limit:
        _log_long_replies(analysis.request.model, max_output)


@lru_cache(maxsize=_MAX_MODELS)
def _log_long_replies(model: str, max_output: int) -> None:
    _log.warning(
        "%s: a client asks for replies of up to %d tokens, too many for its window; at most half "
        "of its window is reserved for a reply. Set a lower maximum in the client",
        model,
        max_output,
    )


async def run_to_completion(work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result. The work goes on if the client disconnects: a retry finds it done."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


def _count_lead(facts: Sequence[MessageFacts]) -> int:
    """Return the number of system messages before the history."""
    for count, fact in enumerate(facts):
        if fact.role != "system":
            return count
    return len(facts)


def _client_history(
    prefix: BodyPrefix | None, facts: Sequence[MessageFacts], lead: int
) -> ClientHistory:
    """Return the history after the leading system messages."""
    roles = tuple([fact.role for fact in facts[lead:]])
    hashes = tuple([fact.content_hash for fact in facts[lead:]])
    if prefix is None:
        return ClientHistory(roles, hashes)
    history = ClientHistory(roles, hashes, tuple(prefix.ids))
    prefix.remember_ids(history.ids, lead)
    return history


def _load_of(
    messages: Sequence[MessageFacts] | Sequence[OutgoingMessage], system: int, tools: int
) -> Load:
    return Load(
        history=sum([message.tokens for message in messages]),
        system=system,
        tools=tools,
        estimate=sum([message.estimate for message in messages]),
    )
