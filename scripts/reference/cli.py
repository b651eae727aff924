"""The command line reference: the help text of every command."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import Console

from enfold import cli

WIDTH = 88


def page() -> str:
    """Return the page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "# Command line reference\n"
    yield "The help text of every command, generated when this site was built. Results go to "
    yield "standard output, reports and errors to standard error. The [table of errors](errors.md) "
    yield "has the exit codes.\n"
    yield f"## `enfold`\n\n```text\n{help_of()}\n```\n"
    for commands in cli.COMMANDS.values():
        for name in commands:
            yield f"## `enfold {name}`\n\n```text\n{help_of(name)}\n```\n"
            for inner in _inner(name):
                yield f"### `enfold {name} {inner}`\n\n```text\n{help_of(name, inner)}\n```\n"


def help_of(*command: str) -> str:
    """Return the help text of a command."""
    output = io.StringIO()
    cli.app.console = Console(file=output, width=WIDTH)
    try:
        code = cli.run([*command, "--help"])
    finally:
        cli.app.console = None  # other callers in this process need their own width
    if code != 0:
        raise RuntimeError(f"enfold {' '.join(command)} --help exited with {code}")
    return output.getvalue().strip()


def _inner(name: str) -> Iterator[str]:
    """Yield the subcommands of a command."""
    yield from (each for each in cli.app[name] if not each.startswith("-"))
