"""Summarizing a session from the settings: choose one, and what is old in it is folded."""

from __future__ import annotations

from nicegui import ui

from enfold.ui.folding.compressing import Compressing
from enfold.ui.settings.labels import card
from enfold.ui.settings.scope import session_choices
from enfold.ui.window import Window


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
    begun: dict[str, Compressing] = {}

    async def run() -> None:
        if field.value not in begun:
            session = await window.session(field.value)
            with outcomes:
                begun[field.value] = Compressing(window, session, _nothing_more)
                await begun[field.value].show()
        await begun[field.value].ask()

    button.props("unelevated").on_click(run)


async def _nothing_more() -> None:
    """The page shows no view that would have to follow."""
