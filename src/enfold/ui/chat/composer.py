"""The composer: where something is said next, with the slash commands at hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui
from nicegui.events import GenericEventArguments

from enfold.talk.commands import COMMANDS

Say = Callable[[str], Awaitable[None]]

_SEND = """(event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault(); emit(event.target.value);
  }
}"""
"""Enter sends, with Ctrl or Cmd too; with Shift it begins a new line, as it does in a browser."""
_CHOOSE = """(event) => {
  if (/^\\/\\w*$/.test(event.target.value)) { event.preventDefault(); emit(event.key); }
}"""
"""These keys choose among the commands while one is being typed, and do what they do otherwise."""
_LISTED = 6


class Composer:
    """The text field, the list of commands above it, and the button beside it."""

    def __init__(self, say: Say, stop: Callable[[], object]) -> None:
        self._say = say
        self._stop = stop
        self._found: list[str] = []
        self._at = 0

    def place(self) -> None:
        """Put it on the page."""
        with ui.element("form").classes("ef-composer") as form:
            form.on("submit.prevent", self._send, args=[])
            self._list = ui.element("div").classes("ef-commands").props("role=listbox")
            self._list.props["aria-label"] = "Commands"
            self._list.set_visibility(False)
            self.hint = ui.element("div").classes("ef-hint")
            with ui.element("div").classes("ef-composer-row"):
                self._field = ui.textarea(placeholder="Say something, or / for commands")
                self._field.props("autogrow borderless dense dir=auto rows=1 input-class=ef-say")
                self._field.props["aria-label"] = "Message"
                self._field.classes("ef-grow")
                self._button = ui.button(icon="arrow_upward").props("round unelevated type=submit")
                self._button.props("color=primary aria-label=Send")
        self._field.on("keydown", self._entered, js_handler=_SEND)
        for key in ("tab", "up", "down", "esc"):
            self._field.on(f"keydown.{key}", self._chosen, js_handler=_CHOOSE)
        self._field.on("keydown.esc", self._escaped, args=[])
        self._field.on_value_change(self._complete)

    def name_button(self, name: str) -> None:
        """Say what the button does."""
        self._button.props["aria-label"] = self._button.props["title"] = name

    def focus(self) -> None:
        """Go there."""
        self._field.run_method("focus")

    async def _entered(self, event: GenericEventArguments) -> None:
        if self._found and self._field.value != f"/{self._found[self._at]}":
            self._take(self._found[self._at])
            return
        self._field.value = event.args
        await self._send()

    async def _send(self) -> None:
        text = self._field.value or ""
        if text.strip():
            self._field.value = ""
            await self._say(text)

    def _escaped(self) -> None:
        """What is being chosen comes first; then what is being answered is stopped."""
        if not self._found:
            self._stop()

    def _chosen(self, event: GenericEventArguments) -> None:
        key = event.args
        if not self._found:
            return
        if key == "Tab":
            self._take(self._found[self._at])
        elif key == "Escape":
            self._show([])
        else:
            step = 1 if key == "ArrowDown" else -1
            self._at = (self._at + step) % len(self._found)
            self._draw()

    def _complete(self) -> None:
        text = self._field.value or ""
        begun = text[1:].lower()
        is_begun = text.startswith("/") and (begun.isalpha() or not begun)
        self._show([name for name in COMMANDS if name.startswith(begun)] if is_begun else [])

    def _show(self, found: list[str]) -> None:
        if found != self._found:
            self._found, self._at = found, 0
            self._draw()

    def _take(self, name: str) -> None:
        self._field.value = f"/{name} " if COMMANDS[name].argument else f"/{name}"
        self._show([])
        self.focus()

    def _draw(self) -> None:
        self._list.clear()
        self._list.set_visibility(bool(self._found))
        first = max(0, min(self._at - _LISTED // 2, len(self._found) - _LISTED))
        with self._list:
            for place, name in enumerate(self._found[first : first + _LISTED], first):
                self._option(name, is_chosen=place == self._at)

    def _option(self, name: str, *, is_chosen: bool) -> None:
        command = COMMANDS[name]
        with ui.element("div").classes("ef-command").props("role=option") as option:
            ui.label(f"/{name} {command.argument}".rstrip()).classes("ef-mono")
            ui.label(command.help).classes("ef-soft ef-small ef-ellipsis")
        option.props["aria-selected"] = "true" if is_chosen else "false"
        option.on("mousedown.prevent", lambda: self._take(name), args=[])
