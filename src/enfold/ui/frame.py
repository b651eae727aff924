"""The frame: what stands around every page. A header, the sessions at the side, the way about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from nicegui import app, ui

from enfold.errors import EnfoldError
from enfold.ui import markdown
from enfold.ui.session_list import SessionList
from enfold.ui.window import Window, explain

Scheme = Literal["light", "dark", "auto"]
SCHEMES: Mapping[Scheme, bool | None] = {"light": False, "dark": True, "auto": None}
ICONS: Mapping[Scheme, str] = {
    "light": "light_mode",
    "dark": "dark_mode",
    "auto": "brightness_auto",
}
COOKIE = "enfold-scheme"
"""Where the browser keeps which one was chosen."""
ACCENT = "#4657c8"
POSITIVE, WARNING, NEGATIVE = "#2e7d4f", "#b4690e", "#b3261e"

SHEETS = ("theme.css", "chat.css", "folding.css")
"""The style sheets beside this module; the first has what all pages share."""

ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
    f'<rect width="32" height="32" rx="8" fill="{ACCENT}"/>'
    '<path d="M7 10h18M9.5 15h13M12 20h8M14 25h4" stroke="#fff" stroke-width="2.6" '
    'stroke-linecap="round"/></svg>'
)
"""Lines that are folded into fewer."""


def install() -> None:
    """Give every page the style sheet and the colours."""
    for sheet in SHEETS:
        ui.add_css(files(__package__).joinpath(sheet).read_text("utf-8"), shared=True)
    ui.add_css(markdown.styles(), shared=True)
    app.colors(primary=ACCENT, positive=POSITIVE, warning=WARNING, negative=NEGATIVE)


def chosen() -> Scheme:
    """What the window's browser remembers."""
    said = ui.context.client.request.cookies.get(COOKIE)
    return next((scheme for scheme in SCHEMES if scheme == said), "auto")


def scheme_button() -> None:
    """A button that goes from light to dark to what the system says, and remembers it."""
    mode = ui.dark_mode(SCHEMES[chosen()])
    button = ui.button().props("flat round dense")

    def show(scheme: Scheme) -> None:
        mode.value = SCHEMES[scheme]
        button.props(f'icon={ICONS[scheme]} aria-label="Colours: {scheme}"')

    def turn() -> None:
        order = list(SCHEMES)
        now = next(scheme for scheme, value in SCHEMES.items() if value == mode.value)
        following = order[(order.index(now) + 1) % len(order)]
        show(following)
        # The browser's own memory, so that the next page is right before it is drawn.
        ui.run_javascript(
            f"document.cookie='{COOKIE}={following};path=/;max-age=31536000;samesite=strict'"
        )

    button.on_click(turn).tooltip("Light, dark, or as the system is")
    show(chosen())


@dataclass(frozen=True, slots=True)
class NavigationItem:
    """One entry of the navigation."""

    path: str
    title: str
    icon: str


PLACES = (
    NavigationItem("/", "Chat", "chat_bubble_outline"),
    NavigationItem("/dashboard", "Dashboard", "insights"),
    NavigationItem("/settings", "Settings", "tune"),
)


@dataclass(frozen=True, slots=True)
class Frame:
    """What a page may fill beside its own room."""

    title: ui.label
    actions: ui.element
    """At the header's end; `with frame.actions:` puts buttons there."""
    sessions: SessionList
    """The list at the side; `await frame.sessions.refresh()` after one was added or renamed."""


@asynccontextmanager
async def frame(
    window: Window, title: str, *, session: str | None = None, at: str = "/", narrow: bool = True
) -> AsyncIterator[Frame]:
    """Put a page's own things inside: `async with` the frame of the window and a title.

    `session` is the id of the one that is shown, `at` the navigation's entry that the page belongs
    to. A page that is not `narrow` takes all the room and scrolls by itself. An error of ours that
    ends the building of the page is shown in it.
    """
    ui.page_title(f"{title} · enfold")
    # Whether it is open at first is for the browser to say: it knows its width, and is not asked.
    with ui.left_drawer(value=False, bordered=True, top_corner=True, bottom_corner=True) as drawer:
        drawer.classes("ef-drawer").props("show-if-above width=288 breakpoint=900")
        _brand()
        sessions = SessionList(window, session)
        await sessions.show()
        _navigation(at)
    with ui.header().classes("ef-header"):
        menu = ui.button(icon="menu", on_click=drawer.toggle).props(
            "flat round dense color=primary"
        )
        menu.props('aria-label="Show or hide the sessions"')
        heading = ui.label(title).classes("ef-title").props("role=heading aria-level=1 dir=auto")
        actions = ui.element("div").classes("ef-row-tight")
        scheme_button()
        if window.visitor.name:
            _sign_out(window.visitor.name)
    with ui.element("div").classes("ef-page" if narrow else "ef-room"):
        try:
            yield Frame(heading, actions, sessions)
        except EnfoldError as error:
            explain(error)


def _brand() -> None:
    with ui.link(target="/").classes("ef-brand").props('aria-label="enfold, to the chat"'):
        ui.html(ICON, sanitize=False)
        ui.label("enfold")


def _navigation(at: str) -> None:
    with ui.element("nav").classes("ef-nav").props("aria-label=Pages"):
        for place in PLACES:
            with ui.link(target=place.path).classes("ef-nav-item") as link:
                ui.icon(place.icon, size="20px").props("aria-hidden=true")
                ui.label(place.title)
            if place.path == at:
                link.props("aria-current=page")


def _sign_out(name: str) -> None:
    with ui.element("form").props("method=post action=/signout"):
        button = ui.button(icon="logout").props("flat round dense type=submit")
        button.props('aria-label="Sign out"').tooltip(f"Signed in as {name}. Sign out")
