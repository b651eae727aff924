"""`enfold search`: search all stored messages, summarized or not."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from enfold.amounts import number, when
from enfold.cli.screen import Db, Json, Limit, put, put_json, say
from enfold.errors import InputError
from enfold.wiring import open_engine

app = App(
    name="search",
    help_epilogue="""\
Examples:
  enfold search 'mooring plan'
  enfold search '"mooring plan" harbour' --session festival --best""",
)


@app.default
async def search(
    query: Annotated[str, Parameter(help='Words that must all occur; "in quotes" as a phrase.')],
    /,
    *,
    session: Annotated[
        str | None, Parameter(help="Only in the session of this name.", metavar="NAME")
    ] = None,
    best: Annotated[bool, Parameter(help="Best match first, instead of newest first.")] = False,
    limit: Limit = 20,
    db: Db = None,
    json: Json = False,
) -> None:
    """Search all messages, summarized or not."""
    if not query.strip():
        raise InputError("no search words", place="QUERY")
    async with open_engine(db) as engine:
        place = engine if session is None else await engine.find(session)
        hits = await place.search(query, limit=limit, best_first=best)
    if json:
        put_json(hits)
        return
    for hit in hits:
        put(f"{hit.session_id} #{hit.depth} {hit.role} {when(hit.created_at)} {hit.message}")
        put(f"    {' '.join(hit.snippet.split())}")
    say(f"{number(len(hits), 'message')} found")
