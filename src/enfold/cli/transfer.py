"""`enfold import` and `enfold export`: conversations from files into sessions, and back."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from enfold.amounts import number
from enfold.cli.files import STANDARD_INPUT, Dialect, open_input, put_data
from enfold.cli.screen import Db, File, Json, Out, SessionName, put, put_json, say, working
from enfold.engine.transfer import export_archive, export_branch, import_transcript
from enfold.errors import ConfigError
from enfold.records import check_name
from enfold.transcripts.source import located
from enfold.wire import AUTO
from enfold.wiring import open_engine

import_app = App(
    name="import",
    usage="enfold import [OPTIONS] [FILE]",
    help_epilogue="""\
Every conversation becomes a session with all its branches. The names are
printed, one per line. Messages that are already stored are not stored twice.
The whole file is read first: nothing is stored if it has an error.

Examples:
  enfold import conversations.json
  enfold import chat.json --session holiday""",
)


@import_app.default
async def import_file(
    file: File = STANDARD_INPUT,
    /,
    *,
    session: Annotated[
        str | None,
        Parameter(
            help="The session's name, if the file has one conversation. Default: its id, "
            "else imported-1 and so on.",
            metavar="NAME",
        ),
    ] = None,
    dialect: Dialect = AUTO,
    db: Db = None,
    json: Json = False,
) -> None:
    """Store the conversations of a file as sessions."""
    given = open_input(file)
    expected = 0
    # All conversations are read first, so that errors come before the first write.
    with working(f"Reading {given.name}") as progress:
        for expected, transcript in enumerate(given.transcripts(dialect=dialect), 1):
            with located(given.name):
                check_name("session", transcript.id)
            progress(number(expected, "conversation"))
    if session is not None and expected != 1:
        raise ConfigError(
            f"{given.name} holds {number(expected, 'conversation')}; --session works with one only"
        )
    names: list[str] = []
    with working(f"Storing {given.name}") as progress:
        async with open_engine(db) as engine:
            for transcript in given.transcripts(dialect=dialect):
                stored = await import_transcript(engine, transcript, id=session)
                names.append(stored.id)
                progress(f"{len(names):,} of {number(expected, 'conversation')}")
    if json:
        put_json(names)
        return
    for name in names:
        put(name)
    say(f"{number(len(names), 'session')} imported")


export_app = App(
    name="export",
    help_epilogue="""\
The current branch is written as an array of messages, each in its
original form.

Examples:
  enfold export holiday > holiday.json
  enfold export holiday --all-branches --out holiday.archive.json""",
)


@export_app.default
async def export_session(
    session: SessionName,
    /,
    *,
    out: Out = None,
    all_branches: Annotated[
        bool, Parameter(help="Write all branches, as an archive for `enfold import`.")
    ] = False,
    db: Db = None,
) -> None:
    """Write the full history of a session."""
    export = export_archive if all_branches else export_branch
    async with open_engine(db) as engine:
        data = await export(engine, await engine.find(session))
    put_data(data + b"\n", out)
