"""The sessions: the visitor's conversations as a list at the side of every page."""

from __future__ import annotations

from nicegui import ui

from enfold.store.records import Session
from enfold.ui.window import Window, path_of

_SHOWN = 50


class Sessions:
    """The list."""

    def __init__(self, window: Window, current: str | None) -> None:
        self._window = window
        self._current = current
        self._list = (
            ui.element("div").classes("ef-sessions").props('role=list aria-label="Sessions"')
        )

    async def show(self) -> None:
        """Fill it."""
        found = await self._window.engine.sessions(namespace=self._window.namespace, limit=_SHOWN)
        with self._list:
            for each in found:
                self._row(each)

    async def refresh(self) -> None:
        """Fill it again, after something changed."""
        self._list.clear()
        await self.show()

    def _row(self, session: Session) -> None:
        with (
            ui.link(target=path_of(session.id)).classes("ef-session").props("role=listitem") as link
        ):
            ui.label(session.title or session.id).classes("ef-ellipsis").props("dir=auto")
        if session.id == self._current:
            link.props("aria-current=page")
