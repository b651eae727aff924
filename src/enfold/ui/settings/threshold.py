"""The threshold's card: how many tokens it comes to with the model in use, and who set it."""

from __future__ import annotations

from nicegui import ui

from enfold.engine.thresholds import EffectiveThreshold
from enfold.ui import figures
from enfold.ui.settings.catalogue import SOURCES
from enfold.ui.settings.scope import Scope


class ThresholdCard:
    """What is in force, in words and figures."""

    def __init__(self) -> None:
        self._card = ui.element("section").classes("ef-card ef-stack")
        self._card.props('aria-label="Effective threshold" aria-live=polite')

    async def show(self, scope: Scope) -> None:
        """The threshold of the scope."""
        found = await scope.threshold()
        self._card.clear()
        with self._card:
            with ui.element("div").classes("ef-row"):
                ui.label("Effective threshold").classes("st-title")
                figures.count(found.tokens, "tokens").classes("st-big")
                ui.label(f"from: {_source(found)}").classes("st-source st-own")
            ui.label(_words(found)).classes("ef-small ef-wrap")
            if found.note:
                ui.label(found.note).classes("ef-small ef-warm ef-wrap")


def _source(found: EffectiveThreshold) -> str:
    return SOURCES[found.source]


def _words(found: EffectiveThreshold) -> str:
    """How the figure comes about."""
    takes = (
        f"{found.model} takes {found.max_input:,} tokens of input; {found.limit:,} of them are for "
        "the history, the rest is a margin."
    )
    if found.share is None:
        reached = f"A compression is due above {found.tokens:,} tokens, an absolute number."
    else:
        reached = f"A compression is due above {figures.share_text(found.share)} of that."
    if not found.is_automatic:
        reached += " Automatic compression is off: only the hard limit compresses."
    return f"{takes} {reached}"
