"""The transcript: what is shown of a session, newest at the bottom, more of it on the way up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from nicegui import ui
from nicegui.events import GenericEventArguments

from enfold.engine import Session
from enfold.engine.transcript_pages import PageEntry, TranscriptPage, read_page
from enfold.records import Snapshot
from enfold.ui.chat.messages import MessageActions, draw_message, prepare_entries
from enfold.ui.window import Window

DrawSummary = Callable[[Snapshot], None]


class TranscriptList:
    """The list of what is shown. It stands at its end, and what is put above it moves nothing."""

    def __init__(
        self, window: Window, session: Session, hands: MessageActions, draw_summary: DrawSummary
    ) -> None:
        self._window = window
        self._session = session
        self._hands = hands
        self._draw_summary = draw_summary
        self._drawn: list[PageEntry] = []
        self._names: dict[str, str] = {}
        self._earlier: TranscriptPage | None = None
        self._busy = asyncio.Lock()

    def place(self) -> None:
        """Put the empty list on the page."""
        # Of a column that runs upwards the browser keeps the lower end in place: it begins there,
        # and earlier messages can be put above what is read without a jump.
        scroll = ui.element("div").classes("ef-scroll").props("role=log aria-label=Conversation")
        with scroll, ui.element("div").classes("ef-lines"):
            self._above = ui.element("div").classes("ef-earlier")
            self._list = ui.element("div").classes("ef-entries")
            self.below = ui.element("div").classes("ef-entries")
            """For what is under way and not yet stored."""

    async def show(self) -> TranscriptPage:
        """Bring the list to what the session shows now; what has not changed is left alone."""
        async with self._busy:
            page = await self._read()
            fresh = _after(self._drawn, page.entries)
            names = await asyncio.to_thread(
                prepare_entries, page.entries if fresh is None else fresh
            )
            self._names |= names
            if fresh is None:
                self._list.clear()
                self._drawn = []
                self._earlier = page
                self._draw_above()
            with self._list:
                self._draw(page.entries if fresh is None else fresh)
            return page

    async def show_earlier(self) -> None:
        """Put the page before the first one above it."""
        async with self._busy:
            if self._earlier is None or self._earlier.earlier is None:
                return
            page = await self._window.engine.store.read(
                read_page,
                self._session.key,
                self._window.engine.static_settings,
                self._earlier.earlier,
            )
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

    async def _read(self) -> TranscriptPage:
        engine = self._window.engine
        return await engine.store.read(read_page, self._session.key, engine.static_settings)

    def _draw(self, entries: tuple[PageEntry, ...]) -> None:
        for entry in entries:
            if isinstance(entry.item, Snapshot):
                self._draw_summary(entry.item)
            else:
                draw_message(entry, entry.item, self._hands, self._names)
            self._drawn.append(entry)

    def _draw_above(self) -> None:
        """The way further up: it is taken when it comes into view, and can be pressed."""
        self._above.clear()
        if self._earlier is None or self._earlier.earlier is None:
            return
        with self._above:
            sentinel = ui.element("q-intersection").props("margin=300px").classes("ef-sentinel")
            sentinel.on("visibility", self._seen)
            button = ui.button("Show earlier messages", on_click=self.show_earlier)
            button.props("flat dense color=primary")

    async def _seen(self, event: GenericEventArguments) -> None:
        if event.args:
            await self.show_earlier()


def _after(drawn: list[PageEntry], page: tuple[PageEntry, ...]) -> tuple[PageEntry, ...] | None:
    """What of the page comes after all that is drawn; None if the list has become another."""
    if not drawn or not page or page[0] not in drawn:
        return None
    tail = drawn[drawn.index(page[0]) :]
    return page[len(tail) :] if list(page[: len(tail)]) == tail else None
