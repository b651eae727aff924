"""The command palette: sessions, pages and commands by a few letters, and the list of shortcuts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable

from nicegui import ui
from nicegui.events import GenericEventArguments

from enfold.settings import fields
from enfold.ui.session_list import start_session
from enfold.ui.widgets import titled_dialog
from enfold.ui.window import Window, path_of

TITLE = "Search sessions, commands and settings"
SHORTCUTS: Mapping[str, str] = {
    "Ctrl K or Cmd K": "Search sessions, commands and settings",
    "?": "Show this list",
    "/": "Write a message, or a command",
    "Enter": "Send the message",
    "Shift Enter": "Start a new line",
    "Escape": "Stop the answer, or close a dialog",
}
"""Keys -> effect."""
PAGES: Mapping[str, str] = {
    "Chat": "/",
    "Dashboard": "/dashboard",
    "Set up a model": "/setup",
    "Settings: General": "/settings",
    "Settings: Strategy": "/settings/strategy",
    "Settings: Presets": "/settings/presets",
    "Settings: Profiles": "/settings/profiles",
    "Settings: Prompts": "/settings/prompts",
    "Settings: Models": "/settings/models",
    "Settings: Access": "/settings/access",
}
"""Title -> path."""
_SHOWN = 12
_SESSIONS = 500
"""The most recent sessions, whose titles are searched."""
_LISTEN = """
if (!window.enfoldKeys) {
  window.enfoldKeys = true;
  document.addEventListener('keydown', (event) => {
    const field = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault(); emitEvent('enfold-palette');
    } else if (event.key === '?' && !field) {
      event.preventDefault(); emitEvent('enfold-shortcuts');
    }
  });
}"""


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One line of the palette."""

    title: str
    kind: str
    run: Callable[[], object]


class Palette:
    """The palette of one page."""

    def __init__(self, window: Window, session: str | None) -> None:
        self._window = window
        self._session = session
        self._all: list[PaletteEntry] = []
        self._found: list[PaletteEntry] = []
        self._at = 0

    def place(self) -> None:
        """Listen for the keys."""
        ui.run_javascript(_LISTEN)
        ui.on("enfold-palette", self.open)
        ui.on("enfold-shortcuts", show_shortcuts)

    async def open(self) -> None:
        """Show the palette."""
        newest = await self._window.engine.sessions(
            namespace=self._window.namespace, limit=_SESSIONS
        )
        sessions = [_link(each.title or each.id, "session", path_of(each.id)) for each in newest]
        self._all = [*self._commands(), *sessions]
        with titled_dialog(TITLE) as self._dialog:
            field = ui.input(on_change=lambda event: self._search(str(event.value or "")))
            field.props("outlined dense autofocus clearable type=search")
            field.props["aria-label"] = TITLE
            field.classes("ef-full")
            for key in ("up", "down", "enter"):
                field.on(f"keydown.{key}.prevent", self._pressed, args=["key"])
            self._list = ui.element("div").classes("ef-palette").props("role=listbox")
            self._list.props["aria-label"] = "Results"
        self._search("")
        self._dialog.on("hide", self._dialog.delete)
        self._dialog.open()

    def _commands(self) -> Iterator[PaletteEntry]:
        async def begin() -> None:
            ui.navigate.to(path_of(await start_session(self._window)))

        yield PaletteEntry("New conversation", "command", begin)
        if self._session is not None:
            here = path_of(self._session)
            yield _link("Summarize conversation history", "command", f"{here}?do=summarize")
            yield _link("Full history", "command", path_of(self._session, "history"))
        yield PaletteEntry("Keyboard shortcuts", "command", show_shortcuts)
        for title, path in PAGES.items():
            yield _link(title, "page", path)
        for field in fields().values():
            yield _link(field.title, "setting", "/settings")

    def _search(self, words: str) -> None:
        parts = words.lower().split()
        self._found = [
            each for each in self._all if all(part in each.title.lower() for part in parts)
        ][:_SHOWN]
        self._at = 0
        self._draw()

    def _draw(self) -> None:
        self._list.clear()
        with self._list:
            for place, each in enumerate(self._found):
                with ui.element("div").classes("ef-command").props("role=option") as option:
                    ui.label(each.title).classes("ef-grow ef-ellipsis").props("dir=auto")
                    ui.label(each.kind).classes("ef-tiny ef-soft")
                option.props["aria-selected"] = "true" if place == self._at else "false"
                option.on("click", partial(self._run, each), args=[])
            if not self._found:
                ui.label("No results.").classes("ef-soft ef-small")

    async def _pressed(self, event: GenericEventArguments) -> None:
        key = event.args["key"]
        if not self._found:
            return
        if key == "Enter":
            await self._run(self._found[self._at])
            return
        self._at = (self._at + (1 if key == "ArrowDown" else -1)) % len(self._found)
        self._draw()

    async def _run(self, entry: PaletteEntry) -> None:
        self._dialog.close()
        done = entry.run()
        if isawaitable(done):
            await done


def _link(title: str, kind: str, path: str) -> PaletteEntry:
    return PaletteEntry(title, kind, lambda: ui.navigate.to(path))


def show_shortcuts() -> None:
    """Show the keyboard shortcuts."""
    with titled_dialog("Keyboard shortcuts") as dialog:
        with ui.element("dl").classes("ef-shortcuts"):
            for keys, effect in SHORTCUTS.items():
                with ui.element("dt"), ui.element("kbd"):
                    ui.label(keys)
                with ui.element("dd"):
                    ui.label(effect)
        with ui.element("div").classes("ef-row ef-end"):
            ui.button("Close", on_click=dialog.close).props("flat autofocus")
    dialog.on("hide", dialog.delete)
    dialog.open()
