"""`enfold verify`: checks that everything that is stored is whole and unchanged."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from enfold.amounts import number
from enfold.cli.screen import Db, Json, put, put_json, say, working
from enfold.engine.verification import Verification, verify
from enfold.wiring import open_engine

app = App(
    name="verify",
    help_epilogue="""\
Every message is hashed again and compared with the message before it. Branches,
compressions, shortened messages and search rows are checked too. Nothing is
changed. The exit code is 1 if a row is missing or changed.

Examples:
  enfold verify
  enfold verify --session holiday --json""",
)


@app.default
async def verify_store(
    *,
    session: Annotated[
        str | None, Parameter(help="Check one session only.", metavar="NAME")
    ] = None,
    db: Db = None,
    json: Json = False,
) -> int:
    """Check that everything that is stored is whole and unchanged."""
    with working("Verifying") as progress:
        async with open_engine(db) as engine:
            found = await verify(
                engine.store,
                session=session,
                progress=lambda done: progress(number(done, "session")),
            )
    if json:
        put_json(found)
    else:
        _show(found)
    return 0 if found.ok else 1


def _show(found: Verification) -> None:
    for problem in found.problems:
        place = "" if problem.session is None else f"session {problem.session}, "
        put(f"{place}{problem.area} {problem.id}: {problem.detail}")
    counted = ", ".join(
        (
            number(found.sessions, "session"),
            number(found.messages, "message"),
            number(found.snapshots, "compression"),
            number(found.edits, "shortened message"),
            number(found.search_rows, "search row"),
        )
    )
    if found.ok:
        say(f"{counted}: everything is whole.")
    else:
        say(f"{counted}: {number(len(found.problems), 'problem')}. Restore them from a backup.")
