"""The command line's reference: what each command says of itself with `--help`."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import redirect_stdout

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
    os.environ["COLUMNS"] = str(WIDTH)
    said = io.StringIO()
    with redirect_stdout(said):
        code = cli.run([*command, "--help"])
    if code != 0:
        raise RuntimeError(f"enfold {' '.join(command)} --help ended with {code}")
    return said.getvalue().strip()


def _inner(name: str) -> Iterator[str]:
    """The commands of a command."""
    yield from (each for each in cli.app[name] if not each.startswith("-"))
