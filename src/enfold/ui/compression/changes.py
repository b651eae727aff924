"""The page of one compression: the views before and after, and the receipt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias
from urllib.parse import quote

from nicegui import ui

from enfold.amounts import number
from enfold.engine import Session
from enfold.engine.changes import Comparison, MessageRun, Pair
from enfold.engine.inspection import compare_views
from enfold.messages import Message
from enfold.receipt import Fate, Receipt
from enfold.text.grammar import ITEM_CLASSES, ItemClass
from enfold.text.words import storable
from enfold.ui import figures, message_text
from enfold.ui.compression.summary_card import token_counts
from enfold.ui.frame import frame
from enfold.ui.markdown import markdown
from enfold.ui.widgets import (
    Cell,
    author_text,
    badge,
    empty_state,
    expandable,
    facts,
    labelled,
    paged_list,
)
from enfold.ui.window import Window, path_of

_AT_ONCE = 30
"""Rows shown at once."""
_FEW = 2
"""Unchanged messages in a row that are shown without collapsing them."""


def show_comparison(found: Comparison) -> None:
    """Show both views side by side; on a phone one after the other."""
    if found.earlier:
        ui.label(
            f"{number(found.earlier, 'message')} before these were summarized by an earlier "
            "compression and are in neither view."
        ).classes("ef-soft ef-small")
    with ui.element("div").classes("ef-compare"):
        for name in ("Before", "After"):
            ui.label(name).classes("ef-compare-head").props("role=heading aria-level=2")
        rows: list[MessageRun] = []
        for run in found.stretches:  # an edited message has a row of its own
            is_edited = run.change == "edited"
            rows += [MessageRun("edited", (e,)) for e in run.pairs] if is_edited else [run]
        first = next((row for row in rows if row.change == "summarized"), None)

        def show(row: MessageRun) -> None:
            is_new = row is first and found.is_summary_new
            summary = found.summary_after if is_new else None
            if summary is not None:
                _summarized(row, summary, found.summary_before)
            else:
                _SHOW[row.change](row)

        if found.summary_after is not None and not found.is_summary_new:
            with _side("Before and after", "ef-across", label="Summary, unchanged"):
                _show_summary("Summary, unchanged", found.summary_after)
        # display: contents, so that the rows use the two columns of the grid.
        paged_list(rows, show, at_once=_AT_ONCE, classes="ef-contents")


@contextmanager
def _side(view: str, look: str = "", *, label: str = "") -> Iterator[None]:
    """Open one side of a row. The view's name is visible only where the sides are not abreast."""
    with ui.element("div").classes(f"ef-side {look}") as side:
        if label:
            labelled(side.props("role=group"), label)
        if view:
            ui.label(view).classes("ef-side-name")
        yield


def _show_summary(title: str, text: str, *, is_new: bool = False) -> None:
    with ui.element("div").classes("ef-row"):
        ui.label(title).classes("ef-section-title")
        if is_new:
            badge("new")
    markdown(text).classes("ef-summary-text")


def _kept(run: MessageRun) -> None:
    """Show messages that both views contain, collapsed if there are many."""
    with ui.element("div").classes("ef-across"):
        if len(run.pairs) > _FEW:
            _collapsed(run.pairs, "unchanged")
            return
        for pair in run.pairs:
            _show_message(pair, pair.after, badge_text="unchanged")


def _summarized(run: MessageRun, summary: str | None = None, earlier: str | None = None) -> None:
    """Show messages that only the view before contains, and the summary that replaces them."""
    with _side("Before", "ef-side-gone"):
        if summary is not None and earlier is not None:
            expandable("Earlier summary", lambda: _show_summary("Earlier summary", earlier))
        _collapsed(run.pairs)
    if summary is None:
        with _side("", "ef-side-none"):
            ui.label("Summarized: the summary covers these messages too.").classes("ef-small")
    else:
        with _side("After", "ef-side-new", label="Summary"):
            _show_summary("Summary", summary, is_new=True)


def _shown_again(run: MessageRun) -> None:
    """Show messages that only the view after contains."""
    with _side("", "ef-side-none"):
        ui.label("Not in this view.").classes("ef-small")
    with _side("After"):
        _collapsed(run.pairs, "shown again")


def _edited(run: MessageRun) -> None:
    """Show messages that were shortened, each next to its original."""
    for pair in run.pairs:
        with _side("Before"):
            _show_message(pair, pair.before)
        with _side("After", "ef-side-edited"):
            _show_message(pair, pair.after, badge_text="shortened")


_SHOW = {"kept": _kept, "summarized": _summarized, "shown": _shown_again, "edited": _edited}


def _collapsed(pairs: Sequence[Pair], state: str = "") -> None:
    """Show messages collapsed in one line."""
    first, last = pairs[0].depth, pairs[-1].depth
    places = f"#{first:,}" if first == last else f"#{first:,} to #{last:,}"
    title = " ".join(filter(None, (number(len(pairs), "message"), state, f"({places})")))

    def show(pair: Pair) -> None:
        with ui.element("div").classes("ef-listed-message"):
            _show_message(pair, pair.before or pair.after)

    expandable(title, lambda: paged_list(pairs, show))


def _show_message(pair: Pair, shown: Message | None, *, badge_text: str = "") -> None:
    with ui.element("div").classes("ef-row ef-dotted ef-small ef-soft"):
        ui.label(message_text.place_text(pair.depth, pair.original.role))
        if badge_text:
            badge(badge_text, "warm" if badge_text == "shortened" else "plain")

    async def read_original() -> Message:
        return pair.original

    if shown is None or shown == pair.original:
        message_text.show_message(pair.original)
    else:
        message_text.show_shortened(shown, read_original)


Item: TypeAlias = tuple[str, Fate]

_FATES: Mapping[Fate, tuple[str, str]] = {
    "kept": ("Kept", "Literally in the view that the model receives."),
    "restorable": ("Restorable", "Not sent, but in the full history, where it can be found."),
    "lost": ("Lost", "Neither sent nor restorable."),
}
_CLASSES: Mapping[ItemClass, str] = {
    "path": "Paths",
    "url": "URLs",
    "identifier": "Identifiers",
    "number": "Numbers",
    "date": "Dates",
    "name": "Names",
    "error": "Errors",
    "command": "Commands",
}
_RECEIPTS_AT_ONCE = 100
"""Items of a group shown at once."""


def show_receipt(session: str, receipt: Receipt) -> None:
    """Show a receipt: inventions, counts, then every item by class, with search."""
    if receipt.invented:
        with ui.element("section").classes("ef-stack").props("aria-label='Not in the input'"):
            invented = number(len(receipt.invented), "item")
            ui.label(f"The summary has {invented} that the summarized messages do not have:")
            with ui.element("ul").classes("ef-items"):
                for kind, item in receipt.invented:
                    with ui.element("li").classes("ef-wrap"):
                        label = ui.label(storable(item)).classes("ef-item ef-item-lost")
                        label.props("dir=auto").props["title"] = f"{kind}, not in the input"
    if not receipt.total.total:
        empty_state("receipt_long", "No exact items left the view: no path, number, name or date.")
        return
    ui.label(
        "Exact items of the content that left the view: paths, URLs, identifiers, numbers, dates, "
        "names, errors and commands. Each item counts once."
    ).classes("ef-soft ef-small")
    total = receipt.total
    with ui.element("div").classes("ef-tallies"):
        for fate, (name, meaning) in _FATES.items():
            count = getattr(total, fate)
            with ui.element("div").classes(f"ef-tally ef-item-{fate}").props("role=group"):
                ui.label(name).classes("ef-section-title")
                ui.label(f"{count:,}").classes("ef-tally-number")
                figures.share(count / total.total).classes("ef-small")
                ui.label(meaning).classes("ef-soft ef-tiny")
    _ReceiptItems(session, receipt)


class _ReceiptItems:
    """The items that match the search."""

    def __init__(self, session: str, receipt: Receipt) -> None:
        self._session = session
        self._receipt = receipt
        with ui.element("div").classes("ef-row"):
            self._search = ui.input("Search items", on_change=self._fill)
            self._search.props("clearable outlined dense debounce=200").classes("ef-grow")
            fates = {"all": "All"} | {str(fate): name for fate, (name, _) in _FATES.items()}
            self._only = ui.select(fates, value="all", label="Status", on_change=self._fill)
            self._only.props("outlined dense").classes("ef-choice")
        self._groups = ui.element("div").classes("ef-stack")
        self._fill()

    def _fill(self) -> None:
        self._words = (self._search.value or "").strip().casefold()
        self._fate = next((each for each in _FATES if each == self._only.value), None)
        self._groups.clear()
        found = {
            kind: [
                (item, fate)
                for item, fate in self._receipt.items[kind].items()
                if self._words in item.casefold() and self._fate in {None, fate}
            ]
            for kind in ITEM_CLASSES
        }
        with self._groups:
            for kind, items in found.items():
                if items:
                    self._group(kind, items)
            if not any(found.values()):
                ui.label("No matching items.").classes("ef-soft").props("role=status")

    def _group(self, kind: ItemClass, items: Sequence[Item]) -> None:
        def fill() -> None:
            paged_list(items, self._item, at_once=_RECEIPTS_AT_ONCE, tag="ul", classes="ef-items")

        fates = [fate for _, fate in items]
        counts = [f"{fates.count(fate):,} {fate}" for fate in _FATES if fate in fates]
        title = f"{_CLASSES[kind]}: {number(len(items), 'item')}, {', '.join(counts)}"
        line = expandable(title, fill)
        if self._words or self._fate:
            line.open()

    def _item(self, entry: Item) -> None:
        """Show an item; a restorable one links to its place in the full history."""
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


COMPARE, RECEIPT = "compare", "receipt"


async def changes(window: Window, session: str, snapshot: str) -> None:
    """Build the page of a compression; `?show=receipt` opens the receipt."""
    found = await window.session(session)
    comparison = await compare_views(window.engine, found, snapshot)
    shown = ui.context.client.request.query_params.get("show")
    async with frame(window, "Changes", session=session):
        with ui.element("div").classes("ef-row"):
            ui.link("Back to conversation", path_of(session))
            ui.label(await window.title(found)).classes("ef-soft ef-wrap").props("dir=auto")
        _figures(comparison)
        with ui.tabs().props("align=left no-caps") as tabs:
            ui.tab(COMPARE, "Before and after", icon="compare")
            ui.tab(RECEIPT, "Receipt", icon="receipt_long")
        first = RECEIPT if shown == RECEIPT else COMPARE
        with ui.tab_panels(tabs, value=first).classes("ef-full ef-panels").props("keep-alive"):
            with ui.tab_panel(COMPARE).classes("ef-panel"):
                show_comparison(comparison)
            with ui.tab_panel(RECEIPT).classes("ef-panel"):
                await _receipt(found, snapshot, tabs)


def _figures(found: Comparison) -> None:
    snapshot = found.snapshot
    before, after = token_counts(snapshot)
    numbers = {
        "summarized": found.number("summarized"),
        "shortened": found.number("edited"),
        "unchanged": found.number("kept"),
        "shown again": found.number("shown"),
    }
    with labelled(ui.element("section").classes("ef-card ef-stack"), "This compression"):
        less = 1 - after / before if before and after is not None else None
        entries: dict[str, Cell] = {
            "Before": partial(figures.count, before, "tokens"),
            "After": partial(figures.count, after, "tokens"),
            "Saved": partial(figures.share, less),
            "Messages": ", ".join(f"{count:,} {name}" for name, count in numbers.items() if count),
            "Strategy": author_text(snapshot.strategy, snapshot.author),
            "When": partial(figures.age, snapshot.created_at),
        }
        facts(entries)
        if snapshot.undone:
            badge("undone: not in use", "warm")


async def _receipt(session: Session, snapshot: str, tabs: ui.tabs) -> None:
    """Show the receipt; it is computed when its tab is first opened."""
    place = ui.element("div").classes("ef-stack")

    async def fill() -> None:
        if tabs.value == RECEIPT and not place.default_slot.children:
            with place:
                waiting = ui.spinner(size="2em")
            receipt = await session.receipt(snapshot)
            waiting.delete()
            with place:
                show_receipt(session.id, receipt)

    tabs.on_value_change(fill)
    await fill()
