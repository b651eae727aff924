"""`enfold sessions`: list, show, compress, correct and delete stored sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from textwrap import shorten
from typing import Annotated, TypeAlias

from cyclopts import App, Parameter

from enfold.amounts import number, when
from enfold.chat.commands import WHY, describe_outcome, describe_preview
from enfold.cli.files import open_input
from enfold.cli.screen import (
    Db,
    Json,
    Limit,
    SessionName,
    confirm,
    put,
    put_json,
    put_list,
    put_table,
    say,
    working,
)
from enfold.engine import Outcome, Preview, Session
from enfold.engine.recall import find_message
from enfold.engine.results import StandingMessage
from enfold.records import SessionRecord
from enfold.report import author_name
from enfold.wiring import open_engine

app = App(name="sessions")


@asynccontextmanager
async def open_session(name: str, db: str | None) -> AsyncIterator[Session]:
    """Open the database and yield the session of that name."""
    async with open_engine(db) as engine:
        yield await engine.find(name)


MessageName: TypeAlias = Annotated[
    str, Parameter(help="The message: its number on the branch, such as 7, or its id.")
]
_TEXT_WIDTH = 60


@app.default
@app.command(name="list")
async def list_sessions(*, limit: Limit = 50, db: Db = None, json: Json = False) -> None:
    """List sessions, most recently used first."""
    async with open_engine(db) as engine:
        found = await engine.sessions(limit=limit + 1)
    columns: Mapping[str, Callable[[SessionRecord], str]] = {
        "session": lambda each: each.id,
        "title": lambda each: each.title,
        "messages": lambda each: f"{each.depth:,}",
        "tokens": lambda each: f"{each.tokens:,}",
        "last used": lambda each: when(each.updated_at),
    }
    put_list(found[:limit], "session", columns, json=json)
    if json:
        return
    if len(found) > limit:
        say(f"there are more; --limit {limit * 2} shows {limit * 2}")
    if not found:
        say("`enfold import FILE` stores conversations as sessions")


@app.command
async def status(session: SessionName, /, *, db: Db = None, json: Json = False) -> None:
    """Show how full a session's context is."""
    async with open_session(session, db) as found:
        figures = await found.status()
    if json:
        put_json(figures)
        return
    used = f"{number(figures.current_token_count, 'token')} ({figures.utilization:.0%})"
    threshold = number(figures.threshold_token_count, "token")
    rows = [
        ("in use", used),
        ("summary", number(figures.summary_tokens, "token")),
        ("estimated", number(figures.estimated_tokens, "token")),
        ("threshold", f"{threshold} (set by {figures.threshold_source})"),
        ("limit", number(figures.context_limit, "token")),
        ("messages", f"{figures.messages:,}"),
        ("next summary replaces at most", number(figures.compressible_message_count, "message")),
        ("next summary keeps at least", number(figures.retained_message_count, "message")),
        ("model", f"{figures.model} ({figures.tokenizer})"),
        ("blocked", figures.blocked or "no"),
    ]
    put_table(f"{session}: {figures.decision}", ("", ""), rows)


@app.command
async def compress(
    session: SessionName,
    /,
    *,
    keep_tokens: Annotated[
        int | None,
        Parameter(help="Number of recent tokens kept verbatim. Default: as in the settings."),
    ] = None,
    dry_run: Annotated[bool, Parameter(help="Only show the expected result.")] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Summarize the old messages of a session now."""
    done: Outcome | Preview
    async with open_engine(db) as engine:
        found = await engine.find(session)
        if dry_run:
            done = await found.preview(keep_tokens=keep_tokens)
        else:
            with working(f"Compressing {session}") as progress:
                engine.events.subscribe(lambda event: progress(str(event)))
                done = await found.compress(keep_tokens=keep_tokens)
    if json:
        put_json(done)
        return
    put(describe_preview(done) if isinstance(done, Preview) else describe_outcome(done))
    for warning in done.warnings:
        say(f"warning: {warning}")


@app.command
async def retry(
    session: SessionName,
    /,
    *,
    summarizer: Annotated[
        str | None, Parameter(help="Another summarizer for this call: local is the built-in one.")
    ] = None,
    db: Db = None,
) -> None:
    """Repeat the compression that failed and paused a session."""
    async with open_engine(db) as engine:
        found = await engine.find(session)
        if (await found.record()).blocked is None:
            put("nothing to retry: the session is not paused")
            return
        given = {} if summarizer is None else {"summarizer": summarizer}
        with working(f"Compressing {session}") as progress:
            engine.events.subscribe(lambda event: progress(str(event)))
            put(describe_outcome(await found.retry(**given)))


@app.command
async def acknowledge(session: SessionName, /, *, db: Db = None) -> None:
    """Send the next request of a paused session without the compression that failed."""
    async with open_session(session, db) as found:
        if (await found.record()).blocked is None:
            put("nothing to acknowledge: the session is not paused")
            return
        await found.acknowledge()
    put("acknowledged: the next request is sent without a compression")


@app.command
async def regenerate(session: SessionName, /, *, db: Db = None) -> None:
    """Write the summary in use again, for the same messages."""
    async with open_session(session, db) as found:
        with working(f"Writing the summary of {session}"):
            put(describe_outcome(await found.regenerate()))


@app.command
async def edit(
    session: SessionName,
    file: Annotated[str, Parameter(help="A file with the new summary; - is standard input.")],
    /,
    *,
    db: Db = None,
) -> None:
    """Replace the text of the summary in use; the old text stays on record."""
    text = open_input(file).text()
    async with open_session(session, db) as found:
        edited = await found.edit_summary(text)
    put(f"edited: {edited.id}, {number(edited.token_count or 0, 'token')}")


@app.command(name="delete-summary")
async def delete_summary(
    session: SessionName,
    summary: Annotated[str, Parameter(help="The summary's id, from `enfold sessions summaries`.")],
    /,
    *,
    db: Db = None,
) -> None:
    """Delete the text of a summary; its messages are in the context again."""
    async with open_session(session, db) as found:
        deleted = await found.delete_summary(summary)
    put(f"deleted: {deleted.id}")


@app.command
async def summaries(session: SessionName, /, *, db: Db = None, json: Json = False) -> None:
    """Show a session's summaries, newest first."""
    async with open_session(session, db) as opened:
        found = await opened.summaries()
    if json:
        put_json(found)
        return
    for snapshot in found:
        state = ", undone" if snapshot.undone else ""
        put(
            f"{snapshot.id} {when(snapshot.created_at)} by {author_name(snapshot.author)}, "
            f"{number(snapshot.token_count or 0, 'token')}{state}"
        )
        put(f"{snapshot.text or '(deleted)'}\n")
    if not found:
        say("no summary yet; `enfold sessions compress` makes one")


@app.command
async def undo(
    session: SessionName,
    /,
    *,
    to_earlier_text: Annotated[
        bool, Parameter(help="Of a summary that was edited, only go back to its earlier text.")
    ] = False,
    db: Db = None,
) -> None:
    """Undo the compression in use."""
    async with open_session(session, db) as found:
        undone = await found.undo(to_earlier_text=to_earlier_text)
    put("nothing to undo" if undone is None else f"undone: {undone.id}")


@app.command
async def pin(session: SessionName, message: MessageName, /, *, db: Db = None) -> None:
    """Keep a message in the context, verbatim, through all compressions."""
    async with open_session(session, db) as found:
        row = await find_message(found, message)
        await found.pin(row.id)
    put(f"pinned: #{row.depth} {row.id}")


@app.command
async def unpin(session: SessionName, message: MessageName, /, *, db: Db = None) -> None:
    """Let compressions summarize a message again."""
    async with open_session(session, db) as found:
        row = await find_message(found, message)
        await found.unpin(row.id)
    put(f"unpinned: #{row.depth} {row.id}")


@app.command
async def pins(session: SessionName, /, *, db: Db = None, json: Json = False) -> None:
    """Show the messages that stay in the context, and why."""
    async with open_session(session, db) as opened:
        found = await opened.pins()
    columns: Mapping[str, Callable[[StandingMessage], str]] = {
        "message": lambda each: f"#{each.position}",
        "role": lambda each: each.role,
        "why": lambda each: WHY[each.why],
        "tokens": lambda each: f"{each.tokens:,}",
        "in view": lambda each: "yes" if each.in_view else "after the next compression",
        "text": lambda each: shorten(each.text, _TEXT_WIDTH, placeholder=" ..."),
    }
    put_list(found, "message", columns, json=json)
    if not found and not json:
        say("`enfold sessions pin NAME MESSAGE` pins one")


@app.command
async def rename(
    session: SessionName,
    title: Annotated[str, Parameter(help="The new title.")],
    /,
    *,
    db: Db = None,
) -> None:
    """Set the title of a session; its name stays."""
    async with open_session(session, db) as found:
        await found.configure(title=title)


@app.command
async def delete(
    session: SessionName,
    /,
    *,
    yes: Annotated[bool, Parameter(help="Delete without asking.")] = False,
    db: Db = None,
) -> None:
    """Delete a session and all its data."""
    async with open_session(session, db) as found:
        if not yes and not confirm(f"Delete session {session!r} and its whole history?"):
            put("nothing was deleted")
            return
        await found.delete()
    put(f"deleted: {session}")
