"""The strategy section: which one condenses, compared with the others, and its config."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from enfold.errors import ConfigError
from enfold.settings import Settings
from enfold.strategies import registry
from enfold.strategies.contract import Kind
from enfold.ui.settings.catalogue import SOURCES
from enfold.ui.settings.comparing import CHARACTERS, comparison_table, traits
from enfold.ui.settings.configuring import Configuring
from enfold.ui.settings.labels import card, labelled
from enfold.ui.settings.scope import Scope, choose
from enfold.ui.window import Window


async def strategy(window: Window) -> None:
    """The section."""
    await Strategies(window).build()


class Strategies:
    """The strategies to choose from, and the form of one of them."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._scope = Scope(window)
        self._edited: str | None = None

    async def build(self) -> None:
        """Put everything on the page, then fill it."""
        chooser = ui.element("div")
        with card("Strategy", "How a view is condensed once that is due."):
            self._source = ui.element("div").classes("ef-row")
            self._choices = labelled(ui.element("div").classes("st-choices"), "Strategies")
            with ui.expansion("Compare the strategies", icon="table_chart").classes("st-advanced"):
                comparison_table()
        self._config = card("Config", "What can be set of the strategy that is chosen above.")
        with self._config:
            self._form = ui.element("div").classes("ef-stack")
        with chooser:
            await choose(self._window, self._follow)

    async def _follow(self, scope: Scope) -> None:
        self._scope = scope
        self._edited = None
        await self._refresh()

    async def _refresh(self) -> None:
        settings = await self._scope.settings()
        self._edited = self._edited or settings.strategy
        self._choices.clear()
        with self._choices:
            for name in registry.names():
                self._choice(name, settings)
        self._tell_source(settings)
        await self._show_form(settings)

    def _tell_source(self, settings: Settings) -> None:
        self._source.clear()
        source = settings.sources["strategy"]
        with self._source:
            ui.label(f"In use: {settings.strategy}").classes("st-title")
            ui.label(f"from: {SOURCES[source]}").classes("st-source")
            if settings.preset is not None:
                ui.label(f"preset {settings.preset}").classes("st-badge")
                if settings.sources["preset"] == self._scope.level and self._scope.may_change:
                    drop = ui.button("Drop the preset", icon="undo", on_click=self._drop_preset)
                    drop.props("flat dense")
            if source == self._scope.level and self._scope.may_change:
                reset = ui.button("Reset", icon="undo", on_click=lambda: self._use(None))
                labelled(reset.props("flat dense"), "Reset the strategy")

    def _choice(self, name: str, settings: Settings) -> None:
        in_use, edited = settings.strategy == name, self._edited == name
        classes = "st-choice" + (" st-chosen" if edited else "")
        try:
            kind: Kind[Any] | None = registry.get(name)
            about = kind.description if kind is not None else ""
        except ConfigError as error:
            kind, about = None, str(error)
        with labelled(ui.element("article").classes(classes), kind.name if kind else name):
            with ui.element("div").classes("ef-row"):
                ui.label(kind.name if kind else name).classes("st-title")
                if in_use:
                    ui.label("in use").classes("st-badge st-own")
            ui.label(about).classes("ef-small ef-wrap")
            if kind is None:
                return
            known = CHARACTERS.get(name)
            words = known.best_for if known else ", ".join(traits(kind.capabilities))
            ui.label(words).classes("ef-soft ef-small ef-wrap")
            with ui.element("div").classes("ef-row"):
                if not in_use:
                    use = ui.button("Use", on_click=lambda: self._use(name)).props("outline dense")
                    labelled(use, f"Use {kind.name}").set_enabled(self._scope.may_change)
                edit = ui.button("Configure", on_click=lambda: self._edit(name)).props("flat dense")
                labelled(edit, f"Configure {kind.name}")

    async def _use(self, name: str | None) -> None:
        await self._scope.set("strategy", name)
        self._edited = name
        await self._refresh()

    async def _drop_preset(self) -> None:
        await self._scope.set("preset", None)
        self._edited = None
        await self._refresh()

    async def _edit(self, name: str) -> None:
        self._edited = name
        await self._refresh()

    async def _show_form(self, settings: Settings) -> None:
        name = self._edited or settings.strategy
        self._form.clear()
        listed = await self._window.engine.profiles.all()
        profiles = {each.name: each.name for each in listed}
        with self._form:
            try:
                kind = registry.get(name)
            except ConfigError as error:
                ui.label(str(error)).classes("ef-bad ef-wrap")
                return
            own = (await self._scope.own()).get("strategy_config", {})
            config = settings.strategy_config.get(name, {})
            with ui.element("div").classes("ef-row"):
                ui.label(kind.name).classes("st-title")
                ui.label(_origin(name, own, config, self._scope)).classes("st-source")
            await Configuring(self._scope, kind, config, profiles, self._refresh).build()


def _origin(name: str, own: dict[str, Any], config: Any, scope: Scope) -> str:
    """Where a strategy's config comes from."""
    if name in own:
        return f"from: {SOURCES[scope.level]}"
    return "from: another level" if config else "from: default"
