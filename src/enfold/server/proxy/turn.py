"""One turn through the proxy: what came is recognised, and what goes out fits.

Nothing is decoded that need not be. Where nothing has to change, the request goes out with the
bytes that it came with. The history is recorded beside the reply, not before it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from time import monotonic
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import parse_qs, urlsplit

from enfold.budget import Decision, Load, decide
from enfold.engine import Engine, Session, compression
from enfold.engine.background import queue_compression
from enfold.engine.recognition import BY_CUTOFF, ClientHistory, RecognisedHistory, recognise_history
from enfold.engine.state import CallOptions, ClientModel
from enfold.errors import BlockedError, CompressionError, EnfoldError, InputError, StoreError
from enfold.jsontext import dumps
from enfold.llm.calls import Connection, Secret
from enfold.llm.gateway import ModelGateway
from enfold.modelconfig import ModelConfig
from enfold.receipt import RestorableBy
from enfold.records import ROOT, Snapshot
from enfold.server.proxy.assembly import Piece, Wording, assemble
from enfold.server.proxy.bodies import Body, Facts, Memory, Prefix, parse
from enfold.server.proxy.calls import Call
from enfold.server.proxy.chains import AtProvider, can_be_gone_on_from, has_a_view, keep
from enfold.server.proxy.recall import Recall, RecallOffer, offer_recall, put_back, share
from enfold.store import responses
from enfold.summaries import HEADING
from enfold.tokens import DEFAULT
from enfold.wire.cache_marks import has_cache_marks, restore_cache_marks
from enfold.wire.replies import Reply

What: TypeAlias = Literal["keep", "reused", "compressed"]


def _unknown() -> None:
    """No key."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to the proxy: whose, for which model, and with which body."""

    body: Body
    model: str
    """As provider:model."""
    namespace: str = ""
    session: str | None = None
    """The name that the client gave it. None: it is recognised."""
    provider_has: AtProvider | None = None
    """What need not be sent, as long as nothing has to change."""
    prefix: Prefix | None = field(default=None, repr=False)
    """What is known of how its body begins."""
    may_recall: bool = True
    """Whether its reply can be joined from several."""
    connection: Callable[[], Connection | None] = field(default=_unknown, repr=False)
    """How its model is reached with the client's own key, if that has to be known."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What to send, and what is to be said of it."""

    raw: bytes
    what: What
    tokens_before: int
    tokens_after: int
    session: str | None
    warnings: tuple[str, ...] = ()
    seen: Seen | None = field(default=None, repr=False)
    """The request that it stands for."""
    recall: Recall | None = None
    """Where the model may recall: how that is done."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it stands: what is known of it, and what would be sent."""

    asked: Asked
    lead: Sequence[bytes]
    """System messages before the history. They often say the date, and are never folded."""
    sent: Sequence[bytes]
    history: ClientHistory
    name: str | None
    known: RecognisedHistory
    pieces: tuple[Piece, ...]
    tokens_before: int
    """Of all that came."""
    decision: Decision
    body: Body
    """As it came, or with one tool more."""
    instead: Mapping[int, tuple[bytes, ...]] = field(default_factory=dict)
    """What was really said, in place of messages that were sent."""
    recalling: Callable[..., Recall] | None = None
    """Where the model may recall: how, once it is known how the request is sent again."""

    @property
    def as_is(self) -> What:
        """What is said of it where nothing new is folded."""
        return "keep" if self.known.snapshot is None else "reused"

    def outgoing(self, what: What, *warnings: str) -> Outgoing:
        """The request as it stands, sent."""
        total = self.decision.load.total
        raw, before = self.body.raw, self.tokens_before
        out = Outgoing(raw, what, before, total, self.name, warnings, self)
        if self.known.snapshot is not None:
            view = (*self.lead, *self._view(self.known.snapshot))
            recall = self.recalling and self.recalling(resend=partial(_resend, self.body, view))
            return replace(out, raw=self.body.with_messages(view), recall=recall)
        if has_a_view(self.asked.provider_has):
            return replace(out, raw=self.body.with_messages(self.body.messages))
        return out

    def _view(self, snapshot: Snapshot) -> list[bytes]:
        cutoff = snapshot.cutoff
        covered = 0 if cutoff is None else self.history.ids.index(cutoff) + 1
        body = self.asked.body
        view = [piece.raw for piece in self.pieces]
        if has_cache_marks(body.raw):
            view = restore_cache_marks(
                body.form,
                body.value,
                lead=self.lead,
                covered=covered,
                sent=self.sent,
                view=view,
                summary_heading=HEADING,
            )
        stable = len(view) - (len(self.sent) - covered)
        said = [self.instead.get(at, (raw,)) for at, raw in enumerate(view[stable:], start=covered)]
        return [*view[:stable], *chain.from_iterable(said)]


def _resend(body: Body, view: tuple[bytes, ...], more: Sequence[bytes]) -> bytes:
    return body.with_messages((*view, *more))


_SECONDS = 1.0
"""How long what another process changes may go unnoticed. This one's changes hold at once."""
_MOST = 1_000
_NOTHING = ClientHistory((), ())


class Beginnings:
    """What is known of conversations that begin, by model."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[str, tuple[int, float, asyncio.Future[RecognisedHistory]]] = {}

    async def known(self, model: str) -> RecognisedHistory:
        """What is known of one that begins with that model."""
        store = self._engine.store
        writes, until, known = self._known.get(model, (-1, 0.0, None))
        if known is None or writes != store.writes or monotonic() >= until:
            reading = store.read(
                recognise_history, "", None, _NOTHING, model, self._engine.static_settings
            )
            known = asyncio.ensure_future(reading)
            known.add_done_callback(lambda done: self._forget_failed(model, done))
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[model] = (store.writes, monotonic() + _SECONDS, known)
        # Whoever hangs up leaves it to the others who wait for it.
        return known.result() if known.done() else await asyncio.shield(known)

    def _forget_failed(self, model: str, reading: asyncio.Future[RecognisedHistory]) -> None:
        if reading.cancelled() or reading.exception() is not None:
            self._known.pop(model, None)


_HEADERS = (b"x-api-key", b"x-goog-api-key", b"api-key", b"authorization")
_BEARER = "bearer "


def connection_of(call: Call, model: str, address: str) -> Connection | None:
    """How the model is reached that a call is for; None where the call has no key."""
    key = _key(call)
    if call.form is None or key is None:
        return None
    base_url = f"{address}{call.form.library_path}"
    return Connection(call.form.provider, model, Secret(key), base_url)


@asynccontextmanager
async def own_model(connection: Connection | None) -> AsyncIterator[ClientModel | None]:
    """The client's model for one compression, if there is a way to it; nothing of it stays open."""
    if connection is None:
        yield None
        return
    async with ModelGateway() as gateway:
        yield ClientModel(gateway, connection)


def _key(call: Call) -> str | None:
    found = next((value for name in _HEADERS if (value := call.header(name))), None)
    if found is None:
        query = parse_qs(urlsplit(call.path).query)
        return query.get("key", [""])[0] or None
    return found[len(_BEARER) :] if found.lower().startswith(_BEARER) else found


Result = TypeVar("Result")

DIVERGING = "history-keeps-changing"
NOT_COMPRESSED = "compression-failed"
TRUNCATED = "truncated"

_MOST_BEHIND = 64
"""How many requests of a session may wait to be recorded: a flood must not fill the memory."""

_log = logging.getLogger("enfold.proxy")


class Turns:
    """Takes requests, and says what to send in their place."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._memory = Memory()
        self._beginnings = Beginnings(engine)
        self._tokenizers: dict[str, str] = {}
        self._busy: dict[tuple[str, str], asyncio.Task[None]] = {}
        """The last of what is to be done in the background, by session."""
        self._behind: Counter[tuple[str, str]] = Counter()
        """How much that is."""

    async def take(self, asked: Asked) -> Outgoing:
        """What to send. `BlockedError` where a compression that is due fails."""
        seen = await self._look(asked)
        if seen.name is None and seen.decision.action == "must":
            # Before the first reply it is not recognised by itself, and may be known all the same.
            seen = await self._look(replace(asked, session=_whole_name(seen.history)))
        if seen.decision.action != "must":
            self._follow_up(seen)
            return seen.outgoing(seen.as_is)
        return await finished(self._make_room(seen))

    async def take_again(self, asked: Asked) -> Outgoing | None:
        """What to send after the provider said that it was too much. None: nothing can be done."""
        seen = await self._look(asked)
        try:
            session = await self._record(seen)
            by = self._restorable_by(seen)
            done = await session.compress(restorable_by=by, **BY_CUTOFF)
        except CompressionError as error:
            _log.warning("compression after an overflow failed: %s", error)
            return None
        if not done.compressed:
            return None
        return (await self._look(replace(asked, session=session.id))).outgoing("compressed")

    async def keep(self, seen: Seen, reply: Reply) -> None:
        """Remember an answer that a later request may go on from."""
        if not seen.sent or not can_be_gone_on_from(reply):
            return
        try:
            raws = [dumps(item) for item in reply.messages]
            said = [parse(raw, seen.asked.body.form.dialect) for raw in raws]
            session = await self._record(seen, seen.name or seen.history.followed_by(said).name())
            snapshot = seen.known.snapshot.id if seen.known.snapshot is not None else None
            await keep(self._engine.store, session, reply, lead=seen.lead, snapshot=snapshot)
        except (InputError, StoreError) as error:
            # The client has its answer all the same; what goes on from it passes as it is.
            _log.warning("session %s: a response was not kept: %s", seen.name, error)

    async def idle(self) -> None:
        """Wait until what was begun in the background is done."""
        await asyncio.gather(*self._busy.values(), return_exceptions=True)

    async def _look(self, asked: Asked) -> Seen:
        dialect = asked.body.form.dialect
        tokenizer = self._tokenizers.get(asked.model, DEFAULT)
        facts = await self._facts(asked, tokenizer)
        lead = next((i for i, fact in enumerate(facts) if fact.role != "system"), len(facts))
        history = _history(asked.prefix, facts, lead)
        name = asked.session or history.name()
        known = await self._known(asked, name, history)
        model = known.model or await self._engine.models.get(asked.model)
        if model.tokenizer != tokenizer:
            self._tokenizers[asked.model] = model.tokenizer
            facts = await self._facts(asked, model.tokenizer)
        system, tools = await self._memory.beside(asked.body.beside, dialect, model.tokenizer)
        system += sum(fact.tokens for fact in facts[:lead])
        load = _load(facts[lead:], system, tools)
        before = load.total
        offered = self._offer(asked, known)
        body, wording = asked.body, Wording(dialect, model.tokenizer)
        if offered is not None:
            body, wording = offered.body, replace(wording, note=offered.note)
            _, tools = await self._memory.beside(body.beside, dialect, model.tokenizer)
        first, sent = asked.body.messages[:lead], asked.body.messages[lead:]
        pieces: Sequence[Piece] = ()
        if known.snapshot is not None:
            pieces = assemble(known.snapshot, known.shown, sent, facts[lead:], history, wording)
            load = _load(pieces, system, tools)
        decision = decide(load, model.limits, known.policy, max_output=body.max_output())
        seen = Seen(asked, first, sent, history, name, known, tuple(pieces), before, decision, body)
        return seen if offered is None else await self._with_recall(seen, offered, model)

    async def _facts(self, asked: Asked, tokenizer: str) -> list[Facts]:
        """What is known of the messages; of those that came before, nothing has to be found out."""
        known = asked.prefix.facts.get(tokenizer, ()) if asked.prefix is not None else ()
        new = asked.body.messages[len(known) :]
        facts = [*known, *await self._memory.facts(new, asked.body.form.dialect, tokenizer)]
        if asked.prefix is not None:
            asked.prefix.learn(tokenizer, facts)
        return facts

    async def _known(
        self, asked: Asked, name: str | None, history: ClientHistory
    ) -> RecognisedHistory:
        if name is None:
            return await self._beginnings.known(asked.model)
        return await self._engine.store.read(
            recognise_history,
            asked.namespace,
            name,
            history,
            asked.model,
            self._engine.static_settings,
        )

    def _restorable_by(self, seen: Seen) -> RestorableBy:
        """How what is folded now can be had again: by the model itself, where it may recall."""
        setting = seen.known.settings.proxy_recall
        if seen.asked.may_recall and offer_recall(seen.asked.body, setting) is not None:
            return "recall"
        return "store"

    def _offer(self, asked: Asked, known: RecognisedHistory) -> RecallOffer | None:
        """Once there is a summary the tool is there, and stays: what comes after it is cached."""
        if known.snapshot is None or not asked.may_recall:
            return None
        return offer_recall(asked.body, known.settings.proxy_recall)

    async def _with_recall(self, seen: Seen, offered: RecallOffer, model: ModelConfig) -> Seen:
        """What was recalled before put back, and the way to recall more."""
        known, dialect = seen.known, seen.body.form.dialect
        raws = put_back(
            known.exchanges, seen.history, seen.sent, dialect=dialect, name=offered.name
        )
        if raws:
            seen = await self._put_back(seen, raws, model)
        if known.session is None or known.snapshot is None:
            return seen
        session = Session(self._engine, known.session, known.tip)
        recalling = partial(
            Recall,
            form=seen.body.form,
            name=offered.name,
            session=session,
            message=seen.history.ids[-1],
            snapshot=known.snapshot.id,
            room=share(seen.decision),
            keep=lambda said: self._engine.store.write(responses.put_exchange, session.key, said),
            keeps_items=seen.body.value("store") is not False,
        )
        return replace(seen, recalling=recalling)

    async def _put_back(
        self, seen: Seen, raws: Mapping[int, tuple[bytes, ...]], model: ModelConfig
    ) -> Seen:
        """What was really said in its place; if that is too much, what the client saw stays."""
        old = [seen.sent[at] for at in raws]
        new = [raw for said in raws.values() for raw in said]
        dialect = seen.body.form.dialect
        gone = _load(await self._memory.facts(old, dialect, model.tokenizer), 0, 0)
        came = _load(await self._memory.facts(new, dialect, model.tokenizer), 0, 0)
        load = seen.decision.load
        load = replace(
            load,
            history=load.history + came.history - gone.history,
            estimate=load.estimate + came.estimate - gone.estimate,
        )
        limits, output = model.limits, seen.body.max_output()
        decision = decide(load, limits, seen.known.policy, max_output=output)
        if decision.action == "must":
            return seen
        return replace(seen, decision=decision, instead=raws)

    async def _make_room(self, seen: Seen) -> Outgoing:
        record = seen.known.session
        if seen.known.is_diverging:
            return seen.outgoing(seen.as_is, DIVERGING)
        if record is not None and compression.is_acknowledged(record):
            return seen.outgoing(seen.as_is, "risk-acknowledged")
        load = seen.decision.load
        request = CallOptions(
            max_output=seen.asked.body.max_output(),
            settings=BY_CUTOFF,
            static_tokens=(load.system, load.tools),
            restorable_by=self._restorable_by(seen),
        )
        try:
            if record is not None:
                compression.refuse_if_blocked(record, seen.known.settings.on_failure)
            if begun := self._busy.get((seen.asked.namespace, seen.name or "")):
                await asyncio.wait({begun})  # or what came before would be recorded after this
            session = await self._record(seen)
            may = seen.known.settings.proxy_client_key
            async with own_model(seen.asked.connection() if may else None) as own:
                done = await session.make_room(replace(request, own=own))
        except (BlockedError, CompressionError):
            if seen.known.settings.on_failure == "pass":
                return seen.outgoing(seen.as_is, NOT_COMPRESSED)
            raise
        after = await self._look(seen.asked)
        said = (TRUNCATED,) if done.is_truncated else ()
        return replace(after.outgoing("compressed", *said), tokens_before=seen.tokens_before)

    async def _record(self, seen: Seen, name: str | None = None) -> Session:
        """The session, with all that was sent in it, at the end of that branch."""
        known = seen.known
        name = name or seen.name or _whole_name(seen.history)
        session = await self._engine.session(
            name, namespace=seen.asked.namespace, model=seen.asked.model
        )
        dialect = seen.asked.body.form.dialect
        messages = [parse(raw, dialect) for raw in seen.sent[known.messages :]]
        if not messages:
            return session.at(known.tip)
        ids = await session.append(*messages, after=known.tip or ROOT, forward_only=True)
        return session.at(ids[-1])

    def _follow_up(self, seen: Seen) -> None:
        """What can wait until the request is on its way, once at a time for each session."""
        known = seen.known
        is_early = seen.decision.action == "should" and known.settings.proxy_background
        if seen.name is None or not (is_early or known.messages < len(seen.sent)):
            return
        key = (seen.asked.namespace, seen.name)
        if self._behind[key] >= _MOST_BEHIND:
            return  # whoever goes on from here brings the same history again
        work = self._in_background(seen, self._busy.get(key), compress=is_early)
        self._busy[key] = task = asyncio.create_task(work)
        self._behind[key] += 1
        task.add_done_callback(lambda done: self._done(key, done))

    def _done(self, key: tuple[str, str], task: asyncio.Task[None]) -> None:
        self._behind[key] -= 1
        if self._busy[key] is task:
            del self._busy[key], self._behind[key]

    async def _in_background(
        self, seen: Seen, before: asyncio.Task[None] | None, *, compress: bool
    ) -> None:
        try:
            if before is not None:
                await asyncio.wait({before})
                seen = await self._look(seen.asked)
            session = await self._record(seen)
            if compress and not seen.known.is_diverging:
                await queue_compression(self._engine, session, self._restorable_by(seen))
        except EnfoldError as error:
            # It costs nothing but another try: the next turn brings the same history again.
            _log.warning("session %s: work in the background failed: %s", seen.name, error)


def _history(prefix: Prefix | None, facts: Sequence[Facts], lead: int) -> ClientHistory:
    """The history after the leading system messages."""
    roles = tuple(fact.role for fact in facts[lead:])
    contents = tuple(fact.content for fact in facts[lead:])
    if prefix is None:
        return ClientHistory(roles, contents)
    history = ClientHistory(roles, contents, tuple(prefix.ids))
    prefix.learn_ids(history.ids, lead)
    return history


def _whole_name(history: ClientHistory) -> str:
    """The session's name where there is no reply to go by: all that was said."""
    return f"c-{history.ids[-1]}"


async def finished(work: Coroutine[Any, Any, Result]) -> Result:
    """Its result. It goes on if the client hangs up: the next try then finds it done."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


def _load(parts: Sequence[Facts] | Sequence[Piece], system: int, tools: int) -> Load:
    return Load(
        history=sum(part.tokens for part in parts),
        system=system,
        tools=tools,
        estimate=sum(part.estimate for part in parts),
    )
