"""The command line's reference: what each command says of itself with `--help`."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import Console

from enfold import cli

WIDTH = 88


def page() -> str:
    """The whole page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "# Command line reference\n"
    yield "What every command says with `--help`, taken from the program when this site was "
    yield "built. Results go to standard output, everything said to a person to standard error; "
    yield "exit codes are in the [table of errors](errors.md).\n"
    yield f"## `enfold`\n\n```text\n{help_of()}\n```\n"
    for commands in cli.COMMANDS.values():
        for name in commands:
            yield f"## `enfold {name}`\n\n```text\n{help_of(name)}\n```\n"
            for inner in _inner(name):
                yield f"### `enfold {name} {inner}`\n\n```text\n{help_of(name, inner)}\n```\n"


def help_of(*command: str) -> str:
    """A command's help page."""
    said = io.StringIO()
    cli.app.console = Console(file=said, width=WIDTH)
    try:
        code = cli.run([*command, "--help"])
    finally:
        cli.app.console = None  # or others in this process would get pages of this width
    if code != 0:
        raise RuntimeError(f"enfold {' '.join(command)} --help ended with {code}")
    return said.getvalue().strip()


def _inner(name: str) -> Iterator[str]:
    """The commands of a command."""
    yield from (each for each in cli.app[name] if not each.startswith("-"))
