"""Pins: a button at every message, and the list of the messages that compressions leave alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlencode

from nicegui import ui

from enfold.amounts import number
from enfold.engine import Session
from enfold.engine.results import StandingMessage
from enfold.standing_instructions import Why
from enfold.ui import figures
from enfold.ui.message_text import place_text
from enfold.ui.widgets import badge, icon_button, named_button, paged_list, shown_dialog
from enfold.ui.window import Window, path_of

TITLE = "Pinned messages"
WHY: Mapping[Why, tuple[str, str]] = {
    "pinned": ("pinned", "You pinned this message."),
    "system": ("system", "System and developer messages stay."),
    "context": ("context", "The context that a coding agent sends first stays."),
    "rule": ("rule", "This message states a rule that is in force."),
    "words": ("your words", "Words that a person typed stay as long as they fit."),
}
"""The reasons why a message stays: a name and an explanation."""


@dataclass(eq=False)
class Pins:
    """The pinned and standing messages of one session in one window."""

    window: Window
    session: Session
    changed: Callable[[], Awaitable[None]] | None = None
    """Called in place of `load` after a message was pinned or released here; it calls `load`."""
    _standing: Mapping[str, StandingMessage] = field(init=False, default_factory=dict)
    _buttons: dict[str, tuple[ui.button, int]] = field(init=False, default_factory=dict)
    """The buttons at messages, each with the message's number."""

    @property
    def standing(self) -> Collection[StandingMessage]:
        """The messages that stay, as they were last read."""
        return self._standing.values()

    async def load(self) -> None:
        """Read the messages that stay, and update the buttons at messages."""
        self._standing = {each.message: each for each in await self.session.pins()}
        self._buttons = {id: held for id, held in self._buttons.items() if not held[0].is_deleted}
        for id in self._buttons:
            self._mark(id)

    def add_button(self, id: str, depth: int) -> None:
        """Add the button that pins a message, or releases it."""

        def toggle() -> Awaitable[None]:
            return self._set(id, is_pinned=id not in self._standing)

        button = icon_button("push_pin", "", toggle)
        self._buttons[id] = button, depth
        self._mark(id)

    def add_list_button(self) -> None:
        """Add the button that opens the list of the messages that stay."""
        icon_button("push_pin", TITLE, self.open_list).props("color=primary size=md")

    async def open_list(self) -> None:
        """Open the list of the messages that stay."""
        await self.load()
        with shown_dialog(TITLE) as dialog:
            ui.label(
                "These messages stay in the context word for word, through every compression. A "
                "released message may be summarized."
            ).classes("ef-soft ef-small")
            place = ui.element("div").classes("ef-stack").props("aria-live=polite")
            with ui.element("div").classes("ef-row ef-end"):
                ui.button("Close", on_click=dialog.close).props("flat color=primary")
            self._fill(place)

    def _fill(self, place: ui.element) -> None:
        found = tuple(self._standing.values())
        place.clear()
        with place:
            if not found:
                ui.label("No messages. Pin one with the pin button at the message.")
                return
            tokens = sum(each.tokens for each in found if each.in_view)
            total = f"{number(len(found), 'message')}, {tokens:,} tokens in context"
            ui.label(total).classes("ef-figure")
            show = partial(self._row, place)
            paged_list(found, show, tag="ul", classes="ef-pins ef-stack-tight")

    def _row(self, place: ui.element, standing: StandingMessage) -> None:
        async def release() -> None:
            await self._set(standing.message, is_pinned=False)
            self._fill(place)

        name, explanation = WHY[standing.why]
        with ui.element("li").classes("ef-row"):
            with ui.element("div").classes("ef-grow"):
                with ui.element("div").classes("ef-row ef-dotted ef-small ef-soft"):
                    parameters = urlencode({"m": standing.position})
                    history = f"{path_of(self.session.id, 'history')}?{parameters}"
                    ui.link(place_text(standing.position, standing.role), history)
                    figures.count(standing.tokens, "tokens")
                    badge(name, "good" if standing.why == "pinned" else "plain")
                ui.label(standing.text).classes("ef-two-lines").props("dir=auto")
                ui.label(explanation).classes("ef-tiny ef-soft")
                if not standing.in_view:
                    ui.label("Summarized now; the next compression shows it again.").classes(
                        "ef-tiny ef-warm"
                    )
            named_button("Release", f"Release message {standing.position:,}", release)

    def _mark(self, id: str) -> None:
        """Show on the button of a message if the message stays, and why."""
        button, depth = self._buttons[id]
        standing = self._standing.get(id)
        action = f"Pin message {depth:,}" if standing is None else f"Release message {depth:,}"
        effect = WHY[standing.why][1] if standing else "Keep it in the context word for word."
        title = f"{action}. {effect}"
        if button.props.get("title") == title:
            return  # a change would send the button to the browser again
        button.props["title"] = title
        button.props["aria-label"] = action
        button.props["icon"] = "push_pin" if standing else "o_push_pin"
        if standing is None:
            button.classes(remove="ef-pinned")
        else:
            button.classes(add="ef-pinned")

    async def _set(self, id: str, *, is_pinned: bool) -> None:
        async with self.window.audited("pin" if is_pinned else "unpin", self.session.id):
            await (self.session.pin if is_pinned else self.session.unpin)(id)
        await (self.changed or self.load)()
