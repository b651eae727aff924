"""`enfold search`: words in everything that was ever said, folded or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from enfold.cli.screen import number, put, put_json
from enfold.cli.stored import Db, Json, when, with_engine
from enfold.engine import Engine
from enfold.store.records import Hit


def search(
    query: str,
    *,
    session: str | None = None,
    best: Annotated[bool, Parameter(negative=())] = False,
    limit: int = 20,
    db: Db = None,
    json: Json = False,
) -> None:
    """Search the full history of all sessions, or of one.

    Parameters
    ----------
    query
        Words that must all occur; "in quotes" they must stand together.
    session
        Only in this session.
    best
        Best match first instead of newest first.
    limit
        How many at most.
    """

    async def work(engine: Engine) -> Sequence[Hit]:
        if session is None:
            return await engine.search(query, limit=limit, best_first=best)
        return await (await engine.find(session)).search(query, limit=limit, best_first=best)

    hits = with_engine(db, work)
    if json:
        put_json([asdict(hit) for hit in hits])
        return
    for hit in hits:
        put(f"{hit.session_id} #{hit.depth} {hit.role} {when(hit.created_at)} {hit.message}")
        put(f"    {' '.join(hit.snippet.split())}")
    put(number(len(hits), "message"))
