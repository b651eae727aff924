"""`enfold restore`: the conversation that was condensed, from what is left and its ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from cyclopts import App, Parameter

from enfold.cli.options import Out
from enfold.cli.reading import STANDARD_INPUT, open_input
from enfold.cli.writing import put_value
from enfold.errors import InputError, RestoreError
from enfold.ledger import Ledger
from enfold.stateless import restore as restore_conversation

app = App(
    name="restore",
    usage="enfold restore --ledger LEDGER [OPTIONS] [FILE]",
    help_epilogue="""\
Messages that were added after the condensing are kept. A conversation that
was altered otherwise is refused.

Example:
  enfold restore small.json --ledger chat.ledger > chat.json""",
)


@app.default
def restore(
    file: Annotated[
        str, Parameter(help="The condensed conversation; - is standard input.")
    ] = STANDARD_INPUT,
    /,
    *,
    ledger: Annotated[
        str, Parameter(help="What `enfold condense --ledger` wrote.", metavar="LEDGER")
    ],
    out: Out = None,
) -> None:
    """Give back the conversation that was condensed."""
    given, written = open_input(file), open_input(ledger)
    with _told_of(ledger):
        read = Ledger.from_json(written.value())
    with _told_of(given.name):
        restored = restore_conversation(given.value(), read)
    put_value(restored, out)


@contextmanager
def _told_of(name: str) -> Iterator[None]:
    """Errors raised inside say which of the two files is wrong."""
    try:
        yield
    except RestoreError as error:
        raise RestoreError(f"{name}: {error}") from None
    except InputError as error:
        raise error if error.place else error.at(name) from None
