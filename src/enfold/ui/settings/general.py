"""The general section: every setting with one value, in groups, searchable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nicegui import ui

from enfold.engine.roster import LOCAL
from enfold.ui.settings.catalogue import ELSEWHERE, GROUPS, Group
from enfold.ui.settings.labels import card, labelled
from enfold.ui.settings.row import Row
from enfold.ui.settings.scope import Scope, choose
from enfold.ui.settings.summarizing import summarize_now
from enfold.ui.settings.threshold import ThresholdCard
from enfold.ui.window import Window


async def general(window: Window) -> None:
    """The section."""
    await General(window).build()


@dataclass(frozen=True, slots=True)
class _Shown:
    """A group on the page."""

    card: ui.element
    advanced: ui.expansion | None
    plain: tuple[Row, ...]
    hidden: tuple[Row, ...]
    """Those in the part that is folded away."""

    @property
    def rows(self) -> tuple[Row, ...]:
        return (*self.plain, *self.hidden)


class General:
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
        hidden: list[Row] = []
        advanced = None
        with card(group.title, group.help) as part:
            plain = [
                Row(entry, self._refresh, choices)
                for entry in group.entries
                if not entry.is_advanced
            ]
            rest = [entry for entry in group.entries if entry.is_advanced]
            if rest:
                advanced = ui.expansion("Advanced").classes("st-advanced").props("dense")
                with advanced:
                    hidden.extend(Row(entry, self._refresh, choices) for entry in rest)
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
