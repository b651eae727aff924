"""Summarizing a session from the settings: choose one, and its old messages are folded."""

from __future__ import annotations

from nicegui import ui

from enfold.ui.settings.labels import card
from enfold.ui.settings.scope import session_choices
from enfold.ui.window import Window


async def summarize_now(window: Window) -> None:
    """A card with a choice of sessions and a button."""
    choices = await session_choices(window)
    about = "Folds what is old in one session, with the settings that hold for it."
    with card("Summarize now", about):
        if not choices:
            ui.label("There is no session yet.").classes("ef-soft")
            return
        with ui.element("div").classes("ef-row"):
            field = ui.select(choices, value=next(iter(choices)), label="Session")
            field.classes("st-scope").props("outlined dense options-dense")
            button = ui.button("Summarize conversation history", icon="compress").props(
                "unelevated"
            )
        outcome = ui.label().classes("ef-small ef-wrap").props("aria-live=polite")

    async def run() -> None:
        button.disable()
        outcome.text = "Summarizing …"
        try:
            session = await window.session(field.value)
            done = await session.compress(force=True)
        finally:
            button.enable()
            outcome.text = ""
        if done.compressed:
            outcome.text = (
                f"{done.tokens_before:,} → {done.tokens_after:,} tokens, "
                f"{done.messages:,} messages folded."
            )
        else:
            outcome.text = "; ".join(done.warnings) or "There is nothing to summarize yet."

    button.on_click(run)
