"""Unfolding: a shortened message on a page, every marker in it to be opened where it stands.

What was said is not read before somebody opens a marker: most are never opened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from nicegui import ui

from enfold.messages import Message, Reasoning
from enfold.store.words import storable
from enfold.ui import saying
from enfold.ui.folding.markers import original_of, split
from enfold.ui.highlights import markup
from enfold.ui.saying import Section

LONG = 20_000
"""Characters of an original that are shown in a marker's place; the history has the rest."""

Said: TypeAlias = Callable[[], Awaitable[Message]]
"""Reads a message as it was said."""
Original: TypeAlias = Callable[[], Awaitable[str]]


def show_shortened(shown: Message, said: Said) -> None:
    """Put on the page what the model is sent of a message; markers open to what was said."""
    found = saying.sections(shown)
    for place, section in enumerate(found):
        if section.title:
            ui.label(storable(section.title)).classes("ef-said-title")
        _show_section(section, place, len(found), said)
    if not any(len(split(section.text)) > 1 for section in found):
        _button("Show as it was said", lambda: _whole(said))


def _show_section(section: Section, place: int, number: int, said: Said) -> None:
    texts = split(section.text)
    if len(texts) == 1:
        saying.show_text(section.text, is_code=section.is_code)
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

    def __init__(self, place: int, number: int, said: Said) -> None:
        self._place = place
        self._number = number
        self._said = said

    async def text(self) -> str:
        """The text as it was said; of a message of other parts, all of them."""
        found = _without_reasoning(await self._said())
        if len(found) == self._number:
            return found[self._place].text
        return _joined(found)


def _show_marker(section: Section, number: int, place: _Place) -> None:
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
            cut = text if len(text) <= LONG else f"{text[:LONG]}…"
            with place:
                shown = ui.html(markup(cut), sanitize=False, tag="span").classes("ef-original")
                shown.classes("ef-original-lines" if "\n" in cut else "")
        button.props(f"aria-expanded={'false' if is_open else 'true'}")

    button.on("click", turn)


async def _whole(said: Said) -> str:
    return _joined(saying.sections(await said()))


def _joined(sections: tuple[Section, ...]) -> str:
    return "\n\n".join(section.text for section in sections)


def _without_reasoning(message: Message) -> tuple[Section, ...]:
    """An edited message has lost its reasoning, which was signed for it as it was."""
    rest = tuple(part for part in message.parts if not isinstance(part, Reasoning))
    return saying.sections(Message(message.role, rest))
