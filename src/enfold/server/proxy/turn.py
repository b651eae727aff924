"""One turn through the proxy: the request is recognised, and compressed if that is due.

Nothing is decoded without need. A request that needs no change leaves with the bytes that it came
with. The history is recorded while the reply arrives, not before the request is sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any, Literal, TypeAlias, TypeVar

from enfold import wire
from enfold.budget import Decision, Load, decide
from enfold.engine import Engine, Session, compression
from enfold.engine.background import queue_compression
from enfold.engine.recognition import (
    BY_CUTOFF,
    ClientHistory,
    ProxiedConversations,
    RecognisedHistory,
    Sender,
)
from enfold.engine.state import CallOptions, ClientModel
from enfold.errors import (
    BlockedError,
    CompressionError,
    EnfoldError,
    InputError,
    StoreError,
    facts,
)
from enfold.jsontext import dumps
from enfold.llm.calls import Connection
from enfold.llm.gateway import ModelGateway
from enfold.modelconfig import ModelConfig
from enfold.receipt import RestorableBy
from enfold.records import Snapshot
from enfold.server.proxy.assembly import OutgoingMessage, ViewFormat, assemble_view
from enfold.server.proxy.bodies import (
    BodyPrefix,
    MessageFacts,
    MessageFactsCache,
    RequestBody,
    parse_message,
)
from enfold.server.proxy.chains import is_complete_reply, save_response
from enfold.server.proxy.recall import (
    RecallContext,
    RecallOffer,
    answer_budget,
    find_replacements,
    offer_recall,
)
from enfold.server.proxy.user_agents import has_compacted
from enfold.server.request_log import compression_cause, log_decision
from enfold.strategies import presets
from enfold.summaries import HEADING
from enfold.tokens import DEFAULT
from enfold.wire.cache_marks import has_cache_marks, restore_cache_marks
from enfold.wire.replies import Reply

ForwardDecision: TypeAlias = Literal["keep", "reused", "compressed"]
SessionName: TypeAlias = tuple[str, str]
"""A namespace, and the name of a session in it."""
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
_MIN_WINDOW = 1_000
_MAX_QUEUED = 64
"""Requests of a session that wait to be recorded at most: a flood must not fill the memory."""

_log = logging.getLogger("enfold.proxy")


def _no_connection() -> None:
    return None


@dataclass(frozen=True, slots=True)
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

    @property
    def sender(self) -> Sender:
        """The program and the model."""
        session = self.client_session
        compacted = session is not None and has_compacted(self.body.messages)
        return Sender(self.model, self.client, self.window, session, compacted)


@dataclass(frozen=True, slots=True)
class ForwardedRequest:
    """The body to forward, and the facts that the client is told in headers."""

    raw: bytes
    decision: ForwardDecision
    tokens_before: int
    tokens_after: int
    session: str | None
    warnings: tuple[str, ...] = ()
    analysis: RequestAnalysis | None = field(default=None, repr=False)
    recall: RecallContext | None = None
    """None where the model has no recall tool."""


@dataclass(frozen=True, slots=True)
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
        if snapshot is not None:
            messages = (*self.lead, *self._view_bytes(snapshot))
            recall = None
            if self.make_recall is not None:
                recall = self.make_recall(resend=partial(_resend, body, messages))
            return replace(forwarded, raw=body.with_messages(messages), recall=recall)
        if self.request.provider_has_view:
            # The snapshot was undone, and the provider would continue from its view.
            return replace(forwarded, raw=body.with_messages(body.messages))
        return forwarded

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
        later = enumerate(view[stable:], start=covered)
        replaced = [self.replacements.get(index, (raw,)) for index, raw in later]
        return [*view[:stable], *chain.from_iterable(replaced)]


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

    def __init__(self, engine: Engine, conversations: ProxiedConversations) -> None:
        self._engine = engine
        self._conversations = conversations
        self._facts_cache = MessageFactsCache()
        self._tokenizers: dict[str, str] = {}
        """The tokenizers of models that do not use the default one."""
        self._running: dict[SessionName, asyncio.Task[None]] = {}
        """The last background task of each session."""
        self._queued: Counter[SessionName] = Counter()
        """The number of background tasks of each session."""
        self._compressed: deque[_CompressedHistory] = deque(maxlen=_MAX_COMPRESSED)
        """The histories that were compressed last."""

    async def prepare(self, request: ProxyRequest) -> ForwardedRequest:
        """Return the request to forward; raise `BlockedError` if a due compression fails."""
        analysis = await self._analyse(request)
        if analysis.name is None and analysis.decision.action == "must":
            # Without a reply it has no name of its own, but it may have been compressed before.
            name = analysis.history.whole_name(request.namespace)
            analysis = await self._analyse(replace(request, session=name))
        is_providers = request.body.wire.compacts_itself(request.body.field)
        if analysis.decision.action != "must" or is_providers:
            self._record_in_background(analysis)
            return analysis.forward()
        return await run_to_completion(self._compress(analysis))

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
                lead=analysis.lead,
                snapshot=None if snapshot is None else snapshot.id,
            )
        except (InputError, StoreError) as error:
            # The client still has its reply; requests that continue from it are passed on as is.
            _log.warning("session %s: a response was not kept: %s", analysis.name, error)

    async def idle(self) -> None:
        """Wait until all background tasks are done."""
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _analyse(self, request: ProxyRequest) -> RequestAnalysis:
        """Recognise the conversation, assemble its view, count it, and decide."""
        body, dialect = request.body, request.body.wire.dialect
        tokenizer = self._tokenizers.get(request.model, DEFAULT)
        facts = await self._facts(request, tokenizer)
        lead = next((i for i, fact in enumerate(facts) if fact.role != "system"), len(facts))
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
            model = config.within(recognised.settings.window).within(request.window)
        if model.tokenizer != tokenizer:
            self._tokenizers[request.model] = model.tokenizer
            facts = await self._facts(request, model.tokenizer)
        counted = self._facts_cache.overhead_tokens
        system, tools = await counted(body.overhead, dialect, model.tokenizer)
        system += sum(fact.tokens for fact in facts[:lead])
        load = _load_of(facts[lead:], system, tools)
        tokens_before = load.total
        offer = self._offer_recall(request, recognised)
        form = ViewFormat(dialect, model.tokenizer)
        if offer is not None:
            body, form = offer.body, replace(form, note=offer.note)
            _, tools = await counted(body.overhead, dialect, model.tokenizer)
        sent = request.body.messages[lead:]
        view: Sequence[OutgoingMessage] = ()
        if recognised.snapshot is not None:
            rows = recognised.view_rows
            view = assemble_view(recognised.snapshot, rows, sent, facts[lead:], history, form)
            load = _load_of(view, system, tools)
        analysis = RequestAnalysis(
            request=request,
            body=body,
            lead=request.body.messages[:lead],
            sent=sent,
            history=history,
            name=name,
            recognised=recognised,
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
        self, request: ProxyRequest, recognised: RecognisedHistory
    ) -> RecallOffer | None:
        # From the first summary on the tool is always there: the tools are part of the cached
        # prefix.
        if recognised.snapshot is None or not request.may_recall:
            return None
        return offer_recall(request.body, recognised.settings.proxy_recall)

    def _restorable_by(self, analysis: RequestAnalysis) -> RestorableBy:
        """Return "recall" if the model will have the recall tool."""
        request, setting = analysis.request, analysis.recognised.settings.proxy_recall
        if request.may_recall and offer_recall(request.body, setting) is not None:
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
        if session is None or recognised.snapshot is None:
            return analysis
        make_recall = partial(
            RecallContext,
            wire=form,
            name=offer.name,
            session=session,
            message=analysis.history.ids[-1],
            snapshot=recognised.snapshot.id,
            answer_tokens=answer_budget(analysis.decision),
            save=partial(self._engine.responses.put_exchange, session.key),
            earlier=tuple(map(session.at, recognised.earlier_tips)),
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
            return analysis.forward(ACKNOWLEDGED)
        load = analysis.decision.load
        options = CallOptions(
            max_output=request.body.max_output(),
            settings={**BY_CUTOFF, **self._default_strategy(analysis)},
            static_tokens=(load.system, load.tools),
            restorable_by=self._restorable_by(analysis),
        )
        try:
            if recognised.session is not None:
                compression.refuse_if_blocked(recognised.session, recognised.settings.on_failure)
            if running := self._running.get((request.namespace, analysis.name or "")):
                await asyncio.wait({running})  # earlier messages must be recorded first
            session = await self._record(analysis)
            connection = request.connect() if recognised.settings.proxy_client_key else None
            async with open_client_model(connection) as client_model:
                outcome = await session.compress_due(replace(options, client_model=client_model))
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

    def _default_strategy(self, analysis: RequestAnalysis) -> Mapping[str, Any]:
        """Return the preset for agents if the request has tools and no strategy is configured."""
        form, settings = analysis.body.wire, analysis.recognised.settings
        has_tools = analysis.decision.load.tools or any(map(form.declares_tools, analysis.lead))
        if not has_tools or settings.sources.get("strategy") != "default":
            return {}
        preset = presets.get(presets.AGENT)
        return {"strategy": preset.strategy, "strategy_config": {preset.strategy: preset.config}}

    async def _record(self, analysis: RequestAnalysis, name: str | None = None) -> Session:
        """Record the messages that are new; return the session at the last of them."""
        request, recognised = analysis.request, analysis.recognised
        new = analysis.sent[recognised.recorded :]
        return await self._conversations.record(
            request.namespace,
            name or analysis.name or analysis.history.whole_name(request.namespace),
            request.sender,
            recognised,
            [
                replace(parse_message(raw, request.body.wire.dialect), at=request.arrived_at)
                for raw in new
            ],
        )

    def _record_in_background(self, analysis: RequestAnalysis) -> None:
        """Record new messages and queue an early compression while the request is on its way."""
        recognised = analysis.recognised
        is_early = analysis.decision.action == "should" and recognised.settings.proxy_background
        is_new = recognised.recorded < len(analysis.sent)
        if analysis.name is None or not (is_early or is_new):
            return
        key = (analysis.request.namespace, analysis.name)
        if self._queued[key] >= _MAX_QUEUED:
            return  # the next request brings the same history again
        work = self._run_background(analysis, self._running.get(key), compress=is_early)
        self._running[key] = task = asyncio.create_task(work)
        self._queued[key] += 1
        task.add_done_callback(lambda done: self._forget(key, done))

    def _forget(self, key: SessionName, task: asyncio.Task[None]) -> None:
        self._queued[key] -= 1
        if self._running[key] is task:
            del self._running[key], self._queued[key]

    async def _run_background(
        self, analysis: RequestAnalysis, before: asyncio.Task[None] | None, *, compress: bool
    ) -> None:
        try:
            if before is not None:
                await asyncio.wait({before})
                analysis = await self._analyse(analysis.request)
            session = await self._record(analysis)
            if compress and not self._is_diverging(analysis):
                await queue_compression(self._engine, session, self._restorable_by(analysis))
        except EnfoldError as error:
            # Nothing is lost: the next turn brings the same history again.
            _log.warning("session %s: background work failed: %s", analysis.name, error)


@asynccontextmanager
async def open_client_model(connection: Connection | None) -> AsyncIterator[ClientModel | None]:
    """Yield the client's model for one compression, if there is a connection to it."""
    if connection is None:
        yield None
        return
    async with ModelGateway() as gateway:
        yield ClientModel(gateway, connection)


async def run_to_completion(work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result. The work goes on if the client disconnects: a retry finds it done."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


def _client_history(
    prefix: BodyPrefix | None, facts: Sequence[MessageFacts], lead: int
) -> ClientHistory:
    """Return the history after the leading system messages."""
    roles = tuple(fact.role for fact in facts[lead:])
    hashes = tuple(fact.content_hash for fact in facts[lead:])
    if prefix is None:
        return ClientHistory(roles, hashes)
    history = ClientHistory(roles, hashes, tuple(prefix.ids))
    prefix.remember_ids(history.ids, lead)
    return history


def _load_of(
    messages: Sequence[MessageFacts] | Sequence[OutgoingMessage], system: int, tools: int
) -> Load:
    return Load(
        history=sum(message.tokens for message in messages),
        system=system,
        tools=tools,
        estimate=sum(message.estimate for message in messages),
    )
