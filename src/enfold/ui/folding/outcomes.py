"""Outcomes: how a page says that a compression runs, what came of it, and which way on there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nicegui import ui

from enfold.engine.compression import CANCELLED
from enfold.events import CompressionFailed, CompressionFinished, CompressionStarted
from enfold.report import duration
from enfold.ui import figures
from enfold.ui.blocks import buttons, by_text, fact, facts, notice, number_of, opening

RISK = (
    "You can go on without it. The conversation then stays as long as it is: a request may be too "
    "large for the model and be refused, and each one costs more."
)
"""What it means to continue at one's own risk."""

NOTHING_DONE: Mapping[str, str] = {
    "kept": "Nothing was folded: it is not due.",
    "no_gain": "Nothing was folded: it would not have become smaller.",
    "nothing_new": "Nothing was folded: there is nothing new since the last summary.",
    "nothing_to_compress": "Nothing was folded: all of it is recent enough to stay.",
}
"""Outcomes that are neither a result nor an error."""

COUNT_FAILED = "count_failed"

_STEPS: Mapping[str, str] = {
    "summarizing": "The summary is being written.",
    "condensing": "The messages are being condensed.",
    "recording": "It is being recorded.",
}


@dataclass(frozen=True, slots=True)
class Ways:
    """What can be done from here; each is what happens when its button is pressed."""

    retry: Callable[[], Any]
    go_on: Callable[[], Any]
    undo: Callable[[], Any]
    dismiss: Callable[[], Any]
    mute: Callable[[], Any]
    """Show no more of what is not an error."""


def show_running(event: CompressionStarted, cancel: Callable[[], Any] | None) -> ui.label:
    """A compression that runs, with its scope; the answer is the line for how far it is."""
    with ui.element("section").classes("ef-notice ef-notice-plain").props("role=status"):
        ui.spinner(size="1.4em").classes("ef-notice-icon").props('aria-hidden="true"')
        with ui.element("div").classes("ef-grow ef-stack-tight"):
            ui.label(str(event).replace("...", "…")).classes("ef-notice-title ef-wrap")
            started = "Started by itself: the context is full." if event.automatic else ""
            step = ui.label(started).classes("ef-soft ef-small")
        if cancel is not None:
            ui.button("Cancel", on_click=cancel).props("flat dense")
    return step


def step_words(step: str, messages: int) -> str:
    """How far it is."""
    return _STEPS.get(step, f"{step}: {messages:,} messages")


def show_finished(event: CompressionFinished, changes: str, ways: Ways) -> None:
    """What a compression did; `changes` is the page that shows it message by message."""
    # Where nobody wrote a summary, the strategy itself is the author.
    verb = "Shortened" if event.author == event.strategy else "Folded"
    with notice("good", f"{verb} {number_of(event.messages, 'message')}"):
        _result(event)
        if len(event.steps) > 1:
            _steps(event)
        for warning in event.warnings:
            ui.label(f"Note: {warning}").classes("ef-small ef-warm ef-wrap")
        with buttons():
            ui.link("What changed", changes).classes("ef-link-button")
            ui.button("Undo", on_click=ways.undo).props("flat dense")
            _dismiss(ways)
            quiet = ui.button("Do not show these", on_click=ways.mute, color=None)
            quiet.props("flat dense").classes("ef-quiet")


def show_nothing_done(words: str, ways: Ways) -> None:
    """That there was nothing to do."""
    with notice("plain", words), buttons():
        _dismiss(ways)


def show_failed(event: CompressionFailed, ways: Ways) -> None:
    """That a compression failed, why, and what can be done: less after a failed count."""
    if event.code == CANCELLED:
        with notice("plain", "Called off. Nothing was changed."), buttons():
            ui.button("Start again", on_click=ways.retry).props("flat dense")
            _dismiss(ways)
        return
    counting = event.code == COUNT_FAILED
    what = "The tokens could not be counted" if counting else "The summary failed"
    with notice("bad", f"{what}. Nothing was changed."):
        ui.label(event.reason).classes("ef-wrap ef-small")
        if not counting:
            ui.label(RISK).classes("ef-soft ef-small")
        with buttons():
            ui.button("Retry", on_click=ways.retry).props("unelevated dense color=primary")
            if not counting:
                ui.button("Continue at own risk", on_click=ways.go_on).props("flat dense")


def show_blocked(reason: str, ways: Ways) -> None:
    """That the session waits. It stays until somebody has decided."""
    with notice("bad", "This conversation waits: a summary that is due has failed."):
        ui.label(reason).classes("ef-wrap ef-small")
        ui.label(f"Nothing more is sent until a summary succeeds. {RISK}").classes(
            "ef-soft ef-small"
        )
        with buttons():
            ui.button("Retry", on_click=ways.retry).props("unelevated dense color=primary")
            ui.button("Continue at own risk", on_click=ways.go_on).props("flat dense")


def show_at_risk(reason: str, ways: Ways) -> None:
    """That somebody decided to go on without the summary that is due."""
    with notice("warm", "You continue at your own risk, without the summary that is due."):
        ui.label(reason).classes("ef-wrap ef-small")
        with buttons():
            ui.button("Retry the summary", on_click=ways.retry).props("flat dense")


def _result(event: CompressionFinished) -> None:
    less = 1 - event.tokens_after / event.tokens_before if event.tokens_before else 0.0
    with facts():
        with fact("Before"):
            figures.count(event.tokens_before, "tokens")
        with fact("After"):
            figures.count(event.tokens_after, "tokens")
        with fact("Less"):
            figures.share(less)
        with fact("Cost"):
            figures.money(event.cost) if event.cost != 0 else ui.label("none")
        with fact("Time"):
            ui.label(duration(event.seconds)).classes("ef-figure")
        with fact("By"):
            ui.label(by_text(event.strategy, event.author)).classes("ef-wrap")


def _steps(event: CompressionFinished) -> None:
    def fill() -> None:
        with ui.element("ol").classes("ef-steps"):
            for name, before, after in event.steps:
                with ui.element("li"):
                    ui.label(f"{_spoken(name)}: {_change(before, after)}").classes("ef-small")

    opening(f"{len(event.steps)} passes", fill)


def _change(before: int, after: int) -> str:
    if before == after:
        return f"{before:,} tokens, unchanged"
    return f"{before:,} → {after:,} tokens ({figures.share_text(1 - after / before)} less)"


def _spoken(name: str) -> str:
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def _dismiss(ways: Ways) -> None:
    ui.button("Dismiss", on_click=ways.dismiss).props("flat dense")
