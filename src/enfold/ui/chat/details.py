"""The details of a session beside its messages: the client, its costs, and every compression."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from nicegui import ui

from enfold.amounts import number
from enfold.engine import Session
from enfold.engine.activity import saved_in
from enfold.engine.inspection import read_last_input
from enfold.records import SessionRecord, Snapshot, UsageSummary, UsageTotal
from enfold.ui import figures
from enfold.ui.compression.summary_card import title_of, token_counts
from enfold.ui.pins import TITLE as PINS_TITLE
from enfold.ui.pins import Pins
from enfold.ui.session_list import client_of
from enfold.ui.widgets import (
    Cell,
    author_text,
    badge,
    facts,
    heading,
    icon_button,
    labelled,
    named_button,
    paged_list,
)
from enfold.ui.window import Window, path_of

TITLE = "Session details"
_AT_ONCE = 10
"""Compressions shown at once."""
_UNTIL_TOGGLED, _NARROW = "ef-aside-untouched", 1_100
"""The class of a panel that was not opened or closed by hand, and the width that hides it."""
_ESTIMATE = "The cost of the same requests if nothing had been taken out."
_COUNTED = "Counted by the provider, with system prompt and tools."
_UNKNOWN_COST = "No price is known for some of the calls."
_UNKNOWN_SHARE = "The provider has not reported its cache."


def cache_share(totals: Sequence[UsageTotal]) -> float | None:
    """Return the share of the requests' tokens that the provider read from its cache."""
    replies = [total for total in totals if total.kind == "reply"]
    sent = sum(total.input_tokens for total in replies)
    return sum(total.cached_tokens for total in replies) / sent if sent else None


@dataclass(eq=False)
class SessionDetails:
    """The panel of one session in one window; it follows the session while it is open."""

    window: Window
    session: Session
    pins: Pins
    undo: Callable[[], Awaitable[None]]
    _record: SessionRecord | None = field(default=None, init=False)
    _snapshots: tuple[Snapshot, ...] = field(default=(), init=False)
    _used: Snapshot | None = field(default=None, init=False)
    _usage: Sequence[UsageTotal] = field(default=(), init=False)
    _last_input: int | None = field(default=None, init=False)
    _saved: float | None = field(default=None, init=False)
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
        record = await self.session.record()
        await self._read_usage()
        snapshots = await self.session.summaries()
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
        self._usage = await self.session.usage()
        self._last_input = await read_last_input(self.window.engine, self.session)
        self._saved = await saved_in(self.window.engine, self.session)

    def _draw_figures(self, record: SessionRecord) -> None:
        totals = UsageSummary.of(self._usage)
        requests = sum(each.calls for each in self._usage if each.kind == "reply")
        found: dict[str, Cell | None] = {
            "Client": client_of(record),
            "Model": record.model,
            "Messages": partial(figures.count, record.depth),
            "Requests": partial(figures.count, requests),
        }
        if (last := self._last_input) is not None:
            found["Sent last"] = lambda: figures.count(last, "tokens").tooltip(_COUNTED)
        found["Cost"] = "none"
        if totals.calls:
            found["Cost"] = partial(figures.money, totals.cost, why=_UNKNOWN_COST)
        if self._snapshots and self._saved is not None and totals.cost is not None:
            whole = totals.cost + self._saved
            found["Without compressions"] = lambda: figures.money(
                whole, is_estimate=True, why=_ESTIMATE
            )
        share = cache_share(self._usage)
        unknown = partial(figures.unknown, _UNKNOWN_SHARE)
        found["From the cache"] = unknown if share is None else partial(figures.share, share)
        found["Messages that stay"] = self._draw_standing
        self._figures.clear()
        with self._figures:
            facts({name: value for name, value in found.items() if value is not None})

    def _draw_standing(self) -> None:
        standing = [each for each in self.pins.standing if each.in_view]
        tokens = sum(each.tokens for each in standing)
        words = f"{number(len(standing), 'message')}, {tokens:,} tokens"
        title = f"{words}. {PINS_TITLE}"
        named_button(words, title, self.pins.open_list, "flat dense no-caps")

    def _draw_feed(self) -> None:
        """Show the compressions, newest first, and what they took out of the context."""
        self._feed.clear()
        with self._feed:
            heading("Compressions", 3)
            if not self._snapshots:
                ui.label("None yet.").classes("ef-soft ef-small")
                return
            counts = [token_counts(each) for each in self._snapshots if not each.undone]
            taken = sum(
                max(0, before - after) for before, after in counts if before and after is not None
            )
            ui.label(f"{taken:,} tokens taken out of the context.").classes("ef-small ef-figure")
            paged_list(self._snapshots, self._draw_compression, at_once=_AT_ONCE)

    def _draw_compression(self, snapshot: Snapshot) -> None:
        is_used = self._used is not None and snapshot.id == self._used.id
        before, after = token_counts(snapshot)
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
                changes = path_of(self.session.id, f"changes/{snapshot.id}")
                ui.link("Show changes", changes).classes("ef-link-button")
                if is_used:
                    named_button("Undo", f"Undo: {title_of(snapshot)}", self.undo)
