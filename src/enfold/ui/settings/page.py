"""The settings page: the table of its sections, the navigation, and the section for access."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Protocol

from nicegui import ui

from enfold.amounts import number
from enfold.engine.access import Namespace
from enfold.errors import NotFoundError
from enfold.records import KEY_NAMESPACE
from enfold.ui.frame import frame
from enfold.ui.settings.general import GeneralSection
from enfold.ui.settings.models import ModelsSection
from enfold.ui.settings.presets import PresetsSection, PromptsSection
from enfold.ui.settings.profiles import ProfilesSection
from enfold.ui.settings.strategy import StrategySection
from enfold.ui.widgets import Cell, card, named_button, navigation, table
from enfold.ui.window import Window, look_into

WITHOUT_TOKENS = (
    "This server requires no access token. All sessions are listed together, also those of "
    "programs that send their requests through the proxy: Claude Code, Codex and others."
)
WITH_TOKENS = (
    "Every access token has a namespace: its sessions, its search and its figures. No token "
    "reaches the namespace of another. The owner, who has the server's first token, can look into "
    "any. Programs that use the proxy without an access token are listed with the owner's sessions."
)
_AT_ONCE = 50


@dataclass(eq=False)
class AccessSection:
    """The explanation of namespaces and, for the owner, their list."""

    window: Window

    async def build(self) -> None:
        """Build the section."""
        tokens = await self.window.engine.access.tokens()
        with card("Namespaces", WITH_TOKENS if tokens else WITHOUT_TOKENS):
            if not self.window.visitor.is_owner:
                ui.label(f"You see the sessions of the token {self.window.visitor.name}.")
                return
            self._rows: list[Namespace] = []
            self._list = ui.element("div")
            self._more = ui.button("Show more", on_click=self._show_more).props("flat dense")
            await self._show_more()

    async def _show_more(self) -> None:
        last = self._rows[-1].name if self._rows else ""
        found = await self.window.engine.access.namespaces(limit=_AT_ONCE, after=last)
        self._rows += found
        self._more.set_visibility(len(found) == _AT_ONCE)
        # The owner's own list already has the sessions of keys.
        others = [each for each in self._rows if not each.name.startswith(KEY_NAMESPACE)]
        self._list.clear()
        with self._list:
            if not others:
                ui.label("No other namespace has sessions.").classes("ef-soft")
                return
            table("Namespaces", ("Access token", "Sessions", ""), map(_row, others))


def _row(namespace: Namespace) -> tuple[Cell, ...]:
    name = namespace.token or f"deleted token ({namespace.name})"
    title, act = f"Look into the sessions of {name}", partial(look_into, namespace.name)
    button = partial(named_button, "Look into", title, act)
    return name, number(namespace.sessions, "session"), button


class SectionBuilder(Protocol):
    """One section of the settings in one window."""

    async def build(self) -> None:
        """Build the section."""


SECTIONS: Mapping[str, tuple[str, str, Callable[[Window], SectionBuilder]]] = {
    "general": ("General", "tune", GeneralSection),
    "strategy": ("Strategy", "compress", StrategySection),
    "presets": ("Presets", "bookmarks", PresetsSection),
    "profiles": ("Profiles", "key", ProfilesSection),
    "prompts": ("Prompts", "edit_note", PromptsSection),
    "models": ("Models", "memory", ModelsSection),
    "access": ("Access", "group", AccessSection),
}
"""Name -> title, icon and class."""


async def settings(window: Window, section: str = "general") -> None:
    """Build the page of a section."""
    if section not in SECTIONS:
        raise NotFoundError(f"no section {section!r}; available: {', '.join(SECTIONS)}")
    title, _, make = SECTIONS[section]
    ui.add_css(files(__package__).joinpath("settings.css").read_text("utf-8"))
    paths = {name: "/settings" if name == "general" else f"/settings/{name}" for name in SECTIONS}
    async with frame(window, f"Settings: {title}", at="/settings"):
        entries = {paths[name]: (title, icon) for name, (title, icon, _) in SECTIONS.items()}
        navigation("st-nav", "Sections", entries, paths[section])
        if not window.visitor.is_owner:
            ui.label(
                "You can read all settings and change those of your sessions. Settings of the "
                "whole server require the server's first token."
            ).classes("ef-card ef-small")
        await make(window).build()
