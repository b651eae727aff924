"""Commands on stored sessions: how each finds the engine, and the options that all share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, TypeAlias, TypeVar

from cyclopts import Parameter

from enfold.engine import Engine
from enfold.wiring import open_engine

Result = TypeVar("Result")

Db: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="The database: sqlite:///file.db or postgresql://host/name. ENFOLD_DB if unset."
    ),
]
Json: TypeAlias = Annotated[bool, Parameter(negative=(), help="Print the result as JSON.")]


def with_engine(db: str | None, work: Callable[[Engine], Awaitable[Result]]) -> Result:
    """Do something with the engine over a database, and close it again."""

    async def run() -> Result:
        async with open_engine(db) as engine:
            return await work(engine)

    return asyncio.run(run())


def when(milliseconds: int) -> str:
    """A time for people, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M")
