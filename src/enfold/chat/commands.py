"""Slash commands: what each is called, takes and does. One table, for every kind of screen."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum, auto
from typing import Any, TypeAlias

from enfold.amounts import number, when
from enfold.chat.controller import ChatController
from enfold.engine import Outcome as Compression
from enfold.engine import Status
from enfold.engine.state import message_of
from enfold.engine.turns import is_interrupted, unanswered
from enfold.errors import (
    AuthenticationError,
    BadReplyError,
    BlockedError,
    CompressionError,
    ContextOverflowError,
    EnfoldError,
    GatewayError,
    InputError,
    RateLimitError,
    RefusedError,
    UnavailableError,
)
from enfold.messages import Attachment, Data, Message, Part, ToolCall, text_of
from enfold.records import Hit, StoredMessage

INTERRUPTED = "interrupted: this is as far as the answer came"
NOT_KEPT = "failed here: this part of an answer is not kept"
CUT_OFF = "the answer was cut off: it reached the longest that the model gives"
UNANSWERED = "what was said last has no answer yet; /retry asks for one"

ADVICE: Mapping[type[EnfoldError], str] = {
    BlockedError: "/retry tries the compression again, /acknowledge goes on without it.",
    CompressionError: "Nothing was changed. /summarize tries again; you can also just go on.",
    AuthenticationError: "`enfold profiles` shows where the key comes from. Then /retry.",
    RateLimitError: "Your words are kept; wait a little, then /retry.",
    ContextOverflowError: "Your words are kept; /summarize makes room, /model takes a larger one.",
    UnavailableError: "Your words are kept; /retry asks again, /model asks another.",
    RefusedError: "Your words are kept; say it otherwise, or /model asks another.",
    BadReplyError: "Your words are kept; /retry asks again.",
    GatewayError: "Your words are kept; /retry asks again, /model asks another.",
}
"""What somebody can do about an error; the nearest ancestor's row counts."""

_OUTCOMES = {
    "kept": "Nothing was folded: it is not due.",
    "no_gain": "Nothing was folded: it would not have become smaller.",
    "nothing_new": "Nothing was folded: there is nothing new since the last summary.",
    "nothing_to_compress": "Nothing was folded: all of it is recent enough to stay.",
}
_NAMED: Mapping[type[Part], Callable[[Any], str]] = {
    ToolCall: lambda part: f"[call of {part.name}]",
    Attachment: lambda part: f"[attachment {part.name or part.mime or 'without a name'}]",
    Data: lambda _: "[data]",
}
"""How parts are shown that have no text to read."""
_BRIEF = 240
"""Characters of a message in a list."""


def advice(error: EnfoldError) -> str:
    """What to do about it; nothing where its own words say it all."""
    return next((ADVICE[kind] for kind in type(error).__mro__ if kind in ADVICE), "")


def describe_error(error: EnfoldError) -> str:
    """The error, and the way on."""
    return f"{error}\n{advice(error)}".rstrip()


def describe_block(reason: str) -> str:
    """Why the session waits, and the way on."""
    return f"This session is blocked: {reason}\n{ADVICE[BlockedError]}"


def format_cost(cost: float | None) -> str:
    """US dollars; unknown is not nothing."""
    if cost is None:
        return "cost unknown"
    return f"cost ${cost:.4f}" if cost else "no cost"


def describe_compression(done: Compression) -> str:
    """What a compression did: before, after, cost and time."""
    first = _OUTCOMES.get(done.outcome) or (
        f"Folded {number(done.messages + done.edited, 'message')}: {done.tokens_before:,} → "
        f"{done.tokens_after:,} tokens ({done.reduction:.0%} less), {format_cost(done.cost)}, "
        f"{done.seconds:.1f} s, by {done.author}. /undo takes it back."
    )
    return "\n".join((first, *(f"Note: {warning}" for warning in done.warnings)))


def describe_context(status: Status, profile: str | None, summary: str | None) -> str:
    """All figures of a session's context, and the summary in it."""
    load = status.decision.load
    rows = [
        ("model", f"{status.model} (counted with {status.tokenizer})"),
        ("profile", profile or "none"),
        ("in use", f"{load.total:,} tokens"),
        ("  system", f"{load.system + load.tools:,}"),
        ("  summary", f"{status.summary_tokens:,}"),
        ("  messages", f"{load.history - status.summary_tokens:,}"),
        ("  estimated", f"{load.estimate:,}"),
        ("limit", f"{status.context_limit:,}"),
        ("folded from", f"{status.threshold_token_count:,} (set by {status.threshold_source})"),
        ("messages", f"{status.messages:,} in all"),
        ("next fold", f"{status.compressible_message_count:,} messages"),
        ("stay", f"{status.retained_message_count:,} messages"),
        ("decision", str(status.decision)),
        ("blocked", status.blocked or "no"),
    ]
    lines = [f"{name:12} {value}" for name, value in rows]
    return "\n".join(lines if summary is None else [*lines, "", "The summary in use:", summary])


def format_history(rows: Sequence[StoredMessage]) -> str:
    """Messages in brief, each with its place."""
    return "\n".join(
        f"#{row.depth} {row.role}, {when(row.created_at)}\n  {shorten(message_text(message_of(row)))}"
        for row in rows
    )


def format_hits(found: Sequence[Hit]) -> str:
    """What a search found, each with its place."""
    lines = [
        f"#{hit.depth} {hit.role}, {when(hit.created_at)}\n  {shorten(hit.snippet)}"
        for hit in found
    ]
    return "\n".join((*lines, f"{number(len(found), 'message')} found."))


def message_text(message: Message) -> str:
    """What a message says to a person: its text, and the names of what else is in it."""
    end = f"[{INTERRUPTED}]" if is_interrupted(message) else ""
    return "\n".join(filter(None, (message_body(message), end)))


def message_body(message: Message) -> str:
    """The same, without a word on how it ended."""
    named = [_NAMED[type(part)](part) for part in message.parts if type(part) in _NAMED]
    return "\n".join(filter(None, (text_of(message.parts), *named)))


def shorten(long: str) -> str:
    """The beginning, on one line."""
    line = " ".join(long.split())
    return line if len(line) <= _BRIEF else f"{line[: _BRIEF - 1]}…"


_SHOWN = 10
"""Messages that /history shows unless it is told otherwise."""
_COMMAND = re.compile(r"/([A-Za-z?]+)(?:\s+(.*))?", re.DOTALL)


class ScreenAction(Enum):
    """What only a screen can do."""

    LEAVE = auto()
    ANSWER = auto()
    """Have the model answer what was said last."""


CommandResult: TypeAlias = str | ScreenAction
"""Something to show, or something to do."""


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command."""

    run: Callable[[ChatController, str], Awaitable[CommandResult]]
    help: str
    argument: str = ""
    """What may follow it, as the help says it."""
    changes: bool = False
    """Whether the session may be another afterwards."""


def is_command(text: str) -> bool:
    """True for a slash and a word; a path such as /etc/hosts is something to say."""
    return _COMMAND.fullmatch(text.rstrip()) is not None


async def run_command(talk: ChatController, text: str) -> CommandResult:
    """Do what the line says."""
    found = _COMMAND.fullmatch(text.rstrip())
    if found is None:
        raise InputError(f"{shorten(text)!r} is no command; /help lists them")
    name, argument = found[1].lower(), (found[2] or "").strip()
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean /{near[0]}? " if near else ""
        raise InputError(f"no command /{name}; {hint}/help lists them")
    return await COMMANDS[name].run(talk, argument)


def changing_command(text: str) -> str | None:
    """The name of the command, if it may change something. None: it only tells."""
    found = _COMMAND.fullmatch(text.rstrip())
    command = None if found is None else COMMANDS.get(found[1].lower())
    return None if found is None or command is None or not command.changes else found[1].lower()


def complete_command(text: str) -> str:
    """What is missing from a command that was begun."""
    if not text.startswith("/") or len(text) < len("/x"):
        return ""
    begun = text[1:].lower()
    return next((name[len(begun) :] for name in COMMANDS if name.startswith(begun)), "")


async def _help(_talk: ChatController, _argument: str) -> CommandResult:
    named = {f"/{name} {each.argument}".rstrip(): each.help for name, each in COMMANDS.items()}
    width = max(map(len, named))
    lines = [f"{name:{width}}  {text}" for name, text in named.items()]
    return "\n".join((*lines, "", "A line that begins with a space is said, slash or not."))


async def _summarize(talk: ChatController, _argument: str) -> CommandResult:
    return describe_compression(await talk.compress())


async def _context(talk: ChatController, _argument: str) -> CommandResult:
    status = await talk.status()
    used = [each.text for each in await talk.session.summaries() if not each.undone]
    profile = talk.answerer.profile if talk.answerer is not None else None
    return describe_context(status, profile, used[0] if used and status.summary_tokens else None)


async def _undo(talk: ChatController, _argument: str) -> CommandResult:
    undone = await talk.session.undo()
    if undone is None:
        return "Nothing to undo: no compression is in use."
    return "The compression is taken back: what it folded is shown again."


async def _history(talk: ChatController, argument: str) -> CommandResult:
    if argument.startswith("#"):
        return await _message(talk, argument)
    amount = _number(argument, "history") if argument else _SHOWN
    rows = await talk.session.history(limit=amount)
    return format_history(rows) or "Nothing has been said yet."


async def _message(talk: ChatController, argument: str) -> str:
    """One message, whole."""
    place = _number(argument.removeprefix("#"), "history #")
    messages = await talk.session.messages()
    if place > len(messages):
        raise InputError(f"there is no message #{place}; the last is #{len(messages)}")
    message = messages[place - 1]
    return f"#{place} {message.role}\n{message_text(message)}"


async def _search(talk: ChatController, argument: str) -> CommandResult:
    if not argument:
        raise InputError("there is no word to search for: /search WORDS")
    return format_hits(await talk.session.search(argument))


async def _model(talk: ChatController, argument: str) -> CommandResult:
    if argument:
        await talk.use(argument)
    if talk.answerer is None:
        return talk.why_nobody
    by = f" of profile {talk.answerer.profile}" if talk.answerer.profile else ""
    return f"{talk.answerer.connection.name}{by} answers."


async def _retry(talk: ChatController, _argument: str) -> CommandResult:
    if (await talk.status()).blocked is not None:
        return describe_compression(await talk.retry())
    if await unanswered(talk.session) is not None:
        return ScreenAction.ANSWER
    return "Nothing failed: there is nothing to try again."


async def _acknowledge(talk: ChatController, _argument: str) -> CommandResult:
    if (await talk.status()).blocked is None:
        return "The session is not blocked: there is no risk to acknowledge."
    await talk.session.acknowledge()
    return "The risk is acknowledged: requests go out without the compression that failed."


async def _quit(_talk: ChatController, _argument: str) -> CommandResult:
    return ScreenAction.LEAVE


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
