"""The summary card: a compression in the chat, in place of the messages it replaced."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from nicegui import ui

from enfold.amounts import number
from enfold.engine import Session
from enfold.engine.inspection import read_summarized
from enfold.engine.state import message_of
from enfold.errors import EnfoldError
from enfold.records import Snapshot, StoredMessage
from enfold.text.words import storable
from enfold.ui import figures, message_text
from enfold.ui.compression.controls import Changed, CompressionPanel
from enfold.ui.markdown import markdown
from enfold.ui.widgets import (
    BY_HAND,
    author_text,
    badge,
    confirm,
    expandable,
    labelled,
    paged_list,
    prompt_for_text,
)
from enfold.ui.window import Window, notify_error, path_of

TRUNCATION = "truncation"
"""The author of a compression that left messages out because no summary could be written."""


@dataclass(frozen=True, slots=True)
class SummaryCard:
    """A compression in the chat; expanded it shows the summary and the actions."""

    window: Window
    session: Session
    snapshot: Snapshot
    panel: CompressionPanel
    changed: Changed
    """Called after an action here has changed the view."""

    def show(self) -> None:
        """Show the card."""
        title = title_of(self.snapshot)
        with labelled(ui.element("section").classes("ef-summary"), title):
            head = ui.element("button").classes("ef-summary-head")
            with head.props("type=button aria-expanded=false"):
                ui.icon("compress").classes("ef-summary-icon").props('aria-hidden="true"')
                ui.label(title).classes("ef-notice-title ef-grow")
                ui.icon("expand_more").classes("ef-summary-turn").props('aria-hidden="true"')
            with ui.element("div").classes("ef-summary-figures ef-row ef-dotted ef-small ef-soft"):
                self._figures()
            for warning in self.snapshot.content.get("warnings") or ():
                ui.label(f"Note: {warning}").classes("ef-summary-figures ef-wrap ef-small")
            body = ui.element("div").classes("ef-summary-body")
        body.set_visibility(False)

        def toggle() -> None:
            body.set_visibility(not body.visible)
            head.props(f"aria-expanded={'true' if body.visible else 'false'}")
            if body.visible and not body.default_slot.children:
                with body:
                    self._body()

        head.on("click", toggle)

    def _figures(self) -> None:
        snapshot, content = self.snapshot, self.snapshot.content
        if snapshot.text is not None:
            figures.count(snapshot.token_count, "tokens")
        before, after = token_counts(snapshot)
        if before and after:
            ui.label(f"context {before:,} → {after:,} tokens").classes("ef-figure")
        figures.age(snapshot.created_at)
        ui.label(author_text(snapshot.strategy, snapshot.author)).classes("ef-wrap")
        if snapshot.author == BY_HAND:
            badge("edited")
        if content.get("compressionType") == "auto":
            badge("automatic")

    def _body(self) -> None:
        snapshot = self.snapshot
        if snapshot.text is not None:
            markdown(snapshot.text).classes("ef-summary-text")
        self._actions()
        if snapshot.content.get("messagesIncluded"):
            expandable("Summarized messages", self._summarized)
        expandable("Other summaries of this conversation", self._others)

    def _actions(self) -> None:
        changes = path_of(self.session.id, f"changes/{self.snapshot.id}")
        has_text = self.snapshot.text is not None
        with ui.element("div").classes("ef-row"):
            ui.link("Show changes", changes).classes("ef-link-button")
            ui.link("Show receipt", f"{changes}?show=receipt").classes("ef-link-button")
            history = path_of(self.session.id, "history")
            ui.link("Show full history", history).classes("ef-link-button")
            if has_text and self.snapshot.content.get("messagesIncluded"):
                ui.button("Regenerate summary", on_click=self.panel.regenerate).props("flat dense")
            if has_text:
                ui.button("Edit summary", on_click=self._edit).props("flat dense")
            ui.button("Undo compression", on_click=self.panel.undo).props("flat dense")
            if has_text:
                delete = ui.button("Delete summary", on_click=self._delete)
                delete.props("flat dense color=negative")

    async def _edit(self) -> None:
        text = await prompt_for_text(
            "Edit summary",
            "Summary",
            storable(self.snapshot.text or ""),
            explanation="The model receives your text from now on. The old summary is kept.",
            is_long=True,
        )
        if text is not None and text != self.snapshot.text:
            work = partial(self.session.edit_summary, text)
            await self._do("edit summary", work, "Summary saved.")

    async def _delete(self) -> None:
        explanation = (
            "The text of the summary is deleted permanently, also as it was before it was edited. "
            "The messages that it replaced are kept, and the model receives them again; the oldest "
            "as an earlier summary, if there is one."
        )
        if await confirm("Delete summary?", explanation, "Delete"):
            work = partial(self.session.delete_summary, self.snapshot.id)
            await self._do("delete summary", work, "Summary deleted.")

    async def _do(self, action: str, work: Callable[[], Awaitable[object]], done: str) -> None:
        try:
            async with self.window.audited(action, self.session.id):
                await work()
        except EnfoldError as error:
            notify_error(error)
        else:
            ui.notify(done, position="top")
        await self.changed()

    async def _summarized(self) -> None:
        """Show the messages that the summary replaces, a page at a time."""
        rows = await read_summarized(self.window.engine, self.session, self.snapshot)
        paged_list(rows, _listed_message)

    async def _others(self) -> None:
        """Show the earlier and undone summaries."""
        all_of_them = await self.session.summaries()
        others = [each for each in all_of_them if each.id != self.snapshot.id]
        paged_list(others, self._other)
        if not others:
            ui.label("No other summaries.").classes("ef-soft ef-small")

    def _other(self, snapshot: Snapshot) -> None:
        with ui.element("div").classes("ef-row ef-dotted ef-small"):
            ui.link(title_of(snapshot), path_of(self.session.id, f"changes/{snapshot.id}"))
            figures.age(snapshot.created_at)
            ui.label(author_text(snapshot.strategy, snapshot.author)).classes("ef-wrap")
            if snapshot.undone:
                badge("undone")


def title_of(snapshot: Snapshot) -> str:
    """Return the title of a compression."""
    content = snapshot.content
    summarized, edited = content.get("messagesIncluded", 0), content.get("messagesEdited", 0)
    if edited and not content.get("messagesAdded", summarized):
        return f"{number(edited, 'message')} shortened"
    if summarized and snapshot.author == TRUNCATION:
        return f"{number(summarized, 'message')} left out without a summary"
    return f"Summary of {number(summarized, 'message')}"


def token_counts(snapshot: Snapshot) -> tuple[int | None, int | None]:
    """Return the tokens of the views before and after a compression; None is unknown."""
    return snapshot.content.get("originalTokenCount"), snapshot.content.get("newTokenCount")


def _listed_message(row: StoredMessage) -> None:
    with ui.element("article").classes("ef-listed-message"):
        with ui.element("div").classes("ef-row ef-dotted ef-small ef-soft"):
            ui.label(message_text.place_text(row.depth, row.role))
            figures.count(row.tokens, "tokens")
        message_text.show_message(message_of(row))
