"""Pricing: what a compression would cost with each profile, and which one to take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from nicegui import ui

from enfold.engine.profiles import Listed
from enfold.errors import ConfigError
from enfold.llm.comparison import Candidate, Figures, Offer, compare, recommend
from enfold.llm.providers import provider
from enfold.ui import figures
from enfold.ui.settings.labels import card, labelled
from enfold.ui.settings.scope import require_owner
from enfold.ui.window import Window

_READ, _WRITTEN = 100_000, 2_000
"""Tokens of a run that stands for many: a long conversation and its summary."""


class CostTable:
    """The profiles side by side, cheapest first, those without a price last."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._listed: Sequence[Listed] = ()

    def build(self) -> None:
        """The table's place on the page."""
        about = (
            "One compression with each profile, and with the cheap model that condenses where a "
            "profile names no other. By price alone: whether a model writes well enough is yours "
            "to say."
        )
        with card("What a compression costs", about):
            with ui.element("div").classes("ef-row"):
                self._read = self._number("Tokens read", _READ)
                self._written = self._number("Tokens written", _WRITTEN)
            self._advice = ui.label().classes("st-title ef-wrap").props("role=status")
            with ui.element("div").classes("st-scroll"):
                self._table = labelled(ui.element("table").classes("st-table"), "Costs compared")

    async def show(self, listed: Sequence[Listed]) -> None:
        """The profiles as they are now."""
        self._listed = listed
        await self._refresh()

    def _number(self, words: str, value: int) -> ui.number:
        field = ui.number(words, value=value, min=0, on_change=self._refresh)
        return field.props("outlined dense debounce=300")

    async def _refresh(self) -> None:
        candidates, models = candidates_of(self._listed)
        settings = await self._window.engine.settings()
        current = settings.summarizer if settings.summarizer in models else None
        run = Figures(int(self._read.value or 0), int(self._written.value or 0))
        self._table.clear()
        try:
            advice = recommend(run, candidates, current) if candidates else None
            offers = compare(run, candidates, current) if candidates else ()
        except ConfigError as error:
            self._advice.text = str(error)
            return
        nothing = "No price is known." if candidates else "There is no profile to compare yet."
        self._advice.text = advice.reason if advice else nothing
        if not candidates:
            return
        with self._table:
            _head("Who writes", "Model", "Cost", "Saves", "")
            for offer in offers:
                is_best = advice is not None and offer.name == advice.name
                self._row(offer, models[offer.name], current=current, is_best=is_best)

    def _row(self, offer: Offer, model: str, *, current: str | None, is_best: bool) -> None:
        with ui.element("tr"):
            with ui.element("td"), ui.element("div").classes("ef-row"):
                ui.label(offer.name).classes("ef-wrap")
                for badge, shown in (("recommended", is_best), ("in use", offer.name == current)):
                    if shown:
                        ui.label(badge).classes("st-badge st-own")
            with ui.element("td").classes("st-optional"):
                ui.label(model).classes("ef-mono ef-wrap")
            with ui.element("td"):
                figures.money(offer.cost.total, is_estimate=True, why="By today's prices.")
            with ui.element("td"):
                if offer.saved is None:
                    figures.unknown("One of the two prices is not known.")
                else:
                    ui.label(f"{figures.share_text(max(0.0, offer.share or 0.0))}")
            with ui.element("td"):
                is_profile = any(each.name == offer.name for each in self._listed)
                if is_profile and offer.name != current:
                    use = ui.button("Use", on_click=partial(self._use, offer.name))
                    labelled(use.props("flat dense"), f"Let {offer.name} write all summaries")
                    use.set_enabled(self._window.visitor.is_owner)

    async def _use(self, name: str) -> None:
        async with self._window.doing("set summarizer"):
            require_owner(self._window)
            await self._window.engine.set("summarizer", name)
        ui.notify(f"{name} writes summaries from now on.", type="positive")
        await self._refresh()


def candidates_of(listed: Sequence[Listed]) -> tuple[list[Candidate], Mapping[str, str]]:
    """Who could write summaries, and the model of each."""
    found: list[Candidate] = []
    models: dict[str, str] = {}
    for each in listed:
        profile = each.profile
        if profile is None:
            continue
        found.append(Candidate.of(profile.name, profile.id, profile.prices))
        models[profile.name] = profile.id
        cheap = provider(profile.provider).cheap_model
        if cheap is not None and cheap != profile.model:
            name = f"{profile.name}, cheap model"
            found.append(Candidate.of(name, f"{profile.provider}:{cheap}"))
            models[name] = f"{profile.provider}:{cheap}"
    return found, models


def _head(*titles: str) -> None:
    with ui.element("tr"):
        for title in titles:
            cell = ui.element("th").props("scope=col")
            with cell.classes("st-optional" if title == "Model" else ""):
                ui.label(title)
