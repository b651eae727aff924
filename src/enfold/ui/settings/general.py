"""The general section: every setting with a single value, in groups, with search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nicegui import ui

from enfold.engine.profiles import LOCAL
from enfold.engine.state import EffectiveThreshold
from enfold.errors import ConfigError
from enfold.fields import FieldDescription
from enfold.settings import GROUPS, Settings, check, fields
from enfold.ui import figures
from enfold.ui.compression.controls import CompressionPanel
from enfold.ui.forms import draw_field, help_text
from enfold.ui.settings.scope import SOURCES, Scope, ScopedSection, session_choices, session_field
from enfold.ui.widgets import card, icon_button, labelled
from enfold.ui.window import Window

Changed: TypeAlias = Callable[[], Awaitable[None]]

OTHER_SECTIONS = ("prompt", "strategy", "strategy_config", "preset")
"""Settings that have a section of their own."""
OTHER_TOPICS: Mapping[str, tuple[str, str]] = {
    "Strategy and its options": ("strategy", "native lossless truncation smart strategy"),
    "Passes of the smart strategy": ("strategy", "pass operation suppress truncate keep"),
    "Presets": ("presets", "speed quality cost balanced agent import export apply"),
    "Profiles and costs": ("profiles", "provider key api price condensing cheap"),
    "Prompts": ("prompts", "prompt instructions template summary"),
    "Models and their limits": ("models", "window max input output tokenizer limit"),
}
"""Topics of other sections: title -> section and search words."""
_UNSET = ""
"""The value of a field whose setting is unset."""


class SettingRow:
    """One setting. A switch or a choice is stored at once, a text on Enter or on leaving it."""

    def __init__(
        self, about: FieldDescription, changed: Changed, choices: Mapping[str, str]
    ) -> None:
        self.about = about
        self._changed = changed
        self._scope: Scope | None = None
        self._shown: Any = None
        """The value that the server set, to tell it from a change by the user."""
        with ui.element("div").classes("st-row") as self.element:
            with ui.element("div").classes("st-words"):
                ui.label(about.title).classes("st-title").tooltip(f"Setting: {about.name}")
                ui.label(help_text(about)).classes("ef-soft ef-small")
            with ui.element("div").classes("st-control"):
                values = {**({_UNSET: f"Not set: {about.unset}"} if about.unset else {}), **choices}
                listed = values if choices else None
                field = draw_field(about, None, choices=listed, label=False)
                if about.kind in {"flag", "choice"}:
                    field.on_value_change(self._store)
                else:
                    field.validation = self._fault
                    field.props("hide-bottom-space")
                    field.on("keydown.enter", self._store).on("blur", self._store)
                self._control = labelled(field, about.title)
                with ui.element("div").classes("ef-row-tight"):
                    self._source = ui.label().classes("st-source")
                    self._reset = icon_button("undo", f"Reset {about.title}", self._unset)

    def show(self, scope: Scope, settings: Settings) -> None:
        """Show the value in force and its level."""
        self._scope = scope
        value, source = getattr(settings, self.about.name), settings.sources[self.about.name]
        if self.about.kind == "flag":
            self._shown = bool(value)
        elif value is None:
            self._shown = _UNSET
        else:
            self._shown = f"{value:g}" if isinstance(value, float) else str(value)
        self._control.value = self._shown
        self._control.set_enabled(scope.may_change)
        self._source.text = f"from: {SOURCES[source]}"
        is_set_here = source == scope.level
        self._source.classes(replace="st-source st-own" if is_set_here else "st-source")
        self._reset.set_visibility(is_set_here and scope.may_change)

    def _fault(self, value: Any) -> str | None:
        """Return the error in a value; None if it is valid."""
        if value in (None, _UNSET):
            return None
        try:
            check(self.about.name, value)
        except ConfigError as error:
            return str(error)
        return None

    async def _store(self) -> None:
        value = self._control.value
        if value == self._shown or self._scope is None or self._fault(value) is not None:
            return
        await self._scope.set(self.about.name, None if value == _UNSET else value)
        await self._changed()
        ui.notify(f"{self.about.title} saved", type="positive", position="top", timeout=1_500)

    async def _unset(self) -> None:
        if self._scope is not None:
            await self._scope.set(self.about.name, None)
            await self._changed()


def _explain_threshold(found: EffectiveThreshold) -> str:
    limit = (
        f"{found.model} accepts {found.max_input:,} input tokens. The history may use "
        f"{found.limit:,} of them; the rest is a safety margin."
    )
    if found.share is None:
        due = f"A compression is due above {found.tokens:,} tokens, an absolute number."
    else:
        due = f"A compression is due above {figures.share_text(found.share)} of that."
    if found.is_window_guard and found.is_automatic:
        due += (
            f" Above {found.tokens:,} tokens the window has too little room for a reply, "
            "so it is due there."
        )
    if not found.is_automatic:
        due += " Automatic compression is off: only the hard limit starts one."
    return f"{limit} {due}"


async def summarize_card(window: Window) -> None:
    """Show a card that starts a compression of a chosen session."""
    choices = await session_choices(window)
    with card("Summarize now", "Summarizes the old messages of one session, with its settings."):
        if not choices:
            ui.label("No session yet.").classes("ef-soft")
            return
        with ui.element("div").classes("ef-row"):
            field = session_field(choices, next(iter(choices)), "Session")
            button = ui.button("Summarize conversation history", icon="compress")
        outcomes = ui.element("div").classes("ef-stack")
    panels: dict[str, CompressionPanel] = {}

    async def no_view() -> None:
        """Do nothing: this page shows no view of the session."""

    async def run() -> None:
        if field.value not in panels:
            session = await window.session(field.value)
            with outcomes:
                panels[field.value] = CompressionPanel(window, session, no_view, no_view)
                await panels[field.value].show()
        await panels[field.value].open_dialog()

    button.props("unelevated").on_click(run)


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of settings on the page."""

    card: ui.element
    advanced: ui.expansion | None
    rows: tuple[SettingRow, ...]


class GeneralSection(ScopedSection):
    """The rows of all settings, and a search for them."""

    async def _build(self) -> None:
        self._query = ui.input(placeholder="Search settings", on_change=self._search)
        self._query.props("outlined dense clearable debounce=150 type=search").classes("ef-full")
        labelled(self._query, "Search settings")
        with self._query.add_slot("prepend"):
            ui.icon("search").props("aria-hidden=true")
        self._threshold = ui.element("section").classes("ef-card ef-stack")
        labelled(self._threshold.props("aria-live=polite"), "Effective threshold")
        profiles = await self._window.engine.profiles.all()
        summarizers = {LOCAL: "Built in, without a model"}
        summarizers |= {each.name: f"Profile {each.name}" for each in profiles}
        shown = [each for each in fields().values() if each.name not in OTHER_SECTIONS]
        self._groups = [
            self._group(title, [each for each in shown if each.group == title], summarizers)
            for title in dict.fromkeys(each.group for each in shown)
        ]
        self._links = ui.element("div").classes("ef-stack")
        self._nothing = ui.label().classes("ef-empty")
        self._nothing.set_visibility(False)
        await summarize_card(self._window)

    def _group(
        self, title: str, members: Sequence[FieldDescription], summarizers: Mapping[str, str]
    ) -> _Group:
        def row(about: FieldDescription) -> SettingRow:
            choices = summarizers if about.name == "summarizer" else about.choices or {}
            return SettingRow(about, self._refresh, choices)

        advanced: ui.expansion | None = None
        with card(title, GROUPS.get(title, "")) as part:
            rows = [row(each) for each in members if not each.is_advanced]
            if any(each.is_advanced for each in members):
                advanced = ui.expansion("Advanced").classes("st-advanced").props("dense")
                with advanced:
                    rows += [row(each) for each in members if each.is_advanced]
        return _Group(part, advanced, tuple(rows))

    async def _refresh(self) -> None:
        settings = await self._scope.settings()
        for group in self._groups:
            for row in group.rows:
                row.show(self._scope, settings)
        found = await self._scope.threshold()
        self._threshold.clear()
        with self._threshold:
            with ui.element("div").classes("ef-row"):
                ui.label("Effective threshold").classes("st-title")
                figures.count(found.tokens, "tokens").classes("st-big")
                ui.label(f"from: {SOURCES[found.source]}").classes("st-source st-own")
            ui.label(_explain_threshold(found)).classes("ef-small ef-wrap")
            if found.note:
                ui.label(found.note).classes("ef-small ef-warm ef-wrap")

    def _search(self) -> None:
        query = (self._query.value or "").strip()
        has_results = False
        for group in self._groups:
            matching = [row for row in group.rows if row.about.matches(query)]
            for row in group.rows:
                row.element.set_visibility(row in matching)
            group.card.set_visibility(bool(matching))
            has_results |= bool(matching)
            if group.advanced is not None:
                hits = any(row.about.is_advanced for row in matching)
                group.advanced.set_visibility(hits)
                group.advanced.value = bool(query) and hits
        has_results |= self._link_other_sections(query)
        self._nothing.text = f"No results for “{query}”."
        self._nothing.set_visibility(not has_results)

    def _link_other_sections(self, query: str) -> bool:
        """Show links to matching topics of other sections; return True if there are any."""
        words = query.casefold().split()
        self._links.clear()
        with self._links:
            for title, (section, terms) in OTHER_TOPICS.items():
                text = f"{title} {terms}".casefold()
                if words and all(word in text for word in words):
                    ui.link(f"{title} →", f"/settings/{section}").classes("ef-card")
        return bool(self._links.default_slot.children)
