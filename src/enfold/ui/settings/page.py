"""The settings page: the table of its sections, and the navigation between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files

from nicegui import ui

from enfold.errors import NotFoundError
from enfold.ui.frame import frame
from enfold.ui.settings.general import general
from enfold.ui.settings.models import models
from enfold.ui.settings.presets import presets
from enfold.ui.settings.profiles import profiles
from enfold.ui.settings.prompts import prompts
from enfold.ui.settings.strategy import strategy
from enfold.ui.window import Window


@dataclass(frozen=True, slots=True)
class SettingsSection:
    """One section of the settings."""

    title: str
    icon: str
    build: Callable[[Window], Awaitable[None]]


SECTIONS: Mapping[str, SettingsSection] = {
    "general": SettingsSection("General", "tune", general),
    "strategy": SettingsSection("Strategy", "compress", strategy),
    "presets": SettingsSection("Presets", "bookmarks", presets),
    "profiles": SettingsSection("Profiles", "key", profiles),
    "prompts": SettingsSection("Prompts", "edit_note", prompts),
    "models": SettingsSection("Models", "memory", models),
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
        await found.build(window)


def _navigation(current: str) -> None:
    with ui.element("nav").classes("st-nav").props("aria-label=Sections"):
        for name, section in SECTIONS.items():
            path = "/settings" if name == "general" else f"/settings/{name}"
            with ui.link(target=path).classes("st-nav-item") as link:
                ui.icon(section.icon, size="18px").props("aria-hidden=true")
                ui.label(section.title)
            if name == current:
                link.props("aria-current=page")
