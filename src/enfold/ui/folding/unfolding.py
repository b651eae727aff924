"""Unfolding: a shortened message on a page, every marker in it to be opened where it stands."""

from __future__ import annotations

from nicegui import ui

from enfold.messages import Message, Reasoning
from enfold.store.words import storable
from enfold.ui import saying
from enfold.ui.folding.markers import MARKER, Piece, pieces
from enfold.ui.highlights import markup
from enfold.ui.saying import Section

LONG = 20_000
"""Characters of an original that are shown in a marker's place; the history has the rest."""


def show_shortened(shown: Message, said: Message) -> None:
    """Put on the page what the model is sent of a message; markers open to what was said."""
    now, then = saying.sections(shown), _without_reasoning(said)
    if len(now) != len(then):
        saying.show(shown)
        _original("\n\n".join(section.text for section in then), "Show as it was said")
        return
    for section, original in zip(now, then, strict=True):
        _show_section(section, original)


def show_marked(shown: str, said: str, *, is_code: bool = False) -> None:
    """Put a shortened text on the page; its markers open to what was said."""
    with ui.element("div").classes("ef-said ef-mono" if is_code else "ef-said").props("dir=auto"):
        for piece in pieces(shown, said):
            _show_piece(piece)


def _show_section(section: Section, original: Section) -> None:
    if section.title:
        ui.label(storable(section.title)).classes("ef-said-title")
    if section.text == original.text:
        saying.show_text(section.text, is_code=section.is_code)
    else:
        show_marked(section.text, original.text, is_code=section.is_code)


def _show_piece(piece: Piece) -> None:
    if piece.original is None:
        ui.html(markup(piece.text), sanitize=False, tag="span")
    elif MARKER.fullmatch(piece.text):
        _original(piece.original, piece.text)
    else:
        ui.html(markup(piece.text), sanitize=False, tag="span")
        _original(piece.original, "Show as it was said")


def _original(text: str, name: str) -> None:
    """A button that opens to a text where it stands, and closes again."""
    button = ui.element("button").classes("ef-marker").props("type=button aria-expanded=false")
    with button:
        ui.html(markup(name), sanitize=False, tag="span")
    place = ui.element("span")

    def turn() -> None:
        is_open = bool(place.default_slot.children)
        button.props(f"aria-expanded={'false' if is_open else 'true'}")
        place.clear()
        if not is_open:
            with place:
                cut = text if len(text) <= LONG else f"{text[:LONG]}…"
                shown = ui.html(markup(cut), sanitize=False, tag="span").classes("ef-original")
                shown.classes("ef-original-lines" if "\n" in cut else "")

    button.on("click", turn)


def _without_reasoning(message: Message) -> tuple[Section, ...]:
    """An edited message has lost its reasoning, which was signed for it as it was."""
    rest = tuple(part for part in message.parts if not isinstance(part, Reasoning))
    return saying.sections(Message(message.role, rest))
