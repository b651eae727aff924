"""The list of the visitor's sessions at the side of every page, with search and import."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from html import escape
from typing import Literal
from urllib.parse import urlencode

from nicegui import events, ui
from nicegui.events import ValueChangeEventArguments

from enfold.amounts import number
from enfold.engine.transfer import export_archive, import_all
from enfold.errors import EnfoldError, InputError
from enfold.records import KEY_NAMESPACE, Hit, SessionRecord, check_name
from enfold.transcripts import Transcript, read
from enfold.ui import figures
from enfold.ui.widgets import confirm, file_button, icon_button, labelled, prompt_for_text
from enfold.ui.window import Window, look_into, notify_failure, path_of

LARGEST = 60 * 2**20
"""Bytes of an imported file; larger ones need `enfold import`."""


_DROP = """
(() => {
  const has = (event) => [...(event.dataTransfer?.types || [])].includes('Files');
  const mark = (on) => document.body.classList.toggle('ef-dropping', on);
  document.ondragover = (event) => { if (has(event)) { event.preventDefault(); mark(true); } };
  document.ondragleave = (event) => { if (!event.relatedTarget) mark(false); };
  document.ondrop = (event) => {
    mark(false);
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    runMethod(FIELD, 'addFiles', [event.dataTransfer.files]);
  };
})()"""
"""A file that is dropped anywhere on the page goes to the upload field."""


def import_field(window: Window) -> None:
    """Show a button to choose a transcript; a transcript can be dropped anywhere on the page."""

    async def store(event: events.UploadEventArguments) -> None:
        progress = ui.notification("Reading the file…", spinner=True, timeout=None, position="top")

        def show_progress(count: int) -> None:
            progress.message = f"Imported {count:,} of {number(len(found), 'conversation')}…"

        try:
            found = await asyncio.to_thread(_read, await event.file.read())
            async with window.audited("import sessions"):
                done = await import_all(
                    window.engine, found, namespace=window.namespace, on_progress=show_progress
                )
        except EnfoldError as error:
            notify_failure(f"{event.file.name}: nothing was imported. {error}")
        else:
            ui.notify(f"Imported {done}.", type="positive", position="top", timeout=8_000)
            ui.navigate.to(path_of(done.sessions[0]))
        finally:
            progress.dismiss()
            field.reset()

    limit = f"Import one file of at most {LARGEST // 2**20} MB; “enfold import” takes more."
    field = ui.upload(auto_upload=True, max_file_size=LARGEST, on_upload=store)
    field.on_rejected(lambda: notify_failure(limit))
    button = file_button(field, "Import a transcript").classes("ef-import-button")
    button.tooltip("Or drop the file anywhere on the page")
    ui.run_javascript(_DROP.replace("FIELD", str(field.id)))


def _read(content: bytes) -> list[Transcript]:
    """Return all conversations of a file. All are checked before the first is stored."""
    found = list(read(content))
    if not found:
        raise InputError("the file has no conversation")
    for transcript in found:
        check_name("session", transcript.id)
    return found


def client_of(record: SessionRecord) -> str | None:
    """Return the program that writes a session through the proxy; None for other sessions."""
    is_client = record.client is not None or record.namespace.startswith(KEY_NAMESPACE)
    return (record.client or "A program") if is_client else None


def _row_markup(session: SessionRecord, title: str) -> str:
    """Return the content of a row as HTML: one element for each row keeps long lists fast."""
    icon = "terminal" if client_of(session) else "chat_bubble_outline"
    lines = []
    if session.client is not None:
        model = (session.model or "").partition(":")[2]
        lines.append(" · ".join(filter(None, (session.client, model))))
    used = figures.age_text(figures.moment(session.updated_at))
    lines.append(f"{number(session.depth, 'message')} · {used}")
    below = "".join(
        f'<div class="ef-tiny ef-soft ef-ellipsis">{escape(line)}</div>' for line in lines
    )
    return (
        '<div class="ef-row-tight ef-session-title">'
        f'<i class="q-icon material-icons ef-soft" aria-hidden="true">{icon}</i>'
        f'<div class="ef-two-lines ef-grow" dir="auto">{escape(title)}</div></div>{below}'
    )


_SHOWN = 50
"""Sessions on one page of the list."""
_FIRST = 12
"""Sessions that are drawn with the page."""
_SEARCHED = 2_000
"""The most recent sessions, whose titles are searched."""
_HITS = 8
_SECONDS = 5.0
"""Between two checks for changes by other windows and programs."""
NEW_TITLE = "New conversation"


async def start_session(window: Window) -> None:
    """Start a new session and open its page."""
    name = f"{datetime.now(UTC):chat-%Y%m%d-%H%M%S-%f}"
    async with window.audited("begin session", name):
        await window.engine.session(name, namespace=window.namespace, title=NEW_TITLE)
    ui.navigate.to(path_of(name))


@dataclass(slots=True)
class _SessionRow:
    """A row of the list, with the session that it shows."""

    session: SessionRecord
    element: ui.element
    content: ui.html
    button: ui.button

    def show(self, session: SessionRecord) -> None:
        """Show a session, which may have changed."""
        self.session = session
        title = session.title or session.id
        self.content.set_content(_row_markup(session, title))
        self.button.props["aria-label"] = f"Actions for {title}"


class SessionList:
    """The list of sessions, its search field and the button for a new one."""

    def __init__(self, window: Window, current: str | None) -> None:
        self._window = window
        self._current = current
        self._last: SessionRecord | None = None
        self._newest: list[SessionRecord] = []
        self._rows: dict[str, _SessionRow] = {}
        """The rows that are drawn, by session."""
        self._is_search = False
        self._menu_shown: ui.menu | None = None

    async def show(self) -> None:
        """Show the list."""
        if namespace := self._window.looked_into:
            tokens = await self._window.engine.access.tokens()
            names = {token.namespace: token.name for token in tokens}
            with ui.element("div").classes("ef-looked-into ef-small").props("role=status"):
                title = f"Sessions of {names.get(namespace, namespace)}"
                ui.label(title).classes("ef-wrap ef-grow")
                back = ui.button("Back to yours", on_click=lambda: look_into(""))
                back.props("flat dense color=primary no-wrap")
        with ui.element("div").classes("ef-sessions-head"):
            new = ui.button("New", icon="add", on_click=partial(start_session, self._window))
            labelled(new.props("unelevated no-wrap color=primary"), "New conversation")
            search = ui.input(placeholder="Search", on_change=self._search).classes("ef-grow")
            search.props("dense outlined clearable debounce=300 type=search")
            labelled(search, "Search all conversations")
            self._filter_button()
        self._list = labelled(ui.element("div").classes("ef-sessions"), "Sessions")
        self._list.props("role=list")
        await self.refresh()
        import_field(self._window)
        ui.timer(_SECONDS, self._follow)

    def _filter_button(self) -> None:
        """Show a button with a menu of clients and models; it is built on the first click."""
        button = icon_button("filter_list", "Filter by client and model")
        button.props("aria-haspopup=menu")

        async def show_menu() -> None:
            found = await self._window.sessions(_SEARCHED)
            clients = sorted({name for each in found if (name := client_of(each))})
            models = sorted({each.model for each in found if each.model})
            with button, ui.menu().props("auto-close no-parent-event") as menu:
                ui.menu_item("All sessions", self.refresh)
                for name in clients:
                    ui.menu_item(f"Client: {name}", partial(self._filter, "client", name))
                for name in models:
                    ui.menu_item(f"Model: {name}", partial(self._filter, "model", name))
            menu.on("hide", menu.delete)
            menu.open()

        button.on_click(show_menu)

    async def _filter(self, kind: Literal["client", "model"], name: str) -> None:
        """Show the sessions of a client or of a model only."""
        found = await self._window.sessions(_SEARCHED)
        self._is_search = True
        self._clear()
        with self._list:
            with ui.element("div").classes("ef-row ef-small").props("role=status"):
                ui.label(f"{kind.capitalize()}: {name}").classes("ef-grow ef-wrap")
                ui.button("Show all", on_click=self.refresh).props("flat dense color=primary")
            is_client = kind == "client"
            matching = [e for e in found if name == (client_of(e) if is_client else e.model)]
            for each in matching[:_SHOWN]:
                self._row(each)
            if len(matching) > _SHOWN:
                more = f"{len(matching) - _SHOWN:,} more; search for them by title."
                ui.label(more).classes("ef-small ef-soft")

    async def refresh(self) -> None:
        """Read and show the sessions again."""
        self._show_newest(await self._window.sessions(_SHOWN))

    def _show_newest(self, newest: list[SessionRecord]) -> None:
        has_same_end = (len(newest) == _SHOWN) == (len(self._newest) == _SHOWN)
        is_drawn = bool(self._rows) and len(self._rows) == len(self._newest)
        is_list = not self._is_search and self._last is None
        if is_drawn and is_list and has_same_end:
            self._update(newest)
            return
        self._clear()
        self._last = self._menu_shown = None
        self._is_search = False
        self._newest = newest
        with self._list:
            for each in newest[:_FIRST]:
                self._row(each)
        if len(newest) <= _FIRST:
            return

        def draw_rest() -> None:
            if self._newest is newest and not self._is_search:
                with self._list:
                    self._draw(newest, drawn=_FIRST)

        # A long list takes longer to draw than the page: its end comes after the page is shown.
        ui.timer(0.05, draw_rest, once=True)

    def _clear(self) -> None:
        self._list.clear()
        self._rows.clear()

    def _update(self, newest: list[SessionRecord]) -> None:
        """Change the rows that differ. The others stay, so that no click on them is lost."""
        self._newest = newest
        for gone in self._rows.keys() - {each.id for each in newest}:
            self._rows.pop(gone).element.delete()
        for index, each in enumerate(newest):
            row = self._rows.get(each.id)
            if row is None:
                with self._list:
                    row = self._row(each)
            else:
                row.show(each)
            if self._list.default_slot.children[index] is not row.element:
                row.element.move(target_index=index)

    async def _follow(self) -> None:
        """Refresh the list if it changed; search results, further pages and an open menu stay."""
        if self._is_in_use():
            return
        newest = await self._window.sessions(_SHOWN)
        # The user may have searched or opened a menu while the list was read.
        if newest != self._newest and not self._is_in_use():
            self._show_newest(newest)

    def _is_in_use(self) -> bool:
        menu = self._menu_shown
        has_open_menu = menu is not None and not menu.is_deleted and bool(menu.value)
        return self._is_search or self._last is not None or has_open_menu

    def _draw(self, found: list[SessionRecord], *, drawn: int = 0) -> None:
        """Show sessions, without the first `drawn` ones, and a button for more."""
        for each in found[drawn:]:
            self._row(each)
        if len(found) == _SHOWN:
            more = ui.button("Show more").props("flat dense color=primary")

            async def show_more() -> None:
                self._last = found[-1]
                following = await self._window.sessions(_SHOWN, after=self._last)
                more.delete()
                with self._list:
                    self._draw(following)

            more.on_click(show_more)

    def _row(self, session: SessionRecord) -> _SessionRow:
        with ui.element("div").classes("ef-session-row").props("role=listitem") as element:
            with ui.link(target=path_of(session.id)).classes("ef-session") as link:
                content = ui.html("", sanitize=False)
            if session.id == self._current:
                link.props("aria-current=page")
            button = ui.button(icon="more_vert").props("flat round dense size=sm")
            button.props("aria-haspopup=menu")
        row = self._rows[session.id] = _SessionRow(session, element, content, button)
        row.show(session)
        self._add_menu(row)
        return row

    def _add_menu(self, row: _SessionRow) -> None:
        """Open a menu by the row's button. There may be many, so it is built on the first click."""
        menu: ui.menu | None = None

        def show_menu() -> None:
            nonlocal menu
            menu = self._menu_shown = menu or make_menu()
            menu.open()

        def make_menu() -> ui.menu:
            page = path_of(row.session.id)
            with row.button, ui.menu().props("auto-close no-parent-event") as made:
                ui.menu_item(
                    "Summarize conversation history", lambda: ui.navigate.to(f"{page}?do=summarize")
                )
                ui.menu_item("Full history", lambda: ui.navigate.to(f"{page}/history"))
                ui.menu_item("Rename", lambda: self._rename(row.session))
                ui.menu_item("Export", lambda: self._export(row.session))
                ui.separator()
                ui.menu_item("Delete", lambda: self._delete(row.session)).classes("ef-bad")
            return made

        row.button.on_click(show_menu)

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
        effect = f"“{title}”, its messages and its summaries are deleted permanently."
        if not await confirm("Delete conversation?", effect, "Delete"):
            return
        async with self._window.audited("delete session", session.id):
            await (await self._window.session(session.id)).delete()
        if session.id == self._current:
            ui.navigate.to("/")
        else:
            await self.refresh()

    async def _export(self, session: SessionRecord) -> None:
        found = await self._window.session(session.id)
        archive = await export_archive(self._window.engine, found)
        ui.download.content(archive, f"{session.id[:60]}.json")

    async def _search(self, event: ValueChangeEventArguments[str | None]) -> None:
        words = (event.value or "").strip()
        if not words:
            await self.refresh()
            return
        window = self._window
        named = await window.sessions(_SEARCHED)
        hits = await window.engine.search(words, namespace=window.namespace, limit=_HITS)
        self._is_search = True
        self._clear()
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
