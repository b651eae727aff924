"""The context bar: how full the context is, what fills it, and the decision that follows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping

from nicegui import ui

from enfold.budget import DEFAULT_MAX_TOKENS
from enfold.chat.meter import Meter
from enfold.engine import Session, Status
from enfold.modelconfig import ModelConfig
from enfold.ui import figures
from enfold.ui.pins import TITLE, Pins
from enfold.ui.widgets import titled_dialog
from enfold.ui.window import Window

PARTS: Mapping[str, str] = {
    "system": "System prompt and tool definitions",
    "standing": "Pinned and standing messages",
    "summary": "Summary",
    "messages": "Messages",
    "tools": "Tool calls and results",
    "estimated": "Estimated",
}
"""The parts of the bar in the order in which they are drawn, with their titles."""
SOURCES: Mapping[str, str] = {
    "call": "this call",
    "session": "this session",
    "profile": "its profile",
    "model": "the model's configuration",
    "default": "the default",
}
"""The levels that set a threshold."""
RECOMMENDED = "Compression recommended"
NO_EXACT_COUNT = "Images, documents and sealed reasoning have no exact count."


class ContextBar:
    """The bar above a conversation."""

    def __init__(
        self, window: Window, session: Session, pins: Pins, compress: Callable[[], Awaitable[None]]
    ) -> None:
        self._window = window
        self._pins = pins
        self._session = session
        self._compress = compress
        self._status: Status | None = None

    def place(self) -> None:
        """Add the empty bar to the page."""
        with ui.element("div").classes("ef-context") as self._content:
            ui.label("Counting tokens…").classes("ef-small ef-soft")

    async def show(self) -> None:
        """Count the tokens and draw the bar."""
        status = await self._session.status()
        if status == self._status:
            return
        self._status = status
        self._content.clear()
        with self._content:
            self._draw(status, Meter.of(status))

    def _draw(self, status: Status, meter: Meter) -> None:
        with ui.element("button").classes(f"ef-meter ef-level-{meter.level}") as button:
            button.props["type"] = "button"
            button.props["aria-label"] = f"Context: {describe_meter(status, meter)}. Explain"
            with ui.element("span").classes("ef-track").props("aria-hidden=true"):
                for name, tokens in parts_of(status, meter).items():
                    if tokens:
                        width = min(1.0, tokens / max(meter.limit, meter.used)) * 100
                        part = ui.element("span").classes(f"ef-part ef-part-{name}")
                        part.style(f"width: {width:.3f}%")
            with ui.element("span").classes("ef-meter-words"):
                ui.label(figures.share_text(meter.share)).classes("ef-figure ef-share")
                total = f"{'' if meter.is_exact else '≈ '}{meter.used:,} of {meter.limit:,} tokens"
                ui.label(total).classes("ef-figure ef-soft ef-small")
        button.on("click", self._explain, args=[])
        if is_recommended(status, meter):
            chip = ui.button(RECOMMENDED, icon="compress", on_click=self._compress, color=None)
            chip.props("flat dense no-wrap").classes(f"ef-recommended ef-level-{meter.level}")

    async def _explain(self) -> None:
        """Show the parts and the decision in a dialog."""
        if (status := self._status) is None:
            return
        meter = Meter.of(status)
        model = await self._window.engine.models.get(status.model)
        with titled_dialog("Context") as dialog:
            _legend(parts_of(status, meter))
            for sentence in explain(status, meter, model):
                ui.label(sentence).classes("ef-wrap")
            with ui.element("div").classes("ef-row ef-end"):
                ui.button(TITLE, on_click=self._pins.open_list).props("flat color=primary")
                ui.button("Close", on_click=dialog.close).props("flat color=primary")
        dialog.on("hide", dialog.delete)
        dialog.open()


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


def describe_meter(status: Status, meter: Meter) -> str:
    """Return the bar in one sentence, for screen readers."""
    about = "" if meter.is_exact else "about "
    used = f"{about}{meter.used:,} of {meter.limit:,} tokens, {figures.share_text(meter.share)}"
    return f"{used}. {RECOMMENDED}" if is_recommended(status, meter) else used


def explain(status: Status, meter: Meter, model: ModelConfig) -> Iterator[str]:
    """Yield the reasons for the decision, sentence by sentence."""
    decision = status.decision
    action = {"keep": "No action needed", "should": "A compression may run in the background"}
    start = action.get(decision.action, "A compression is due before the next request")
    yield f"{start}: {str(decision).partition(': ')[2]}."
    source = SOURCES.get(decision.threshold.source, decision.threshold.source)
    yield (
        f"A compression is due from {decision.threshold_tokens:,} tokens: "
        f"{figures.share_text(decision.threshold.share)} of the limit, set by {source}."
    )
    if decision.threshold.note:
        yield f"Note: {decision.threshold.note}."
    correction = (
        f", and counts are multiplied by {decision.correction:g}"
        if decision.correction != 1
        else ""
    )
    yield (
        f"{model.id} accepts {model.max_input:,} input tokens. The limit of {meter.limit:,} tokens "
        f"includes a safety margin of 5 %{correction}."
    )
    reply = min(DEFAULT_MAX_TOKENS, model.max_output)
    yield (
        f"{reply:,} tokens are reserved for the reply, so the history may have at most "
        f"{max(0, decision.hard_tokens):,} tokens."
    )
    yield (
        f"The conversation has {status.messages:,} messages. A compression now would summarize "
        f"{status.compressible_message_count:,} of those in the context and keep "
        f"{status.retained_message_count:,} unchanged."
    )


def _legend(parts: Mapping[str, int]) -> None:
    with ui.element("ul").classes("ef-legend"):
        for name, title in PARTS.items():
            with ui.element("li").classes("ef-row"):
                ui.element("span").classes(f"ef-dot ef-part-{name}").props("aria-hidden=true")
                ui.label(title).classes("ef-grow")
                if name == "estimated" and parts[name]:
                    figures.estimate(parts[name], "tokens", NO_EXACT_COUNT)
                else:
                    figures.count(parts[name], "tokens")
