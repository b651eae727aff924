"""The frame around every page: header, sessions, navigation, colours, and the command palette."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from inspect import isawaitable
from typing import Literal

from nicegui import app, ui
from nicegui.events import GenericEventArguments

from enfold.errors import EnfoldError
from enfold.settings import fields
from enfold.ui import markdown
from enfold.ui.session_list import SessionList, start_session
from enfold.ui.widgets import labelled, navigation, shown_dialog
from enfold.ui.window import Window, path_of, show_error

Scheme = Literal["light", "dark", "auto"]
SCHEMES: Mapping[Scheme, bool | None] = {"light": False, "dark": True, "auto": None}
ICONS: Mapping[Scheme, str] = {
    "light": "light_mode",
    "dark": "dark_mode",
    "auto": "brightness_auto",
}
COOKIE = "enfold-scheme"
"""The cookie with the chosen colour scheme."""
ACCENT = "#4657c8"
POSITIVE, WARNING, NEGATIVE = "#2e7d4f", "#8f5208", "#b3261e"

SHEETS = ("theme.css", "chat.css", "compression.css")
"""The style sheets of all pages; settings and dashboard add their own."""

ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
    f'<rect width="32" height="32" rx="8" fill="{ACCENT}"/>'
    '<path d="M7 10h18M9.5 15h13M12 20h8M14 25h4" stroke="#fff" stroke-width="2.6" '
    'stroke-linecap="round"/></svg>'
)


NAVIGATION: Mapping[str, tuple[str, str]] = {
    "/": ("Chat", "chat_bubble_outline"),
    "/dashboard": ("Dashboard", "insights"),
    "/settings": ("Settings", "tune"),
}
"""Path -> title and icon."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The parts of the frame that a page may change."""

    title: ui.label
    actions: ui.element
    """The end of the header; `with frame.actions:` adds buttons."""
    sessions: SessionList
    """The list of sessions; `await frame.sessions.refresh()` after a change."""


def install_theme() -> None:
    """Add the style sheets and the colours to every page."""
    for sheet in SHEETS:
        ui.add_css(files(__package__).joinpath(sheet).read_text("utf-8"), shared=True)
    ui.add_css(markdown.styles(), shared=True)
    # NiceGUI sets no language, which screen readers need.
    ui.add_head_html("<script>document.documentElement.lang = 'en'</script>", shared=True)
    app.colors(primary=ACCENT, positive=POSITIVE, warning=WARNING, negative=NEGATIVE)


@asynccontextmanager
async def frame(
    window: Window, title: str, *, session: str | None = None, at: str = "/", narrow: bool = True
) -> AsyncIterator[Frame]:
    """Open the frame of a page, to be filled with the page's content.

    `session` is the id of the session shown, `at` the path of the current navigation entry. A page
    that is not `narrow` takes the full width and scrolls by itself. If building the page raises
    one of our errors, the error is shown in its place.
    """
    ui.page_title(f"{title} · enfold")
    # The browser opens the drawer if its window is wide enough (show-if-above).
    with ui.left_drawer(value=False, bordered=True, top_corner=True, bottom_corner=True) as drawer:
        drawer.classes("ef-drawer").props("show-if-above width=288 breakpoint=900")
        with ui.link(target="/").classes("ef-brand").props('aria-label="enfold: open chat"'):
            ui.html(ICON, sanitize=False)
            ui.label("enfold")
        sessions = SessionList(window, session)
        await sessions.show()
        navigation("ef-nav", "Pages", NAVIGATION, at)
    Palette(window, session)
    with ui.header().classes("ef-header"):
        with ui.element("a").classes("ef-skip").props("href=#content"):
            ui.label("Skip to content")
        menu = ui.button(icon="menu", on_click=drawer.toggle)
        labelled(menu.props("flat round dense color=primary"), "Show or hide sessions")
        page_title = ui.label(title).classes("ef-title").props("role=heading aria-level=1 dir=auto")
        actions = ui.element("div").classes("ef-row-tight")
        _scheme_button()
        if window.visitor.name:
            with ui.element("form").props("method=post action=/signout"):
                leave = ui.button(icon="logout").props("flat round dense type=submit")
                signed_in = f"Signed in as {window.visitor.name}. Sign out"
                labelled(leave, "Sign out").tooltip(signed_in)
    page = ui.element("div").classes("ef-page" if narrow else "ef-full-page")
    with page.props("id=content tabindex=-1"):
        try:
            yield Frame(page_title, actions, sessions)
        except EnfoldError as error:
            show_error(error)


def _scheme_button() -> None:
    """Show a button that switches between light, dark and the system's scheme."""
    stored = ui.context.client.request.cookies.get(COOKIE)
    current: Scheme = next((scheme for scheme in SCHEMES if scheme == stored), "auto")
    mode = ui.dark_mode(SCHEMES[current])
    button = ui.button().props("flat round dense")

    def show(scheme: Scheme) -> None:
        mode.value = SCHEMES[scheme]
        button.props(f'icon={ICONS[scheme]} aria-label="Colours: {scheme}"')

    def switch() -> None:
        order = list(SCHEMES.items())
        now = next(place for place, (_, value) in enumerate(order) if value == mode.value)
        following, _ = order[(now + 1) % len(order)]
        show(following)
        # A cookie, so that the server draws the next page in the right colours at once.
        ui.run_javascript(
            f"document.cookie='{COOKIE}={following};path=/;max-age=31536000;samesite=strict'"
        )

    button.on_click(switch).tooltip("Switch colours: light, dark, system")
    show(current)


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
        ui.run_javascript(_LISTEN)
        ui.on("enfold-palette", self.open)
        ui.on("enfold-shortcuts", show_shortcuts)

    async def open(self) -> None:
        """Show the palette."""
        newest = await self._window.sessions(_SESSIONS)
        sessions = [_link(each.title or each.id, "session", path_of(each.id)) for each in newest]
        self._all = [*self._commands(), *sessions]
        with shown_dialog(TITLE) as self._dialog:
            field = ui.input(on_change=lambda event: self._search(str(event.value or "")))
            field.props("outlined dense autofocus clearable type=search").classes("ef-full")
            labelled(field, TITLE)
            for key in ("up", "down", "enter"):
                field.on(f"keydown.{key}.prevent", self._pressed, args=["key"])
            self._list = ui.element("div").classes("ef-palette").props("role=listbox")
            labelled(self._list, "Results")
            self._search("")

    def _commands(self) -> Iterator[PaletteEntry]:
        yield PaletteEntry("New conversation", "command", partial(start_session, self._window))
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
        self._draw(at=0)

    def _draw(self, at: int) -> None:
        self._at = at
        self._list.clear()
        with self._list:
            for place, each in enumerate(self._found):
                with ui.element("div").classes("ef-command").props("role=option") as option:
                    ui.label(each.title).classes("ef-grow ef-ellipsis").props("dir=auto")
                    ui.label(each.kind).classes("ef-tiny ef-soft")
                option.props["aria-selected"] = "true" if place == at else "false"
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
        self._draw(at=(self._at + (1 if key == "ArrowDown" else -1)) % len(self._found))

    async def _run(self, entry: PaletteEntry) -> None:
        self._dialog.close()
        done = entry.run()
        if isawaitable(done):
            await done


def _link(title: str, kind: str, path: str) -> PaletteEntry:
    return PaletteEntry(title, kind, lambda: ui.navigate.to(path))


def show_shortcuts() -> None:
    """Show the keyboard shortcuts."""
    with shown_dialog("Keyboard shortcuts") as dialog:
        with ui.element("dl").classes("ef-shortcuts"):
            for keys, effect in SHORTCUTS.items():
                with ui.element("dt"), ui.element("kbd"):
                    ui.label(keys)
                with ui.element("dd"):
                    ui.label(effect)
        with ui.element("div").classes("ef-row ef-end"):
            ui.button("Close", on_click=dialog.close).props("flat autofocus")
