"""A row: one setting with its control, where its value comes from, and the way back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from nicegui import ui

from enfold.errors import ConfigError
from enfold.settings import Settings, check
from enfold.ui.settings.catalogue import SOURCES, Entry
from enfold.ui.settings.labels import icon_button, labelled
from enfold.ui.settings.scope import Scope

Changed: TypeAlias = Callable[[], Awaitable[None]]

_UNSET = ""
"""What a field shows where nothing is set."""


class Row:
    """One setting. A switch or a choice is kept at once, a text when Enter or Tab leaves it."""

    def __init__(self, entry: Entry, changed: Changed, choices: Mapping[str, str] | None) -> None:
        self.entry = entry
        self._changed = changed
        self._scope: Scope | None = None
        self._shown: Any = None
        """What the control was last given, so that it is told from what a person does."""
        with ui.element("div").classes("st-row") as self.element:
            with ui.element("div").classes("st-words"):
                ui.label(entry.title).classes("st-title").tooltip(f"Setting: {entry.name}")
                ui.label(entry.help).classes("ef-soft ef-small")
            with ui.element("div").classes("st-control"):
                self._control = self._make(choices or {})
                with ui.element("div").classes("ef-row-tight"):
                    self._source = ui.label().classes("st-source")
                    self._reset = icon_button("undo", f"Reset {entry.title}")
                    self._reset.on_click(self._unset)

    def show(self, scope: Scope, settings: Settings) -> None:
        """What is in force, and who says so."""
        self._scope = scope
        value, source = getattr(settings, self.entry.name), settings.sources[self.entry.name]
        self._shown = self._as_shown(value)
        self._control.value = self._shown
        self._control.set_enabled(scope.may_change)
        self._source.text = f"from: {SOURCES[source]}"
        self._source.classes(
            remove="st-own" if source != scope.level else "",
            add="st-own" if source == scope.level else "",
        )
        self._reset.set_visibility(source == scope.level and scope.may_change)

    def _make(self, choices: Mapping[str, str]) -> ui.switch | ui.select | ui.input:
        entry = self.entry
        if entry.kind == "flag":
            return labelled(ui.switch(on_change=self._keep), entry.title)
        if entry.kind == "choice":
            known = dict(entry.choices or choices)
            if entry.unset:
                known = {_UNSET: f"Not set: {entry.unset}", **known}
            field = ui.select(known, on_change=self._keep).props("outlined dense options-dense")
            return labelled(field, entry.title).classes("ef-full")
        text = ui.input(placeholder=entry.unset, suffix=entry.unit or None, validation=self._fault)
        labelled(text.props("outlined dense hide-bottom-space"), entry.title)
        if entry.kind == "number":
            text.props("inputmode=decimal")
        text.on("keydown.enter", self._keep).on("blur", self._keep)
        return text.classes("ef-full")

    def _as_shown(self, value: Any) -> Any:
        if self.entry.kind == "flag":
            return bool(value)
        if value is None:
            return _UNSET
        return f"{value:g}" if isinstance(value, float) else str(value)

    def _fault(self, value: Any) -> str | None:
        """What the engine says of a value that somebody is typing."""
        if value in (None, _UNSET):
            return None
        try:
            check(self.entry.name, value)
        except ConfigError as error:
            return str(error)
        return None

    async def _keep(self) -> None:
        value = self._control.value
        if value == self._shown or self._scope is None or self._fault(value) is not None:
            return
        await self._scope.set(self.entry.name, None if value == _UNSET else value)
        await self._changed()
        ui.notify(f"{self.entry.title}: kept", type="positive", position="bottom", timeout=1_500)

    async def _unset(self) -> None:
        if self._scope is None:
            return
        await self._scope.set(self.entry.name, None)
        await self._changed()
