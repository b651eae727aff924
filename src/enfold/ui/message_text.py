"""Messages as plain text, part by part; markers in shortened messages open the original text.

A strategy that shortens a message puts markers such as `⟨ lines 5-60 … ⟩` in place of the text.
The store has the original message. Aligning both texts gives the text behind each marker.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

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
from enfold.ui.markdown import find_matches, markup
from enfold.ui.widgets import show_all_button

LONG = 4_000
"""Characters of a text that are shown at first."""
LONG_ORIGINAL = 20_000
"""Characters of an original text that are shown behind a marker."""
_BEFORE_MATCH = 300
"""Characters shown before the first match in a long text."""

ROLES: Mapping[str, str] = {
    "user": "You",
    "assistant": "Model",
    "system": "System",
    "tool": "Tool",
}
"""The roles in the words of the UI."""

MARKER = re.compile(r"⟨ [^⟨⟩\n]{1,400} ⟩")
_SPLIT_AT_MARKERS = re.compile(f"({MARKER.pattern})")
_LINES = re.compile(r"⟨ [+\- ]?lines? (\d+)(?:-(\d+))?\b")
_SIZED = re.compile(r"⟨ (\d+) (?:[+\- ]?(lines?)|(characters)) from ")
_SPACING = "\n "
"""Characters that a strategy may add between a marker and the text next to it."""

ReadMessage: TypeAlias = Callable[[], Awaitable[Message]]
"""Reads the original message."""


@dataclass(frozen=True, slots=True)
class TextSection:
    """One part of a message as text."""

    text: str
    title: str = ""
    """The kind of the part; empty for text."""
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A stretch of a shortened text."""

    text: str
    original: str | None = None
    """The text that it replaces. None if it is unchanged."""


def sections(message: Message) -> tuple[TextSection, ...]:
    """Return the parts of a message as text, in order."""
    return tuple(_sections(message.parts))


def place_text(depth: int, role: str) -> str:
    """Return the number and the role of a message."""
    return f"#{depth:,} {ROLES.get(role, role)}"


def show_message(message: Message, *, query: str = "") -> None:
    """Show a message as plain text and highlight the matches of a query."""
    found = sections(message)
    for section in found:
        if section.title:
            ui.label(storable(section.title)).classes("ef-section-title")
        show_text(section.text, query=query, is_code=section.is_code)
    if not found:
        ui.label("Empty message.").classes("ef-soft ef-small")


def show_text(text: str, *, query: str = "", is_code: bool = False) -> None:
    """Show a text; of a long one only the start, or the part around the first match."""
    ranges = find_matches(text, query) if query else ()
    start = max(0, ranges[0][0] - _BEFORE_MATCH) if ranges and len(text) > LONG else 0
    end = start + LONG
    look = "ef-plain-text ef-mono" if is_code else "ef-plain-text"
    shown = [(a - start, min(b, end) - start) for a, b in ranges if a < end]
    body = ui.html(markup(text[start:end], shown), sanitize=False).classes(look)
    body.props("dir=auto tabindex=0")
    if len(text) > LONG:
        show_all_button(len(text), lambda: body.set_content(markup(text, ranges)))


def show_shortened(shown: Message, read_original: ReadMessage) -> None:
    """Show a shortened message; a click on a marker shows the original text in its place."""
    found = sections(shown)

    async def read_behind(section: TextSection, place: int, marker: int) -> str:
        message = await read_original()
        # A shortened message has no reasoning: its signature would no longer be valid.
        rest = tuple(part for part in message.parts if not isinstance(part, Reasoning))
        originals = sections(Message(message.role, rest))
        is_aligned = len(originals) == len(found)
        text = originals[place].text if is_aligned else _joined(originals)
        return original_of(section.text, text, marker)

    for place, section in enumerate(found):
        if section.title:
            ui.label(storable(section.title)).classes("ef-section-title")
        texts = split_at_markers(section.text)
        if len(texts) == 1:
            show_text(section.text, is_code=section.is_code)
            continue
        look = "ef-plain-text ef-mono" if section.is_code else "ef-plain-text"
        with ui.element("div").classes(look).props("dir=auto tabindex=0"):
            for index, text in enumerate(texts):
                if index % 2:
                    _marker_button(text, partial(read_behind, section, place, index // 2))
                elif text:
                    ui.html(markup(text), sanitize=False, tag="span")
    if not any(MARKER.search(section.text) for section in found):

        async def whole() -> str:
            return _joined(sections(await read_original()))

        _marker_button("Show original message", whole)


def arguments_text(arguments: str | Mapping[str, Any]) -> str:
    """Return the arguments of a tool call as text."""
    return arguments if isinstance(arguments, str) else dump_text(arguments)


def _sections(parts: Iterable[Part]) -> Iterator[TextSection]:
    for part in parts:
        match part:
            case Text(text):
                yield TextSection(text)
            case Reasoning(text):
                yield TextSection(text or "(not readable)", "Reasoning")
            case ToolCall(name=name, arguments=arguments):
                yield TextSection(arguments_text(arguments), f"Call of {name}", is_code=True)
            case ToolResult(name=name, parts=inner, is_error=failed):
                title = f"{'Error' if failed else 'Result'}{f' of {name}' if name else ''}"
                yield from _titled(inner, title)
            case Attachment() | Data() | Unknown():
                yield from _titled((part,), "")


def _titled(parts: Iterable[Part], title: str) -> Iterator[TextSection]:
    for part in parts:
        match part:
            case Text(text):
                yield TextSection(text, title, is_code=True)
            case Data(value):
                yield TextSection(dump_text(value), title or "Data", is_code=True)
            case Attachment(name=name, mime=mime, size=size):
                about = (name, mime, "" if size is None else f"{size:,} bytes")
                yield TextSection(", ".join(filter(None, about)) or "unnamed", "Attachment")
            case _:
                yield TextSection("(unknown kind of content)", title or "Other")


def _joined(found: Iterable[TextSection]) -> str:
    return "\n\n".join(section.text for section in found)


def _marker_button(name: str, original: Callable[[], Awaitable[str]]) -> None:
    """Show a button that shows and hides the original text in its place."""
    button = ui.element("button").classes("ef-marker ef-start")
    button.props("type=button aria-expanded=false")
    with button:
        ui.html(markup(name), sanitize=False, tag="span")
    place = ui.element("span").classes("ef-original-place")

    async def toggle() -> None:
        is_open = bool(place.default_slot.children)
        place.clear()
        if not is_open:
            text = await original()
            cut = text if len(text) <= LONG_ORIGINAL else f"{text[:LONG_ORIGINAL]}…"
            with place:
                shown = ui.html(markup(cut), sanitize=False, tag="span").classes("ef-original")
                shown.classes("ef-original-lines" if "\n" in cut else "")
        button.props(f"aria-expanded={'false' if is_open else 'true'}")

    button.on("click", toggle)


def split_at_markers(shown: str) -> tuple[str, ...]:
    """Return the text cut at markers: texts and markers alternate, a text comes first."""
    return tuple(_SPLIT_AT_MARKERS.split(shown))


def align(shown: str, original: str) -> tuple[MarkedText, ...]:
    """Return the shown text in pieces, each marker with the original text that it replaces.

    If the texts cannot be aligned, the whole original is behind the whole shown text.
    """
    if shown == original:
        return (MarkedText(shown),)
    literals, markers = _literals_and_markers(shown, original)
    gaps = _gaps(literals, markers, original) if markers else None
    if gaps is None:
        return (MarkedText(shown, original),)
    found: list[MarkedText] = [MarkedText(literals[0])]
    for marker, gap, literal in zip(markers, gaps, literals[1:], strict=True):
        found += (MarkedText(marker, gap), MarkedText(literal))
    return tuple(piece for piece in found if piece.text)


def original_of(shown: str, original: str, number: int) -> str:
    """Return the original text behind a marker; the first marker is 0.

    Brackets that are part of the original stand for themselves. If the texts cannot be aligned,
    the whole original is returned.
    """
    before = 0
    for piece in align(shown, original):
        found = MARKER.findall(piece.text)
        if number < before + len(found):
            return found[number - before] if piece.original is None else piece.original
        before += len(found)
    return original


def _literals_and_markers(shown: str, original: str) -> tuple[list[str], list[str]]:
    """Return the texts around the markers, and the markers. Brackets of the original are text."""
    literals: list[str] = []
    markers: list[str] = []
    at = 0
    for match in MARKER.finditer(shown):
        if match[0] in original:
            continue
        literals.append(shown[at : match.start()])
        markers.append(match[0])
        at = match.end()
    return [*literals, shown[at:]], markers


def _gaps(literals: Sequence[str], markers: Sequence[str], original: str) -> list[str] | None:
    """Return the text behind each marker; None if a text around them is not in the original."""
    first, *between, last = literals
    start = next(
        (len(text) for text in (first, first.rstrip(_SPACING)) if original.startswith(text)), None
    )
    tail = next((text for text in (last, last.lstrip(_SPACING)) if original.endswith(text)), None)
    if start is None or tail is None or len(original) - len(tail) < start:
        return None
    end = len(original) - len(tail)
    gaps: list[str] = []
    at = start
    for marker, literal in zip(markers, between, strict=False):
        stop = _next_literal(marker, literal, original, at, end)
        if stop is None:
            return None
        gaps.append(original[at:stop])
        at = stop + len(literal)
    return [*gaps, original[at:end]]


def _next_literal(marker: str, literal: str, original: str, at: int, end: int) -> int | None:
    """Return the start of the text after a marker: by the marker's size, else by searching."""
    sized = _end_by_size(marker, original, at)
    if sized is not None and sized <= end and original.startswith(literal, sized):
        return sized
    found = original.find(literal, at, end) if literal.strip() else -1
    return None if found < 0 else found


def _end_by_size(marker: str, original: str, at: int) -> int | None:
    """Return the end of the replaced text if the marker states its size."""
    lines = _LINES.match(marker)
    if lines is not None:
        return _after_lines(original, at, int(lines[2] or lines[1]) - int(lines[1]) + 1)
    sized = _SIZED.match(marker)
    if sized is None:
        return None
    size = int(sized[1])
    return _after_lines(original, at, size) if sized[2] else min(len(original), at + size)


def _after_lines(text: str, at: int, number: int) -> int:
    """Return the end of a number of lines, without the last line break."""
    for _ in range(number):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at - 1
