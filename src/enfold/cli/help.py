"""Help pages: plain lines, the same on a terminal and in a pipe, without boxes and colour."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

_WIDEST = 100
"""Columns. Longer lines are hard to read on any terminal."""
_WIDEST_NAME = 24
"""A longer name is printed on a separate line."""


class HelpPage:
    """The help formatter for cyclopts: prints the parts that cyclopts passes in."""

    # The names of the parameters are cyclopts', which passes some of them by name.

    def render_usage(
        self,
        console: Console,
        options: ConsoleOptions,  # noqa: ARG002
        usage: Any,
    ) -> None:
        """Print the usage line."""
        _print(console, f"Usage: {str(usage).strip()}")

    def render_description(
        self,
        console: Console,
        options: ConsoleOptions,  # noqa: ARG002
        description: Any,
    ) -> None:
        """Print the description of the command."""
        _print(console, "")
        for line in wrap(_plain(description), _width(console)):
            _print(console, line)

    def __call__(
        self,
        console: Console,
        options: ConsoleOptions,  # noqa: ARG002
        panel: HelpPanel,
    ) -> None:
        """Print commands or options with their help."""
        if not panel.entries:
            return
        title = "Options" if panel.title == "Parameters" else panel.title
        _print(console, f"\n{title}:")
        named = [(" ".join(entry.display_labels_with_metavar), entry) for entry in panel.entries]
        column = min(max(len(name) for name, _ in named), _WIDEST_NAME)
        indent = " " * (column + 4)
        for name, entry in named:
            start = f"  {name:{column}}  "
            if len(name) > column:
                _print(console, start.rstrip())
                start = indent
            words = " ".join(_words(entry))
            for line in wrap(
                words, _width(console), initial_indent=start, subsequent_indent=indent
            ):
                _print(console, line)


def _words(entry: HelpEntry) -> Iterator[str]:
    yield _plain(entry.description)
    if entry.default not in {None, "False", '""', "()"}:
        yield f"[default: {entry.default}]"
    if entry.required:
        yield "[required]"


def _plain(description: Any) -> str:
    """Return the text that cyclopts wraps for rich."""
    return str(getattr(description, "primary_renderable", description))


def _width(console: Console) -> int:
    return min(console.width, _WIDEST)


def _print(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
