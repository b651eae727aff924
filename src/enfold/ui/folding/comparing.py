"""Comparing: the view before a compression beside the view after it, message by message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nicegui import ui

from enfold.engine.comparison import Comparison, Pair, Stretch
from enfold.messages import Message
from enfold.ui import saying
from enfold.ui.blocks import badge, few_at_a_time, number_of, opening
from enfold.ui.folding.unfolding import Said, show_shortened
from enfold.ui.markdown import markdown

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

        def show(row: Stretch) -> None:
            if row is first and found.summary_after is not None and found.is_summary_new:
                _gone(row, found.summary_before)
                _summary(found.summary_after, "Summary", is_new=True)
            else:
                _SHOW[row.fate](row)

        if found.summary_after is not None and not found.is_summary_new:
            with ui.element("div").classes("ef-across"):
                _summary(found.summary_after, "Summary, unchanged")
        # Not a box of their own: the rows stand in the same two columns.
        few_at_a_time(rows, show, at_once=_AT_ONCE, classes="ef-contents")


def _rows(found: Comparison) -> Iterator[Stretch]:
    """Stretches as they are shown: of what was edited every message for itself."""
    for stretch in found.stretches:
        if stretch.fate == "edited":
            yield from (Stretch("edited", (pair,)) for pair in stretch.pairs)
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


def _kept(stretch: Stretch) -> None:
    """Messages that both show as they are: across both, closed if they are many."""
    number = len(stretch.pairs)
    with ui.element("div").classes("ef-across"):
        if number <= _FEW:
            for pair in stretch.pairs:
                _message(pair, pair.after, badge_text="unchanged")
            return
        places = _places(stretch.pairs)
        _closed(f"{number_of(number, 'message')} unchanged ({places})", stretch.pairs)


def _folded(stretch: Stretch) -> None:
    """Messages that only the view before shows; the first have the summary beside them."""
    _gone(stretch)
    _nothing("Folded: the summary stands for these too.")


def _gone(stretch: Stretch, summary: str | None = None) -> None:
    """What left the view: messages, and the summary that stood for others."""
    places = _places(stretch.pairs)
    with ui.element("div").classes("ef-side ef-side-gone"):
        _side_name("Before")
        if summary is not None:
            opening("The summary until then", lambda: _words(summary))
        _closed(f"{number_of(len(stretch.pairs), 'message')} ({places})", stretch.pairs)


def _words(summary: str) -> None:
    markdown(summary).classes("ef-summary-text")


def _shown_again(stretch: Stretch) -> None:
    """Messages that only the view after shows."""
    _nothing("Was not shown.")
    with ui.element("div").classes("ef-side"):
        _side_name("After")
        _closed(f"{number_of(len(stretch.pairs), 'message')} shown again", stretch.pairs)


def _edited(stretch: Stretch) -> None:
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
    opening(title, lambda: few_at_a_time(pairs, _listed))


def _listed(pair: Pair) -> None:
    with ui.element("div").classes("ef-folded-message"):
        _message(pair, pair.before or pair.after)


def _message(pair: Pair, shown: Message | None, *, badge_text: str = "") -> None:
    _head(pair, badge_text)
    if shown is None or shown == pair.said:
        saying.show(pair.said)
    else:
        show_shortened(shown, _saying(pair))


def _saying(pair: Pair) -> Said:
    async def said() -> Message:
        return pair.said

    return said


def _head(pair: Pair, badge_text: str = "") -> None:
    with ui.element("div").classes("ef-row ef-dotted ef-small ef-soft"):
        ui.label(f"#{pair.depth:,} {saying.ROLES.get(pair.said.role, pair.said.role)}")
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
