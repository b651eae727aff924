"""`enfold hook`: answers the hooks of coding agents, so that they can recall after a compaction.

Claude Code and Codex run a hook's command with a JSON object on standard input. Before a compaction
the session's log is stored, unless the requests go through enfold anyway. After it the agent is
told how to recall, and what.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cyclopts import App

from enfold import transcripts
from enfold.cli.screen import Db, complain, put_json
from enfold.engine import Engine, Session
from enfold.engine.agent_notes import recall_note
from enfold.engine.transfer import import_transcript
from enfold.errors import EnfoldError, InputError, NotFoundError
from enfold.jsontext import loads
from enfold.wiring import open_engine

app = App(
    name="hook",
    help_epilogue="""\
The plugin in plugins/claude-code runs this command. It reads the hook's JSON
object from standard input and writes the answer to standard output.""",
)

_AFTER = frozenset({"compact", "resume"})
"""The sources of a session's start after which an agent has less than the whole history."""
_FAILED = 1
"""Agents show the message of this exit code and go on; 2 would stop a compaction."""


@app.default
async def hook(*, db: Db = None) -> int:
    """Answer a hook of a coding agent: tell it what it may recall."""
    try:
        given = loads(sys.stdin.buffer.read())
        if not isinstance(given, dict):
            raise InputError("expected the JSON object of a hook on standard input")
        await _answer(given, db)
    except EnfoldError as error:
        complain(str(error))
        return _FAILED
    return 0


async def _answer(given: Mapping[str, Any], db: str | None) -> None:
    event, client_session = given.get("hook_event_name"), given.get("session_id")
    is_start = event == "SessionStart" and given.get("source") in _AFTER
    if not isinstance(client_session, str) or not (is_start or event == "PreCompact"):
        return
    async with open_engine(db) as engine:
        session = await _stored(engine, client_session, given.get("transcript_path"))
        if session is not None and is_start:
            context = await recall_note(session)
            output = {"hookEventName": event, "additionalContext": context}
            put_json({"hookSpecificOutput": output})


async def _stored(engine: Engine, client_session: str, log: object) -> Session | None:
    """Return the session of the agent's requests, else the one of its log, stored now."""
    found = await engine.find_of_client(client_session)
    if found is not None:
        return found
    if isinstance(log, str) and (path := Path(log)).is_file():
        for each in transcripts.read(path):
            await import_transcript(engine, each, id=client_session)
    try:
        return await engine.find(client_session)
    except NotFoundError:
        return None
