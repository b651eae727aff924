"""`enfold import` and `enfold export`: sessions from files, and into files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from enfold.cli.reading import STANDARD_INPUT, read_transcripts
from enfold.cli.screen import number, put, put_json, say, working
from enfold.cli.stored import Db, Json, with_engine
from enfold.engine import Engine
from enfold.engine.transfer import export_archive, export_branch, import_transcript
from enfold.errors import ConfigError, InputError


def import_file(
    file: str = STANDARD_INPUT,
    *,
    session: str | None = None,
    dialect: str = "auto",
    db: Db = None,
    json: Json = False,
) -> None:
    """Store the conversations of FILE as sessions, branches included.

    FILE is whatever `enfold count` reads: request bodies, JSON Lines of conversations, session
    logs of agents, a ChatGPT export, or an archive that `enfold export --all-branches` wrote.

    Parameters
    ----------
    file
        The file; - is standard input.
    session
        The session's name, where the file holds one conversation.
    dialect
        auto, openai, openai-responses, anthropic, gemini, langchain or enfold.
    """

    async def work(engine: Engine) -> list[str]:
        names: list[str] = []
        for transcript in read_transcripts(file, dialect=dialect):
            if session is not None and names:
                raise ConfigError("the file holds several conversations; leave out --session")
            stored = await import_transcript(engine, transcript, id=session)
            names.append(stored.id)
        return names

    with working(f"Importing {file}"):
        names = with_engine(db, work)
    if json:
        put_json(names)
        return
    for name in names:
        put(name)
    say(f"{number(len(names), 'session')} imported")


def export_session(
    session: str,
    *,
    out: Path | None = None,
    all_branches: Annotated[bool, Parameter(negative=())] = False,
    db: Db = None,
) -> None:
    """Write a session's full history, folded or not.

    The current branch is an array of messages, each with the bytes it came with.

    Parameters
    ----------
    session
        The session's name.
    out
        The file to write; standard output if unset.
    all_branches
        Every branch, as an archive that `enfold import` reads.
    """

    async def work(engine: Engine) -> bytes:
        found = await engine.find(session)
        return await (export_archive if all_branches else export_branch)(engine, found)

    data = with_engine(db, work) + b"\n"
    if out is None:
        sys.stdout.buffer.write(data)
        return
    try:
        out.write_bytes(data)
    except OSError as error:
        raise InputError(error.strerror or str(error), place=str(out)) from None
