"""Output: results on standard output, messages to the user on standard error.

A terminal gets tables and bold type, a pipe gets plain text. Control characters in text are
escaped, so that a file cannot steer the terminal.
"""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO, TypeAlias, TypeVar

from cyclopts import Parameter
from cyclopts.validators import Number

from enfold.amounts import number
from enfold.errors import ConfigError, EnfoldError
from enfold.jsontext import dumps, to_json

Item = TypeVar("Item")

_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
}
_INVISIBLE = {"Cf", "Me", "Mn"}
"""Unicode categories of characters without width."""


def complain(text: str) -> None:
    """Print an error as one line on standard error."""
    say(f"enfold: {_one_line(text)}")


def say(text: str) -> None:
    """Print a message to the user on standard error."""
    if sys.stderr is not None:
        sys.stderr.write(f"{_visible(text, sys.stderr)}\n")
        sys.stderr.flush()


def put(text: str) -> None:
    """Print a result on standard output."""
    with _standard_output() as stream:
        stream.write(f"{_visible(text, stream)}\n")


def put_piece(text: str) -> None:
    """Print a piece of a streamed result at once."""
    with _standard_output() as stream:
        stream.write(_visible(text, stream))
        stream.flush()


def put_bytes(data: bytes) -> None:
    """Write exactly these bytes to standard output."""
    with _standard_output() as stream:
        stream.flush()
        stream.buffer.write(data)


def put_json(value: object) -> None:
    """Print a result as a line of JSON, as every other door writes it; always in UTF-8."""
    put_bytes(dumps(to_json(value)) + b"\n")


def put_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table with a title; columns of numbers are right-aligned."""
    shown = [[_one_line(cell).translate(_CONTROLS) for cell in row] for row in rows]
    lines = [list(columns), *shown] if any(columns) else shown
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    to_right = [
        bool(shown) and not any(row[index].strip("0123456789,.%") for row in shown)
        for index, _ in enumerate(columns)
    ]
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    # Rich would wrap a wider table, and a wrapped name cannot be copied.
    if is_terminal and sum(widths) + 3 * len(widths) < shutil.get_terminal_size().columns:
        _put_rich_table(title, columns, shown, to_right)
        return
    put(title)
    for line in lines:
        put("  ".join(map(_padded, line, widths, to_right)).rstrip())


def put_list(
    found: Sequence[Item], noun: str, columns: Mapping[str, Callable[[Item], str]], *, json: bool
) -> None:
    """Print results as JSON, or as a table with their number; `columns` make the cells."""
    if json:
        put_json(found)
    else:
        rows = [[cell(each) for cell in columns.values()] for each in found]
        put_table(number(len(found), noun), tuple(columns), rows)


def _put_rich_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], to_right: Iterable[bool]
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_header=any(columns))
    for column, right in zip(columns, to_right, strict=True):
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    with _standard_output() as stream:
        for row in rows:
            table.add_row(*(Text(_visible(cell, stream)) for cell in row))
        console = Console(file=stream, highlight=False)
        console.print(Text(_visible(title, stream), "bold"))
        console.print(table)


def confirm(question: str) -> bool:
    """Ask a yes-or-no question on the terminal; without a terminal, raise `ConfigError`."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfigError(f"{question} Standard input is not a terminal; confirm with --yes")
    say(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on standard error; nothing in a pipe. Yields a function that updates it."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(_one_line(what))) as status:
        yield lambda text: status.update(Text(f"{_one_line(what)}: {_one_line(text)}"))


@contextmanager
def advancing(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error, not in a pipe. Yields a function that adds bytes."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(_one_line(what), total=total)
        yield lambda size: progress.advance(task, size)


def flush() -> None:
    """Flush standard output, so that write errors appear here."""
    if sys.stdout is not None:
        with _standard_output() as stream:
            stream.flush()


def abandon_output() -> None:
    """Drop unwritten output; else the interpreter would try again at exit and print an error."""
    try:
        flush()
    except (EnfoldError, BrokenPipeError):
        sys.stdout = None


@contextmanager
def _standard_output() -> Iterator[TextIO]:
    if sys.stdout is None:
        raise EnfoldError("standard output is closed")
    try:
        yield sys.stdout
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise EnfoldError(f"standard output cannot be written: {reason}") from None


def harmless(text: str) -> str:
    """Return the text with control characters escaped."""
    return text.translate(_CONTROLS)


def _visible(text: str, stream: TextIO) -> str:
    """Escape control characters, and characters that the stream cannot encode."""
    encoding = stream.encoding or "utf-8"
    return harmless(text).encode(encoding, "backslashreplace").decode(encoding)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _padded(cell: str, width: int, right: bool) -> str:  # noqa: FBT001 - mapped over a column
    space = " " * (width - _width(cell))
    return space + cell if right else cell + space


def _width(text: str) -> int:
    """Return the columns on a terminal: 2 for a wide character, 0 for a combining mark."""
    if text.isascii():
        return len(text)
    visible = [sign for sign in text if unicodedata.category(sign) not in _INVISIBLE]
    return len(visible) + sum(unicodedata.east_asian_width(sign) in "WF" for sign in visible)


File: TypeAlias = Annotated[
    str,
    Parameter(
        help="A JSON array of messages, a request body, JSON Lines with one conversation per line, "
        "an agent's session log, or an export of ChatGPT or of enfold; - is standard input."
    ),
]
Out: TypeAlias = Annotated[
    Path | None, Parameter(alias="-o", help="The file to write, instead of standard output.")
]
Json: TypeAlias = Annotated[bool, Parameter(help="Print the result as JSON.")]
Db: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="The database: sqlite:///file.db or postgresql://host/name. If unset: ENFOLD_DB, "
        "else an SQLite file in your data folder.",
        metavar="URL",
    ),
]
SessionName: TypeAlias = Annotated[str, Parameter(help="The session's name.")]
Limit: TypeAlias = Annotated[
    int, Parameter(help="The largest number of results.", validator=Number(gte=1))
]
