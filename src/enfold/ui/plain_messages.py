"""Saying: a message on a page exactly as it was said, in plain text, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nicegui import ui

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
)
from enfold.text.words import storable
from enfold.ui.markdown import found_in, markup

LONG = 4_000
"""Characters of a text that are shown at first."""
_BEFORE = 300
"""Characters before the first thing that was looked for, where the beginning is left out."""

ROLES: Mapping[str, str] = {
    "user": "You",
    "assistant": "Model",
    "system": "System",
    "tool": "Tool",
}
"""Who speaks, for people."""


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a message, as it can be read."""

    text: str
    title: str = ""
    """What it is. Empty for what was simply said."""
    is_code: bool = False


def sections(message: Message) -> tuple[Section, ...]:
    """What a message consists of, in order."""
    return tuple(_sections(message.parts))


def show(message: Message, *, query: str = "") -> None:
    """Put the message on the page, what was looked for marked in it."""
    found = sections(message)
    for section in found:
        if section.title:
            ui.label(storable(section.title)).classes("ef-said-title")
        show_text(section.text, query=query, is_code=section.is_code)
    if not found:
        ui.label("Nothing was said.").classes("ef-soft ef-small")


def show_text(text: str, *, query: str = "", is_code: bool = False) -> None:
    """Put a text on the page; of a long one the beginning, or where something was found."""
    ranges = found_in(text, query) if query else ()
    start = max(0, ranges[0][0] - _BEFORE) if ranges and len(text) > LONG else 0
    end = start + LONG
    look = "ef-said ef-mono" if is_code else "ef-said"
    shown = [(a - start, min(b, end) - start) for a, b in ranges if a < end]
    body = ui.html(markup(text[start:end], shown), sanitize=False).classes(look).props("dir=auto")
    if len(text) <= LONG:
        return

    def show_all() -> None:
        body.content = markup(text, ranges)
        more.delete()

    more = ui.button(f"Show all {len(text):,} characters", on_click=show_all)
    more.props("flat dense no-caps size=sm color=primary").classes("ef-start")


def _sections(parts: Iterable[Part]) -> Iterator[Section]:
    for part in parts:
        match part:
            case Text(text):
                yield Section(text)
            case Reasoning(text):
                yield Section(text or "(cannot be read)", "Reasoning")
            case ToolCall(name=name, arguments=arguments):
                yield Section(arguments_text(arguments), f"Call of {name}", is_code=True)
            case ToolResult(name=name, parts=inner, is_error=failed):
                title = f"{'Error' if failed else 'Result'}{f' of {name}' if name else ''}"
                yield from _titled(inner, title)
            case Attachment() | Data() | Unknown():
                yield from _titled((part,), "")


def _titled(parts: Iterable[Part], title: str) -> Iterator[Section]:
    for part in parts:
        match part:
            case Text(text):
                yield Section(text, title, is_code=True)
            case Data(value):
                yield Section(dump_text(value), title or "Data", is_code=True)
            case Attachment(name=name, mime=mime, size=size):
                known = (name, mime, "" if size is None else f"{size:,} bytes")
                yield Section(", ".join(filter(None, known)) or "without a name", "Attachment")
            case _:
                yield Section("(of a kind that enfold does not know)", title or "Other")


def arguments_text(arguments: str | Mapping[str, Any]) -> str:
    """A call's arguments, to be read."""
    return arguments if isinstance(arguments, str) else dump_text(arguments)
