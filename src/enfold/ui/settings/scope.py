"""The scope of a settings page: the settings of all sessions, or those of one session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from nicegui import ui

from enfold.engine import Session
from enfold.engine.inspection import read_set_values, read_threshold
from enfold.engine.state import EffectiveThreshold
from enfold.errors import NotFoundError
from enfold.settings import Settings
from enfold.ui.window import Window

ALL_SESSIONS = ""
"""The choice of all sessions."""
LISTED = 50
"""Sessions that a field offers. A link to the settings of another session adds that one."""

SOURCES: Mapping[str, str] = {
    "default": "default",
    "environment": "environment",
    "config file": "config file",
    "database": "set for all sessions",
    "model": "the model's value",
    "profile": "the session's profile",
    "session": "set for this session",
    "call": "this call",
}
"""The levels of settings in the words of the UI."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The place where changes are stored."""

    window: Window
    session: Session | None = None
    """None: all sessions without a value of their own."""

    @property
    def level(self) -> str:
        """The level of the settings that the scope changes."""
        return "database" if self.session is None else "session"

    @property
    def may_change(self) -> bool:
        """True if the visitor may change settings in this scope."""
        return self.session is not None or self.window.visitor.is_owner

    async def settings(self) -> Settings:
        """Return the settings in force."""
        source = self.window.engine if self.session is None else self.session
        return await source.settings()

    async def set_values(self) -> Mapping[str, Any]:
        """Return the values that are set in this scope, not at another level."""
        return await read_set_values(self.window.engine, self.session)

    async def threshold(self) -> EffectiveThreshold:
        """Return the threshold in force."""
        return await read_threshold(self.window.engine, self.session)

    async def set(self, name: str, value: Any) -> None:
        """Set a value in this scope; None removes it, so that it is inherited again."""
        if self.session is not None:
            async with self.window.audited(f"set {name}", self.session.id):
                await self.session.configure(**{name: value})
            return
        async with self.window.owner_action(f"set {name}"):
            await self.window.engine.set(name, value)

    async def set_config(self, strategy: str, config: Mapping[str, Any] | None) -> None:
        """Set the config of one strategy and leave those of the others unchanged."""
        configs = dict((await self.set_values()).get("strategy_config", {}))
        configs.pop(strategy, None)
        if config is not None:
            configs[strategy] = dict(config)
        await self.set("strategy_config", configs or None)


class ScopedSection:
    """A section of the settings that shows the settings of one scope at a time."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._scope = Scope(window)

    async def build(self) -> None:
        """Build the section below a field for the scope, then show the scope's settings."""
        chooser = ui.element("div")
        await self._build()
        with chooser:
            await choose_scope(self._window, self._follow)

    async def _build(self) -> None:
        """Build the section without values."""
        raise NotImplementedError

    async def _refresh(self) -> None:
        """Show the values of the scope."""
        raise NotImplementedError

    async def _follow(self, scope: Scope) -> None:
        self._scope = scope
        await self._refresh()


async def session_choices(window: Window) -> dict[str, str]:
    """Return the titles of the visitor's sessions by id, most recent first."""
    return {each.id: each.title or each.id for each in await window.sessions(LISTED)}


def session_field(
    choices: dict[str, str], start: str, label: str, changed: Callable[[], object] | None = None
) -> ui.select:
    """Show a field to choose a session."""
    field = ui.select(choices, value=start, label=label, on_change=changed)
    return field.classes("st-scope").props("outlined dense options-dense")


async def choose_scope(window: Window, then: Callable[[Scope], Awaitable[None]]) -> None:
    """Show a field for the scope; call `then` with the current scope and after every change."""
    requested = ui.context.client.request.query_params.get("session", ALL_SESSIONS)
    listed = await session_choices(window)
    choices = {ALL_SESSIONS: "All sessions"}
    choices |= {id: f"Session: {title}" for id, title in listed.items()}
    if requested not in choices:
        with suppress(NotFoundError):
            await window.session(requested)
            choices[requested] = f"Session: {requested}"
    start = requested if requested in choices else ALL_SESSIONS

    async def changed() -> None:
        session = await window.session(field.value) if field.value else None
        await then(Scope(window, session))

    with ui.element("div").classes("ef-row"):
        field = session_field(choices, start, "Settings of", changed)
        ui.label("Changes apply to the next request.").classes("ef-soft ef-small")
    await changed()
