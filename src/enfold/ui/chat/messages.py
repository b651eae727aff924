"""Messages: how one is drawn, part by part. What tools were told and gave back is folded away."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from nicegui import ui

from enfold.engine.state import message_of
from enfold.engine.transcript_pages import PageEntry
from enfold.engine.turns import is_interrupted
from enfold.jsontext import dump_text
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
from enfold.records import Edit, StoredMessage
from enfold.text.words import storable
from enfold.tokens import count_message
from enfold.ui import figures
from enfold.ui.markdown import markdown, render
from enfold.ui.message_text import show_shortened

WHO: Mapping[str, str] = {
    "user": "You",
    "assistant": "Model",
    "system": "System",
    "tool": "Tool",
}
LONG = 12_000
"""Characters of a text that are drawn at first."""
_BRIEF = 80
"""Characters of a call's arguments beside its name."""
_ROLES_TO_EDIT = ("user", "assistant")

Act = Callable[[StoredMessage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class MessageActions:
    """What can be done with a message."""

    edit: Act
    regenerate: Act
    switch: Callable[[str], Awaitable[None]]
    """Go on with the branch through that message."""
    said: Callable[[Edit], Awaitable[Message]]
    """What an edited message said."""


def prepare_entries(entries: Sequence[PageEntry]) -> dict[str, str]:
    """Do the slow part of drawing, in any thread; the names of tools, by the ids of their calls."""
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
    entry: PageEntry, item: StoredMessage | Edit, hands: MessageActions, names: Mapping[str, str]
) -> ui.element:
    """One message on the page."""
    message = message_of(item)
    only_tools = bool(message.parts) and all(
        isinstance(part, ToolCall | ToolResult) for part in message.parts
    )
    look = "ef-tools" if only_tools else f"ef-{message.role}"
    with ui.element("article").classes(f"ef-message {look}") as drawn:
        drawn.props["aria-label"] = f"{WHO[message.role]}, message {item.depth:,}"
        if not only_tools or entry.siblings:
            _head(entry, item, message, hands)
        if isinstance(item, Edit):
            show_shortened(message, partial(hands.said, item))
        else:
            for part in message.parts:
                _draw_part(part, message, item, names)
        if is_interrupted(message):
            ui.label("interrupted: this is as far as the answer came").classes("ef-note")
        if isinstance(item, Edit):
            ui.label("shortened by the last compression").classes("ef-note")
    return drawn


def _head(
    entry: PageEntry, item: StoredMessage | Edit, message: Message, hands: MessageActions
) -> None:
    with ui.element("header").classes("ef-row-tight ef-message-head"):
        ui.label(message.name or WHO[message.role]).classes("ef-who")
        if item.tokens or not item.estimate:
            figures.count(item.tokens, "tokens").classes("ef-tiny ef-soft")
        if item.estimate:
            why = "Images, documents and sealed reasoning have no exact count."
            figures.estimate(item.estimate, "tokens", why).classes("ef-tiny ef-soft")
        if isinstance(item, StoredMessage):
            figures.when(datetime.fromtimestamp(item.created_at / 1000, UTC)).classes("ef-tiny")
            _actions(entry, item, message, hands)


def _draw_part(
    part: Part, message: Message, item: StoredMessage | Edit, names: Mapping[str, str]
) -> None:
    match part:
        case Text(text):
            _text(text)
        case ToolCall():
            title = part.name or "a tool"
            with _folded("Call", "build", title, _tokens(part, message, item), _brief(part)) as put:
                put(lambda: _pretty(part.arguments))
        case ToolResult():
            title = part.name or names.get(part.call_id, "") or "a tool"
            kind = "Error" if part.is_error else "Result"
            with _folded(kind, "output", title, _tokens(part, message, item)) as put:
                put(lambda: _result_text(part))
        case Reasoning(text):
            with _folded("Reasoning", "psychology", "", None) as put:
                put(lambda: text or "sealed: only its provider can read it")
        case Attachment():
            said = ", ".join(filter(None, (part.name or "without a name", part.mime)))
            ui.label(f"Attachment: {said}").classes("ef-chip ef-wrap")
        case Data(value):
            with _folded("Data", "data_object", "", None) as put:
                put(lambda: _pretty(value))
        case Unknown(extras):
            with _folded("Unknown part", "help_outline", "", None) as put:
                put(lambda: _pretty(extras))


def _text(text: str) -> None:
    """What was said; of a very long text the beginning, and the rest when it is asked for."""
    if len(text) <= LONG:
        markdown(text)
        return
    body = ui.label(storable(text[:LONG])).classes("ef-plain").props("dir=auto")

    def show_all() -> None:
        body.set_text(storable(text))
        more.delete()

    more = ui.button(f"Show all {len(text):,} characters", on_click=show_all)
    more.props("flat dense color=primary").classes("ef-more")


@contextmanager
def _folded(
    kind: str, icon: str, name: str, tokens: int | None, brief: str = ""
) -> Iterator[Callable[[Callable[[], str]], None]]:
    """A line that opens; what is inside is made when it does."""
    details = ui.element("details").classes("ef-fold")
    with details, ui.element("summary").classes("ef-fold-head"):
        ui.icon(icon, size="16px").props("aria-hidden=true")
        ui.label(kind).classes("ef-fold-kind")
        ui.label(name).classes("ef-mono ef-fold-name")
        if brief:
            ui.label(brief).classes("ef-mono ef-soft ef-ellipsis ef-fold-brief")
        if tokens is not None:
            figures.count(tokens, "tokens").classes("ef-tiny ef-soft ef-fold-tokens")

    def put(text: Callable[[], str]) -> None:
        def opened() -> None:
            if len(details.default_slot.children) == 1:
                with details:
                    _printed(text())

        details.on("toggle", opened, args=[])

    yield put


def _printed(text: str) -> None:
    """What a program wrote, as it wrote it."""
    shown = storable(text[:LONG])
    with ui.element("pre").classes("ef-printed").props("tabindex=0 dir=auto") as pre:
        body = ui.label(shown)
    if len(text) > LONG:
        rest = ui.button(f"Show all {len(text):,} characters").props("flat dense color=primary")

        def show_all() -> None:
            body.set_text(storable(text))
            rest.delete()

        rest.on_click(show_all)
    pre.props["aria-label"] = "Content"


def _actions(
    entry: PageEntry, item: StoredMessage, message: Message, hands: MessageActions
) -> None:
    with ui.element("div").classes("ef-row-tight ef-message-actions"):
        if len(entry.siblings) > 1:
            _switcher(entry, item, hands)
        text = text_of(message.parts)
        if text:
            _button("content_copy", "Copy", lambda: ui.clipboard.write(text))
        if message.role in _ROLES_TO_EDIT and all(isinstance(p, Text) for p in message.parts):
            _button("edit", "Edit", lambda: hands.edit(item))
        if entry.is_answer:
            _button("refresh", "Regenerate", lambda: hands.regenerate(item))


def _switcher(entry: PageEntry, item: StoredMessage, hands: MessageActions) -> None:
    """Which of the branches that part here is shown, as 2/3, and the way to the others."""
    place = entry.siblings.index(item.id)
    last = len(entry.siblings) - 1
    with (
        ui.element("div").classes("ef-row-tight ef-switcher").props("role=group aria-label=Branch")
    ):
        back = _button(
            "chevron_left", "Previous branch", lambda: hands.switch(entry.siblings[place - 1])
        )
        ui.label(f"{place + 1}/{last + 1}").classes("ef-figure ef-small")
        onward = _button(
            "chevron_right", "Next branch", lambda: hands.switch(entry.siblings[place + 1])
        )
    back.set_enabled(place > 0)
    onward.set_enabled(place < last)


def _button(icon: str, name: str, act: Callable[[], Any]) -> ui.button:
    button = ui.button(icon=icon, on_click=act).props("flat round dense size=sm")
    button.props["aria-label"] = button.props["title"] = name
    return button


def _tokens(part: Part, message: Message, item: StoredMessage | Edit) -> int:
    """What the part takes, alone in a message if it is one of several."""
    if len(message.parts) == 1:
        return item.tokens
    return count_message(replace(message, parts=(part,)), item.tokenizer)


def _brief(call: ToolCall) -> str:
    given = call.arguments
    text = given if isinstance(given, str) else dump_text(given)
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 1]}…"


def _pretty(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _result_text(result: ToolResult) -> str:
    data = [_pretty(part.value) for part in result.parts if isinstance(part, Data)]
    files = [f"[attachment {p.name}]" for p in result.parts if isinstance(p, Attachment)]
    return "\n\n".join(filter(None, (text_of(result.parts), *data, *files)))


async def ask_for_text(text: str, role: str) -> str | None:
    """The new words; None if it was thought better of."""
    with ui.dialog() as dialog, ui.card().classes("ef-dialog ef-stack"):
        ui.label("Say it otherwise").classes("ef-title-small").props("role=heading aria-level=2")
        words = "Your words begin a branch of their own" + (
            " and are answered there." if role == "user" else "."
        )
        ui.label(f"{words} What was said stays on the other one.").classes("ef-soft ef-small")
        field = ui.textarea("Message", value=text).props("outlined autogrow dir=auto autofocus")
        field.classes("ef-full")
        with ui.element("div").classes("ef-row ef-end"):
            ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat")
            save = ui.button("Save", on_click=lambda: dialog.submit(field.value))
            save.props("unelevated color=primary")
    said: str | None = await dialog
    dialog.delete()
    return said if said and said.strip() and said != text else None
