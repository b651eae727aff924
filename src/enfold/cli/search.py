"""`enfold search`, `enfold recall` and `enfold hook`: find stored messages, summarized or not.

Claude Code and Codex run a hook's command with a JSON object on standard input. Before a compaction
the session's log is stored, unless the requests go through enfold anyway. After it the agent is
told how to recall, and what.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from enfold import transcripts
from enfold.amounts import number, when
from enfold.cli.screen import Db, Json, Limit, complain, put, put_json, say
from enfold.engine import Engine, Session
from enfold.engine.agent_notes import recall_note
from enfold.engine.recall import RECALL_TOKENS, show_lines
from enfold.engine.transfer import import_transcript
from enfold.errors import EnfoldError, InputError, NotFoundError
from enfold.jsontext import loads
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


recall_app = App(
    name="recall",
    help_epilogue="""\
Examples:
  enfold recall festival 'Who brings the lanterns?'
  enfold recall festival 'What was decided about the mooring plan?' --tokens 500
  enfold recall festival 'What did we do on 7 May?'
  enfold recall festival --reference 12 --around 2""",
)


@recall_app.default
async def recall(
    name: Annotated[str, Parameter(help="The session.")],
    question: Annotated[str, Parameter(help="A question in plain words.")] = "",
    /,
    *,
    reference: Annotated[
        str,
        Parameter(
            help="Instead of a question: a message id or position, a marker or a tool call id."
        ),
    ] = "",
    start: Annotated[int, Parameter(help="With --reference: the character to go on from.")] = 0,
    around: Annotated[
        int, Parameter(help="With --reference: neighbours to show on each side.")
    ] = 0,
    tokens: Annotated[int, Parameter(help="Tokens of the answer, at most.")] = RECALL_TOKENS,
    db: Db = None,
    json: Json = False,
) -> None:
    """Show the messages of a session that answer a question."""
    async with open_engine(db) as engine:
        session = await engine.find(name)
        answer = await session.recall(
            question, reference=reference, start=start, around=around, tokens=tokens
        )
    if json:
        put_json(answer)
        return
    for line in show_lines(answer.passages):
        put(line)
    for part in answer.unanswered:
        say(f"nothing fits: {part}")
    if reference:
        for passage in answer.passages:
            if not around and passage.end < passage.length:
                say(f"the message goes on; use --start {passage.end}")
    elif answer.fits:
        how = ", similar words were searched for too" if answer.uses_vectors else ""
        say(f"{number(len(answer.passages), 'message')} found{how}")
    elif answer.passages:
        say("nothing fits the question; these are the nearest messages")
    else:
        say("nothing fits the question")


hook_app = App(
    name="hook",
    help_epilogue="""\
The plugin in plugins/claude-code runs this command. It reads the hook's JSON
object from standard input and writes the answer to standard output.""",
)

_AFTER = frozenset({"compact", "resume"})
"""The sources of a session's start after which an agent has less than the whole history."""
_FAILED = 1
"""Agents show the message of this exit code and go on; 2 would stop a compaction."""


@hook_app.default
async def hook(*, db: Db = None) -> int:
    """Answer a hook of a coding agent: tell it what it may recall."""
    try:
        given = loads(sys.stdin.buffer.read())
        if not isinstance(given, dict):
            raise InputError("expected the JSON object of a hook on standard input")
        event, client_session = given.get("hook_event_name"), given.get("session_id")
        is_start = event == "SessionStart" and given.get("source") in _AFTER
        if isinstance(client_session, str) and (is_start or event == "PreCompact"):
            async with open_engine(db) as engine:
                session = await _stored(engine, client_session, given.get("transcript_path"))
                if session is not None and is_start:
                    context = await recall_note(session)
                    output = {"hookEventName": event, "additionalContext": context}
                    put_json({"hookSpecificOutput": output})
    except EnfoldError as error:
        complain(str(error))
        return _FAILED
    return 0


async def _stored(engine: Engine, client_session: str, log: object) -> Session | None:
    """Return the session of the agent's requests, else the one of its log, stored now."""
    found = await engine.find_of_client(client_session)
    if found is not None:
        return found
    if isinstance(log, str) and (path := Path(log)).is_file():
        for each in transcripts.read(path):
            await import_transcript(engine, each, id=client_session)
    with suppress(NotFoundError):
        return await engine.find(client_session)
    return None
