"""The list of messages: newest at the bottom, earlier pages are loaded on scrolling up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nicegui import ui
from nicegui.events import GenericEventArguments

from enfold.engine import Session
from enfold.engine.inspection import PageEntry, TranscriptPage, read_page
from enfold.records import Snapshot
from enfold.ui.chat.messages import MessageActions, draw_message, prepare_entries
from enfold.ui.window import Window

DrawSummary = Callable[[Snapshot], None]


class TranscriptList:
    """The list of messages. It starts at its end; pages added above do not move the view."""

    def __init__(
        self, window: Window, session: Session, actions: MessageActions, draw_summary: DrawSummary
    ) -> None:
        self._window = window
        self._session = session
        self._actions = actions
        self._draw_summary = draw_summary
        self._drawn: list[PageEntry] = []
        self._names: dict[str, str] = {}
        self._earlier: TranscriptPage | None = None
        self._snapshot: Snapshot | None = None
        self._busy = asyncio.Lock()

    def place(self) -> None:
        """Add the empty list to the page."""
        # The column is reversed: the browser keeps its lower end in place, so the view starts there
        # and does not jump when earlier messages are added above.
        scroll = ui.element("div").classes("ef-scroll").props("role=log aria-label=Conversation")
        with scroll, ui.element("div").classes("ef-lines"):
            self._summary = ui.element("div").classes("ef-entries")
            self._above = ui.element("div").classes("ef-earlier")
            self._list = ui.element("div").classes("ef-entries")
            self.below = ui.element("div").classes("ef-entries")
            """For answers that are not stored yet."""

    async def show(self) -> TranscriptPage:
        """Show the current messages; entries that have not changed are not drawn again."""
        async with self._busy:
            page = await self._read()
            # Another snapshot changes the earlier pages too, even if the last page stays the same.
            is_same = page.snapshot == self._snapshot
            fresh = _after(self._drawn, page.entries) if is_same else None
            names = await asyncio.to_thread(
                prepare_entries, page.entries if fresh is None else fresh
            )
            self._names |= names
            if fresh is None:
                self._list.clear()
                self._summary.clear()
                self._drawn = []
                self._earlier = page
                self._snapshot = page.snapshot
                self._draw_above()
            with self._list:
                self._draw(page.entries if fresh is None else fresh)
            self._draw_summary_above()
            return page

    async def show_earlier(self) -> None:
        """Add the previous page above the first one."""
        async with self._busy:
            if self._earlier is None or self._earlier.earlier is None:
                return
            page = await read_page(self._window.engine, self._session, self._earlier.earlier)
            self._names |= await asyncio.to_thread(prepare_entries, page.entries)
            with self._list:
                holder = ui.element("div").classes("ef-entries")
                holder.move(target_index=0)
                drawn, self._drawn = self._drawn, []
                with holder:
                    self._draw(page.entries)
                self._drawn += drawn
            self._earlier = page
            self._draw_above()
            self._draw_summary_above()

    async def _read(self) -> TranscriptPage:
        return await read_page(self._window.engine, self._session)

    def _draw(self, entries: tuple[PageEntry, ...]) -> None:
        for entry in entries:
            if isinstance(entry.item, Snapshot):
                self._place_summary(entry.item)
            else:
                draw_message(entry, entry.item, self._actions, self._names)
            self._drawn.append(entry)

    def _place_summary(self, snapshot: Snapshot) -> None:
        """Show a summary at its place; a card that is above the list moves, open or closed."""
        above = self._summary.default_slot.children
        if above:
            above[0].move(ui.context.slot.parent)
        else:
            self._draw_summary(snapshot)

    def _draw_summary_above(self) -> None:
        """Show the summary in use above the list while its place is on an earlier page."""
        is_drawn = any(entry.item == self._snapshot for entry in self._drawn)
        if self._snapshot is not None and not is_drawn and not self._summary.default_slot.children:
            with self._summary:
                self._draw_summary(self._snapshot)

    def _draw_above(self) -> None:
        """Show the button for earlier messages; scrolling to it has the same effect."""
        self._above.clear()
        if self._earlier is None or self._earlier.earlier is None:
            return
        with self._above:
            sentinel = ui.element("q-intersection").props("margin=300px").classes("ef-sentinel")
            sentinel.on("visibility", self._scrolled)
            button = ui.button("Show earlier messages", on_click=self.show_earlier)
            button.props("flat dense color=primary")

    async def _scrolled(self, event: GenericEventArguments) -> None:
        if event.args:
            await self.show_earlier()


def _after(drawn: list[PageEntry], page: tuple[PageEntry, ...]) -> tuple[PageEntry, ...] | None:
    """Return the entries after those that are drawn; None if the drawn ones have changed."""
    if not drawn or not page or page[0] not in drawn:
        return None
    tail = drawn[drawn.index(page[0]) :]
    return page[len(tail) :] if list(page[: len(tail)]) == tail else None
