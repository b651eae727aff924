"""A reply while it is written: drawn as it comes, a few times a second, never from the start."""

from __future__ import annotations

import re
from collections.abc import Callable

from nicegui import ui

from enfold.ui.markdown import markdown, render

SECONDS = 0.12
"""Between two drawings; what comes faster is drawn together."""
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)", re.MULTILINE)


class Reply:
    """An answer that is under way."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._text = ""
        self._settled = 0
        """So many characters are drawn for good."""
        self._drawn = 0
        with ui.element("article").classes("ef-message ef-assistant") as self._card:
            self._card.props["aria-label"] = "Model, answering"
            with ui.element("header").classes("ef-row-tight ef-message-head"):
                ui.label("Model").classes("ef-who")
                ui.spinner("dots", size="20px").props("aria-hidden=true")
                self._says = ui.label("is asked").classes("ef-tiny ef-soft")
                button = ui.button("Stop", icon="stop", on_click=stop)
                button.props("flat dense size=sm color=primary aria-label=Stop")
            self._blocks = ui.element("div")
            self._tail = markdown("")
        self._timer = ui.timer(SECONDS, self._draw)

    @property
    def has_begun(self) -> bool:
        """True once something was answered."""
        return bool(self._text.strip())

    def say(self, what: str) -> None:
        """What happens at the moment."""
        self._says.set_text(what)

    def take(self, piece: str) -> None:
        """A piece of the answer."""
        self._text += piece

    def end(self) -> None:
        """Take it off the page: the answer is stored, or there is none."""
        self._timer.cancel()
        if not self._card.is_deleted:
            self._card.delete()

    def _draw(self) -> None:
        if len(self._text) == self._drawn:
            return
        self.say("answers")
        self._drawn = len(self._text)
        settled = settled_length(self._text)
        if settled > self._settled:
            with self._blocks:
                markdown(self._text[self._settled : settled])
            self._settled = settled
        self._tail.set_content(render(self._text[self._settled :]))


def settled_length(text: str) -> int:
    """How much of a text is whole paragraphs, which nothing that follows can change."""
    end = text.rfind("\n\n")
    while end > 0 and len(_FENCE.findall(text[:end])) % 2:
        end = text.rfind("\n\n", 0, end)
    return end + 2 if end > 0 else 0
