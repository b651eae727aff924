"""`enfold chat`: talk with a model in the terminal, or ask one question through a pipe."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated, TextIO

from cyclopts import App, Parameter
from cyclopts.validators import Number

from enfold.cli.chat.piped import converse
from enfold.cli.options import Db
from enfold.cli.reading import STANDARD_INPUT, open_input
from enfold.cli.screen import say
from enfold.errors import ConfigError
from enfold.talk.choosing import chooser
from enfold.talk.talk import Talk
from enfold.wiring import open_engine

app = App(
    name="chat",
    help_epilogue="""\
Examples:
  enfold chat
  enfold chat festival --profile work
  echo 'What did we decide about the harbour?' | enfold chat festival""",
)


@app.default
async def chat(
    session: Annotated[
        str | None, Parameter(help="The session to go on with, or to begin. If unset: a new one.")
    ] = None,
    /,
    *,
    profile: Annotated[
        str | None, Parameter(help="The profile that answers.", metavar="NAME")
    ] = None,
    model: Annotated[
        str | None, Parameter(help="The model that answers, as provider:model.")
    ] = None,
    window: Annotated[
        int | None,
        Parameter(
            help="Keep the talk inside so many tokens, if the model's own window is larger.",
            validator=Number(gte=1_000),
        ),
    ] = None,
    light: Annotated[bool, Parameter(help="Dark type on a light ground.")] = False,
    db: Db = None,
) -> None:
    """Talk with a model; long talks are folded as they grow."""
    on_terminal = _is_terminal(sys.stdin) and _is_terminal(sys.stdout)
    if not on_terminal and _is_terminal(sys.stdin):
        raise ConfigError("standard output is no terminal; pipe a question in to have it answered")
    text = "" if on_terminal else open_input(STANDARD_INPUT).text()
    try:
        async with _opened(session, profile, model, window=window, db=db) as talk:
            if on_terminal:
                from enfold.cli.chat.terminal import show

                await show(talk, light=light)
            else:
                await converse(talk, text)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@asynccontextmanager
async def _opened(
    name: str | None, profile: str | None, model: str | None, *, window: int | None, db: str | None
) -> AsyncIterator[Talk]:
    """The talk; a session that was made for it and stayed empty is not kept."""
    async with open_engine(db) as engine:
        session = await engine.session(name or _new_name())
        talk = Talk(engine, session, chooser(engine, session), window=window)
        await talk.begin(profile, model)
        try:
            yield talk
        finally:
            if not await session.history(limit=1) and name is None:
                await session.delete()
        if name is None:
            say(f"`enfold chat {session.id}` goes on with this talk")


def _new_name() -> str:
    return f"{datetime.now().astimezone():chat-%Y%m%d-%H%M%S}"


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()
