"""The context bar: how full the context is, what fills it, and the decision that follows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nicegui import ui

from enfold.amounts import number
from enfold.budget import DEFAULT_MAX_TOKENS, TOKEN_BUFFER_PERCENTAGE
from enfold.chat.meter import Meter
from enfold.engine import Session, Status
from enfold.engine.inspection import estimate_unstored
from enfold.modelconfig import ModelConfig
from enfold.records import Snapshot
from enfold.ui import figures
from enfold.ui.pins import TITLE, Pins
from enfold.ui.widgets import shown_dialog
from enfold.ui.window import Window

PARTS: Mapping[str, str] = {
    "system": "System prompt and tool definitions",
    "standing": "Pinned and standing messages",
    "summary": "Summary",
    "messages": "Messages",
    "tools": "Tool calls and results",
    "estimated": "Images and documents, estimated",
}
"""The parts of the bar in the order in which they are drawn, with their titles."""
SOURCES: Mapping[str, str] = {
    "call": "set for this call",
    "session": "set for this session",
    "profile": "set by its profile",
    "model": "set by the model's configuration",
    "database": "set for all sessions",
    "config file": "set in the config file",
    "environment": "set in the environment",
    "default": "default",
}
"""The levels that set a threshold."""
RECOMMENDED = "Compression recommended"
CLIENT_ESTIMATE = "The provider's count of the last request, less the messages."
NO_EXACT_COUNT = "Images, documents and sealed reasoning have no exact count."


@dataclass(eq=False)
class ContextBar:
    """The bar above a conversation."""

    window: Window
    session: Session
    pins: Pins
    compress: Callable[[], Awaitable[None]]
    model: Callable[[], str | None]
    """Returns the model that answers next. None is the session's."""
    is_client: bool
    """True: system prompt and tools are not stored, so they are estimated."""
    _status: Status | None = field(default=None, init=False)
    _unstored: int = field(default=0, init=False)
    _counts_started: int = field(default=0, init=False)

    def place(self) -> None:
        """Add the empty bar to the page."""
        with ui.element("div").classes("ef-context") as self._content:
            ui.label("Counting tokens…").classes("ef-small ef-soft")
        # The bar may be drawn again before its dialog opens, so this opens the dialog.
        self._dialogs = ui.element("div")

    async def show(self, used: Snapshot | None = None) -> None:
        """Count the tokens and draw the bar; `used` is the snapshot in use."""
        self._counts_started += 1
        this_count, model = self._counts_started, self.model()
        settings: dict[str, Any] = {} if model is None else {"model": model}
        status = await self.session.status(**settings)
        unstored = 0
        if self.is_client:
            unstored = await estimate_unstored(self.window.engine, self.session, status, used)
        # A count that started earlier may end later, with the model that was chosen before.
        is_old = this_count != self._counts_started
        if is_old or (status, unstored) == (self._status, self._unstored):
            return
        self._status, self._unstored = status, unstored
        self._content.clear()
        with self._content:
            self._draw(status, Meter.of(status, unstored=unstored))

    async def read_limits(self) -> tuple[object, ...]:
        """Return what the limits depend on; it changes when someone changes a limit."""
        if self._status is None:
            return ()
        settings = await self.session.settings()
        return settings, await self.window.engine.models.get(self._status.model), self.model()

    def _draw(self, status: Status, meter: Meter) -> None:
        with ui.element("button").classes(f"ef-meter ef-level-{meter.level}") as button:
            button.props["type"] = "button"
            ui.label("Context:").classes("ef-hidden-text")
            with ui.element("span").classes("ef-track").props("aria-hidden=true"):
                for name, tokens in parts_of(status, meter).items():
                    if tokens:
                        width = min(1.0, tokens / max(meter.limit, meter.used)) * 100
                        part = ui.element("span").classes(f"ef-part ef-part-{name}")
                        part.style(f"width: {width:.3f}%")
                due = status.decision.threshold_tokens + status.decision.load.reserved
                place = min(1.0, due / max(meter.limit, meter.used)) * 100
                mark = ui.element("span").classes("ef-due-mark").style(f"left: {place:.3f}%")
                mark.props["title"] = f"A compression is due from {due:,} tokens"
            with ui.element("span").classes("ef-meter-words"):
                ui.label(figures.share_text(meter.share)).classes("ef-figure ef-share")
                total = f"{'' if meter.is_exact else '≈ '}{meter.used:,} of {meter.limit:,} tokens"
                ui.label(total).classes("ef-figure ef-soft ef-small")
                if (left := describe_turns_left(status, self._unstored)) is not None:
                    ui.label(left).classes("ef-soft ef-small gt-sm")
            ui.label("Explain").classes("ef-hidden-text")
        button.on("click", self._explain, args=[])
        if is_recommended(status, meter):
            chip = ui.button(RECOMMENDED, icon="compress", on_click=self.compress, color=None)
            chip.props("flat dense no-wrap").classes(f"ef-recommended ef-level-{meter.level}")

    async def _explain(self) -> None:
        """Show the parts and the decision in a dialog."""
        if (status := self._status) is None:
            return
        meter = Meter.of(status, unstored=self._unstored)
        model = await self.window.engine.models.get(status.model)
        window = (await self.session.settings()).window
        with self._dialogs, shown_dialog("Context") as dialog:
            parts = parts_of(status, meter)
            with ui.element("ul").classes("ef-legend"):
                for name, title in PARTS.items():
                    with ui.element("li").classes("ef-row"):
                        dot = ui.element("span").classes(f"ef-dot ef-part-{name}")
                        dot.props("aria-hidden=true")
                        ui.label(title).classes("ef-grow")
                        if name == "system" and self._unstored:
                            figures.estimate(parts[name], "tokens", CLIENT_ESTIMATE)
                        elif name == "estimated" and parts[name]:
                            figures.estimate(parts[name], "tokens", NO_EXACT_COUNT)
                        else:
                            figures.count(parts[name], "tokens")
            for sentence in explain(status, meter, model, window, self._unstored):
                ui.label(sentence).classes("ef-wrap")
            with ui.element("div").classes("ef-row ef-end"):
                ui.button(TITLE, on_click=self.pins.open_list).props("flat color=primary")
                ui.button("Close", on_click=dialog.close).props("flat color=primary")


def parts_of(status: Status, meter: Meter) -> dict[str, int]:
    """Return the tokens of every part of the bar, by the names of `PARTS`.

    A standing message counts as that only, also if it is a tool result. The sum is `meter.used`.
    """
    standing = min(status.standing_tokens, meter.messages)
    tools = min(status.tool_tokens, meter.messages - standing)
    return {
        "system": meter.system,
        "standing": standing,
        "summary": meter.summary,
        "messages": meter.messages - standing - tools,
        "tools": tools,
        "estimated": meter.estimated,
    }


def is_recommended(status: Status, meter: Meter) -> bool:
    """Return True if a compression is due or useful, and there is something to compress."""
    is_due = status.decision.action != "keep" or meter.level != "calm"
    return is_due and status.compressible_message_count > 0


def describe_turns_left(status: Status, unstored: int = 0) -> str | None:
    """Return how many turns fit until a compression is due; None if the pace is unknown."""
    if not status.tokens_per_turn or status.decision.action == "must":
        return None
    free = status.decision.threshold_tokens - status.decision.tokens - unstored
    turns = max(0, free) // status.tokens_per_turn
    return f"about {number(turns, 'turn')} left" if turns else "less than one turn left"


def explain(
    status: Status, meter: Meter, model: ModelConfig, window: int | None, unstored: int
) -> Iterator[str]:
    """Yield the reasons for the decision, sentence by sentence.

    `window` is the session's window, if it is set; `unstored` the estimate of what a client adds.
    """
    decision = status.decision
    action = {"keep": "No action needed", "should": "A compression may run in the background"}
    start = action.get(decision.action, "A compression is due before the next request")
    yield f"{start}: {str(decision).partition(': ')[2]}."
    source = SOURCES.get(decision.threshold.source, decision.threshold.source)
    share = f"{figures.share_text(decision.threshold.share)} of the limit ({source})"
    due = f"A compression is due from {decision.threshold_tokens:,} tokens"
    if decision.guard == "window":
        yield f"{due}, so that the reply fits the window. The threshold is {share}."
    else:
        yield f"{due}: {share}."
    if status.tokens_per_turn:
        yield (
            f"Recent turns have {status.tokens_per_turn:,} tokens on average: "
            f"{describe_turns_left(status, unstored) or 'no turn is left'}."
        )
    if unstored:
        yield (
            f"The client's system prompt and tools are not stored. They have about {unstored:,} "
            "tokens by the provider's count of the last request."
        )
    if decision.threshold.note:
        yield f"Note: {decision.threshold.note}."
    factor = decision.correction
    correction = "" if factor == 1 else f", and counts are multiplied by {factor:g}"
    accepted = f"{model.id} accepts {model.max_input:,} input tokens."
    if window is not None and window < model.max_input + model.max_output:
        accepted += f" This session is set to a window of {window:,} tokens."
    yield (
        f"{accepted} A safety margin of 5 % is left out of the limit of {meter.limit:,} tokens"
        f"{correction}."
    )
    reply = min(DEFAULT_MAX_TOKENS, model.within(window).max_output)
    margin = figures.share_text(TOKEN_BUFFER_PERCENTAGE)
    yield (
        f"{reply:,} tokens are reserved for the reply, and {margin} of the window is a margin, "
        f"so the history may have at most {max(0, decision.hard_tokens):,} tokens."
    )
    yield (
        f"The conversation has {status.messages:,} messages. “Summarize” shows how many a "
        "compression would change."
    )
