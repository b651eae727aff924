"""The summary card: a compression in the chat, in place of what it folded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from nicegui import ui

from enfold.engine import Engine, Session
from enfold.engine.state import message_of
from enfold.errors import EnfoldError
from enfold.records import Snapshot, StoredMessage
from enfold.store import tree
from enfold.text.words import storable
from enfold.ui import figures, message_text
from enfold.ui import window as failures
from enfold.ui.compression.controls import Changed, CompressionPanel
from enfold.ui.markdown import markdown
from enfold.ui.widgets import (
    BY_HAND,
    age_label,
    author_text,
    badge,
    expandable,
    number_of,
    paged_list,
    titled_dialog,
)
from enfold.ui.window import Window, path_of

TRUNCATION = "truncation"
"""Who is the author where no summary could be written, and old messages went without one."""


def summary_card(
    window: Window,
    session: Session,
    snapshot: Snapshot,
    compressing: CompressionPanel,
    changed: Changed,
) -> None:
    """Put a compression on the page: closed it says what it is, opened what it says.

    `changed` is called after the view has become another by what somebody did here.
    """
    with ui.element("section").classes("ef-summary") as section:
        section.props["aria-label"] = title_of(snapshot)
        _Card(window, session, snapshot, compressing, changed).show()


class _Card:
    """One compression."""

    def __init__(
        self,
        window: Window,
        session: Session,
        snapshot: Snapshot,
        compressing: CompressionPanel,
        changed: Changed,
    ) -> None:
        self._window = window
        self._session = session
        self._snapshot = snapshot
        self._compressing = compressing
        self._changed = changed

    def show(self) -> None:
        """Put it on the page."""
        head = ui.element("button").classes("ef-summary-head")
        head.props("type=button aria-expanded=false")
        with head:
            ui.icon("unfold_less").classes("ef-summary-icon").props('aria-hidden="true"')
            ui.label(title_of(self._snapshot)).classes("ef-notice-title ef-grow")
            ui.icon("expand_more").classes("ef-summary-turn").props('aria-hidden="true"')
        with ui.element("div").classes("ef-summary-figures ef-row ef-dotted ef-small ef-soft"):
            self._figures()
        for warning in self._snapshot.content.get("warnings") or ():
            ui.label(f"Note: {warning}").classes("ef-summary-figures ef-wrap ef-small")
        body = ui.element("div").classes("ef-summary-body")
        body.set_visibility(False)

        def turn() -> None:
            body.set_visibility(not body.visible)
            head.props(f"aria-expanded={'true' if body.visible else 'false'}")
            if body.visible and not body.default_slot.children:
                with body:
                    self._body()

        head.on("click", turn)

    def _figures(self) -> None:
        snapshot, content = self._snapshot, self._snapshot.content
        if snapshot.text is not None:
            figures.count(snapshot.token_count, "tokens")
        before, after = content.get("originalTokenCount"), content.get("newTokenCount")
        if before and after:
            ui.label(f"context {before:,} → {after:,}").classes("ef-figure")
        age_label(snapshot)
        ui.label(author_text(snapshot.strategy, snapshot.author)).classes("ef-wrap")
        if snapshot.author == BY_HAND:
            badge("edited")
        if content.get("compressionType") == "auto":
            badge("automatic")

    def _body(self) -> None:
        snapshot = self._snapshot
        if snapshot.text is not None:
            markdown(snapshot.text).classes("ef-summary-text")
        self._actions()
        if snapshot.content.get("messagesIncluded"):
            self._folded()
        expandable("Other summaries of this conversation", self._others)

    def _actions(self) -> None:
        changes = path_of(self._session.id, f"changes/{self._snapshot.id}")
        has_text = self._snapshot.text is not None
        with ui.element("div").classes("ef-row"):
            ui.link("What changed", changes).classes("ef-link-button")
            ui.link("Receipt", f"{changes}?show=receipt").classes("ef-link-button")
            ui.link("Full history", path_of(self._session.id, "history")).classes("ef-link-button")
            if has_text and self._snapshot.content.get("messagesIncluded"):
                ui.button("Regenerate", on_click=self._compressing.regenerate).props("flat dense")
            if has_text:
                ui.button("Edit", on_click=self._edit).props("flat dense")
            ui.button("Undo", on_click=self._compressing.undo).props("flat dense")
            if has_text:
                ui.button("Delete", on_click=self._delete).props("flat dense color=negative")

    async def _edit(self) -> None:
        with titled_dialog("Edit the summary") as dialog:
            ui.label("The model is sent your words from now on. The old ones stay on record.")
            words = ui.textarea("Summary", value=storable(self._snapshot.text or ""))
            words.props("outlined autogrow dir=auto input-style='max-height: 50vh'")
            words.classes("ef-full")
            with ui.element("div").classes("ef-row ef-end"):
                ui.button("Cancel", on_click=lambda: dialog.submit(None)).props("flat")
                save = ui.button("Save", on_click=lambda: dialog.submit(words.value))
                save.props("unelevated color=primary")
                save.bind_enabled_from(words, "value", lambda value: bool((value or "").strip()))
        text = await dialog
        dialog.delete()
        if text is not None and text != self._snapshot.text:
            work = partial(self._session.edit_summary, text)
            await self._do("edit summary", work, "The summary is edited.")

    async def _delete(self) -> None:
        with titled_dialog("Delete the summary?") as dialog:
            ui.label(
                "Its words are deleted for good. The messages that it stood for are all still "
                "there, and the model is sent them again."
            )
            with ui.element("div").classes("ef-row ef-end"):
                ui.button("Keep it", on_click=lambda: dialog.submit(None)).props("flat")
                sure = ui.button("Delete", on_click=lambda: dialog.submit("delete"))
                sure.props("unelevated color=negative")
        confirmed = await dialog
        dialog.delete()
        if confirmed:
            work = partial(self._session.delete_summary, self._snapshot.id)
            await self._do("delete summary", work, "The summary is deleted.")

    async def _do(self, action: str, work: Callable[[], Awaitable[object]], done: str) -> None:
        try:
            async with self._window.doing(action, self._session.id):
                await work()
        except EnfoldError as error:
            failures.show(error)
        else:
            ui.notify(done, position="bottom")
        await self._changed()

    def _folded(self) -> None:
        """The messages that the summary stands for, a few at a time."""

        async def fill() -> None:
            rows = await folded_messages(self._window.engine, self._session, self._snapshot)
            paged_list(rows, _folded_message)

        expandable("The messages that it stands for", fill)

    async def _others(self) -> None:
        """What was in use before, or was undone: all of it is on record."""
        all_of_them = await self._session.summaries()
        others = [each for each in all_of_them if each.id != self._snapshot.id]
        paged_list(others, self._other)
        if not others:
            ui.label("There are no others.").classes("ef-soft ef-small")

    def _other(self, snapshot: Snapshot) -> None:
        with ui.element("div").classes("ef-row ef-dotted ef-small"):
            ui.link(title_of(snapshot), path_of(self._session.id, f"changes/{snapshot.id}"))
            age_label(snapshot)
            ui.label(author_text(snapshot.strategy, snapshot.author)).classes("ef-wrap")
            if snapshot.undone:
                badge("undone")


def title_of(snapshot: Snapshot) -> str:
    """What a compression is."""
    content = snapshot.content
    folded, edited = content.get("messagesIncluded", 0), content.get("messagesEdited", 0)
    if folded and snapshot.author == TRUNCATION:
        return f"{number_of(folded, 'message')} left out without a summary"
    if folded or not edited:
        return f"Summary of {number_of(folded, 'message')}"
    return f"{number_of(edited, 'message')} shortened"


async def folded_messages(
    engine: Engine, session: Session, snapshot: Snapshot
) -> tuple[StoredMessage, ...]:
    """The messages between the first and the last that a snapshot folded, both included."""
    reach = snapshot.content["messageRange"]
    ends = [(reach["firstMessageId"], reach["lastMessageId"])]
    (rows,) = await engine.store.read(tree.segments, session.key, ends)
    return rows


def _folded_message(row: StoredMessage) -> None:
    with ui.element("article").classes("ef-folded-message"):
        with ui.element("div").classes("ef-row ef-dotted ef-small ef-soft"):
            ui.label(f"#{row.depth:,} {message_text.ROLES.get(row.role, row.role)}")
            figures.count(row.tokens, "tokens")
        message_text.show(message_of(row))
