"""The frame around every page: header, list of sessions, navigation, colours and style sheets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from nicegui import app, ui

from enfold.errors import EnfoldError
from enfold.ui import markdown
from enfold.ui.palette import Palette
from enfold.ui.session_list import SessionList
from enfold.ui.widgets import labelled, navigation
from enfold.ui.window import Window, show_error

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
    Palette(window, session).place()
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
        order = list(SCHEMES)
        now = next(scheme for scheme, value in SCHEMES.items() if value == mode.value)
        following = order[(order.index(now) + 1) % len(order)]
        show(following)
        # A cookie, so that the server draws the next page in the right colours at once.
        ui.run_javascript(
            f"document.cookie='{COOKIE}={following};path=/;max-age=31536000;samesite=strict'"
        )

    button.on_click(switch).tooltip("Switch colours: light, dark, system")
    show(current)
