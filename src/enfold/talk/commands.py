"""Slash commands: what each is called, takes and does. One table, for every kind of screen."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum, auto
from typing import TypeAlias

from enfold.engine.turns import unanswered
from enfold.errors import InputError
from enfold.talk import words
from enfold.talk.talk import Talk

_SHOWN = 10
"""Messages that /history shows unless it is told otherwise."""
_COMMAND = re.compile(r"/([A-Za-z?]+)(?:\s+(.*))?", re.DOTALL)


class Effect(Enum):
    """What only a screen can do."""

    LEAVE = auto()
    ANSWER = auto()
    """Have the model answer what was said last."""


Outcome: TypeAlias = str | Effect
"""Something to show, or something to do."""


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command."""

    run: Callable[[Talk, str], Awaitable[Outcome]]
    help: str
    argument: str = ""
    """What may follow it, as the help says it."""
    changes: bool = False
    """Whether the session may be another afterwards."""


def is_command(text: str) -> bool:
    """True for a slash and a word; a path such as /etc/hosts is something to say."""
    return _COMMAND.fullmatch(text.rstrip()) is not None


async def run(talk: Talk, text: str) -> Outcome:
    """Do what the line says."""
    found = _COMMAND.fullmatch(text.rstrip())
    if found is None:
        raise InputError(f"{words.brief(text)!r} is no command; /help lists them")
    name, argument = found[1].lower(), (found[2] or "").strip()
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean /{near[0]}? " if near else ""
        raise InputError(f"no command /{name}; {hint}/help lists them")
    return await COMMANDS[name].run(talk, argument)


def changing(text: str) -> str | None:
    """The name of the command, if it may change something. None: it only tells."""
    found = _COMMAND.fullmatch(text.rstrip())
    command = None if found is None else COMMANDS.get(found[1].lower())
    return None if found is None or command is None or not command.changes else found[1].lower()


def completion(text: str) -> str:
    """What is missing from a command that was begun."""
    if not text.startswith("/") or len(text) < len("/x"):
        return ""
    begun = text[1:].lower()
    return next((name[len(begun) :] for name in COMMANDS if name.startswith(begun)), "")


async def _help(_talk: Talk, _argument: str) -> Outcome:
    named = {f"/{name} {each.argument}".rstrip(): each.help for name, each in COMMANDS.items()}
    width = max(map(len, named))
    lines = [f"{name:{width}}  {text}" for name, text in named.items()]
    return "\n".join((*lines, "", "A line that begins with a space is said, slash or not."))


async def _summarize(talk: Talk, _argument: str) -> Outcome:
    return words.compressed(await talk.compress())


async def _context(talk: Talk, _argument: str) -> Outcome:
    status = await talk.status()
    used = [each.text for each in await talk.session.summaries() if not each.undone]
    profile = talk.answerer.profile if talk.answerer is not None else None
    return words.context(status, profile, used[0] if used and status.summary_tokens else None)


async def _undo(talk: Talk, _argument: str) -> Outcome:
    undone = await talk.session.undo()
    if undone is None:
        return "Nothing to undo: no compression is in use."
    return "The compression is taken back: what it folded is shown again."


async def _history(talk: Talk, argument: str) -> Outcome:
    if argument.startswith("#"):
        return await _message(talk, argument)
    amount = _number(argument, "history") if argument else _SHOWN
    rows = await talk.session.history(limit=amount)
    return words.history(rows) or "Nothing has been said yet."


async def _message(talk: Talk, argument: str) -> str:
    """One message, whole."""
    place = _number(argument.removeprefix("#"), "history #")
    messages = await talk.session.messages()
    if place > len(messages):
        raise InputError(f"there is no message #{place}; the last is #{len(messages)}")
    message = messages[place - 1]
    return f"#{place} {message.role}\n{words.said(message)}"


async def _search(talk: Talk, argument: str) -> Outcome:
    if not argument:
        raise InputError("there is no word to search for: /search WORDS")
    return words.hits(await talk.session.search(argument))


async def _model(talk: Talk, argument: str) -> Outcome:
    if argument:
        await talk.use(argument)
    if talk.answerer is None:
        return talk.why_nobody
    by = f" of profile {talk.answerer.profile}" if talk.answerer.profile else ""
    return f"{talk.answerer.connection.name}{by} answers."


async def _retry(talk: Talk, _argument: str) -> Outcome:
    if (await talk.status()).blocked is not None:
        return words.compressed(await talk.retry())
    if await unanswered(talk.session) is not None:
        return Effect.ANSWER
    return "Nothing failed: there is nothing to try again."


async def _acknowledge(talk: Talk, _argument: str) -> Outcome:
    if (await talk.status()).blocked is None:
        return "The session is not blocked: there is no risk to acknowledge."
    await talk.session.acknowledge()
    return "The risk is acknowledged: requests go out without the compression that failed."


async def _quit(_talk: Talk, _argument: str) -> Outcome:
    return Effect.LEAVE


def _number(text: str, name: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"/{name}: {text!r} is no number of messages; expected 1 or more")
    return int(text)


COMMANDS: Mapping[str, Command] = {
    "help": Command(_help, "These commands."),
    "summarize": Command(_summarize, "Fold what is old into a summary, now.", changes=True),
    "context": Command(_context, "How full the context is, of what, and the summary in it."),
    "undo": Command(_undo, "Take back the last compression.", changes=True),
    "history": Command(
        _history, "The last messages, folded or not; with #N one of them, whole.", "[N|#N]"
    ),
    "search": Command(_search, "Search everything that was said here, folded or not.", "WORDS"),
    "model": Command(
        _model,
        "Who answers; with a name another one does.",
        "[PROFILE|PROVIDER:MODEL]",
        changes=True,
    ),
    "retry": Command(_retry, "Try again what failed: a compression, or an answer.", changes=True),
    "acknowledge": Command(
        _acknowledge, "Go on although a compression failed, at your own risk.", changes=True
    ),
    "quit": Command(_quit, "Leave; everything is stored."),
}
"""Name -> command, in the order of the help."""
