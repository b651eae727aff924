"""The page of one compression: what changed, and what became of every exact item."""

from __future__ import annotations

from nicegui import ui

from enfold.engine import Session
from enfold.engine.comparison import Comparison, read_comparison
from enfold.store.records import Snapshot
from enfold.ui import figures
from enfold.ui.blocks import badge, by_text, fact, facts, made_at
from enfold.ui.folding.comparing import show_comparison
from enfold.ui.folding.receipts import show_receipt
from enfold.ui.frame import frame
from enfold.ui.window import Window, path_of

COMPARE, RECEIPT = "compare", "receipt"


async def changes(window: Window, session: str, snapshot: str) -> None:
    """The page of a session's compression; `?show=receipt` begins with the receipt."""
    found = await window.session(session)
    comparison = await window.engine.store.read(read_comparison, found.key, snapshot)
    asked = ui.context.client.request.query_params.get("show")
    async with frame(window, "What changed", session=session):
        with ui.element("div").classes("ef-row"):
            ui.link("Back to the conversation", path_of(session))
            ui.label(await window.title(found)).classes("ef-soft ef-wrap").props("dir=auto")
        _figures(comparison)
        with ui.tabs().props("align=left no-caps") as tabs:
            ui.tab(COMPARE, "Before and after", icon="compare")
            ui.tab(RECEIPT, "Receipt", icon="receipt_long")
        first = RECEIPT if asked == RECEIPT else COMPARE
        with ui.tab_panels(tabs, value=first).classes("ef-full ef-panels").props("keep-alive"):
            with ui.tab_panel(COMPARE).classes("ef-panel"):
                show_comparison(comparison)
            with ui.tab_panel(RECEIPT).classes("ef-panel"):
                await _receipt(found, snapshot, tabs)


def _figures(found: Comparison) -> None:
    snapshot = found.snapshot
    with ui.element("section").classes("ef-card ef-stack").props('aria-label="This compression"'):
        with facts():
            _tokens(snapshot)
            with fact("Messages"):
                ui.label(_messages(found))
            with fact("By"):
                ui.label(by_text(snapshot.strategy, snapshot.author)).classes("ef-wrap")
            with fact("When"):
                made_at(snapshot)
        if snapshot.undone:
            badge("undone: it is not in use", "warm")


def _tokens(snapshot: Snapshot) -> None:
    before = snapshot.content.get("originalTokenCount")
    after = snapshot.content.get("newTokenCount")
    with fact("Before"):
        figures.count(before, "tokens")
    with fact("After"):
        figures.count(after, "tokens")
    with fact("Less"):
        figures.share(1 - after / before if before and after is not None else None)


def _messages(found: Comparison) -> str:
    numbers = {
        "folded": found.number("folded"),
        "shortened": found.number("edited"),
        "unchanged": found.number("kept"),
        "shown again": found.number("shown"),
    }
    return ", ".join(f"{number:,} {name}" for name, number in numbers.items() if number)


async def _receipt(session: Session, snapshot: str, tabs: ui.tabs) -> None:
    """The receipt, made out when it is first looked at."""
    place = ui.element("div").classes("ef-stack")

    async def fill() -> None:
        if tabs.value == RECEIPT and not place.default_slot.children:
            with place:
                waiting = ui.spinner(size="2em")
            receipt = await session.receipt(snapshot)
            waiting.delete()
            with place:
                show_receipt(session.id, receipt)

    tabs.on_value_change(fill)
    await fill()
