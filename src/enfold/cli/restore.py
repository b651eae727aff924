"""`enfold restore`: restore condensed conversations with their ledgers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from enfold.bulk import files as layout
from enfold.bulk.tasks import RestoreTask
from enfold.cli.condense import BulkCommand, Jobs, OutOrFolder, folder_for, is_bulk
from enfold.cli.files import STANDARD_INPUT, open_input, put_value
from enfold.engine.stateless import restore as restore_conversation
from enfold.errors import ConfigError, InputError, RestoreError
from enfold.ledger import Ledger

app = App(
    name="restore",
    usage="enfold restore --ledger LEDGER [OPTIONS] [FILES]",
    help_epilogue="""\
Messages added after condensing are kept. A conversation that was altered in
another way is refused.

Many files, or a file of many conversations, go into the folder that --out
names; the ledger of each is FILE.ledger in the same folder, or in the folder that
--ledger names. Start a stopped run again to continue it.

Examples:
  enfold restore small.json --ledger chat.ledger > chat.json
  enfold restore smaller/ --out chats-again/""",
)


@app.default
def restore(
    *files: Annotated[
        str,
        Parameter(
            help="The condensed conversation; - is standard input. Several, or folders of them, "
            "go into a folder."
        ),
    ],
    ledger: Annotated[
        str | None,
        Parameter(
            help="The ledger from `enfold condense --ledger`. Optional for many files.",
            metavar="LEDGER",
        ),
    ] = None,
    out: OutOrFolder = None,
    jobs: Jobs = None,
    json: Annotated[bool, Parameter(help="For many files, print a line of JSON for each.")] = False,
) -> None:
    """Restore condensed conversations."""
    if is_bulk(files, out):
        ledgers = None if ledger is None else Path(ledger)
        _many(files, folder_for(files, out, ledgers), ledgers).run(jobs, json=json)
        return
    if ledger is None:
        raise ConfigError("--ledger is missing: name the file of `enfold condense --ledger`")
    given, written = open_input(next(iter(files), STANDARD_INPUT)), open_input(ledger)
    with _naming(ledger):
        read = Ledger.from_json(written.value())
    with _naming(given.name):
        restored = restore_conversation(given.value(), read)
    put_value(restored, None if out is None else Path(out))


def _many(files: Sequence[str], out: Path, ledgers: Path | None) -> BulkCommand:
    found = layout.find_files([Path(file) for file in files], without=[out])
    places = layout.restore_paths(found, out, ledgers)
    return BulkCommand(RestoreTask(), found, places, out, "Restoring")


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Add the file's name to errors raised inside."""
    try:
        yield
    except RestoreError as error:
        raise RestoreError(f"{name}: {error}") from None
    except InputError as error:
        raise error if error.place else error.at(name) from None
