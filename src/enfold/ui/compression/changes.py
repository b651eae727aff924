"""The page of one compression: what changed, and what became of every exact item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import quote

from nicegui import ui

from enfold.engine import Session
from enfold.engine.changes import Comparison, MessageRun, Pair, read_comparison
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
    number_of,
    paged_list,
)
from enfold.ui.window import Window, path_of

_AT_ONCE = 30
"""Rows that are shown at a time."""
_FEW = 2
"""So many in a row are shown at once, without a line that says how many they are."""


def show_comparison(found: Comparison) -> None:
    """Put both views on the page: beside each other, or on a phone one after the other."""
    if found.earlier:
        ui.label(
            f"{number_of(found.earlier, 'message')} before these were folded by an earlier "
            "compression; neither view shows them."
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
        # Not a box of their own: the rows stand in the same two columns.
        paged_list(rows, show, at_once=_AT_ONCE, classes="ef-contents")


def _rows(found: Comparison) -> Iterator[MessageRun]:
    """Stretches as they are shown: of what was edited every message for itself."""
    for stretch in found.stretches:
        if stretch.fate == "edited":
            yield from (MessageRun("edited", (pair,)) for pair in stretch.pairs)
        else:
            yield stretch


def _summary(text: str, name: str, *, is_new: bool = False) -> None:
    look = "ef-side ef-side-new" if is_new else "ef-side"
    with ui.element("div").classes(look).props(f'role=group aria-label="{name}"'):
        _side_name("After" if is_new else "Before and after")
        with ui.element("div").classes("ef-row"):
            ui.label(name).classes("ef-said-title")
            if is_new:
                badge("new")
        _words(text)


def _kept(stretch: MessageRun) -> None:
    """Messages that both show as they are: across both, closed if they are many."""
    number = len(stretch.pairs)
    with ui.element("div").classes("ef-across"):
        if number <= _FEW:
            for pair in stretch.pairs:
                _message(pair, pair.after, badge_text="unchanged")
            return
        places = _places(stretch.pairs)
        _closed(f"{number_of(number, 'message')} unchanged ({places})", stretch.pairs)


def _folded(stretch: MessageRun) -> None:
    """Messages that only the view before shows; the first have the summary beside them."""
    _gone(stretch)
    _nothing("Folded: the summary stands for these too.")


def _gone(stretch: MessageRun, summary: str | None = None) -> None:
    """What left the view: messages, and the summary that stood for others."""
    places = _places(stretch.pairs)
    with ui.element("div").classes("ef-side ef-side-gone"):
        _side_name("Before")
        if summary is not None:
            expandable("The summary until then", lambda: _words(summary))
        _closed(f"{number_of(len(stretch.pairs), 'message')} ({places})", stretch.pairs)


def _words(summary: str) -> None:
    markdown(summary).classes("ef-summary-text")


def _shown_again(stretch: MessageRun) -> None:
    """Messages that only the view after shows."""
    _nothing("Was not shown.")
    with ui.element("div").classes("ef-side"):
        _side_name("After")
        _closed(f"{number_of(len(stretch.pairs), 'message')} shown again", stretch.pairs)


def _edited(stretch: MessageRun) -> None:
    """Messages that the view after shows with other content, each beside what it was."""
    for pair in stretch.pairs:
        with ui.element("div").classes("ef-side"):
            _side_name("Before")
            _message(pair, pair.before)
        with ui.element("div").classes("ef-side ef-side-edited"):
            _side_name("After")
            _head(pair, "shortened")
            if pair.after is not None:
                show_shortened(pair.after, _saying(pair))


_SHOW = {"kept": _kept, "folded": _folded, "shown": _shown_again, "edited": _edited}


def _closed(title: str, pairs: Sequence[Pair]) -> None:
    """Messages in a row, closed; opened they come a few at a time."""
    expandable(title, lambda: paged_list(pairs, _listed))


def _listed(pair: Pair) -> None:
    with ui.element("div").classes("ef-folded-message"):
        _message(pair, pair.before or pair.after)


def _message(pair: Pair, shown: Message | None, *, badge_text: str = "") -> None:
    _head(pair, badge_text)
    if shown is None or shown == pair.said:
        message_text.show(pair.said)
    else:
        show_shortened(shown, _saying(pair))


def _saying(pair: Pair) -> ReadMessage:
    async def said() -> Message:
        return pair.said

    return said


def _head(pair: Pair, badge_text: str = "") -> None:
    with ui.element("div").classes("ef-row ef-dotted ef-small ef-soft"):
        ui.label(f"#{pair.depth:,} {message_text.ROLES.get(pair.said.role, pair.said.role)}")
        if badge_text:
            badge(badge_text, "warm" if badge_text == "shortened" else "plain")


def _nothing(words: str) -> None:
    with ui.element("div").classes("ef-side ef-side-none"):
        ui.label(words).classes("ef-small")


def _side_name(name: str) -> None:
    """On a phone, where the views stand one after the other, each says which it is."""
    ui.label(name).classes("ef-side-name")


def _places(pairs: Sequence[Pair]) -> str:
    first, last = pairs[0].depth, pairs[-1].depth
    return f"#{first:,}" if first == last else f"#{first:,} to #{last:,}"


Item: TypeAlias = tuple[str, Fate]

_FATES: Mapping[Fate, tuple[str, str]] = {
    "kept": ("Kept", "Literally in what the model is sent."),
    "restorable": ("Restorable", "Not sent, but in the full history: found and restored any time."),
    "lost": ("Lost", "Neither sent nor to be had again."),
}
_CLASSES: Mapping[ItemClass, str] = {
    "path": "Paths",
    "url": "Addresses",
    "identifier": "Identifiers",
    "number": "Numbers",
    "date": "Dates",
    "name": "Names",
    "error": "Errors",
    "command": "Commands",
}
_RECEIPTS_AT_ONCE = 100
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
        found = {kind: self._matching(kind) for kind in ITEM_CLASSES}
        with self._groups:
            for kind, items in found.items():
                if items:
                    self._group(kind, items)
            if not any(found.values()):
                ui.label("No item is like that.").classes("ef-soft").props("role=status")

    def _matching(self, kind: ItemClass) -> list[Item]:
        return [
            (item, fate)
            for item, fate in self._receipt.items[kind].items()
            if self._words in item.casefold() and self._fate in {None, fate}
        ]

    def _group(self, kind: ItemClass, items: Sequence[Item]) -> None:
        def fill() -> None:
            paged_list(items, self._item, at_once=_RECEIPTS_AT_ONCE, tag="ul", classes="ef-items")

        line = expandable(f"{_CLASSES[kind]}: {_spoken(items)}", fill)
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


COMPARE, RECEIPT = "compare", "receipt"


async def changes(window: Window, session: str, snapshot: str) -> None:
    """The page of a session's compression; `?show=receipt` begins with the receipt."""
    found = await window.session(session)
    comparison = await window.engine.store.read(read_comparison, found.key, snapshot)
    asked = ui.context.client.request.query_params.get("show")
    async with frame(window, "What changed", session=session):
        with ui.element("div").classes("ef-row"):
            ui.link("Back to the conversation", path_of(session))
            ui.label(await window.title(found)).classes("ef-soft ef-wrap").props("dir=auto")
        _figures(comparison)
        with ui.tabs().props("align=left no-caps") as tabs:
            ui.tab(COMPARE, "Before and after", icon="compare")
            ui.tab(RECEIPT, "Receipt", icon="receipt_long")
        first = RECEIPT if asked == RECEIPT else COMPARE
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
            badge("undone: it is not in use", "warm")


def _tokens(snapshot: Snapshot) -> None:
    before = snapshot.content.get("originalTokenCount")
    after = snapshot.content.get("newTokenCount")
    with fact("Before"):
        figures.count(before, "tokens")
    with fact("After"):
        figures.count(after, "tokens")
    with fact("Less"):
        figures.share(1 - after / before if before and after is not None else None)


def _messages(found: Comparison) -> str:
    numbers = {
        "folded": found.number("folded"),
        "shortened": found.number("edited"),
        "unchanged": found.number("kept"),
        "shown again": found.number("shown"),
    }
    return ", ".join(f"{number:,} {name}" for name, number in numbers.items() if number)


async def _receipt(session: Session, snapshot: str, tabs: ui.tabs) -> None:
    """The receipt, made out when it is first looked at."""
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
