"""`enfold chat`: talk with a model in the terminal, or ask one question through a pipe."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Annotated, TextIO

from cyclopts import App, Parameter
from cyclopts.validators import Number

from enfold.chat import commands
from enfold.chat import commands as words
from enfold.chat.commands import ScreenAction
from enfold.chat.controller import ChatController, profile_chooser
from enfold.cli.files import STANDARD_INPUT, open_input
from enfold.cli.screen import Db, put, put_piece, say
from enfold.engine import Prepared
from enfold.engine.turns import Progress
from enfold.errors import ConfigError, InputError
from enfold.llm.calls import Delta
from enfold.wiring import open_engine


@contextmanager
def signal_handler(number: signal.Signals, act: Callable[[], object]) -> Iterator[None]:
    """While this lasts, the signal calls the function between two steps of the event loop.

    Where the system cannot do that, the signal does what it did before.
    """
    loop = asyncio.get_running_loop()
    before = signal.getsignal(number)
    try:
        loop.add_signal_handler(number, act)
    except (NotImplementedError, ValueError, RuntimeError):  # Windows, or not the main thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(number)
        signal.signal(number, before)


async def answer_piped_text(talk: ChatController, text: str) -> None:
    """Say the text, or do what it commands. An interrupt cancels it, and what came is kept."""
    if not text.strip():
        raise InputError("nothing was said", place="standard input")
    turn = asyncio.ensure_future(_turn(talk, text))
    with signal_handler(signal.SIGINT, turn.cancel):
        await turn


async def _turn(talk: ChatController, text: str) -> None:
    if not commands.is_command(text):
        await _ask(talk, text.strip())
        return
    outcome = await commands.run_command(talk, text)
    if outcome is ScreenAction.ANSWER:
        await _ask(talk, None)
    elif isinstance(outcome, str):
        put(outcome)


async def _ask(talk: ChatController, text: str | None) -> None:
    """Ask; without a text, to what was said last."""
    answer = talk.answer(_show) if text is None else talk.ask(text, _show)
    done = await answer
    put("")
    if done.ending == "length":
        say(f"warning: {words.CUT_OFF}")


def _show(progress: Progress) -> None:
    match progress:
        case Delta(text):
            put_piece(text)
        case Prepared():
            if progress.compression is not None and progress.compression.compressed:
                say(words.describe_compression(progress.compression))
            for warning in progress.warnings:
                say(f"warning: {warning}")


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
                await run_terminal(talk, light=light)
            else:
                await answer_piped_text(talk, text)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@asynccontextmanager
async def _opened(
    name: str | None, profile: str | None, model: str | None, *, window: int | None, db: str | None
) -> AsyncIterator[ChatController]:
    """The talk; a session that was made for it and stayed empty is not kept."""
    async with open_engine(db) as engine:
        session = await engine.session(name or _new_name())
        talk = ChatController(engine, session, profile_chooser(engine, session), window=window)
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


async def run_terminal(talk: ChatController, *, light: bool = False) -> None:
    """Show the talk until somebody leaves; then the terminal is as it was."""
    try:
        from enfold.cli.chat.terminal import ChatApp
    except ModuleNotFoundError as error:
        if error.name != "textual":
            raise
        raise ConfigError(
            "the chat on a terminal needs Textual, which is not installed; install enfold[chat], "
            "or pipe a question in"
        ) from None
    app = ChatApp(talk, light=light)
    with (
        signal_handler(signal.SIGINT, app.action_interrupt),
        signal_handler(signal.SIGTERM, app.exit),
    ):
        await app.run_async()
    await app.settled()
