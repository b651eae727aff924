"""The page of one compression: the views before and after, and the receipt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import quote

from nicegui import ui

from enfold.amounts import number
from enfold.engine import Session
from enfold.engine.changes import Comparison, MessageRun, Pair
from enfold.engine.inspection import compare_views
from enfold.messages import Message
from enfold.receipt import Fate, Receipt
from enfold.records import Snapshot
from enfold.text.grammar import ITEM_CLASSES, ItemClass
from enfold.text.words import storable
from enfold.ui import figures, message_text
from enfold.ui.frame import frame
from enfold.ui.markdown import markdown
from enfold.ui.message_text import ReadMessage, show_shortened
from enfold.ui.widgets import (
    age_label,
    author_text,
    badge,
    expandable,
    fact,
    facts,
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
        rows = tuple(_rows(found))
        first = next((row for row in rows if row.fate == "folded"), None)

        def show(row: MessageRun) -> None:
            if row is first and found.summary_after is not None and found.is_summary_new:
                _gone(row, found.summary_before)
                _summary(found.summary_after, "Summary", is_new=True)
            else:
                _SHOW[row.fate](row)

        if found.summary_after is not None and not found.is_summary_new:
            with ui.element("div").classes("ef-across"):
                _summary(found.summary_after, "Summary, unchanged")
        # display: contents, so that the rows use the two columns of the grid.
        paged_list(rows, show, at_once=_AT_ONCE, classes="ef-contents")


def _rows(found: Comparison) -> Iterator[MessageRun]:
    """Yield the rows: an edited message has a row of its own."""
    for run in found.stretches:
        if run.fate == "edited":
            yield from (MessageRun("edited", (pair,)) for pair in run.pairs)
        else:
            yield run


def _summary(text: str, name: str, *, is_new: bool = False) -> None:
    look = "ef-side ef-side-new" if is_new else "ef-side"
    with ui.element("div").classes(look).props(f'role=group aria-label="{name}"'):
        _side_name("After" if is_new else "Before and after")
        with ui.element("div").classes("ef-row"):
            ui.label(name).classes("ef-section-title")
            if is_new:
                badge("new")
        _words(text)


def _kept(run: MessageRun) -> None:
    """Show messages that both views contain, collapsed if there are many."""
    many = len(run.pairs)
    with ui.element("div").classes("ef-across"):
        if many <= _FEW:
            for pair in run.pairs:
                _message(pair, pair.after, badge_text="unchanged")
            return
        places = _places(run.pairs)
        _closed(f"{number(many, 'message')} unchanged ({places})", run.pairs)


def _summarized(run: MessageRun) -> None:
    """Show messages that only the view before contains."""
    _gone(run)
    _empty_side("Summarized: the summary covers these messages too.")


def _gone(run: MessageRun, summary: str | None = None) -> None:
    """Show the messages, and the earlier summary, that left the view."""
    places = _places(run.pairs)
    with ui.element("div").classes("ef-side ef-side-gone"):
        _side_name("Before")
        if summary is not None:
            expandable("Earlier summary", lambda: _words(summary))
        _closed(f"{number(len(run.pairs), 'message')} ({places})", run.pairs)


def _words(summary: str) -> None:
    markdown(summary).classes("ef-summary-text")


def _shown_again(run: MessageRun) -> None:
    """Show messages that only the view after contains."""
    _empty_side("Not in this view.")
    with ui.element("div").classes("ef-side"):
        _side_name("After")
        _closed(f"{number(len(run.pairs), 'message')} shown again", run.pairs)


def _edited(run: MessageRun) -> None:
    """Show messages that were shortened, each next to its original."""
    for pair in run.pairs:
        with ui.element("div").classes("ef-side"):
            _side_name("Before")
            _message(pair, pair.before)
        with ui.element("div").classes("ef-side ef-side-edited"):
            _side_name("After")
            _head(pair, "shortened")
            if pair.after is not None:
                show_shortened(pair.after, _original(pair))


_SHOW = {"kept": _kept, "folded": _summarized, "shown": _shown_again, "edited": _edited}


def _closed(title: str, pairs: Sequence[Pair]) -> None:
    """Show messages collapsed in one line."""
    expandable(title, lambda: paged_list(pairs, _listed))


def _listed(pair: Pair) -> None:
    with ui.element("div").classes("ef-listed-message"):
        _message(pair, pair.before or pair.after)


def _message(pair: Pair, shown: Message | None, *, badge_text: str = "") -> None:
    _head(pair, badge_text)
    if shown is None or shown == pair.original:
        message_text.show_message(pair.original)
    else:
        show_shortened(shown, _original(pair))


def _original(pair: Pair) -> ReadMessage:
    async def read() -> Message:
        return pair.original

    return read


def _head(pair: Pair, badge_text: str = "") -> None:
    with ui.element("div").classes("ef-row ef-dotted ef-small ef-soft"):
        ui.label(
            f"#{pair.depth:,} {message_text.ROLES.get(pair.original.role, pair.original.role)}"
        )
        if badge_text:
            badge(badge_text, "warm" if badge_text == "shortened" else "plain")


def _empty_side(words: str) -> None:
    with ui.element("div").classes("ef-side ef-side-none"):
        ui.label(words).classes("ef-small")


def _side_name(name: str) -> None:
    """Name the view; visible only on a phone, where the views are not side by side."""
    ui.label(name).classes("ef-side-name")


def _places(pairs: Sequence[Pair]) -> str:
    first, last = pairs[0].depth, pairs[-1].depth
    return f"#{first:,}" if first == last else f"#{first:,} to #{last:,}"


Item: TypeAlias = tuple[str, Fate]

_FATES: Mapping[Fate, tuple[str, str]] = {
    "kept": ("Kept", "Literally in the view that the model is sent."),
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
    """Show a receipt: the counts, then every item by class, with search."""
    if not receipt.total.total:
        with ui.element("div").classes("ef-empty"):
            ui.label("No exact items left the view: no path, number, name or date.")
        return
    ui.label(
        "Exact items of the content that left the view: paths, URLs, identifiers, numbers, dates, "
        "names, errors and commands. Each item counts once."
    ).classes("ef-soft ef-small")
    _tallies(receipt)
    _ReceiptItems(session, receipt).show()


def _tallies(receipt: Receipt) -> None:
    total = receipt.total
    with ui.element("div").classes("ef-tallies"):
        for fate, (name, meaning) in _FATES.items():
            number = getattr(total, fate)
            with ui.element("div").classes(f"ef-tally ef-item-{fate}").props("role=group"):
                ui.label(name).classes("ef-section-title")
                ui.label(f"{number:,}").classes("ef-tally-number")
                figures.share(number / total.total).classes("ef-small")
                ui.label(meaning).classes("ef-soft ef-tiny")


class _ReceiptItems:
    """The items that match the search."""

    def __init__(self, session: str, receipt: Receipt) -> None:
        self._session = session
        self._receipt = receipt
        self._words = ""
        self._fate: Fate | None = None

    def show(self) -> None:
        """Show the items."""
        with ui.element("div").classes("ef-row"):
            search = ui.input("Search items").props("clearable outlined dense debounce=200")
            search.classes("ef-grow")
            fates = {"all": "All"} | {str(fate): name for fate, (name, _) in _FATES.items()}
            fate = ui.select(fates, value="all", label="Status").props("outlined dense")
            fate.classes("ef-choice")
        self._groups = ui.element("div").classes("ef-stack")
        search.on_value_change(lambda event: self._search(event.value or ""))
        fate.on_value_change(lambda event: self._only(event.value))
        self._fill()

    def _search(self, words: str) -> None:
        self._words = words.strip().casefold()
        self._fill()

    def _only(self, fate: str) -> None:
        self._fate = next((each for each in _FATES if each == fate), None)
        self._fill()

    def _fill(self) -> None:
        self._groups.clear()
        found = {kind: self._matching(kind) for kind in ITEM_CLASSES}
        with self._groups:
            for kind, items in found.items():
                if items:
                    self._group(kind, items)
            if not any(found.values()):
                ui.label("No matching items.").classes("ef-soft").props("role=status")

    def _matching(self, kind: ItemClass) -> list[Item]:
        return [
            (item, fate)
            for item, fate in self._receipt.items[kind].items()
            if self._words in item.casefold() and self._fate in {None, fate}
        ]

    def _group(self, kind: ItemClass, items: Sequence[Item]) -> None:
        def fill() -> None:
            paged_list(items, self._item, at_once=_RECEIPTS_AT_ONCE, tag="ul", classes="ef-items")

        line = expandable(f"{_CLASSES[kind]}: {_counts_text(items)}", fill)
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


def _counts_text(items: Iterable[Item]) -> str:
    fates = [fate for _, fate in items]
    counts = {fate: fates.count(fate) for fate in _FATES}
    parts = [f"{number:,} {fate}" for fate, number in counts.items() if number]
    return f"{number(len(fates), 'item')}, {', '.join(parts)}"


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
    with ui.element("section").classes("ef-card ef-stack").props('aria-label="This compression"'):
        with facts():
            _tokens(snapshot)
            with fact("Messages"):
                ui.label(_messages(found))
            with fact("By"):
                ui.label(author_text(snapshot.strategy, snapshot.author)).classes("ef-wrap")
            with fact("When"):
                age_label(snapshot)
        if snapshot.undone:
            badge("undone: not in use", "warm")


def _tokens(snapshot: Snapshot) -> None:
    before = snapshot.content.get("originalTokenCount")
    after = snapshot.content.get("newTokenCount")
    with fact("Before"):
        figures.count(before, "tokens")
    with fact("After"):
        figures.count(after, "tokens")
    with fact("Saved"):
        figures.share(1 - after / before if before and after is not None else None)


def _messages(found: Comparison) -> str:
    numbers = {
        "summarized": found.number("folded"),
        "shortened": found.number("edited"),
        "unchanged": found.number("kept"),
        "shown again": found.number("shown"),
    }
    return ", ".join(f"{number:,} {name}" for name, number in numbers.items() if number)


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
