"""What a talk looks like: what was said, answers as they come, notices, and the token bar."""

from __future__ import annotations

from time import monotonic
from typing import Literal, TypeAlias

from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Markdown, Static

from enfold.cli.screen import harmless
from enfold.talk.meter import FREE, SIGNS, Level, Meter

Kind: TypeAlias = Literal["note", "figures", "warning", "error"]

_COLOURS: dict[Level, str] = {"calm": "$success", "warm": "$warning", "full": "$error"}
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_A_SECOND = 8


class Said(Static):
    """What the user said."""

    def __init__(self, text: str) -> None:
        super().__init__(harmless(text), markup=False, classes="said")


class Notice(Static):
    """What enfold says: a result, a warning or an error."""

    def __init__(self, text: str, kind: Kind = "note") -> None:
        super().__init__(harmless(text), markup=False, classes=f"notice {kind}")


class Reply(Markdown):
    """What a model says, as it comes."""

    def __init__(self, text: str = "") -> None:
        super().__init__(harmless(text), classes="reply", open_links=False)
        self._waiting: list[str] = []

    def hear(self, text: str) -> None:
        """Another piece; it is shown with the next ones when there is time."""
        self._waiting.append(harmless(text))
        if len(self._waiting) == 1:
            self.call_after_refresh(self.catch_up)

    async def catch_up(self) -> None:
        """Show all that came."""
        text, self._waiting = "".join(self._waiting), []
        if text:
            await self.append(text)

    def mark(self, words: str) -> None:
        """Say that this is not all."""
        self.add_class("broken")
        self.border_subtitle = words


class Working(Static):
    """What is being done right now, and for how long."""

    what = reactive("", layout=True)

    def __init__(self) -> None:
        super().__init__(markup=False, id="working")
        self._since = 0.0

    def on_mount(self) -> None:
        """Move, so that nobody thinks it hangs."""
        self.set_interval(1 / _FRAMES_A_SECOND, self._move)

    def watch_what(self, what: str) -> None:
        """Another thing is done from now on; nothing, if there are no words for it."""
        self._since = monotonic()
        self.display = bool(what)
        self._move()

    def _move(self) -> None:
        if self.what:
            passed = monotonic() - self._since
            frame = _FRAMES[int(passed * _FRAMES_A_SECOND) % len(_FRAMES)]
            self.update(f"{frame} {self.what} {passed:.0f} s")


class TokenBar(Static):
    """How much of the context is in use, and by what."""

    meter: reactive[Meter | None] = reactive(None)

    def __init__(self) -> None:
        super().__init__(id="tokens")

    def watch_meter(self) -> None:
        """Other figures are shown at once."""
        self.refresh()

    def render(self) -> Content:
        """The bar with its percentage, and the figures below it."""
        meter = self.meter
        width = self.content_size.width
        if meter is None or width <= 0:
            return Content("")
        colour = _COLOURS[meter.level]
        label = f" {'' if meter.is_exact else '≈ '}{meter.share:.0%}"
        room = max(1, width - len(label))
        cells = meter.cells(room)
        drawn = "".join(SIGNS[name] * count for name, count in cells.items())
        return Content.assemble(
            (drawn, colour),
            (FREE * (room - len(drawn)), "$foreground 40%"),
            (label, f"bold {colour}"),
            "\n",
            (meter.words(width), "$foreground 70%"),
        )
