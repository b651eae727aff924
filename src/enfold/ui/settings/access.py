"""The access section: how namespaces work, and the namespaces that the owner can look into."""

from __future__ import annotations

from nicegui import ui

from enfold.amounts import number
from enfold.engine.access import Namespace
from enfold.records import KEY_NAMESPACE
from enfold.ui.widgets import card, labelled, table
from enfold.ui.window import Window, look_into

WITHOUT_TOKENS = (
    "This server requires no access token. All sessions are listed together, also those of "
    "programs that send their requests through the proxy: Claude Code, Codex and others."
)
WITH_TOKENS = (
    "Every access token has a namespace: its sessions, its search and its figures. No token "
    "reaches the namespace of another. The owner, who has the server's first token, can look into "
    "any. Programs that use the proxy without an access token are listed with the owner's sessions."
)
_AT_ONCE = 50


class AccessSection:
    """The explanation of namespaces and, for the owner, their list."""

    def __init__(self, window: Window) -> None:
        self._window = window

    async def build(self) -> None:
        """Build the section."""
        tokens = await self._window.engine.access.tokens()
        with card("Namespaces", WITH_TOKENS if tokens else WITHOUT_TOKENS):
            if not self._window.visitor.is_owner:
                ui.label(f"You see the sessions of the token {self._window.visitor.name}.")
                return
            self._rows: list[Namespace] = []
            self._list = ui.element("div")
            self._more = ui.button("Show more", on_click=self._show_more).props("flat dense")
            await self._show_more()

    async def _show_more(self) -> None:
        last = self._rows[-1].name if self._rows else ""
        found = await self._window.engine.access.namespaces(limit=_AT_ONCE, after=last)
        self._rows += found
        self._more.set_visibility(len(found) == _AT_ONCE)
        # The owner's own list already has the sessions of keys.
        others = [each for each in self._rows if not each.name.startswith(KEY_NAMESPACE)]
        self._list.clear()
        with self._list:
            if not others:
                ui.label("No other namespace has sessions.").classes("ef-soft")
                return
            titles = ("Access token", "Sessions", "")
            rows = [
                (name_of(each), number(each.sessions, "session"), lambda each=each: _button(each))
                for each in others
            ]
            table("Namespaces", titles, rows)


def name_of(namespace: Namespace) -> str:
    """Return the name of a namespace for people."""
    return namespace.token or f"deleted token ({namespace.name})"


def _button(namespace: Namespace) -> None:
    button = ui.button("Look into", on_click=lambda: look_into(namespace.name))
    labelled(button.props("flat dense"), f"Look into the sessions of {name_of(namespace)}")
