"""Proxied conversations: recognised by the history that the client sends, and recorded.

A history is recognised by its beginning: its session is named after everything up to the first
reply. A greeting that two people share does not make theirs one conversation; a reply that they
share does. Responses that later requests continue from are stored with their sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from enfold import records
from enfold.budget import Policy
from enfold.engine.session import Session
from enfold.engine.state import (
    BY_CUTOFF,
    SettingsLevel,
    drafts,
    effective_settings,
    policy_of,
    threshold_of,
)
from enfold.identity import chain, content_hash
from enfold.messages import Message, Role
from enfold.modelconfig import ModelConfig
from enfold.records import Exchange, SessionKey, StoredMessage, StoredResponse, UsageEvent
from enfold.settings import Settings
from enfold.store import catalog, responses, sessions, snapshots, tree
from enfold.store.database import Database
from enfold.store.store import Store
from enfold.text.harness import person_text
from enfold.tokens.apart import count_apart

if TYPE_CHECKING:
    from enfold.engine.engine import Engine

_CACHE_SECONDS = 1.0
"""Seconds until changes by another process are noticed. Changes by this process apply at once."""
_MAX_CACHED_MODELS = 1_000
_MAX_CACHED_NAMESPACES = 10_000
CLIENT_WINDOWS = {"Claude Code": 200_000}
"""Windows that clients work with whatever the model has: they compact their history by it.

Source: Claude Code takes 200,000 tokens for every model unless the window of a million is enabled.
"""
_MAX_BRANCHES = 50
"""Branches of a session that are looked at for earlier histories."""
_NO_BRANCH = records.Branch("", 0, 0, 0)
_TITLE_WORDS, _TITLE_LENGTH = 16, 80
"""The longest title, in words and in characters."""


@dataclass(frozen=True)
class ClientHistory:
    """A history that a client sent: roles and content hashes of its messages."""

    roles: tuple[Role, ...]
    content_hashes: tuple[str, ...]
    first_ids: tuple[str, ...] = ()
    """The identities of the first messages, where they are cached."""

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The identities of the messages."""
        parent = self.first_ids[-1] if self.first_ids else None
        return (*self.first_ids, *chain(self.content_hashes[len(self.first_ids) :], parent))

    def followed_by(self, messages: Iterable[Message]) -> ClientHistory:
        """Return the history with these messages after it."""
        new = tuple(messages)
        roles = (*self.roles, *(message.role for message in new))
        return ClientHistory(roles, (*self.content_hashes, *map(content_hash, new)), self.ids)

    def continues(self, other: ClientHistory) -> bool:
        """Return True if it has all messages of the other one, and perhaps more after them."""
        count = len(other.roles)
        return count <= len(self.roles) and self.ids[count - 1 : count] == other.ids[-1:]

    def session_name(self, namespace: str = "") -> str | None:
        """Return the name of the history's session; None before the first reply."""
        if "assistant" not in self.roles:
            return None
        first_reply = self.ids[self.roles.index("assistant")]
        return records.conversation_name(namespace, first_reply)

    def whole_name(self, namespace: str = "") -> str:
        """Return a session name for a history without a reply: that of all its messages."""
        return records.conversation_name(namespace, self.ids[-1])


@dataclass(frozen=True, slots=True)
class RecognisedHistory:
    """The stored part of a client's history, and the settings that apply to it."""

    settings: Settings
    model: ModelConfig | None
    policy: Policy
    session: records.SessionRecord | None = None
    recorded: int = 0
    """The number of its messages that are recorded, from the first one on."""
    tip: str | None = None
    """The last of these."""
    snapshot: records.Snapshot | None = None
    view_rows: tuple[records.ViewRow, ...] = ()
    """The messages that the snapshot shows."""
    exchanges: tuple[records.Exchange, ...] = ()
    """The exchanges under the snapshot of which the client received only a part."""
    earlier_tips: tuple[str, ...] = ()
    """The ends of the histories that the client compacted to this one, newest first."""
    is_diverging: bool = False
    """True if the last two summaries of the session are on branches that the client left."""


class Sender(NamedTuple):
    """The program and the model of a request."""

    model: str
    """In the form `provider:model`."""
    client: str | None = None
    """The program's name; None if it is not known."""
    window: int | None = None
    """The context window that the program works with; None if it uses the model's."""
    session: str | None = None
    """The session id that the program sends; None if it sends none."""
    has_compacted: bool = False
    """True if the history begins with the program's own summary of an earlier one."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Messages of a request that are not recorded yet."""

    namespace: str
    name: str
    """Session name."""
    sender: Sender
    recognised: RecognisedHistory
    messages: Sequence[Message]
    tokenizer: str
    is_at_tip: bool = False
    """True if the messages follow the session's last one, not those that were recognised."""

    def session_values(self) -> records.SessionUpdate:
        """Return the values that the session gets."""
        sender = self.sender
        return records.SessionUpdate(
            title=title_of(self.messages),
            model=sender.model,
            client=sender.client,
            client_session=sender.session,
            settings={} if sender.window is None else {"window": sender.window},
        )


_NewKey: TypeAlias = tuple[str, int | None]
"""The model and the client's window."""


class ProxiedConversations:
    """Recognises the conversations of clients, and records them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.store
        self._new: dict[_NewKey, tuple[int, float, asyncio.Future[RecognisedHistory]]] = {}
        """For conversations without a session: state of the store, expiry, result."""
        self._namespaces: dict[str, str] = {}
        """The namespaces of clients' session ids."""

    async def recognise(
        self, namespace: str, name: str | None, history: ClientHistory, sender: Sender
    ) -> RecognisedHistory:
        """Return what the store has of the history; `name` is None before the first reply."""
        if name is None and not (sender.session and sender.has_compacted):
            return await self._recognise_new(sender)
        settings = self._engine.static_settings
        return await self._store.read(recognise_history, namespace, name, history, sender, settings)

    async def namespace_of(self, namespace: str, client_session: str) -> str:
        """Return the namespace that has a client's session id, else the given one.

        A client without an access token goes on in its namespace after it has changed its key.
        """
        if records.listing_namespace(namespace) == namespace:
            return namespace
        if client_session not in self._namespaces:
            found = await self._store.read(sessions.of_client, namespace, client_session, limit=1)
            if not found:
                return namespace
            if len(self._namespaces) >= _MAX_CACHED_NAMESPACES:
                self._namespaces.clear()
            self._namespaces[client_session] = found[0].namespace
        return self._namespaces[client_session]

    async def _recognise_new(self, sender: Sender) -> RecognisedHistory:
        """Return settings and model of a conversation that begins.

        They are the same for all clients, so they are cached until more than messages is written.
        """
        key = (sender.model, sender.window)
        changes, expiry, cached = self._new.get(key, (-1, 0.0, None))
        if cached is None or changes != self._store.changes or monotonic() >= expiry:
            settings, empty = self._engine.static_settings, ClientHistory((), ())
            reading = self._store.read(recognise_history, "", None, empty, sender, settings)
            cached = asyncio.ensure_future(reading)
            cached.add_done_callback(lambda done: self._drop_failed(key, done))
            if len(self._new) >= _MAX_CACHED_MODELS:
                self._new.clear()
            self._new[key] = (self._store.changes, monotonic() + _CACHE_SECONDS, cached)
        # Other requests may wait for the same result: a cancelled one must not cancel it.
        return cached.result() if cached.done() else await asyncio.shield(cached)

    def _drop_failed(self, key: _NewKey, reading: asyncio.Future[RecognisedHistory]) -> None:
        if reading.cancelled() or reading.exception() is not None:
            self._new.pop(key, None)

    async def record(self, *recordings: Recording) -> list[Session]:
        """Append new messages in one transaction; return each session at their end."""
        counted = [
            (each, await count_apart(drafts, each.messages, each.tokenizer)) for each in recordings
        ]
        recorded = await self._store.append(_record_all, counted)
        return [Session(self._engine, record, tip) for record, tip in recorded]

    async def record_provider_conversation(
        self, namespace: str, name: str, sender: Sender, messages: Sequence[Message], tokenizer: str
    ) -> None:
        """Append messages to a session, without a check of the history at the provider."""
        recognised = await self.recognise(namespace, name, ClientHistory((), ()), sender)
        recording = Recording(namespace, name, sender, recognised, messages, tokenizer)
        await self.record(replace(recording, is_at_tip=True))

    def open_session(self, recognised: RecognisedHistory) -> Session | None:
        """Return the session at the last message that is recorded; None if there is none."""
        if recognised.session is None:
            return None
        return Session(self._engine, recognised.session, recognised.tip)

    async def add_usage(self, events: Sequence[UsageEvent]) -> None:
        """Record the usage of calls, each in the session that it names, if that exists."""
        await self._store.append(add_named_usage, events)


def title_of(messages: Iterable[Message]) -> str | None:
    """Return the first words that a person typed; None if the messages have none."""
    for message in messages:
        if words := person_text(message).split(maxsplit=_TITLE_WORDS):
            title = " ".join(words[:_TITLE_WORDS])
            return title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…"
    return None


_Recorded: TypeAlias = tuple[records.SessionRecord, str | None]
"""A session and its last message."""


def _record_all(
    db: Database, counted: Sequence[tuple[Recording, Sequence[records.MessageDraft]]]
) -> list[_Recorded]:
    """Append the messages of each recording."""
    # Two processes that lock several sessions must do it in the same order.
    order = sorted(
        range(len(counted)), key=lambda at: (counted[at][0].namespace, counted[at][0].name)
    )
    recorded: dict[int, _Recorded] = {}
    for at in order:
        given, new = counted[at]
        session = _open_for_recording(db, given)
        tip = given.recognised.tip
        after = records.CURRENT_TIP if given.is_at_tip else tip or records.ROOT
        rows = tree.append(db, session.key, new, after, forward_only=True) if new else ()
        recorded[at] = session, rows[-1].id if rows else tip
    return [recorded[at] for at in range(len(counted))]


def _open_for_recording(db: Database, given: Recording) -> records.SessionRecord:
    """Return the session, which may be new; its title and a window that a person set stay."""
    values, settings = given.session_values(), given.recognised.settings
    new = replace(values, settings={})
    session = sessions.get_or_create(db, given.namespace, given.name, new)
    title = None if session.title else values.title
    stored = {key: value for key, value in session.settings.items() if key != "window"}
    stored |= values.settings or {}
    # The proxy sets the window of a session for a client.
    is_clients = settings.sources.get("window") == "session"
    if settings.window is not None and not (
        is_clients and settings.window in CLIENT_WINDOWS.values()
    ):
        stored = dict(session.settings)
    is_same = (
        session.model == values.model
        and values.client in {None, session.client}
        and values.client_session in {None, session.client_session}
    )
    if is_same and title is None and stored == session.settings:
        return session
    return sessions.update(db, session.key, replace(values, title=title, settings=stored))


def recognise_history(
    db: Database,
    namespace: str,
    name: str | None,
    history: ClientHistory,
    sender: Sender,
    static_settings: Sequence[SettingsLevel],
) -> RecognisedHistory:
    """Return the part of the history that the store has, in the session with that name."""
    session = sessions.find(db, namespace, name) if name is not None else None
    if session is None and sender.session is not None and history.ids:
        session = _linked_session(db, namespace, sender, history)
    settings, fields, _, _ = effective_settings(db, session, BY_CUTOFF, static_settings)
    model = catalog.model_config(db, sender.model)
    threshold = threshold_of(fields, model, settings)
    if model is not None:
        model = model.within(settings.window).within(sender.window)
    if session is None:
        return RecognisedHistory(settings, model, policy_of(settings, threshold))
    found = tree.recognise(db, history.ids, session=session.key, likely=session.depth)
    if found.tip is None:
        begun = RecognisedHistory(settings, model, policy_of(settings, threshold), session)
        return _with_earlier(db, begun, sender, None)
    bottom = tree.tip_node(db, session.key, found.tip)
    snapshot = snapshots.applicable_at(db, session.key, bottom, share_across_branches=True)
    undo = snapshots.last_undo(db, session.key, found.tip)
    is_suspended = undo is not None and "user" not in history.roles[undo.depth :]
    recognised = RecognisedHistory(
        settings,
        model,
        policy_of(settings, threshold, suspended=is_suspended),
        session,
        found.count,
        found.tip,
        snapshot,
    )
    recognised = _with_earlier(db, recognised, sender, bottom)
    if snapshot is None:
        return replace(recognised, is_diverging=_is_diverging(db, session.key, bottom))
    return replace(
        recognised,
        view_rows=tuple(snapshots.entries(db, snapshot)),
        exchanges=responses.exchanges_under(db, session.key, snapshot.id),
    )


def _with_earlier(
    db: Database, recognised: RecognisedHistory, sender: Sender, bottom: tree.Node | None
) -> RecognisedHistory:
    """Add the histories that the client compacted to this one, and the recalls in it."""
    if recognised.session is None or not sender.has_compacted:
        return recognised
    key = recognised.session.key
    return replace(
        recognised,
        earlier_tips=_earlier_tips(db, key, bottom),
        exchanges=responses.exchanges_under(db, key, records.NO_SNAPSHOT),
    )


def _linked_session(
    db: Database, namespace: str, sender: Sender, history: ClientHistory
) -> records.SessionRecord | None:
    """Return the session that a history continues by the client's session id, or None.

    A client that compacts its history by itself begins a new one. It goes on as another branch of
    the session that has most of the messages. Other histories under the same id, such as those of
    sub-agents, have sessions of their own.
    """
    found = [
        each
        for each in sessions.of_client(db, namespace, sender.session or "")
        if each.namespace == namespace
    ]
    for each in found:
        if tree.recognise(db, history.ids[:1], session=each.key).tip is not None:
            # Sub-agents may begin with the same message as others; a compacted history does not.
            return each if sender.has_compacted else None
    return max(found, key=lambda each: each.depth, default=None) if sender.has_compacted else None


def _earlier_tips(
    db: Database, session: records.SessionKey, bottom: tree.Node | None
) -> tuple[str, ...]:
    """Return the ends of the longest branches with other beginnings, newest first."""
    beginnings: dict[int, records.Branch] = {}
    if bottom is not None:
        beginnings[tree.ancestor(db, bottom, 1).key] = _NO_BRANCH
    branches = sorted(tree.branches(db, session), key=lambda each: -each.depth)
    for branch in branches[:_MAX_BRANCHES]:
        root = tree.ancestor(db, tree.require(db, session, branch.tip), 1)
        beginnings.setdefault(root.key, branch)
    found = [each for each in beginnings.values() if each is not _NO_BRANCH]
    return tuple(each.tip for each in sorted(found, key=lambda each: -each.created_at))


def _is_diverging(db: Database, session: records.SessionKey, bottom: tree.Node) -> bool:
    """Return True if the last two summaries were made on different branches.

    A summary on a branch that neither is on would be the third in a row that is not used again.
    Summaries of another beginning do not count: the client has compacted its history since.
    """
    last = snapshots.of_kind(db, session, limit=2)
    match [each.cutoff for each in last if not each.undone]:
        case [str(after), str(before)]:
            newest, older = tree.require(db, session, after), tree.require(db, session, before)
        case _:
            return False
    if tree.ancestor(db, newest, 1).key != tree.ancestor(db, bottom, 1).key:
        return False
    return newest.depth < older.depth or tree.ancestor(db, newest, older.depth).key != older.key


def add_named_usage(db: Database, events: Sequence[UsageEvent]) -> None:
    """Record usage, each event in the session that it names, if that exists."""
    names = {(each.namespace or "", each.session_name or "") for each in events}
    found = {(space, name): sessions.find(db, space, name) for space, name in names if name}
    resolved = []
    for each in events:
        session = found.get((each.namespace or "", each.session_name or ""))
        resolved.append(each if session is None else replace(each, session=session.key))
    catalog.add_usage(db, resolved)


@dataclass(frozen=True, slots=True)
class ResponseChain:
    """A stored response with the messages before it, and items that a request names."""

    items: Mapping[str, bytes]
    """The items that were found, by id."""
    response: StoredResponse | None = None
    messages: tuple[StoredMessage, ...] = ()
    """The branch that the response answers."""
    session: str | None = None
    """The id of the response's session."""


class Responses:
    """Model responses and exchanges of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, response: StoredResponse) -> None:
        """Store a response. One that is stored already stays as it is."""
        await self._store.write(responses.put, response)

    async def put_exchange(self, session: SessionKey, exchange: Exchange) -> None:
        """Store an exchange, in place of one with the same visible part at the same message."""
        await self._store.write(responses.put_exchange, session, exchange)

    async def chain(
        self, namespace: str, previous: str | None, item_ids: Iterable[str]
    ) -> ResponseChain:
        """Return a response by its id, and items by theirs, read in one transaction."""

        def read(db: Database) -> ResponseChain:
            found = {id: responses.item(db, namespace, id) for id in item_ids}
            items = {id: content for id, content in found.items() if content is not None}
            response = responses.find(db, namespace, previous) if previous is not None else None
            if response is None:
                return ResponseChain(items)
            messages = tree.path(db, response.session, response.tip)
            session = sessions.get(db, response.session).id
            return ResponseChain(items, response, messages, session)

        return await self._store.read(read)
