"""`enfold chat`: chat with a model on the terminal, or ask one question through a pipe."""

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
from enfold.chat.commands import ScreenAction
from enfold.chat.controller import ChatController
from enfold.cli.files import STANDARD_INPUT, open_input
from enfold.cli.screen import Db, put, put_piece, say
from enfold.engine import Prepared
from enfold.engine.turns import Progress
from enfold.errors import ConfigError, InputError
from enfold.llm.calls import Delta
from enfold.wiring import open_engine


@contextmanager
def signal_handler(number: signal.Signals, act: Callable[[], object]) -> Iterator[None]:
    """Call the function on the signal, between two steps of the event loop, until the end.

    Where the system does not support it, the signal keeps its handler.
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


async def answer_piped_text(controller: ChatController, text: str) -> None:
    """Send the text, or run it as a command. Ctrl-C stops it; the partial answer is stored."""
    if not text.strip():
        raise InputError("the message is empty", place="standard input")
    turn = asyncio.ensure_future(_turn(controller, text))
    with signal_handler(signal.SIGINT, turn.cancel):
        await turn


async def _turn(controller: ChatController, text: str) -> None:
    if not commands.is_command(text):
        await _ask(controller, text.strip())
        return
    outcome = await commands.run_command(controller, text)
    if outcome.text:
        put(outcome.text)
    if outcome.action is ScreenAction.ANSWER:
        await _ask(controller, None)


async def _ask(controller: ChatController, text: str | None) -> None:
    """Print the answer to the text, or without a text to the last user message."""
    done = await (controller.answer(_show) if text is None else controller.ask(text, _show))
    put("")
    if done.ending == "length":
        say(f"warning: {commands.CUT_OFF}")


def _show(progress: Progress) -> None:
    match progress:
        case Delta(text):
            put_piece(text)
        case Prepared():
            if progress.compression is not None and progress.compression.compressed:
                say(commands.describe_compression(progress.compression))
            for warning in progress.warnings:
                say(f"warning: {warning}")


app = App(
    name="chat",
    usage="enfold chat [OPTIONS] [SESSION]",
    help_epilogue="""\
Examples:
  enfold chat
  enfold chat festival --profile work
  echo 'What did we decide about the harbour?' | enfold chat festival""",
)


@app.default
async def chat(
    session: Annotated[
        str | None, Parameter(help="The session to continue or to start. Default: a new one.")
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
            help="Token limit for this chat, if below the model's window.",
            validator=Number(gte=1_000),
        ),
    ] = None,
    light: Annotated[bool, Parameter(help="Use a light theme.")] = False,
    db: Db = None,
) -> None:
    """Chat with a model; old messages are summarized as the chat grows."""
    on_terminal = _is_terminal(sys.stdin) and _is_terminal(sys.stdout)
    if not on_terminal and _is_terminal(sys.stdin):
        raise ConfigError("standard output is not a terminal; pipe a question into standard input")
    text = "" if on_terminal else open_input(STANDARD_INPUT).text()
    try:
        async with _opened(session, profile, model, window=window, db=db) as controller:
            if on_terminal:
                await run_terminal(controller, light=light)
            else:
                await answer_piped_text(controller, text)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@asynccontextmanager
async def _opened(
    name: str | None, profile: str | None, model: str | None, *, window: int | None, db: str | None
) -> AsyncIterator[ChatController]:
    """Open the chat. A new session that stays empty is deleted."""
    async with open_engine(db) as engine:
        session = await engine.session(name or f"{datetime.now().astimezone():chat-%Y%m%d-%H%M%S}")
        controller = ChatController(engine, session, window)
        await controller.begin(profile, model)
        try:
            yield controller
        finally:
            is_empty = not await session.history(limit=1)
            if is_empty and name is None:
                await session.delete()
            elif name is None:
                say(f"Continue with `enfold chat {session.id}`")


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


async def run_terminal(controller: ChatController, *, light: bool = False) -> None:
    """Run the chat on the terminal until the user quits."""
    try:
        from enfold.cli.chat.terminal import ChatApp
    except ModuleNotFoundError as error:
        if error.name != "textual":
            raise
        raise ConfigError(
            "the chat on a terminal needs Textual, which is not installed; install enfold[chat], "
            "or pipe a question into standard input"
        ) from None
    app = ChatApp(controller, light=light)
    with (
        signal_handler(signal.SIGINT, app.action_interrupt),
        signal_handler(signal.SIGTERM, app.exit),
    ):
        await app.run_async()
        await app.store_waiting()
    await app.settled()
