"""The engine: opens sessions over a store, and knows who writes summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from enfold import settings as known_settings
from enfold.engine.models import Models
from enfold.engine.presets import Presets, check_strategies
from enfold.engine.profiles import Profiles
from enfold.engine.session import Session
from enfold.engine.state import Level, read_settings
from enfold.errors import NotFoundError
from enfold.events import Events
from enfold.queue import Queue
from enfold.settings import Settings
from enfold.store import catalog, records, search, sessions
from enfold.store.search import Where
from enfold.store.sessions import Changes
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
        outside: Sequence[Level] = (),
    ) -> None:
        self.store = store
        self.profiles = profiles
        self.queue = queue
        self.strategy = strategy
        self.outside = tuple(outside)
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
        wanted = Changes(title=title, profile=profile, model=model)
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
        after: records.Session | records.SessionMark | None = None,
    ) -> list[records.Session]:
        """A page of sessions, the last used first."""
        return await self.store.read(sessions.page, namespace, limit=limit, after=after)

    async def search(
        self, query: str, *, namespace: str = "", limit: int = 20, best_first: bool = False
    ) -> Sequence[records.Hit]:
        """Where in all sessions the words occur."""
        return await self.store.read(
            search.search, query, Where(namespace=namespace), limit=limit, best_first=best_first
        )

    async def settings(self, profile: str | None = None) -> Settings:
        """The settings that hold where no session or call says otherwise; a profile's, if named."""
        if profile is not None:
            await self.profiles.get(profile)
        return await self.store.read(read_settings, self.outside, profile)

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


def _differs(record: records.Session, wanted: Changes) -> bool:
    return any(
        value is not None and value != getattr(record, name)
        for name, value in (
            ("title", wanted.title),
            ("profile", wanted.profile),
            ("model", wanted.model),
        )
    )
