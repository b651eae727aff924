"""Previewing: what a config would make of a real session, before it is kept. No model is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nicegui import ui

from enfold.engine import Preview
from enfold.ui import figures
from enfold.ui.settings.labels import labelled
from enfold.ui.settings.scope import Scope, session_choices


async def preview_card(
    scope: Scope, strategy: str, config: Callable[[], Mapping[str, Any]]
) -> None:
    """A choice of sessions, a button, and what would come of it."""
    choices = await session_choices(scope.window)
    part = labelled(ui.element("section").classes("st-preview ef-stack"), "Preview on a session")
    with part:
        ui.label("Preview on a real session").classes("st-title")
        ui.label(
            "The config as it stands above, tried without asking a model and without changing "
            "anything. What a model would cost is said below."
        ).classes("ef-soft ef-small")
        if not choices:
            ui.label("There is no session yet to try it on.").classes("ef-soft")
            return
        start = scope.session.id if scope.session is not None else next(iter(choices))
        with ui.element("div").classes("ef-row"):
            field = ui.select(choices, value=start, label="Session to try it on")
            field.classes("st-scope").props("outlined dense options-dense")
            button = ui.button("Preview", icon="visibility").props("outline")
        outcome = ui.element("div").props("aria-live=polite").classes("ef-stack")

    async def run() -> None:
        button.disable()
        try:
            session = await scope.window.session(field.value)
            found = await session.preview(strategy=strategy, strategy_config={strategy: config()})
        finally:
            button.enable()
        outcome.clear()
        with outcome:
            _show(found)

    button.on_click(run)


def _show(found: Preview) -> None:
    with ui.element("div").classes("ef-row"):
        figures.count(found.tokens_before, "tokens")
        ui.icon("arrow_forward").props("aria-label=become")
        figures.estimate(
            found.tokens_after, "tokens", "A summary that is not written yet has no exact length."
        ).classes("st-big")
        gone = 1 - found.tokens_after / found.tokens_before if found.tokens_before else 0.0
        ui.label(f"{figures.share_text(gone)} less").classes("ef-good")
    ui.label(
        f"{found.messages:,} messages would be folded or shortened, {found.kept_messages:,} stay. "
        f"Summaries by: {found.author}."
    ).classes("ef-small")
    with ui.element("div").classes("ef-row ef-small"):
        ui.label("Cost:")
        figures.money(found.cost, is_estimate=bool(found.cost), why="By the prices known today.")
    if found.steps:
        with labelled(ui.element("table").classes("st-table"), "Steps"):
            _line("th", ("Step", "Before", "After", "Less"))
            for step in found.steps:
                figures_of = (f"{step.tokens_before:,}", f"{step.tokens_after:,}")
                _line("td", (step.name, *figures_of, figures.share_text(max(0.0, step.reduction))))
    for warning in found.warnings:
        ui.label(warning).classes("ef-small ef-warm ef-wrap")


def _line(cell: str, texts: tuple[str, ...]) -> None:
    with ui.element("tr"):
        for text in texts:
            with ui.element(cell):
                ui.label(text)
