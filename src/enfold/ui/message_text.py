"""Saying: a message on a page exactly as it was said, in plain text, part by part."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
class TextSection:
    """One part of a message, as it can be read."""

    text: str
    title: str = ""
    """What it is. Empty for what was simply said."""
    is_code: bool = False


def sections(message: Message) -> tuple[TextSection, ...]:
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


def _sections(parts: Iterable[Part]) -> Iterator[TextSection]:
    for part in parts:
        match part:
            case Text(text):
                yield TextSection(text)
            case Reasoning(text):
                yield TextSection(text or "(cannot be read)", "Reasoning")
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
                known = (name, mime, "" if size is None else f"{size:,} bytes")
                yield TextSection(", ".join(filter(None, known)) or "without a name", "Attachment")
            case _:
                yield TextSection("(of a kind that enfold does not know)", title or "Other")


def arguments_text(arguments: str | Mapping[str, Any]) -> str:
    """A call's arguments, to be read."""
    return arguments if isinstance(arguments, str) else dump_text(arguments)


MARKER = re.compile(r"⟨ [^⟨⟩\n]{1,400} ⟩")
_BESIDE = re.compile(f"({MARKER.pattern})")
_LINES = re.compile(r"⟨ [+\- ]?lines? (\d+)(?:-(\d+))?\b")
_SIZED = re.compile(r"⟨ (\d+) (?:[+\- ]?(lines?)|(characters)) from ")
_SPARE = "\n "
"""What may stand between a marker and the text beside it without having been said."""


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A stretch of a shown text."""

    text: str
    original: str | None = None
    """What it stands for. None where it is what was said."""


def pieces(shown: str, said: str) -> tuple[MarkedText, ...]:
    """The shown text in pieces; put in place of their markers, the originals make what was said.

    Where that cannot be made out, the whole stands for the whole.
    """
    if shown == said:
        return (MarkedText(shown),)
    literals, markers = _divided(shown, said)
    gaps = _gaps(literals, markers, said) if markers else None
    if gaps is None:
        return (MarkedText(shown, said),)
    found: list[MarkedText] = [MarkedText(literals[0])]
    for marker, gap, literal in zip(markers, gaps, literals[1:], strict=True):
        found += (MarkedText(marker, gap), MarkedText(literal))
    return tuple(piece for piece in found if piece.text)


def split(shown: str) -> tuple[str, ...]:
    """The shown text cut at what may be a marker: texts and markers in turn, a text first."""
    return tuple(_BESIDE.split(shown))


def original_of(shown: str, said: str, number: int) -> str:
    """What the marker of that number stands for; the first is 0.

    Of brackets that somebody wrote, they themselves; of what cannot be made out, everything.
    """
    before = 0
    for piece in pieces(shown, said):
        found = MARKER.findall(piece.text)
        if number < before + len(found):
            return found[number - before] if piece.original is None else piece.original
        before += len(found)
    return said


def _divided(shown: str, said: str) -> tuple[list[str], list[str]]:
    """The texts around the markers, and the markers; one that was said is no marker."""
    literals, markers = [], []
    at = start = 0
    for match in MARKER.finditer(shown):
        if match[0] in said:
            continue
        start = match.start()
        literals.append(shown[at:start])
        markers.append(match[0])
        at = match.end()
    return [*literals, shown[at:]], markers


def _gaps(literals: Sequence[str], markers: Sequence[str], said: str) -> list[str] | None:
    """What each marker replaced; None if the texts around them are not all to be found."""
    first, *between, last = literals
    start, end = _beginning(first, said), _ending(last, said)
    if start is None or end is None or end < start:
        return None
    gaps: list[str] = []
    at = start
    for marker, literal in zip(markers, between, strict=False):
        stop = _next(marker, literal, said, at, end)
        if stop is None:
            return None
        gaps.append(said[at:stop])
        at = stop + len(literal)
    return [*gaps, said[at:end]]


def _beginning(literal: str, said: str) -> int | None:
    """Where the text before the first marker ends."""
    return next((len(each) for each in _loosened(literal) if said.startswith(each)), None)


def _ending(literal: str, said: str) -> int | None:
    """Where the text after the last marker begins."""
    tails = (each for each in (literal, literal.lstrip(_SPARE)) if said.endswith(each))
    return next((len(said) - len(each) for each in tails), None)


def _loosened(literal: str) -> Iterator[str]:
    yield literal
    yield literal.rstrip(_SPARE)


def _next(marker: str, literal: str, said: str, at: int, end: int) -> int | None:
    """Where the text after a marker begins: where its size says, else where it is found next."""
    sized = _end_by_size(marker, said, at)
    if sized is not None and sized <= end and said.startswith(literal, sized):
        return sized
    found = said.find(literal, at, end) if literal.strip() else -1
    return None if found < 0 else found


def _end_by_size(marker: str, said: str, at: int) -> int | None:
    """The end of what a marker replaced, if it says how much that is."""
    lines = _LINES.match(marker)
    if lines is not None:
        return _after_lines(said, at, int(lines[2] or lines[1]) - int(lines[1]) + 1)
    sized = _SIZED.match(marker)
    if sized is None:
        return None
    size = int(sized[1])
    return _after_lines(said, at, size) if sized[2] else min(len(said), at + size)


def _after_lines(said: str, at: int, number: int) -> int:
    """Where so many lines end, the last one's break left out."""
    for _ in range(number):
        at = said.find("\n", at) + 1
        if not at:
            return len(said)
    return at - 1


MARKERS_LONG = 20_000
"""Characters of an original that are shown in a marker's place; the history has the rest."""

ReadMessage: TypeAlias = Callable[[], Awaitable[Message]]
"""Reads a message as it was said."""
Original: TypeAlias = Callable[[], Awaitable[str]]


def show_shortened(shown: Message, said: ReadMessage) -> None:
    """Put on the page what the model is sent of a message; markers open to what was said."""
    found = sections(shown)
    for place, section in enumerate(found):
        if section.title:
            ui.label(storable(section.title)).classes("ef-said-title")
        _show_section(section, place, len(found), said)
    if not any(len(split(section.text)) > 1 for section in found):
        _button("Show as it was said", lambda: _whole(said))


def _show_section(section: TextSection, place: int, number: int, said: ReadMessage) -> None:
    texts = split(section.text)
    if len(texts) == 1:
        show_text(section.text, is_code=section.is_code)
        return
    look = "ef-said ef-mono" if section.is_code else "ef-said"
    with ui.element("div").classes(look).props("dir=auto"):
        for index, text in enumerate(texts):
            if index % 2:
                _show_marker(section, index // 2, _Place(place, number, said))
            elif text:
                ui.html(markup(text), sanitize=False, tag="span")


class _Place:
    """Where in a message a shortened text stands."""

    def __init__(self, place: int, number: int, said: ReadMessage) -> None:
        self._place = place
        self._number = number
        self._said = said

    async def text(self) -> str:
        """The text as it was said; of a message of other parts, all of them."""
        found = _without_reasoning(await self._said())
        if len(found) == self._number:
            return found[self._place].text
        return _joined(found)


def _show_marker(section: TextSection, number: int, place: _Place) -> None:
    async def original() -> str:
        return original_of(section.text, await place.text(), number)

    _button(split(section.text)[2 * number + 1], original)


def _button(name: str, original: Original) -> None:
    """A button that opens to a text where it stands, and closes again."""
    button = ui.element("button").classes("ef-marker ef-start")
    button.props("type=button aria-expanded=false")
    with button:
        ui.html(markup(name), sanitize=False, tag="span")
    place = ui.element("span").classes("ef-original-place")

    async def turn() -> None:
        is_open = bool(place.default_slot.children)
        place.clear()
        if not is_open:
            text = await original()
            cut = text if len(text) <= MARKERS_LONG else f"{text[:MARKERS_LONG]}…"
            with place:
                shown = ui.html(markup(cut), sanitize=False, tag="span").classes("ef-original")
                shown.classes("ef-original-lines" if "\n" in cut else "")
        button.props(f"aria-expanded={'false' if is_open else 'true'}")

    button.on("click", turn)


async def _whole(said: ReadMessage) -> str:
    return _joined(sections(await said()))


def _joined(sections: tuple[TextSection, ...]) -> str:
    return "\n\n".join(section.text for section in sections)


def _without_reasoning(message: Message) -> tuple[TextSection, ...]:
    """An edited message has lost its reasoning, which was signed for it as it was."""
    rest = tuple(part for part in message.parts if not isinstance(part, Reasoning))
    return sections(Message(message.role, rest))
