"""`enfold sessions`: list, look at, compress and delete stored sessions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cyclopts import App

from enfold.cli.screen import confirm, number, put, put_json, put_table, say, working
from enfold.cli.stored import Db, Json, when, with_engine
from enfold.engine import Compression, Engine, Preview, Status
from enfold.store.records import Session as Record
from enfold.store.records import Snapshot

app = App(name="sessions", help="Stored sessions: list, look at, compress, undo, delete.")


@app.default
@app.command(name="list")
def list_sessions(*, limit: int = 50, db: Db = None, json: Json = False) -> None:
    """List sessions, the last used first.

    Parameters
    ----------
    limit
        How many at most.
    """

    async def work(engine: Engine) -> list[Record]:
        return await engine.sessions(limit=limit)

    found = with_engine(db, work)
    if json:
        put_json([_session(record) for record in found])
        return
    rows = [(r.id, r.title, f"{r.depth:,}", f"{r.tokens:,}", when(r.updated_at)) for r in found]
    put_table(
        number(len(rows), "session"), ("session", "title", "messages", "tokens", "last used"), rows
    )


def _session(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "title": record.title,
        "model": record.model,
        "profile": record.profile,
        "messages": record.depth,
        "tokens": record.tokens,
        "blocked": record.blocked,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


@app.command
def status(session: str, *, db: Db = None, json: Json = False) -> None:
    """Show how full a session's context is.

    Parameters
    ----------
    session
        The session's name.
    """

    async def work(engine: Engine) -> Status:
        return await (await engine.find(session)).status()

    found = with_engine(db, work)
    if json:
        put_json({**asdict(found), "decision": str(found.decision)})
        return
    rows = [
        ("in use", f"{found.current_token_count:,} tokens"),
        ("limit", f"{found.context_limit:,} tokens"),
        ("utilization", f"{found.utilization:.0%}"),
        ("threshold", f"{found.threshold_token_count:,} tokens ({found.threshold_source})"),
        ("summary", f"{found.summary_tokens:,} tokens"),
        ("estimated", f"{found.estimated_tokens:,} tokens"),
        ("messages", f"{found.messages:,}"),
        ("a compression keeps", f"{found.retained_message_count:,} messages"),
        ("a compression folds", f"{found.compressible_message_count:,} messages"),
        ("model", f"{found.model} ({found.tokenizer})"),
        ("blocked", found.blocked or "no"),
    ]
    put_table(f"{session}: {found.decision}", ("", ""), rows)


@app.command
def compress(
    session: str,
    *,
    keep_tokens: int | None = None,
    dry_run: bool = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Summarize a session's history now.

    Parameters
    ----------
    session
        The session's name.
    keep_tokens
        How many of the newest tokens stay verbatim this time.
    dry_run
        Only say what would be done.
    """

    async def work(engine: Engine) -> Compression | Preview:
        found = await engine.find(session)
        if dry_run:
            return await found.preview(keep_tokens=keep_tokens)
        stop = engine.events.subscribe(lambda event: say(str(event)))
        try:
            return await found.compress(keep_tokens=keep_tokens)
        finally:
            stop()

    with working("Summarizing"):
        done = with_engine(db, work)
    if json:
        put_json(asdict(done))
        return
    for warning in done.warnings:
        say(f"warning: {warning}")
    put(_words(done))


def _words(done: Compression | Preview) -> str:
    if isinstance(done, Preview):
        return (
            f"would fold {number(done.messages, 'message')}: {done.tokens_before:,} → at most "
            f"{done.tokens_after:,} tokens, summary by {done.author}"
        )
    if not done.compressed:
        return done.outcome.replace("_", " ")
    return f"{done.tokens_before:,} → {done.tokens_after:,} tokens, summary by {done.author}"


@app.command
def summaries(session: str, *, db: Db = None, json: Json = False) -> None:
    """Show a session's summaries, newest first.

    Parameters
    ----------
    session
        The session's name.
    """

    async def work(engine: Engine) -> tuple[Snapshot, ...]:
        return await (await engine.find(session)).summaries()

    found = with_engine(db, work)
    if json:
        put_json([_summary(snapshot) for snapshot in found])
        return
    for snapshot in found:
        state = ", undone" if snapshot.undone else ""
        put(
            f"{snapshot.id} {when(snapshot.created_at)} by {snapshot.author}, "
            f"{number(snapshot.token_count or 0, 'token')}{state}"
        )
        put(f"{snapshot.text or '(deleted)'}\n")


def _summary(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "id": snapshot.id,
        "text": snapshot.text,
        "author": snapshot.author,
        "strategy": snapshot.strategy,
        "tokens": snapshot.token_count,
        "cutoff": snapshot.cutoff,
        "parent": snapshot.parent,
        "previous": snapshot.previous,
        "undone": snapshot.undone,
        "created_at": snapshot.created_at,
        "range": snapshot.content.get("messageRange"),
    }


@app.command
def undo(session: str, *, db: Db = None) -> None:
    """Take back the compression in use.

    Parameters
    ----------
    session
        The session's name.
    """

    async def work(engine: Engine) -> Snapshot | None:
        return await (await engine.find(session)).undo()

    undone = with_engine(db, work)
    put("nothing to undo" if undone is None else f"undone: {undone.id}")


@app.command
def rename(session: str, title: str, *, db: Db = None) -> None:
    """Give a session a title.

    Parameters
    ----------
    session
        The session's name.
    title
        What it is about.
    """

    async def work(engine: Engine) -> None:
        await (await engine.find(session)).configure(title=title)

    with_engine(db, work)


@app.command
def delete(session: str, *, yes: bool = False, db: Db = None) -> None:
    """Delete a session with everything that belongs to it.

    Parameters
    ----------
    session
        The session's name.
    yes
        Do not ask.
    """
    if not yes and not confirm(f"Delete session {session!r} and its whole history?"):
        put("nothing was deleted")
        return

    async def work(engine: Engine) -> None:
        await (await engine.find(session)).delete()

    with_engine(db, work)
    put(f"deleted: {session}")
