"""Notices: whether compressions are shown while they run. Errors are always shown."""

from __future__ import annotations

from nicegui import ui

COOKIE = "enfold-notices"
"""Where the browser keeps what was chosen in it; until then the setting `notifications` holds."""


_A_YEAR = 365 * 24 * 3600


class Notices:
    """One window's choice."""

    def __init__(self, setting: bool) -> None:  # noqa: FBT001 - the setting's value is all it takes
        said = ui.context.client.request.cookies.get(COOKIE)
        self._setting = setting
        self.wanted = setting if said not in {"on", "off"} else said == "on"

    def switch(self) -> ui.switch:
        """A switch for it, which the browser remembers."""
        switch = ui.switch("Show compressions while they run", value=self.wanted)
        switch.on_value_change(lambda event: self.choose(wanted=bool(event.value)))
        return switch

    def choose(self, *, wanted: bool) -> None:
        """Show them from now on, or do not."""
        self.wanted = wanted
        word = "on" if wanted else "off"
        # What is as it is set need not be remembered: then it follows the setting again.
        seconds = 0 if wanted == self._setting else _A_YEAR
        ui.run_javascript(
            f"document.cookie='{COOKIE}={word};path=/;max-age={seconds};samesite=strict'"
        )
