"""Activity: what was compressed, used and failed since a moment, for charts and advice."""

from __future__ import annotations

from dataclasses import dataclass

from enfold.store.database import Database
from enfold.store.records import SessionKey


@dataclass(frozen=True, slots=True)
class Compressed:
    """A compression that still holds."""

    key: int
    created_at: int
    strategy: str
    author: str
    model: str | None
    """The session's own, if it names one."""
    profile: str | None
    tokens_before: int
    tokens_after: int
    replies: int
    """How many replies came in the session since."""


@dataclass(frozen=True, slots=True)
class DayOfUsage:
    """What the calls of one model used on one day, for one purpose."""

    day: int
    """Days since 1970, in UTC."""
    kind: str
    model: str | None
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost: float
    """Of the calls whose cost is known, in US dollars."""
    unknown_costs: int


@dataclass(frozen=True, slots=True)
class DayOfFailures:
    """How many compressions failed on one day, for one kind of reason."""

    day: int
    code: str
    failures: int
    automatic: int
    """Of them, those that nobody had asked for."""


def compressions(db: Database, namespace: str, *, since: int = 0) -> list[Compressed]:
    """Those of a namespace, oldest first; what was undone, or only worded anew, is left out."""
    rows = db.rows("compressions_since", namespace=namespace, since=since)
    return [Compressed(**row) for row in rows if row["tokens_before"] is not None]


def usage_by_day(db: Database, namespace: str, *, since: int = 0) -> list[DayOfUsage]:
    """What the calls of all sessions of a namespace used, day by day."""
    return [DayOfUsage(**row) for row in db.rows("usage_by_day", namespace=namespace, since=since)]


def add_failure(db: Database, session: SessionKey, code: str, *, automatic: bool) -> None:
    """Write that a compression failed."""
    db.change("insert_failure", session=session, code=code, automatic=int(automatic), now=db.now())


def failures_by_day(db: Database, namespace: str, *, since: int = 0) -> list[DayOfFailures]:
    """How many compressions failed in a namespace, day by day."""
    return [
        DayOfFailures(**row) for row in db.rows("failures_by_day", namespace=namespace, since=since)
    ]
