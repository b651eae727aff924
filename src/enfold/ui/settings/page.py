"""The settings page: the table of its sections, and the navigation between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Protocol

from nicegui import ui

from enfold.errors import NotFoundError
from enfold.ui.frame import frame
from enfold.ui.settings.access import AccessSection
from enfold.ui.settings.general import GeneralSection
from enfold.ui.settings.models import ModelsSection
from enfold.ui.settings.presets import PresetsSection
from enfold.ui.settings.profiles import ProfilesSection
from enfold.ui.settings.prompts import PromptsSection
from enfold.ui.settings.strategy import StrategySection
from enfold.ui.widgets import navigation
from enfold.ui.window import Window


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
        raise NotFoundError(f"no section {section!r}; there are {', '.join(SECTIONS)}")
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
