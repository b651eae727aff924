"""The prompt: where somebody types. Enter sends, commands complete themselves, nothing is lost."""

from __future__ import annotations

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widgets import TextArea

from enfold.talk.commands import completion

_NEW_LINE = frozenset({"ctrl+j", "shift+enter", "alt+enter"})
"""Terminals differ in which of these they can tell from Enter; Ctrl-J they all can."""


class Prompt(TextArea):
    """A text of one or more lines."""

    BINDINGS = [  # noqa: RUF012 - Textual's own way; it copies the list
        Binding(",".join(sorted(_NEW_LINE)), "new_line", "New line", show=False),
        Binding("tab", "complete", "Complete", show=False),
    ]

    class Sent(Message):
        """Somebody pressed Enter; `take` has the text."""

    def __init__(self) -> None:
        super().__init__(
            id="prompt",
            compact=True,
            highlight_cursor_line=False,
            placeholder="Say something, or / for commands",
        )
        self.border_subtitle = "Enter sends · Ctrl-J new line · Ctrl-C stops, leaves"
        self._said: list[str] = []
        self._recalled = 0
        """How many steps back in what was said the text comes from."""

    def give_back(self, text: str) -> None:
        """Put back what was not sent; what was typed meanwhile stays, after it."""
        meanwhile = self.text
        self.text = f"{text}\n{meanwhile}" if meanwhile else text
        self.move_cursor(self.document.end)

    def update_suggestion(self) -> None:
        """Show how a command that was begun goes on."""
        self.suggestion = completion(self.text)

    async def _on_key(self, event: events.Key) -> None:
        """Enter hands the text over, if there is any.

        A binding would not do: it may overtake letters that were typed before it.
        """
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if self.text.strip():
                self.post_message(self.Sent())

    def take(self) -> str:
        """The text, which is gone from here then; Up brings it back."""
        text = self.text
        self._said.append(text)
        self._recalled = 0
        self.text = ""
        return text

    def action_new_line(self) -> None:
        """Begin another line."""
        self.insert("\n")

    def action_complete(self) -> None:
        """Take the suggestion."""
        if self.suggestion:
            self.insert(f"{self.suggestion} ")

    def action_cursor_up(self, select: bool = False) -> None:  # noqa: FBT001, FBT002 - Textual's
        """Up; from the first line, to what was said before."""
        if self.cursor_location[0] == 0 and not select and self._may_recall():
            self._recall(self._recalled + 1)
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:  # noqa: FBT001, FBT002 - Textual's
        """Down; from the last line, back to what was said after."""
        if self.cursor_at_last_line and not select and self._recalled:
            self._recall(self._recalled - 1)
        else:
            super().action_cursor_down(select)

    def _may_recall(self) -> bool:
        """What was typed anew is not replaced."""
        return not self.text or (bool(self._recalled) and self.text == self._said[-self._recalled])

    def _recall(self, steps: int) -> None:
        if steps <= len(self._said):
            self._recalled = steps
            self.text = self._said[-steps] if steps else ""
            self.move_cursor(self.document.end)
