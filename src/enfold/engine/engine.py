"""The engine: opens sessions over a store, and knows who writes summaries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from enfold import records
from enfold import settings as known_settings
from enfold.engine.models import Models
from enfold.engine.presets import Presets, check_strategies
from enfold.engine.profiles import Profiles
from enfold.engine.session import Session
from enfold.engine.state import SettingsLevel, read_settings
from enfold.errors import NotFoundError, StoreError
from enfold.events import Events
from enfold.queue import Queue
from enfold.records import AuditDraft, SearchScope, SessionUpdate
from enfold.settings import Settings
from enfold.store import access, catalog, search, sessions
from enfold.store.database import Database
from enfold.store.store import Store
from enfold.strategies.contract import Strategy
from enfold.summaries import Summarizer, prompts
from enfold.summaries.prompts import Prompt

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
        record = await self.store.write(sessions.get_or_create, namespace, id, wanted)
        if _differs(record, wanted):
            record = await self.store.write(sessions.update, record.key, wanted)
        return Session(self, record)

    async def find(self, id: str, *, namespace: str = "") -> Session:
        """The session of that name, which must exist."""
        record = await self.store.read(sessions.find, namespace, id)
        if record is None:
            raise NotFoundError(f"there is no session {id!r}")
        return Session(self, record)

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
        """Where in all sessions the words occur."""
        return await self.store.read(
            search.search,
            query,
            SearchScope(namespace=namespace),
            limit=limit,
            best_first=best_first,
        )

    async def settings(self, profile: str | None = None) -> Settings:
        """The settings that hold where no session or call says otherwise; a profile's, if named."""
        if profile is not None:
            await self.profiles.get(profile)
        return await self.store.read(read_settings, self.static_settings, profile)

    async def prompt(self, profile: str | None = None) -> Prompt:
        """What a model is told when it condenses sessions, of that profile or without one."""
        settings = await self.settings(profile)
        own = settings.strategy_config.get("native", {})
        return prompts.preview(own.get("style", settings.style), own.get("prompt", settings.prompt))

    async def set(self, name: str, value: Any) -> None:
        """Set a setting for all sessions, from the next decision on; None unsets it."""
        known, checked = known_settings.check(name, value)
        check_strategies({known: checked})
        if known == "preset" and checked is not None:
            await self.presets.get(checked)
        if checked is None:
            await self.store.write(catalog.delete_setting, "global", known)
        else:
            await self.store.write(catalog.put_setting, "global", known, checked)


def _differs(record: records.SessionRecord, wanted: SessionUpdate) -> bool:
    return any(
        value is not None and value != getattr(record, name)
        for name, value in (
            ("title", wanted.title),
            ("profile", wanted.profile),
            ("model", wanted.model),
        )
    )


_AT_A_TIME = 100


@dataclass(frozen=True, slots=True)
class Namespace:
    """Where somebody's sessions are."""

    name: str
    sessions: int
    token: str | None
    """The name of the access token that opens it. None: there is none, or it was deleted."""


def read_namespaces(db: Database, *, limit: int = 50, after: str = "") -> list[Namespace]:
    """Namespaces in which there are sessions, by name; the command line's own is not among them."""
    names = {row.namespace: row.name for row in access.tokens(db)}
    found = sessions.namespaces(db, limit=limit, after=after)
    return [Namespace(name, number, names.get(name)) for name, number in found]


async def delete_sessions(store: Store, namespace: str) -> int:
    """Delete all sessions of a namespace, one after the other; how many there were.

    Nobody else waits for long, and what a failure interrupts can be done again.
    """
    number = 0
    while page := await store.read(sessions.page, namespace, limit=_AT_A_TIME):
        for session in page:
            with suppress(NotFoundError):  # somebody else was quicker
                await store.write(sessions.delete, session.key)
                number += 1
    return number


_DAY = 24 * 60 * 60 * 1_000

_log = logging.getLogger("enfold.engine")


async def write_audit_entry(engine: Engine, entry: AuditDraft) -> None:
    """Log what was done. That cannot undo it, so a log that cannot be written is only told."""
    try:
        await engine.store.write(_write, engine.static_settings, entry)
    except StoreError as error:
        _log.error("the audit log could not be written: %s", error)


def _write(db: Database, static_settings: Sequence[SettingsLevel], entry: AuditDraft) -> None:
    """One entry comes, and some of those that are too old go."""
    access.log(db, entry)
    days = read_settings(db, static_settings).audit_days
    access.forget(db, before=db.now() - days * _DAY)
