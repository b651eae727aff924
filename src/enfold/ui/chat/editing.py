"""Editing: other words for what was said. They begin a branch; the old ones stay on theirs."""

from __future__ import annotations

from nicegui import ui


async def ask_for_text(text: str, role: str) -> str | None:
    """The new words; None if it was thought better of."""
    with ui.dialog() as dialog, ui.card().classes("ef-dialog ef-stack"):
        ui.label("Say it otherwise").classes("ef-title-small").props("role=heading aria-level=2")
        words = "Your words begin a branch of their own" + (
            " and are answered there." if role == "user" else "."
        )
        ui.label(f"{words} What was said stays on the other one.").classes("ef-soft ef-small")
        field = ui.textarea("Message", value=text).props("outlined autogrow dir=auto autofocus")
        field.classes("ef-full")
        with ui.element("div").classes("ef-row ef-end"):
            ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat")
            save = ui.button("Save", on_click=lambda: dialog.submit(field.value))
            save.props("unelevated color=primary")
    said: str | None = await dialog
    dialog.delete()
    return said if said and said.strip() and said != text else None
