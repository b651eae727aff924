"""The general section: every setting with one value, in groups, searchable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from nicegui import ui

from enfold.engine.profiles import LOCAL
from enfold.engine.state import EffectiveThreshold
from enfold.errors import ConfigError
from enfold.settings import Settings, check
from enfold.ui import figures
from enfold.ui.compression.controls import CompressionPanel
from enfold.ui.settings.catalogue import ELSEWHERE, GROUPS, SOURCES, Entry, Group
from enfold.ui.settings.scope import Scope, card, choose, icon_button, labelled, session_choices
from enfold.ui.window import Window

Changed: TypeAlias = Callable[[], Awaitable[None]]

_UNSET = ""
"""What a field shows where nothing is set."""


class SettingRow:
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


class ThresholdCard:
    """What is in force, in words and figures."""

    def __init__(self) -> None:
        self._card = ui.element("section").classes("ef-card ef-stack")
        self._card.props('aria-label="Effective threshold" aria-live=polite')

    async def show(self, scope: Scope) -> None:
        """The threshold of the scope."""
        found = await scope.threshold()
        self._card.clear()
        with self._card:
            with ui.element("div").classes("ef-row"):
                ui.label("Effective threshold").classes("st-title")
                figures.count(found.tokens, "tokens").classes("st-big")
                ui.label(f"from: {_source(found)}").classes("st-source st-own")
            ui.label(_words(found)).classes("ef-small ef-wrap")
            if found.note:
                ui.label(found.note).classes("ef-small ef-warm ef-wrap")


def _source(found: EffectiveThreshold) -> str:
    return SOURCES[found.source]


def _words(found: EffectiveThreshold) -> str:
    """How the figure comes about."""
    takes = (
        f"{found.model} takes {found.max_input:,} tokens of input; {found.limit:,} of them are for "
        "the history, the rest is a margin."
    )
    if found.share is None:
        reached = f"A compression is due above {found.tokens:,} tokens, an absolute number."
    else:
        reached = f"A compression is due above {figures.share_text(found.share)} of that."
    if not found.is_automatic:
        reached += " Automatic compression is off: only the hard limit compresses."
    return f"{takes} {reached}"


async def summarize_now(window: Window) -> None:
    """A card with a choice of sessions and a button, which does what the chat's does."""
    choices = await session_choices(window)
    about = "Folds what is old in one session, with the settings that hold for it."
    with card("Summarize now", about):
        if not choices:
            ui.label("There is no session yet.").classes("ef-soft")
            return
        with ui.element("div").classes("ef-row"):
            field = ui.select(choices, value=next(iter(choices)), label="Session")
            field.classes("st-scope").props("outlined dense options-dense")
            button = ui.button("Summarize conversation history", icon="compress")
        outcomes = ui.element("div").classes("ef-stack")
    begun: dict[str, CompressionPanel] = {}

    async def run() -> None:
        if field.value not in begun:
            session = await window.session(field.value)
            with outcomes:
                begun[field.value] = CompressionPanel(window, session, _nothing_more)
                await begun[field.value].show()
        await begun[field.value].ask()

    button.props("unelevated").on_click(run)


async def _nothing_more() -> None:
    """The page shows no view that would have to follow."""


async def general(window: Window) -> None:
    """The section."""
    await GeneralSection(window).build()


@dataclass(frozen=True, slots=True)
class _Shown:
    """A group on the page."""

    card: ui.element
    advanced: ui.expansion | None
    plain: tuple[SettingRow, ...]
    hidden: tuple[SettingRow, ...]
    """Those in the part that is folded away."""

    @property
    def rows(self) -> tuple[SettingRow, ...]:
        return (*self.plain, *self.hidden)


class GeneralSection:
    """The rows, and what keeps them up to date."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._scope = Scope(window)
        self._groups: list[_Shown] = []

    async def build(self) -> None:
        """Put everything on the page, then fill it."""
        search = ui.input(placeholder="Search the settings", on_change=self._search)
        search.props("outlined dense clearable debounce=150 type=search").classes("ef-full")
        labelled(search, "Search the settings")
        with search.add_slot("prepend"):
            ui.icon("search").props("aria-hidden=true")
        self._query = search
        chooser = ui.element("div")
        self._threshold = ThresholdCard()
        choices = await self._summarizers()
        self._groups = [self._group(group, choices) for group in GROUPS]
        self._elsewhere = ui.element("div").classes("ef-stack")
        self._nothing = ui.label("No setting answers to that.").classes("ef-empty")
        self._nothing.set_visibility(False)
        await summarize_now(self._window)
        with chooser:
            await choose(self._window, self._follow)

    async def _summarizers(self) -> Mapping[str, str]:
        names = {LOCAL: "Built in, without a model"}
        listed = await self._window.engine.profiles.all()
        return names | {each.name: f"Profile {each.name}" for each in listed}

    def _group(self, group: Group, choices: Mapping[str, str]) -> _Shown:
        hidden: list[SettingRow] = []
        advanced = None
        with card(group.title, group.help) as part:
            plain = [
                SettingRow(entry, self._refresh, choices)
                for entry in group.entries
                if not entry.is_advanced
            ]
            rest = [entry for entry in group.entries if entry.is_advanced]
            if rest:
                advanced = ui.expansion("Advanced").classes("st-advanced").props("dense")
                with advanced:
                    hidden.extend(SettingRow(entry, self._refresh, choices) for entry in rest)
        return _Shown(part, advanced, tuple(plain), tuple(hidden))

    async def _follow(self, scope: Scope) -> None:
        self._scope = scope
        await self._refresh()

    async def _refresh(self) -> None:
        settings = await self._scope.settings()
        for group in self._groups:
            for row in group.rows:
                row.show(self._scope, settings)
        await self._threshold.show(self._scope)

    def _search(self) -> None:
        query = (self._query.value or "").strip()
        found = False
        for group in self._groups:
            for row in group.rows:
                row.element.set_visibility(row.entry.answers(query))
            answers = [row.entry.answers(query) for row in group.rows]
            group.card.set_visibility(any(answers))
            found |= any(answers)
            if group.advanced is not None:
                hits = any(row.entry.answers(query) for row in group.hidden)
                group.advanced.set_visibility(hits)
                group.advanced.value = bool(query) and hits
        found |= self._point_elsewhere(query)
        self._nothing.set_visibility(not found)

    def _point_elsewhere(self, query: str) -> bool:
        """Links to what another section has; none while nobody searches."""
        found = [each for each in ELSEWHERE if query and each.answers(query)]
        self._elsewhere.clear()
        with self._elsewhere:
            for each in found:
                ui.link(f"{each.title} →", f"/settings/{each.section}").classes("ef-card")
        return bool(found)
