"""The engine: opens sessions over a store, and finds the authors of summaries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from enfold import records
from enfold import settings as known_settings
from enfold.engine.access import AccessRegistry
from enfold.engine.models import Models, Presets
from enfold.engine.profiles import Profiles
from enfold.engine.recognition import Responses, add_named_usage
from enfold.engine.session import Session
from enfold.engine.state import (
    CallOptions,
    RecentViews,
    SettingsLevel,
    check_changes,
    read_settings,
)
from enfold.errors import CompressionError, NotFoundError, facts
from enfold.events import Events
from enfold.queue import Queue
from enfold.records import OutboxEntry, SearchScope, SessionUpdate
from enfold.settings import Settings
from enfold.store import catalog, search, sessions
from enfold.store.database import Database
from enfold.store.store import Store
from enfold.strategies.contract import Strategy
from enfold.summaries import Summarizer, prompts
from enfold.summaries.prompts import Prompt

_MAX_ATTEMPTS = 3
"""Attempts at a background compression. Another one happens when the compression is due."""

_log = logging.getLogger("enfold.engine")

StrategyChoice = Callable[
    [Settings, Summarizer, Callable[[str], Summarizer], tuple[str, ...]], Strategy
]
"""How views are condensed under these settings; by whom, also for a profile's name; what to add to
the report."""


class Engine:
    """Sessions, models and settings of one store. Made by `enfold.open`."""

    def __init__(
        self,
        store: Store,
        *,
        profiles: Profiles,
        queue: Queue,
        strategy: StrategyChoice,
        static_settings: Sequence[SettingsLevel] = (),
    ) -> None:
        self.store = store
        self.profiles = profiles
        self.queue = queue
        self.strategy = strategy
        self.static_settings = tuple(static_settings)
        self.events = Events()
        self.models = Models(store)
        self.presets = Presets(store)
        self.access = AccessRegistry(store, self.static_settings)
        self.responses = Responses(store)
        self.recent_views = RecentViews()
        self.small_gains: dict[records.SessionKey, int] = {}
        """Tokens of views whose last due compression freed too little, by session."""

    async def session(
        self,
        id: str,
        *,
        namespace: str = "",
        profile: str | None = None,
        model: str | None = None,
        title: str | None = None,
    ) -> Session:
        """The session of that name, made if there is none yet."""
        if profile is not None:
            await self.profiles.require(profile)
        wanted = SessionUpdate(title=title, profile=profile, model=model)

        def open_session(db: Database) -> records.SessionRecord:
            found = sessions.find_listed(db, namespace, id)
            record = found or sessions.get_or_create(db, namespace, id, wanted)
            is_same = (
                title in {None, record.title}
                and profile in {None, record.profile}
                and model in {None, record.model}
            )
            return record if is_same else sessions.update(db, record.key, wanted)

        return Session(self, await self.store.write(open_session))

    async def find(self, id: str, *, namespace: str = "") -> Session:
        """The session of that name, which must exist."""
        record = await self.store.read(sessions.find_listed, namespace, id)
        if record is None:
            raise NotFoundError(f"there is no session {id!r}")
        return Session(self, record)

    async def find_of_client(self, client_session: str, *, namespace: str = "") -> Session | None:
        """Return the longest session with a client's session id; None if there is none.

        In the owner's namespace the sessions of all clients without an access token are looked at.
        """
        spaces = [namespace] if namespace else [namespace, records.KEY_NAMESPACE]

        def read(db: Database) -> records.SessionRecord | None:
            found = [sessions.of_client(db, space, client_session) for space in spaces]
            return max(chain.from_iterable(found), key=lambda each: each.depth, default=None)

        record = await self.store.read(read)
        return Session(self, record) if record is not None else None

    async def sessions(
        self,
        *,
        namespace: str = "",
        limit: int = 50,
        after: records.SessionRecord | records.SessionCursor | None = None,
    ) -> list[records.SessionRecord]:
        """A page of sessions, the last used first."""
        return await self.store.read(sessions.page, namespace, limit=limit, after=after)

    async def search(
        self, query: str, *, namespace: str = "", limit: int = 20, best_first: bool = False
    ) -> Sequence[records.Hit]:
        """Return the places in all sessions at which the words occur."""
        return await self.store.read(
            search.search,
            query,
            SearchScope(namespace=namespace),
            limit=limit,
            best_first=best_first,
        )

    async def settings(self, profile: str | None = None) -> Settings:
        """Return the settings of all sessions, and those of a profile if one is named."""
        if profile is not None:
            await self.profiles.get(profile)
        return await self.store.read(read_settings, self.static_settings, profile)

    async def usage(self, *, namespace: str = "", since: int = 0) -> Sequence[records.UsageTotal]:
        """Return the usage of all sessions of a namespace, by purpose, profile and model."""
        return await self.store.read(catalog.usage_of_namespace, namespace, since=since)

    async def record_usage(self, events: Iterable[records.UsageEvent]) -> None:
        """Store the usage of model calls.

        An event that names a session by `session_name` counts for that session, if it exists.
        """
        await self.store.write(add_named_usage, tuple(events))

    async def is_first_time(self, scope: str, key: str) -> bool:
        """Return True at the first call with a key, and False ever after, in any process."""

        def mark(db: Database) -> bool:
            if key in catalog.settings(db, scope):
                return False
            catalog.put_setting(db, scope, key, value=True)
            return True

        return await self.store.write(mark)

    async def prompt(self, profile: str | None = None) -> Prompt:
        """Return the prompt for summaries, of a profile or the general one."""
        settings = await self.settings(profile)
        own = settings.strategy_config.get("native", {})
        return prompts.preview(own.get("style", settings.style), own.get("prompt", settings.prompt))

    async def set(self, name: str, value: Any) -> None:
        """Set a setting for all sessions, from the next decision on; None unsets it."""
        await self.change_settings({name: value})

    async def change_settings(self, changes: Mapping[str, Any]) -> None:
        """Set several settings for all sessions; if one value is wrong, none is set."""

        def write(db: Database) -> None:
            check_changes(db, changes)
            stored = catalog.settings(db, "global")
            for name, value in known_settings.change(stored, changes).items():
                if value is None:
                    catalog.delete_setting(db, "global", name)
                elif value != stored.get(name):
                    catalog.put_setting(db, "global", name, value)

        await self.store.write(write)


async def compress_queued(engine: Engine, entries: Sequence[OutboxEntry]) -> None:
    """Run queued compressions; raise an error where another attempt can succeed."""
    for entry in entries:
        record = await engine.store.read(sessions.get, entry.session)
        session = Session(engine, record, entry.message)
        try:
            await session.compress_early(CallOptions(requested_at=entry.created_at))
        except CompressionError as error:
            if facts(error).retryable and entry.attempts < _MAX_ATTEMPTS:
                raise
            _log.warning("session %s: gave up background compression: %s", session.id, error)
