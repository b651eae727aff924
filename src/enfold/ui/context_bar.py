"""The context bar: what the context is full of, and in words what follows from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nicegui import ui

from enfold.budget import DEFAULT_MAX_TOKENS, Decision
from enfold.chat.meter import FULL, WARM
from enfold.engine import Session
from enfold.engine.state import (
    CallOptions,
    SettingsLevel,
    decide_for,
    read_model,
    read_state,
    retention_of,
)
from enfold.messages import Message, ToolCall, ToolResult
from enfold.modelconfig import ModelConfig
from enfold.records import SessionKey
from enfold.retention import split
from enfold.store.database import Database
from enfold.ui import figures
from enfold.ui.window import Window

PARTS: Mapping[str, str] = {
    "system": "System prompt and tools' definitions",
    "summary": "Summary",
    "messages": "Messages",
    "tools": "Tool calls and results",
    "estimated": "Estimated",
}
"""What the bar is made of, in the order it is drawn, and how each is called."""


@dataclass(frozen=True, slots=True)
class Fill:
    """How full a context is."""

    decision: Decision
    model: ModelConfig
    parts: Mapping[str, int]
    """Tokens, by the names of `PARTS`."""
    messages: int
    """In the whole branch."""
    kept: int
    """So many messages of the view would stay if it were compressed now."""
    foldable: int

    @property
    def used(self) -> int:
        """All that would be sent."""
        return sum(self.parts.values())

    @property
    def limit(self) -> int:
        """What it must fit into."""
        return max(1, self.decision.limit + self.decision.load.reserved)

    @property
    def share(self) -> float:
        """Of the limit; above 1 where it does not fit."""
        return self.used / self.limit

    @property
    def level(self) -> str:
        """`calm`, `warm` from 80 %, `full` from 95 %."""
        return "full" if self.share >= FULL else "warm" if self.share >= WARM else "calm"

    @property
    def is_exact(self) -> bool:
        """True if nothing in it is an estimate."""
        return not self.parts["estimated"] and self.decision.correction == 1

    @property
    def is_recommended(self) -> bool:
        """True if a compression would be a good idea, or must be."""
        return bool(self.foldable) and (self.decision.action != "keep" or self.level != "calm")


async def read_fill(window: Window, session: Session) -> Fill:
    """How full the session's context is; the counting is done beside the loop, not in it."""
    engine = window.engine
    id, known = await engine.store.read(read_model, session.key, engine.static_settings)
    model = known or await engine.models.get(id)
    return await engine.store.read(_fill, session.key, engine.static_settings, model)


def _fill(
    db: Database, key: SessionKey, static_settings: Sequence[SettingsLevel], model: ModelConfig
) -> Fill:
    state = read_state(db, key, {}, static_settings)
    view, decision = decide_for(state, model, CallOptions())
    load = decision.load
    tools = sum(shown.tokens for shown in view.shown if _is_of_tools(shown.message))
    divided = split(
        view.messages, [shown.tokens for shown in view.shown], retention_of(state, model)
    )
    parts = {
        "system": load.system + load.tools + load.files,
        "summary": view.summary_tokens,
        "messages": load.history - view.summary_tokens - tools + load.pending,
        "tools": tools,
        "estimated": load.estimate,
    }
    folded = len(divided.middle)
    return Fill(decision, model, parts, state.rows.depth, len(view.shown) - folded, folded)


def _is_of_tools(message: Message) -> bool:
    return any(isinstance(part, ToolCall | ToolResult) for part in message.parts)


Act = Callable[[], Awaitable[None]]

SOURCES: Mapping[str, str] = {
    "call": "this call",
    "session": "this session",
    "profile": "its profile",
    "model": "the model's configuration",
    "default": "the default",
}
"""Who set a threshold, as people say it."""
RECOMMENDED = "Compression recommended"


class ContextBar:
    """The bar above a conversation."""

    def __init__(self, window: Window, session: Session) -> None:
        self._window = window
        self._session = session
        self._fill: Fill | None = None

    def place(self, compress: Act) -> None:
        """Put it on the page, still empty."""
        self._compress = compress
        with ui.element("div").classes("ef-context") as self._room:
            ui.label("Counting…").classes("ef-small ef-soft")

    async def show(self) -> None:
        """Count, and draw what was counted."""
        fill = await read_fill(self._window, self._session)
        if fill == self._fill:
            return
        self._fill = fill
        self._room.clear()
        with self._room:
            self._draw(fill)

    def _draw(self, fill: Fill) -> None:
        with ui.element("button").classes(f"ef-meter ef-level-{fill.level}") as button:
            button.props["type"] = "button"
            button.props["aria-label"] = f"Context: {summary_of(fill)}. Explain"
            with ui.element("span").classes("ef-track").props("aria-hidden=true"):
                for name, tokens in fill.parts.items():
                    if tokens:
                        width = min(1.0, tokens / max(fill.limit, fill.used)) * 100
                        part = ui.element("span").classes(f"ef-part ef-part-{name}")
                        part.style(f"width: {width:.3f}%")
            with ui.element("span").classes("ef-meter-words"):
                ui.label(figures.share_text(fill.share)).classes("ef-figure ef-share")
                total = f"{'' if fill.is_exact else '≈ '}{fill.used:,} of {fill.limit:,} tokens"
                ui.label(total).classes("ef-figure ef-soft ef-small")
        button.on("click", self._explain, args=[])
        if fill.is_recommended:
            chip = ui.button(RECOMMENDED, icon="unfold_less", on_click=self._compress, color=None)
            chip.props("flat dense no-wrap").classes(f"ef-recommended ef-level-{fill.level}")

    def _explain(self) -> None:
        """The budget in words."""
        if (fill := self._fill) is None:
            return
        with ui.dialog() as dialog, ui.card().classes("ef-dialog ef-stack"):
            ui.label("The context, explained").classes("ef-title-small").props(
                "role=heading aria-level=2"
            )
            _parts(fill)
            for sentence in explained(fill):
                ui.label(sentence).classes("ef-wrap")
            with ui.element("div").classes("ef-row ef-end"):
                ui.button("Close", on_click=dialog.close).props("flat color=primary")
        dialog.on("hide", dialog.delete)
        dialog.open()


def _parts(fill: Fill) -> None:
    with ui.element("ul").classes("ef-legend"):
        for name, title in PARTS.items():
            with ui.element("li").classes("ef-row"):
                ui.element("span").classes(f"ef-dot ef-part-{name}").props("aria-hidden=true")
                ui.label(title).classes("ef-grow")
                if name == "estimated" and fill.parts[name]:
                    why = "Images, documents and sealed reasoning have no exact count."
                    figures.estimate(fill.parts[name], "tokens", why)
                else:
                    figures.count(fill.parts[name], "tokens")


def summary_of(fill: Fill) -> str:
    """The bar in one sentence, for whoever cannot see it."""
    about = "" if fill.is_exact else "about "
    used = f"{about}{fill.used:,} of {fill.limit:,} tokens, {figures.share_text(fill.share)}"
    return f"{used}. {RECOMMENDED}" if fill.is_recommended else used


def explained(fill: Fill) -> Iterator[str]:
    """Why it is as it is, sentence by sentence."""
    decision, model = fill.decision, fill.model
    action = {
        "keep": "Nothing needs to be done",
        "should": "A compression may run in the background",
    }
    yield f"{action.get(decision.action, 'A compression is due before the next request')}: " + (
        str(decision).partition(": ")[2] + "."
    )
    source = SOURCES.get(decision.threshold.source, decision.threshold.source)
    yield (
        f"Compression is due from {decision.threshold_tokens:,} tokens on: "
        f"{figures.share_text(decision.threshold.share)} of the limit, set by {source}."
    )
    if decision.threshold.note:
        yield f"Note: {decision.threshold.note}."
    yield (
        f"{model.id} takes {model.max_input:,} tokens of input. The limit of {fill.limit:,} leaves "
        "a safety margin of 5 %"
        + (
            f", and counts are corrected by {decision.correction:g}."
            if decision.correction != 1
            else "."
        )
    )
    reply = min(DEFAULT_MAX_TOKENS, model.max_output)
    yield (
        f"For the reply {reply:,} tokens of the window are kept free; at most "
        f"{max(0, decision.hard_tokens):,} tokens of history leave that room."
    )
    yield (
        f"The conversation has {fill.messages:,} messages. A compression now would fold "
        f"{fill.foldable:,} of those in the context and keep {fill.kept:,} as they are."
    )
