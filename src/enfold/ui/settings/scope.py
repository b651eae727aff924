"""Scope: whose settings a page changes, those of all sessions or those of one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from nicegui import ui

from enfold.engine import Session
from enfold.engine.state import EffectiveThreshold, read_effective, read_session_settings
from enfold.errors import AccessError
from enfold.settings import Settings
from enfold.store import catalog, sessions
from enfold.ui.window import Window

EVERYBODY = ""
"""Of the choices, all sessions."""
LISTED = 200


def require_owner(window: Window) -> None:
    """Raise `AccessError` unless the visitor may change what holds for everybody."""
    if not window.visitor.is_owner:
        raise AccessError(
            f"the token {window.visitor.name!r} may not change what holds for everybody; "
            "sign in with the server's first token"
        )


@dataclass(frozen=True, slots=True)
class Scope:
    """Where changes go."""

    window: Window
    session: Session | None = None
    """None for all sessions that say nothing else."""

    @property
    def level(self) -> str:
        """The level of the settings that it changes."""
        return "database" if self.session is None else "session"

    @property
    def may_change(self) -> bool:
        """Whether the visitor may change something here."""
        return self.session is not None or self.window.visitor.is_owner

    async def settings(self) -> Settings:
        """What is in force, with the level of each value."""
        engine = self.window.engine
        if self.session is None:
            return await engine.settings()
        return await engine.store.read(
            read_session_settings, self.session.key, engine.static_settings
        )

    async def own(self) -> Mapping[str, Any]:
        """What is set here, and not at another level."""
        store = self.window.engine.store
        if self.session is None:
            return await store.read(catalog.settings, "global")
        return (await store.read(sessions.get, self.session.key)).settings

    async def set(self, name: str, value: Any) -> None:
        """Set something here; None lets it be inherited again."""
        if self.session is not None:
            async with self.window.doing(f"set {name}", self.session.id):
                await self.session.configure(**{name: value})
            return
        async with self.window.doing(f"set {name}"):
            require_owner(self.window)
            await self.window.engine.set(name, value)

    async def set_config(self, strategy: str, config: Mapping[str, Any] | None) -> None:
        """Set the config of one strategy here, and leave those of the others as they are."""
        own = dict((await self.own()).get("strategy_config", {}))
        own.pop(strategy, None)
        if config is not None:
            own[strategy] = dict(config)
        await self.set("strategy_config", own or None)

    async def threshold(self) -> EffectiveThreshold:
        """The threshold in force."""
        engine = self.window.engine
        key = None if self.session is None else self.session.key
        return await engine.store.read(read_effective, engine.static_settings, key)


async def session_choices(window: Window) -> dict[str, str]:
    """The visitor's sessions, the last used first: id -> what it is called."""
    found = await window.engine.sessions(namespace=window.namespace, limit=LISTED)
    return {each.id: each.title or each.id for each in found}


async def choose(window: Window, then: Callable[[Scope], Awaitable[None]]) -> None:
    """A field that says whose settings are changed; `then` is told of every choice."""
    asked = ui.context.client.request.query_params.get("session", EVERYBODY)
    listed = await session_choices(window)
    choices = {EVERYBODY: "All sessions"}
    choices |= {id: f"Session: {title}" for id, title in listed.items()}
    start = asked if asked in choices else EVERYBODY

    async def scope_of(id: str) -> Scope:
        return Scope(window, await window.session(id) if id else None)

    async def changed() -> None:
        await then(await scope_of(field.value))

    with ui.element("div").classes("ef-row"):
        field = ui.select(choices, value=start, label="Settings of", on_change=changed)
        field.classes("st-scope").props("outlined dense options-dense")
        ui.label("Changes apply the next time a conversation is prepared for its model.").classes(
            "ef-soft ef-small"
        )
    await then(await scope_of(start))


Element = TypeVar("Element", bound=ui.element)


def labelled(element: Element, label: str) -> Element:
    """The element with an accessible name, whatever characters that has."""
    element.props["aria-label"] = label
    return element


def card(title: str, explained: str = "") -> ui.element:
    """A part of a page under a heading, to be filled with `with`."""
    part = labelled(ui.element("section").classes("ef-card ef-stack"), title)
    with part, ui.element("div"):
        ui.label(title).classes("st-heading").props("role=heading aria-level=2")
        if explained:
            ui.label(explained).classes("ef-soft ef-small ef-wrap")
    return part


def icon_button(icon: str, label: str) -> ui.button:
    """A small button that is only a picture, with its name for everybody."""
    button = ui.button(icon=icon).props("flat round dense size=sm")
    return labelled(button, label).tooltip(label)
