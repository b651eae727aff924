"""The theme: colours, spacing and type of every page, in one style sheet, light and dark."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Literal

from nicegui import app, ui

from enfold.ui import markdown

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
