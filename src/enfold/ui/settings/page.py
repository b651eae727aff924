"""The settings page: the table of its sections, and the navigation between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Protocol

from nicegui import ui

from enfold.errors import NotFoundError
from enfold.ui.frame import frame
from enfold.ui.settings.general import GeneralSection
from enfold.ui.settings.models import ModelsSection
from enfold.ui.settings.presets import PresetsSection
from enfold.ui.settings.profiles import ProfilesSection
from enfold.ui.settings.prompts import PromptsSection
from enfold.ui.settings.strategy import StrategySection
from enfold.ui.window import Window


class SectionBuilder(Protocol):
    """One section of the settings in one window."""

    async def build(self) -> None:
        """Build the section."""


@dataclass(frozen=True, slots=True)
class SettingsSection:
    """An entry of the table of sections."""

    title: str
    icon: str
    make: Callable[[Window], SectionBuilder]


SECTIONS: Mapping[str, SettingsSection] = {
    "general": SettingsSection("General", "tune", GeneralSection),
    "strategy": SettingsSection("Strategy", "compress", StrategySection),
    "presets": SettingsSection("Presets", "bookmarks", PresetsSection),
    "profiles": SettingsSection("Profiles", "key", ProfilesSection),
    "prompts": SettingsSection("Prompts", "edit_note", PromptsSection),
    "models": SettingsSection("Models", "memory", ModelsSection),
}


async def settings(window: Window, section: str = "general") -> None:
    """Build the page of a section."""
    if section not in SECTIONS:
        raise NotFoundError(f"no section {section!r}; there are {', '.join(SECTIONS)}")
    found = SECTIONS[section]
    ui.add_css(files(__package__).joinpath("settings.css").read_text("utf-8"))
    async with frame(window, f"Settings: {found.title}", at="/settings"):
        _navigation(section)
        if not window.visitor.is_owner:
            ui.label(
                "You can read all settings and change those of your sessions. Settings of the "
                "whole server require the server's first token."
            ).classes("ef-card ef-small")
        await found.make(window).build()


def _navigation(current: str) -> None:
    with ui.element("nav").classes("st-nav").props("aria-label=Sections"):
        for name, section in SECTIONS.items():
            path = "/settings" if name == "general" else f"/settings/{name}"
            with ui.link(target=path).classes("st-nav-item") as link:
                ui.icon(section.icon, size="18px").props("aria-hidden=true")
                ui.label(section.title)
            if name == current:
                link.props("aria-current=page")
