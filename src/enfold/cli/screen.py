"""The screen: tables and colour on a terminal, plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from enfold.jsontext import dump_text

_RIGHT = 1
"""Columns from this one on hold numbers."""


def complain(text: str) -> None:
    """One line on standard error, whatever the text holds."""
    line = " ".join(text.split())
    _write(sys.stderr, f"enfold: {line}\n")


def say(text: str) -> None:
    """Something for a person, on standard error."""
    _write(sys.stderr, f"{text}\n")


def put(text: str) -> None:
    """A result, on standard output."""
    _write(sys.stdout, f"{text}\n")


def put_json(value: object) -> None:
    """A result as JSON, on standard output."""
    put(dump_text(value))


def number(amount: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is one."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def put_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table: the first column words, the others numbers."""
    shown = [tuple(row) for row in rows]
    if sys.stdout.isatty():
        _put_rich_table(title, columns, shown)
        return
    widths = [max(map(len, column)) for column in zip(columns, *shown, strict=True)]
    put(title)
    for row in (tuple(columns), *shown):
        first, *others = (
            cell.rjust(width) if index >= _RIGHT else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        put("  ".join((first, *others)).rstrip())


def _put_rich_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index >= _RIGHT else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def confirm(question: str) -> bool:
    """Ask on a terminal; no where nobody can answer."""
    if not sys.stdin.isatty():
        return False
    say(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on standard error while something takes its time; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def _write(stream: TextIO, text: str) -> None:
    """Write text that may hold what the terminal's encoding has no sign for."""
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
