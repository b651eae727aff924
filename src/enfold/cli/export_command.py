"""`enfold export`: write a session's full history to a file."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from enfold.cli.files import put_data
from enfold.cli.screen import Db, Out, SessionName
from enfold.engine.transfer import export_archive, export_branch
from enfold.wiring import open_engine

app = App(
    name="export",
    help_epilogue="""\
The current branch is written as an array of messages, each in its original form.

Examples:
  enfold export holiday > holiday.json
  enfold export holiday --all-branches --out holiday.archive.json""",
)


@app.default
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
