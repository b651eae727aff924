"""The details of a session beside its messages: the client, its costs, and every compression."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nicegui import ui

from enfold.amounts import number
from enfold.engine import Session
from enfold.engine.activity import saved_in
from enfold.engine.inspection import read_last_input
from enfold.records import (
    SessionRecord,
    Snapshot,
    UsageSummary,
    UsageTotal,
)
from enfold.ui import figures
from enfold.ui.compression.summary_card import title_of
from enfold.ui.pins import TITLE as PINS_TITLE
from enfold.ui.pins import Pins
from enfold.ui.session_list import client_of
from enfold.ui.widgets import (
    author_text,
    badge,
    fact,
    facts,
    heading,
    icon_button,
    labelled,
    paged_list,
)
from enfold.ui.window import Window, path_of

TITLE = "Session details"
_AT_ONCE = 10
"""Compressions shown at once."""
_UNTIL_TOGGLED, _NARROW = "ef-aside-untouched", 1_100
"""The class of a panel that was not opened or closed by hand, and the width that hides it."""
_ESTIMATE = "The cost of the same requests if nothing had been taken out."
_UNKNOWN_COST = "No price is known for some of the calls."
_UNKNOWN_SHARE = "The provider has not reported its cache."


def cache_share(totals: Sequence[UsageTotal]) -> float | None:
    """Return the share of the requests' tokens that the provider read from its cache."""
    replies = [total for total in totals if total.kind == "reply"]
    sent = sum(total.input_tokens for total in replies)
    return sum(total.cached_tokens for total in replies) / sent if sent else None


class SessionDetails:
    """The panel of one session in one window; it follows the session while it is open."""

    def __init__(
        self, window: Window, session: Session, pins: Pins, undo: Callable[[], Awaitable[None]]
    ) -> None:
        self._window = window
        self._session = session
        self._pins = pins
        self._undo = undo
        self._record: SessionRecord | None = None
        self._snapshots: tuple[Snapshot, ...] = ()
        self._used: Snapshot | None = None
        self._usage: Sequence[UsageTotal] = ()
        self._last_input: int | None = None
        self._saved: float | None = None
        """The money that compressions saved; None if it is unknown."""

    def place(self, *, is_open: bool) -> None:
        """Add the panel to the page."""
        self._panel = labelled(ui.element("aside").classes("ef-aside"), TITLE)
        with self._panel:
            with ui.element("div").classes("ef-row"):
                heading(TITLE).classes("ef-grow")
                icon_button("close", "Close session details", self.toggle)
            self._figures = ui.element("div").props("aria-live=off")
            self._feed = ui.element("div").classes("ef-stack")
        self._panel.set_visibility(is_open)
        self._panel.classes(_UNTIL_TOGGLED)

    async def toggle(self) -> None:
        """Show or hide the panel."""
        is_shown = self._panel.visible
        if is_shown and _UNTIL_TOGGLED in self._panel.classes:
            # The style sheet hides the panel in a narrow window until it is asked for.
            is_shown = await ui.run_javascript(f"innerWidth > {_NARROW}")
        self._panel.classes(remove=_UNTIL_TOGGLED)
        self._panel.set_visibility(not is_shown)

    async def show(self, used: Snapshot | None) -> None:
        """Show the current state; `used` is the snapshot in use."""
        record = await self._session.record()
        await self._read_usage()
        snapshots = await self._session.summaries()
        is_new_feed = (snapshots, used) != (self._snapshots, self._used) or self._record is None
        self._record = record
        self._snapshots, self._used = snapshots, used
        self._draw_figures(record)
        if is_new_feed:
            self._draw_feed()

    async def follow(self) -> bool:
        """Show the usage again if a request was made since; return True then."""
        if self._record is None or not self._panel.visible:
            return False
        before = self._usage
        await self._read_usage()
        if before == self._usage:
            return False
        self._draw_figures(self._record)
        return True

    async def _read_usage(self) -> None:
        self._usage = await self._session.usage()
        self._last_input = await read_last_input(self._window.engine, self._session)
        self._saved = await saved_in(self._window.engine, self._session)

    def _draw_figures(self, record: SessionRecord) -> None:
        totals = UsageSummary.of(self._usage)
        standing = [each for each in self._pins.standing if each.in_view]
        self._figures.clear()
        with self._figures, facts():
            if (client := client_of(record)) is not None:
                with fact("Client"):
                    ui.label(client).classes("ef-wrap")
            if record.model is not None:
                with fact("Model"):
                    ui.label(record.model).classes("ef-wrap")
            with fact("Messages"):
                figures.count(record.depth)
            with fact("Requests"):
                figures.count(sum(each.calls for each in self._usage if each.kind == "reply"))
            if self._last_input is not None:
                with fact("Sent last"):
                    sent = figures.count(self._last_input, "tokens")
                    sent.tooltip("Counted by the provider, with system prompt and tools.")
            with fact("Cost"):
                figures.money(totals.cost, why=_UNKNOWN_COST) if totals.calls else ui.label("none")
            if self._snapshots and self._saved is not None and totals.cost is not None:
                with fact("Without compressions"):
                    figures.money(totals.cost + self._saved, is_estimate=True, why=_ESTIMATE)
            with fact("From the cache"):
                share = cache_share(self._usage)
                figures.unknown(_UNKNOWN_SHARE) if share is None else figures.share(share)
            with fact("Messages that stay"):
                tokens = sum(each.tokens for each in standing)
                words = f"{number(len(standing), 'message')}, {tokens:,} tokens"
                button = ui.button(words, on_click=self._pins.open_list).props("flat dense no-caps")
                labelled(button, f"{words}. {PINS_TITLE}")

    def _draw_feed(self) -> None:
        """Show the compressions, newest first, and what they took out of the context."""
        self._feed.clear()
        with self._feed:
            heading("Compressions", 3)
            if not self._snapshots:
                ui.label("None yet.").classes("ef-soft ef-small")
                return
            counted = [each for each in self._snapshots if not each.undone]
            taken = sum(_saved(each) for each in counted)
            ui.label(f"{taken:,} tokens taken out of the context.").classes("ef-small ef-figure")
            paged_list(self._snapshots, self._draw_compression, at_once=_AT_ONCE)

    def _draw_compression(self, snapshot: Snapshot) -> None:
        is_used = self._used is not None and snapshot.id == self._used.id
        before, after = _counts(snapshot)
        row = labelled(ui.element("article").classes("ef-listed-message"), title_of(snapshot))
        with row:
            with ui.element("div").classes("ef-row ef-small"):
                ui.label(title_of(snapshot)).classes("ef-section-title ef-grow")
                if snapshot.undone:
                    badge("undone")
                elif is_used:
                    badge("in use", "good")
            with ui.element("div").classes("ef-row ef-dotted ef-tiny ef-soft"):
                if before and after:
                    ui.label(f"{before:,} → {after:,} tokens").classes("ef-figure")
                figures.age(snapshot.created_at)
                ui.label(author_text(snapshot.strategy, snapshot.author)).classes("ef-wrap")
            with ui.element("div").classes("ef-row ef-small"):
                changes = path_of(self._session.id, f"changes/{snapshot.id}")
                ui.link("Show changes", changes).classes("ef-link-button")
                if is_used:
                    undo = ui.button("Undo", on_click=self._undo).props("flat dense")
                    labelled(undo, f"Undo: {title_of(snapshot)}")


def _counts(snapshot: Snapshot) -> tuple[int | None, int | None]:
    content = snapshot.content
    return content.get("originalTokenCount"), content.get("newTokenCount")


def _saved(snapshot: Snapshot) -> int:
    before, after = _counts(snapshot)
    return max(0, before - after) if before and after is not None else 0
