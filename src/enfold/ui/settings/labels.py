"""Labels: what a control is called for whoever does not see it, and how a part is headed."""

from __future__ import annotations

from typing import TypeVar

from nicegui import ui

Element = TypeVar("Element", bound=ui.element)


def labelled(element: Element, label: str) -> Element:
    """The element with an accessible name, whatever characters that has."""
    element.props["aria-label"] = label
    return element


def card(title: str, explained: str = "") -> ui.element:
    """A part of a page under a heading, to be filled with `with`."""
    part = labelled(ui.element("section").classes("ef-card ef-stack"), title)
    with part, ui.element("div"):
        ui.label(title).classes("st-heading").props("role=heading aria-level=2")
        if explained:
            ui.label(explained).classes("ef-soft ef-small ef-wrap")
    return part


def icon_button(icon: str, label: str) -> ui.button:
    """A small button that is only a picture, with its name for everybody."""
    button = ui.button(icon=icon).props("flat round dense size=sm")
    return labelled(button, label).tooltip(label)
