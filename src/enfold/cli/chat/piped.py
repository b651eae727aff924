"""A talk in a pipe: what comes in is said once, and the answer is written as it comes."""

from __future__ import annotations

import asyncio
import signal

from enfold.cli.chat.interrupts import calling_on
from enfold.cli.screen import put, put_piece, say
from enfold.engine import Prepared
from enfold.engine.turns import Progress
from enfold.errors import InputError
from enfold.llm.calls import Delta
from enfold.talk import commands, words
from enfold.talk.commands import Effect
from enfold.talk.talk import Talk


async def converse(talk: Talk, text: str) -> None:
    """Say the text, or do what it commands. An interrupt cancels it, and what came is kept."""
    if not text.strip():
        raise InputError("nothing was said", place="standard input")
    turn = asyncio.ensure_future(_turn(talk, text))
    with calling_on(signal.SIGINT, turn.cancel):
        await turn


async def _turn(talk: Talk, text: str) -> None:
    if not commands.is_command(text):
        await _ask(talk, text.strip())
        return
    outcome = await commands.run(talk, text)
    if outcome is Effect.ANSWER:
        await _ask(talk, None)
    elif isinstance(outcome, str):
        put(outcome)


async def _ask(talk: Talk, text: str | None) -> None:
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
                say(words.compressed(progress.compression))
            for warning in progress.warnings:
                say(f"warning: {warning}")
