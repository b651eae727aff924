"""The list of the visitor's sessions at the side of every page, with search and import."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlencode

from nicegui import events, ui
from nicegui.events import ValueChangeEventArguments

from enfold.amounts import number
from enfold.engine.transfer import export_archive, import_transcript
from enfold.errors import EnfoldError, InputError
from enfold.records import Hit, SessionRecord, check_name
from enfold.transcripts import Transcript, read
from enfold.ui import figures
from enfold.ui.widgets import confirm, prompt_for_text
from enfold.ui.window import Window, look_into, notify_failure, path_of

LARGEST = 60 * 2**20
"""Bytes of an imported file; larger ones need `enfold import`."""


def import_field(window: Window) -> None:
    """Show a field to drop or choose a transcript."""

    async def store(event: events.UploadEventArguments) -> None:
        try:
            found = await asyncio.to_thread(_read, await event.file.read())
            names = [await _store(window, transcript) for transcript in found]
        except EnfoldError as error:
            notify_failure(f"{event.file.name}: {error}")
        else:
            ui.notify(f"{number(len(names), 'conversation')} imported", type="positive")
            ui.navigate.to(path_of(names[0]))
        finally:
            field.reset()

    def refuse() -> None:
        notify_failure(
            f"Import one file of at most {LARGEST // 2**20} MB; `enfold import` takes more."
        )

    field = ui.upload(
        label="Drop a transcript here",
        auto_upload=True,
        max_file_size=LARGEST,
        on_upload=store,
    )
    field.on_rejected(refuse).classes("ef-import").props("flat hide-upload-btn")
    field.props["aria-label"] = "Import a transcript"


def _read(content: bytes) -> list[Transcript]:
    """Return all conversations of a file. All are checked before the first is stored."""
    found = list(read(content))
    if not found:
        raise InputError("the file has no conversation")
    for transcript in found:
        check_name("session", transcript.id)
    return found


async def _store(window: Window, transcript: Transcript) -> str:
    async with window.audited("import session", transcript.id):
        stored = await import_transcript(window.engine, transcript, namespace=window.namespace)
    return stored.id


_SHOWN = 50
"""Sessions on one page of the list."""
_SEARCHED = 2_000
"""The most recent sessions, whose titles are searched."""
_HITS = 8
_SECONDS = 5.0
"""Between two checks for changes by other windows and programs."""
NEW_TITLE = "New conversation"


class SessionList:
    """The list of sessions, its search field and the button for a new one."""

    def __init__(self, window: Window, current: str | None) -> None:
        self._window = window
        self._current = current
        self._last: SessionRecord | None = None
        self._newest: list[SessionRecord] = []
        self._is_search = False

    async def show(self) -> None:
        """Show the list."""
        if self._window.looked_into:
            await self._show_namespace()
        with ui.element("div").classes("ef-sessions-head"):
            new = ui.button("New", icon="add", on_click=self._start).props("unelevated no-wrap")
            new.props("color=primary").props["aria-label"] = "New conversation"
            search = ui.input(placeholder="Search", on_change=self._search)
            search.props("dense outlined clearable debounce=300 type=search").classes("ef-grow")
            search.props["aria-label"] = "Search all conversations"
        self._list = ui.element("div").classes("ef-sessions").props("role=list")
        self._list.props["aria-label"] = "Sessions"
        await self.refresh()
        import_field(self._window)
        ui.timer(_SECONDS, self._follow)

    async def _show_namespace(self) -> None:
        """Show that the sessions are those of another namespace, and the way back."""
        namespace = self._window.looked_into
        tokens = await self._window.engine.access.tokens()
        names = {token.namespace: token.name for token in tokens}
        with ui.element("div").classes("ef-looked-into ef-small").props("role=status"):
            ui.label(f"Sessions of {names.get(namespace, namespace)}").classes("ef-wrap ef-grow")
            back = ui.button("Back to yours", on_click=lambda: look_into(""))
            back.props("flat dense color=primary no-wrap")

    async def refresh(self) -> None:
        """Read and show the sessions again."""
        newest = await self._read()
        self._list.clear()
        self._last = None
        self._is_search = False
        self._newest = newest
        with self._list:
            self._draw(newest)

    async def _follow(self) -> None:
        """Refresh the list if it changed; search results and further pages stay."""
        if not self._is_search and self._last is None and await self._read() != self._newest:
            await self.refresh()

    async def _read(self, after: SessionRecord | None = None) -> list[SessionRecord]:
        return await self._window.engine.sessions(
            namespace=self._window.namespace, limit=_SHOWN, after=after
        )

    def _draw(self, found: list[SessionRecord]) -> None:
        for each in found:
            self._row(each)
        if len(found) == _SHOWN:
            more = ui.button("Show more").props("flat dense color=primary")

            async def show_more() -> None:
                self._last = found[-1]
                following = await self._read(self._last)
                more.delete()
                with self._list:
                    self._draw(following)

            more.on_click(show_more)

    def _row(self, session: SessionRecord) -> None:
        title = session.title or session.id
        with ui.element("div").classes("ef-session-row").props("role=listitem"):
            with ui.link(target=path_of(session.id)).classes("ef-session") as link:
                ui.label(title).classes("ef-ellipsis").props("dir=auto")
                if session.client is not None:
                    model = (session.model or "").partition(":")[2]
                    sender = " · ".join(filter(None, (session.client, model)))
                    ui.label(sender).classes("ef-tiny ef-soft ef-ellipsis")
                used = figures.age_text(figures.moment(session.updated_at))
                about = f"{number(session.depth, 'message')} · {used}"
                ui.label(about).classes("ef-tiny ef-soft ef-ellipsis")
            if session.id == self._current:
                link.props("aria-current=page")
            self._menu(session, title)

    def _menu(self, session: SessionRecord, title: str) -> None:
        """Show a menu button. There may be many, so the menu is built on the first click."""
        button = ui.button(icon="more_vert").props("flat round dense size=sm aria-haspopup=menu")
        button.props["aria-label"] = f"Actions for {title}"

        menu: ui.menu | None = None

        def show_menu() -> None:
            nonlocal menu
            if menu is None:
                menu = make_menu()
            menu.open()

        def make_menu() -> ui.menu:
            with button, ui.menu().props("auto-close no-parent-event") as made:
                ui.menu_item("Summarize conversation history", lambda: _summarize(session))
                ui.menu_item("Full history", lambda: ui.navigate.to(path_of(session.id, "history")))
                ui.menu_item("Rename", lambda: self._rename(session))
                ui.menu_item("Export", lambda: self._export(session))
                ui.separator()
                ui.menu_item("Delete", lambda: self._delete(session)).classes("ef-bad")
            return made

        button.on_click(show_menu)

    async def _start(self) -> None:
        name = f"{datetime.now(UTC):chat-%Y%m%d-%H%M%S-%f}"
        async with self._window.audited("begin session", name):
            made = await self._window.engine.session(
                name, namespace=self._window.namespace, title=NEW_TITLE
            )
        ui.navigate.to(path_of(made.id))

    async def _rename(self, session: SessionRecord) -> None:
        title = await prompt_for_text("Rename conversation", "Title", session.title or session.id)
        if title is not None:
            async with self._window.audited("rename session", session.id):
                await (await self._window.session(session.id)).configure(title=title.strip())
            if session.id == self._current:
                ui.navigate.reload()
            else:
                await self.refresh()

    async def _delete(self, session: SessionRecord) -> None:
        title = session.title or session.id
        if not await confirm(
            "Delete conversation?",
            f"“{title}”, its messages and its summaries are deleted permanently.",
            "Delete",
        ):
            return
        async with self._window.audited("delete session", session.id):
            await (await self._window.session(session.id)).delete()
        if session.id == self._current:
            ui.navigate.to("/")
        else:
            await self.refresh()

    async def _export(self, session: SessionRecord) -> None:
        found = await self._window.session(session.id)
        ui.download.content(
            await export_archive(self._window.engine, found), f"{session.id[:60]}.json"
        )

    async def _search(self, event: ValueChangeEventArguments[str | None]) -> None:
        words = (event.value or "").strip()
        if not words:
            await self.refresh()
            return
        engine, namespace = self._window.engine, self._window.namespace
        named = await engine.sessions(namespace=namespace, limit=_SEARCHED)
        hits = await engine.search(words, namespace=namespace, limit=_HITS)
        self._is_search = True
        self._list.clear()
        with self._list:
            for each in named:
                if words.lower() in (each.title or each.id).lower():
                    self._row(each)
            for hit in hits:
                _hit(hit, words, {each.id: each.title for each in named})
            if not self._list.default_slot.children:
                ui.label(f"No results for “{words}”.").classes("ef-empty ef-small")


def _hit(hit: Hit, words: str, titles: Mapping[str, str]) -> None:
    """Show a matching message as a link to its place in the full history."""
    place = f"{path_of(hit.session_id, 'history')}?{urlencode({'m': hit.depth, 'q': words})}"
    with ui.link(target=place).classes("ef-session").props("role=listitem"):
        ui.label(" ".join(hit.snippet.split())).classes("ef-two-lines ef-small").props("dir=auto")
        title = titles.get(hit.session_id) or hit.session_id
        ui.label(f"{title} · message {hit.depth:,}").classes("ef-tiny ef-soft ef-ellipsis")


def _summarize(session: SessionRecord) -> None:
    """Open the session's page with the dialog for a summary."""
    ui.navigate.to(f"{path_of(session.id)}?do=summarize")
