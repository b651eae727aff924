"""Receipts: what became of every exact item that a compression took out of the view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import quote

from nicegui import ui

from enfold.receipt import CLASSES, Class, Fate, Receipt
from enfold.store.words import storable
from enfold.ui import figures
from enfold.ui.blocks import few_at_a_time, number_of, opening
from enfold.ui.window import path_of

Item: TypeAlias = tuple[str, Fate]

_FATES: Mapping[Fate, tuple[str, str]] = {
    "kept": ("Kept", "Literally in what the model is sent."),
    "restorable": ("Restorable", "Not sent, but in the full history: found and restored any time."),
    "lost": ("Lost", "Neither sent nor to be had again."),
}
_CLASSES: Mapping[Class, str] = {
    "path": "Paths",
    "url": "Addresses",
    "identifier": "Identifiers",
    "number": "Numbers",
    "date": "Dates",
    "name": "Names",
    "error": "Errors",
    "command": "Commands",
}
_AT_ONCE = 100
"""Items of a group that are shown at a time."""


def show_receipt(session: str, receipt: Receipt) -> None:
    """Put a receipt on the page: the counts, then every item by its class, to be searched."""
    if not receipt.total.total:
        with ui.element("div").classes("ef-empty"):
            ui.label("No exact items left the view: no path, number, name or date.")
        return
    ui.label(
        "Exact items of what left the view: paths, addresses, identifiers, numbers, dates, names, "
        "errors and commands. An item counts once, however often it comes up."
    ).classes("ef-soft ef-small")
    _tallies(receipt)
    _Items(session, receipt).show()


def _tallies(receipt: Receipt) -> None:
    total = receipt.total
    with ui.element("div").classes("ef-tallies"):
        for fate, (name, meaning) in _FATES.items():
            number = getattr(total, fate)
            with ui.element("div").classes(f"ef-tally ef-item-{fate}").props("role=group"):
                ui.label(name).classes("ef-said-title")
                ui.label(f"{number:,}").classes("ef-tally-number")
                figures.share(number / total.total).classes("ef-small")
                ui.label(meaning).classes("ef-soft ef-tiny")


class _Items:
    """The items, as far as they are looked for."""

    def __init__(self, session: str, receipt: Receipt) -> None:
        self._session = session
        self._receipt = receipt
        self._words = ""
        self._fate: Fate | None = None

    def show(self) -> None:
        """Put them on the page."""
        with ui.element("div").classes("ef-row"):
            search = ui.input("Search the items").props("clearable outlined dense debounce=200")
            search.classes("ef-grow")
            fates = {"all": "All"} | {str(fate): name for fate, (name, _) in _FATES.items()}
            fate = ui.select(fates, value="all", label="What became of it").props("outlined dense")
            fate.classes("ef-choice")
        self._groups = ui.element("div").classes("ef-stack")
        search.on_value_change(lambda event: self._look_for(event.value or ""))
        fate.on_value_change(lambda event: self._only(event.value))
        self._fill()

    def _look_for(self, words: str) -> None:
        self._words = words.strip().casefold()
        self._fill()

    def _only(self, fate: str) -> None:
        self._fate = next((known for known in _FATES if known == fate), None)
        self._fill()

    def _fill(self) -> None:
        self._groups.clear()
        found = {kind: self._matching(kind) for kind in CLASSES}
        with self._groups:
            for kind, items in found.items():
                if items:
                    self._group(kind, items)
            if not any(found.values()):
                ui.label("No item is like that.").classes("ef-soft").props("role=status")

    def _matching(self, kind: Class) -> list[Item]:
        return [
            (item, fate)
            for item, fate in self._receipt.items[kind].items()
            if self._words in item.casefold() and self._fate in {None, fate}
        ]

    def _group(self, kind: Class, items: Sequence[Item]) -> None:
        def fill() -> None:
            few_at_a_time(items, self._item, at_once=_AT_ONCE, tag="ul", classes="ef-items")

        line = opening(f"{_CLASSES[kind]}: {_spoken(items)}", fill)
        if self._words or self._fate:
            line.open()

    def _item(self, entry: Item) -> None:
        """An item; one that is restorable leads to where it was said."""
        item, fate = entry
        shown = storable(item)
        with ui.element("li").classes("ef-wrap"):
            if fate == "restorable":
                words = quote(f'"{shown}"')
                link = ui.link(shown, f"{path_of(self._session, 'history')}?q={words}")
                link.classes(f"ef-item ef-item-{fate}").props("dir=auto")
                link.props["aria-label"] = f"{shown}, restorable: find it in the full history"
            else:
                label = ui.label(shown).classes(f"ef-item ef-item-{fate}").props("dir=auto")
                label.props["title"] = _FATES[fate][0]


def _spoken(items: Iterable[Item]) -> str:
    fates = [fate for _, fate in items]
    counts = {fate: fates.count(fate) for fate in _FATES}
    parts = [f"{number:,} {fate}" for fate, number in counts.items() if number]
    return f"{number_of(len(fates), 'item')}, {', '.join(parts)}"
