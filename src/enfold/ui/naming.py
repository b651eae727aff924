"""Naming and confirming: two small questions that several pages ask."""

from __future__ import annotations

from nicegui import ui


async def ask_for_name(question: str, label: str, value: str) -> str | None:
    """A name; None if it was thought better of."""
    with ui.dialog() as dialog, ui.card().classes("ef-dialog ef-stack"):
        _heading(question)
        field = ui.input(label, value=value).props("outlined autofocus maxlength=200 dir=auto")
        field.classes("ef-full").on("keydown.enter", lambda: dialog.submit(field.value), args=[])
        with ui.element("div").classes("ef-row ef-end"):
            ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat")
            save = ui.button("Save", on_click=lambda: dialog.submit(field.value))
            save.props("unelevated color=primary")
    name: str | None = await dialog
    dialog.delete()
    return name.strip() if name and name.strip() else None


async def confirm(question: str, explanation: str, act: str) -> bool:
    """Whether that is really wanted."""
    with ui.dialog() as dialog, ui.card().classes("ef-dialog ef-stack"):
        _heading(question)
        ui.label(explanation).classes("ef-wrap").props("dir=auto")
        with ui.element("div").classes("ef-row ef-end"):
            ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat autofocus")
            sure = ui.button(act, on_click=lambda: dialog.submit(act))
            sure.props("unelevated color=negative")
    answer: str | None = await dialog
    dialog.delete()
    return answer == act


def _heading(text: str) -> None:
    ui.label(text).classes("ef-title-small").props("role=heading aria-level=2")
