"""The messages of the chat, part by part; tool calls and results are collapsed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from nicegui import ui
from nicegui.events import GenericEventArguments

from enfold.engine import Session
from enfold.engine.inspection import PageEntry, TranscriptPage, read_page
from enfold.engine.state import message_of
from enfold.engine.turns import is_interrupted
from enfold.messages import (
    Attachment,
    Data,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    text_of,
)
from enfold.records import Edit, Snapshot, StoredMessage
from enfold.text.words import storable
from enfold.tokens import count_message
from enfold.ui import figures
from enfold.ui.context_bar import NO_EXACT_COUNT
from enfold.ui.markdown import markdown, render
from enfold.ui.message_text import ROLES, arguments_text, show_shortened
from enfold.ui.pins import Pins
from enfold.ui.widgets import icon_button, labelled, prompt_for_text, show_all_button
from enfold.ui.window import Window

LONG = 12_000
"""Characters of a text that are shown at first."""
_BRIEF = 80
"""Characters of a call's arguments next to its name."""
_ROLES_TO_EDIT = ("user", "assistant")

Act = Callable[[StoredMessage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class MessageActions:
    """The functions behind the buttons of a message."""

    edit: Act
    regenerate: Act
    switch: Callable[[str], Awaitable[None]]
    """Switch to the branch that contains a message."""
    read_original: Callable[[Edit], Awaitable[Message]]
    """Reads the original of a shortened message."""
    pins: Pins
    is_read_only: bool = False
    """True if a client writes the session: a branch that starts here would not reach it."""


def prepare_entries(entries: Sequence[PageEntry]) -> dict[str, str]:
    """Render the texts, in any thread, and return the names of tools by call id."""
    names: dict[str, str] = {}
    for entry in entries:
        if not isinstance(entry.item, StoredMessage | Edit):
            continue
        for part in message_of(entry.item).parts:
            if isinstance(part, Text) and len(part.text) <= LONG:
                render(part.text)
            elif isinstance(part, ToolCall):
                names[part.id] = part.name
    return names


def draw_message(
    entry: PageEntry, item: StoredMessage | Edit, actions: MessageActions, names: Mapping[str, str]
) -> ui.element:
    """Show one message."""
    message = message_of(item)
    only_tools = bool(message.parts) and all(
        isinstance(part, ToolCall | ToolResult) for part in message.parts
    )
    look = "ef-tools" if only_tools else f"ef-{message.role}"
    with ui.element("article").classes(f"ef-message {look}") as drawn:
        drawn.props["aria-label"] = f"{ROLES[message.role]}, message {item.depth:,}"
        if not only_tools or entry.siblings:
            _head(entry, item, message, actions)
        else:
            with ui.element("div").classes("ef-message-actions"):
                _pin_button(item, actions)
        if isinstance(item, Edit):
            show_shortened(message, partial(actions.read_original, item))
        else:
            for part in message.parts:
                _draw_part(part, message, item, names)
        if is_interrupted(message):
            ui.label("Interrupted: the answer is incomplete.").classes("ef-note")
        if isinstance(item, Edit):
            ui.label("Shortened by the last compression.").classes("ef-note")
    return drawn


def _head(
    entry: PageEntry, item: StoredMessage | Edit, message: Message, actions: MessageActions
) -> None:
    with ui.element("header").classes("ef-row-tight ef-message-head"):
        ui.label(message.name or ROLES[message.role]).classes("ef-who")
        if item.tokens or not item.estimate:
            figures.count(item.tokens, "tokens").classes("ef-tiny ef-soft")
        if item.estimate:
            figures.estimate(item.estimate, "tokens", NO_EXACT_COUNT).classes("ef-tiny ef-soft")
        if isinstance(item, StoredMessage):
            figures.age(item.created_at).classes("ef-tiny")
        with ui.element("div").classes("ef-row-tight ef-message-actions"):
            if isinstance(item, StoredMessage):
                _actions(entry, item, message, actions)
            _pin_button(item, actions)


def _pin_button(item: StoredMessage | Edit, actions: MessageActions) -> None:
    actions.pins.add_button(item.message if isinstance(item, Edit) else item.id, item.depth)


def _draw_part(
    part: Part, message: Message, item: StoredMessage | Edit, names: Mapping[str, str]
) -> None:
    match part:
        case Text(text) if len(text) <= LONG:
            markdown(text)
        case Text(text):
            _show_plain(text, ui.label().classes("ef-plain").props("dir=auto"))
        case ToolCall():
            tokens, brief = _tokens(part, message, item), arguments_text(part.arguments)
            _collapsed("Call", "build", lambda: _pretty(part.arguments), part.name, tokens, brief)
        case ToolResult():
            name = part.name or names.get(part.call_id, "")
            kind, tokens = "Error" if part.is_error else "Result", _tokens(part, message, item)
            _collapsed(kind, "output", lambda: _result_text(part), name, tokens)
        case Reasoning(text):
            sealed = "Sealed: only the provider can read it."
            _collapsed("Reasoning", "psychology", lambda: text or sealed)
        case Attachment():
            about = ", ".join(filter(None, (part.name or "unnamed", part.mime)))
            ui.label(f"Attachment: {about}").classes("ef-chip ef-wrap")
        case Data(value):
            _collapsed("Data", "data_object", lambda: _pretty(value))
        case Unknown(extras):
            _collapsed("Unknown part", "help_outline", lambda: _pretty(extras))


def _show_plain(text: str, body: ui.label) -> None:
    """Show a text; of a very long one the start and a button for the rest."""
    body.set_text(storable(text[:LONG]))
    if len(text) > LONG:
        show_all_button(len(text), lambda: body.set_text(storable(text)))


def _collapsed(
    kind: str,
    icon: str,
    text: Callable[[], str],
    name: str | None = None,
    tokens: int | None = None,
    brief: str = "",
) -> None:
    """Show a line that expands; its content is built when it is first expanded."""
    details = ui.element("details").classes("ef-details")
    with details, ui.element("summary").classes("ef-details-head"):
        ui.icon(icon, size="16px").props("aria-hidden=true")
        ui.label(kind).classes("ef-details-kind")
        if name is not None:
            ui.label(name or "a tool").classes("ef-mono ef-details-name")
        if brief:
            shown = brief if len(brief) <= _BRIEF else f"{brief[: _BRIEF - 1]}…"
            ui.label(shown).classes("ef-mono ef-soft ef-ellipsis ef-details-brief")
        if tokens is not None:
            figures.count(tokens, "tokens").classes("ef-tiny ef-soft ef-details-tokens")

    def opened() -> None:
        if len(details.default_slot.children) == 1:
            with details:
                printed = ui.element("pre").classes("ef-printed").props("tabindex=0 dir=auto")
                with labelled(printed, "Content"):
                    body = ui.label()
                _show_plain(text(), body)

    details.on("toggle", opened, args=[])


def _actions(
    entry: PageEntry, item: StoredMessage, message: Message, actions: MessageActions
) -> None:
    if len(entry.siblings) > 1:
        _switcher(entry, item, actions)
    text = text_of(message.parts)
    if text:
        icon_button("content_copy", "Copy", lambda: ui.clipboard.write(text))
    if actions.is_read_only:
        return
    if message.role in _ROLES_TO_EDIT and all(isinstance(p, Text) for p in message.parts):
        icon_button("edit", "Edit", lambda: actions.edit(item))
    if entry.is_answer:
        icon_button("refresh", "Regenerate", lambda: actions.regenerate(item))


def _switcher(entry: PageEntry, item: StoredMessage, actions: MessageActions) -> None:
    """Show the number of the branch, such as 2/3, and buttons for the others."""
    place = entry.siblings.index(item.id)
    last = len(entry.siblings) - 1
    group = ui.element("div").classes("ef-row-tight ef-switcher")
    with group.props("role=group aria-label=Branch"):
        back = icon_button("chevron_left", "Previous branch")
        ui.label(f"{place + 1}/{last + 1}").classes("ef-figure ef-small")
        following = icon_button("chevron_right", "Next branch")
    back.on_click(lambda: actions.switch(entry.siblings[place - 1])).set_enabled(place > 0)
    following.on_click(lambda: actions.switch(entry.siblings[place + 1])).set_enabled(place < last)


def _tokens(part: Part, message: Message, item: StoredMessage | Edit) -> int:
    """Return the tokens of one part of a message."""
    if len(message.parts) == 1:
        return item.tokens
    return count_message(replace(message, parts=(part,)), item.tokenizer)


def _pretty(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _result_text(result: ToolResult) -> str:
    data = [_pretty(part.value) for part in result.parts if isinstance(part, Data)]
    files = [f"[attachment {p.name}]" for p in result.parts if isinstance(p, Attachment)]
    return "\n\n".join(filter(None, (text_of(result.parts), *data, *files)))


async def prompt_for_edit(text: str, role: str) -> str | None:
    """Return the new text of a message; None if the user cancels or changes nothing."""
    answered = " and the model answers it there" if role == "user" else ""
    about = f"The edited message starts a new branch{answered}. The original stays on its branch."
    edited = await prompt_for_text("Edit message", "Message", text, explanation=about, is_long=True)
    return edited if edited != text else None


@dataclass(eq=False)
class TranscriptList:
    """The list of messages. It starts at its end; pages added above do not move the view."""

    window: Window
    session: Session
    actions: MessageActions
    draw_summary: Callable[[Snapshot], None]
    _drawn: list[PageEntry] = field(init=False, default_factory=list)
    _names: dict[str, str] = field(init=False, default_factory=dict)
    _earlier: TranscriptPage | None = field(default=None, init=False)
    _snapshot: Snapshot | None = field(default=None, init=False)
    _busy: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def place(self) -> None:
        """Add the empty list to the page."""
        # The column is reversed: the browser keeps its lower end in place, so the view starts there
        # and does not jump when earlier messages are added above.
        scroll = ui.element("div").classes("ef-scroll")
        scroll.props("role=log aria-label=Conversation tabindex=0")
        with scroll, ui.element("div").classes("ef-lines"):
            self._summary = ui.element("div").classes("ef-entries")
            self._above = ui.element("div").classes("ef-earlier")
            self._list = ui.element("div").classes("ef-entries")
            self.below = ui.element("div").classes("ef-entries")
            """For answers that are not stored yet."""

    async def show(self) -> TranscriptPage:
        """Show the current messages; entries that have not changed are not drawn again."""
        async with self._busy:
            page = await read_page(self.window.engine, self.session)
            # Another snapshot changes the earlier pages too, even if the last page stays the same.
            is_same = page.snapshot == self._snapshot
            fresh = _after(self._drawn, page.entries) if is_same else None
            entries = page.entries if fresh is None else fresh
            self._names |= await asyncio.to_thread(prepare_entries, entries)
            if fresh is None:
                self._list.clear()
                self._summary.clear()
                self._drawn = []
                self._earlier = page
                self._snapshot = page.snapshot
                self._draw_above()
            with self._list:
                self._draw(entries)
            self._draw_summary_above()
            return page

    async def show_earlier(self) -> None:
        """Add the previous page above the first one."""
        async with self._busy:
            if self._earlier is None or self._earlier.earlier is None:
                return
            page = await read_page(self.window.engine, self.session, self._earlier.earlier)
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

    def _draw(self, entries: tuple[PageEntry, ...]) -> None:
        for entry in entries:
            if not isinstance(entry.item, Snapshot):
                draw_message(entry, entry.item, self.actions, self._names)
            elif above := self._summary.default_slot.children:
                above[0].move(ui.context.slot.parent)  # the card stays as it is, open or closed
            else:
                self.draw_summary(entry.item)
            self._drawn.append(entry)

    def _draw_summary_above(self) -> None:
        """Show the summary in use above the list while its place is on an earlier page."""
        is_drawn = any(entry.item == self._snapshot for entry in self._drawn)
        if self._snapshot is not None and not is_drawn and not self._summary.default_slot.children:
            with self._summary:
                self.draw_summary(self._snapshot)

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
