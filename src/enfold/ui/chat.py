"""The chat: one session, what was said in it, and what is said next."""

from __future__ import annotations

from nicegui import ui

from enfold.engine.viewing import message_of
from enfold.messages import text_of
from enfold.ui.frame import frame
from enfold.ui.window import Window


async def chat(window: Window, session: str | None = None) -> None:
    """The page of a session; without one, of the last that was used."""
    if session is None:
        newest = await window.engine.sessions(namespace=window.namespace, limit=1)
        session = newest[0].id if newest else None
    async with frame(window, session or "Chat", session=session):
        if session is None:
            ui.label("No conversation yet.").classes("ef-empty")
            return
        found = await window.session(session)
        for row in await found.history(limit=50):
            ui.label(text_of(message_of(row).parts)).classes("ef-card ef-wrap").props("dir=auto")
