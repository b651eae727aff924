"""The chat: one session, what was said in it, and what is said next.

`shelf` reads what is shown, `transcript` draws it page by page, `messages` each message; `composer`
is where something is said, `asking` has it answered, and `room` is all of that on one page.
"""

from __future__ import annotations

from nicegui import ui

from enfold.records import SessionRecord
from enfold.store import sessions
from enfold.ui.chat.page import ChatPage
from enfold.ui.frame import frame
from enfold.ui.window import Window, path_of

__all__ = ["chat"]

SUMMARIZE = "summarize"
"""What a page can be asked to do as soon as it is there: `/s/…?do=summarize`."""


async def chat(window: Window, session: str | None = None) -> None:
    """The page of a session; without one, of the last that was used."""
    record = await _record(window, session)
    title = "Chat" if record is None else record.title or record.id
    shown = None if record is None else record.id
    async with frame(window, title, session=shown, narrow=False) as framed:
        if record is None:
            _nothing_yet()
            return
        room = ChatPage(window, await window.session(record.id), framed)
        with framed.actions:
            past = ui.button(
                icon="history", on_click=lambda: ui.navigate.to(path_of(record.id, "history"))
            )
            past.props("flat round dense color=primary")
            past.props["aria-label"] = past.props["title"] = "Full history"
            with ui.button(icon="unfold_less", on_click=room.summarize) as button:
                ui.label("Summarize").classes("gt-xs q-ml-xs")  # on a phone the sign alone
            button.props("flat color=primary no-wrap")
            button.props["aria-label"] = button.props["title"] = "Summarize conversation history"
        await room.place()
        if ui.context.client.request.query_params.get("do") == SUMMARIZE:
            ui.timer(0.1, room.summarize, once=True)


async def _record(window: Window, session: str | None) -> SessionRecord | None:
    if session is None:
        newest = await window.engine.sessions(namespace=window.namespace, limit=1)
        return newest[0] if newest else None
    found = await window.session(session)
    return await window.engine.store.read(sessions.get, found.key)


def _nothing_yet() -> None:
    with ui.element("section").classes("ef-empty"):
        ui.icon("chat_bubble_outline").classes("ef-empty-icon").props('aria-hidden="true"')
        ui.label("No conversation yet.")
        ui.label("Begin one, or drop a transcript on the list of sessions.").classes("ef-small")
