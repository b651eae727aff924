"""Slash commands and the texts of a chat: one table for the terminal and the web UI."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum, auto
from typing import Any

from enfold import errors
from enfold.amounts import number, when
from enfold.chat.controller import ChatController
from enfold.engine import Outcome, Preview, Status
from enfold.engine.profiles import LOCAL
from enfold.engine.recall import find_message
from enfold.engine.results import StandingMessage
from enfold.engine.state import message_of
from enfold.engine.turns import is_interrupted, unanswered
from enfold.errors import EnfoldError, InputError
from enfold.messages import Attachment, Data, Message, Part, ToolCall, text_of
from enfold.records import Hit, StoredMessage
from enfold.report import author_name

INTERRUPTED = "interrupted: the answer ends here"
WAITS = "queued: sent after the next answer"
NOT_KEPT = "failed: this partial answer is not stored"
CUT_OFF = "the answer was cut off: it reached the model's output limit"
UNANSWERED = "The last message has no answer yet. /retry asks for one."

ADVICE: Mapping[type[EnfoldError], str] = {
    errors.BlockedError: "Your message is stored. /retry repeats the compression, /retry local "
    "uses the built-in summarizer, /acknowledge sends the next request without it.",
    errors.CompressionError: "Nothing was changed. Retry with /summarize, or continue.",
    errors.AuthenticationError: "Your message is stored. `enfold profiles` shows where the key "
    "comes from. Then /retry.",
    errors.RateLimitError: "Your message is stored. Wait a little, then /retry.",
    errors.ContextOverflowError: "Your message is stored. /summarize frees tokens, /model "
    "switches to a larger model.",
    errors.UnavailableError: "Your message is stored. /retry asks again, /model switches the "
    "model.",
    errors.RefusedError: "Your message is stored. Rephrase it, or switch the model with /model.",
    errors.BadReplyError: "Your message is stored. /retry asks again.",
    errors.GatewayError: "Your message is stored. /retry asks again, /model switches the model.",
}
"""Error class -> advice for the user. The row of the nearest base class applies."""

NOT_COMPRESSED = {
    "kept": "Nothing was summarized: a compression is not due.",
    "no_gain": "Nothing was summarized: the result would not be smaller.",
    "nothing_new": "Nothing was summarized: there is nothing new since the last summary.",
    "nothing_to_compress": "Nothing was summarized: all messages are recent enough to stay.",
}
WHY: Mapping[str, str] = {
    "pinned": "pinned",
    "system": "system message",
    "context": "context of a coding agent",
    "rule": "rule of the user",
    "words": "words of the user",
}
"""Why a message stays in the view -> the words for people."""
_PLACEHOLDERS: Mapping[type[Part], Callable[[Any], str]] = {
    ToolCall: lambda part: f"[call of {part.name}]",
    Attachment: lambda part: f"[attachment {part.name or part.mime or 'without a name'}]",
    Data: lambda _: "[data]",
}
"""Texts for parts without text."""
_LISTED_CHARACTERS = 240
"""Characters of a message in a list."""
_LISTED_MESSAGES = 10
"""Messages that /history shows without a number."""
_COMMAND = re.compile(r"/([A-Za-z?]+)(?:\s+(.*))?", re.DOTALL)


def advice(error: EnfoldError) -> str:
    """Return advice about an error; empty if the error's text has it."""
    return next((ADVICE[kind] for kind in type(error).__mro__ if kind in ADVICE), "")


def describe_error(error: EnfoldError) -> str:
    """Return the error's text and the advice."""
    return f"{error}\n{advice(error)}".rstrip()


def describe_block(reason: str) -> str:
    """Return the reason why a session is blocked, and the advice."""
    return f"This session is blocked: {reason}\n{ADVICE[errors.BlockedError]}"


def format_cost(cost: float | None) -> str:
    """Return US dollars as text; an unknown cost is named as unknown."""
    if cost is None:
        return "cost unknown"
    return f"cost ${cost:.4f}" if cost else "no cost"


def describe_outcome(done: Outcome) -> str:
    """Return a compression's result: messages, tokens before and after, cost, time and author."""
    return NOT_COMPRESSED.get(done.outcome) or (
        f"Summarized {number(done.messages + done.edited, 'message')}: {done.tokens_before:,} → "
        f"{done.tokens_after:,} tokens ({done.reduction:.0%} less), {format_cost(done.cost)}, "
        f"{done.seconds:.1f} s, by {author_name(done.author or 'no model')}."
    )


def describe_compression(done: Outcome) -> str:
    """Return a compression's result in a chat, with its warnings."""
    undo = "" if done.outcome in NOT_COMPRESSED else " /undo reverts it."
    notes = (f"Note: {warning}" for warning in done.warnings)
    return "\n".join((f"{describe_outcome(done)}{undo}", *notes))


def describe_preview(preview: Preview) -> str:
    """Return the expected result of a compression: messages, tokens, author and cost."""
    if not preview.messages:
        reason = "; ".join(preview.warnings) or "it fits, or all messages are recent enough"
        kept = number(preview.kept_messages, "message")
        return f"would condense nothing and keep {kept}: {reason}"
    return (
        f"would condense {number(preview.messages, 'message')} and keep "
        f"{preview.kept_messages:,}: {preview.tokens_before:,} → at most "
        f"{preview.tokens_after:,} tokens, by {author_name(preview.author or preview.strategy)}, "
        f"{format_cost(preview.cost)}"
    )


def describe_context(status: Status, profile: str | None, summary: str | None) -> str:
    """Return all figures of a session's context, and the summary in use."""
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
        ("threshold", f"{status.threshold_token_count:,} (set by {status.threshold_source})"),
        ("messages", f"{status.messages:,} in total"),
        ("next summary", f"at most {status.compressible_message_count:,} messages"),
        ("stay", f"at least {status.retained_message_count:,} messages"),
        ("decision", str(status.decision)),
        ("blocked", status.blocked or "no"),
    ]
    lines = [f"{name:12} {value}" for name, value in rows]
    return "\n".join(lines if summary is None else [*lines, "", "Summary in use:", summary])


def format_history(rows: Sequence[StoredMessage]) -> str:
    """Return the beginnings of messages, each with its number in the branch."""
    return "\n".join(
        f"#{row.depth} {row.role}, {when(row.created_at)}\n"
        f"  {shorten(message_text(message_of(row)))}"
        for row in rows
    )


def format_hits(found: Sequence[Hit]) -> str:
    """Return search results, each with its message's number in the branch."""
    lines = [
        f"#{hit.depth} {hit.role}, {when(hit.created_at)}\n  {shorten(hit.snippet)}"
        for hit in found
    ]
    return "\n".join((*lines, f"{number(len(found), 'message')} found."))


def format_pins(found: Sequence[StandingMessage]) -> str:
    """Return the messages that stay in the view, each with the reason and its tokens."""
    lines = [
        f"#{each.position} {each.role}, {WHY[each.why]}, {number(each.tokens, 'token')}"
        f"{'' if each.in_view else ', back in the view after the next compression'}\n"
        f"  {shorten(each.text)}"
        for each in found
    ]
    total = number(sum(each.tokens for each in found), "token")
    return "\n".join((*lines, f"{number(len(found), 'message')}, {total}."))


def message_text(message: Message) -> str:
    """Return a message's text for a reader; an interrupted one is marked."""
    end = f"[{INTERRUPTED}]" if is_interrupted(message) else ""
    return "\n".join(filter(None, (message_body(message), end)))


def message_body(message: Message) -> str:
    """Return a message's text and placeholders for its other parts."""
    named = [
        _PLACEHOLDERS[type(part)](part) for part in message.parts if type(part) in _PLACEHOLDERS
    ]
    return "\n".join(filter(None, (text_of(message.parts), *named)))


def shorten(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    if len(line) <= _LISTED_CHARACTERS:
        return line
    return f"{line[: _LISTED_CHARACTERS - 1]}…"


class ScreenAction(Enum):
    """A command's effect that the screen has to perform."""

    LEAVE = auto()
    ANSWER = auto()
    """Have the model answer the last user message."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A text to show, and then an action for the screen."""

    text: str = ""
    action: ScreenAction | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command."""

    run: Callable[[ChatController, str], Awaitable[CommandResult | str]]
    """Runs the command with its argument; a plain text is a result without an action."""
    help: str
    argument: str = ""
    """Its argument, as the help shows it."""
    changes: bool = False
    """True if the command may change the session."""


def is_command(text: str) -> bool:
    """True for a slash and a word. A path such as /etc/hosts is a message."""
    return _COMMAND.fullmatch(text.rstrip()) is not None


async def run_command(controller: ChatController, text: str) -> CommandResult:
    """Run the slash command in a line."""
    found = _COMMAND.fullmatch(text.rstrip())
    if found is None:
        raise InputError(f"{shorten(text)!r} is not a command; /help lists all commands")
    name, argument = found[1].lower(), (found[2] or "").strip()
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean /{near[0]}? " if near else ""
        raise InputError(f"no command /{name}; {hint}/help lists them")
    result = await COMMANDS[name].run(controller, argument)
    return CommandResult(result) if isinstance(result, str) else result


def changing_command(text: str) -> str | None:
    """Return the name of a line's command if it may change the session, else None."""
    found = _COMMAND.fullmatch(text.rstrip())
    name = "" if found is None else found[1].lower()
    return name if name in COMMANDS and COMMANDS[name].changes else None


def complete_command(text: str) -> str:
    """Return the rest of a command's name that the user has begun to type."""
    if not text.startswith("/") or len(text) < len("/x"):
        return ""
    begun = text[1:].lower()
    return next((name[len(begun) :] for name in COMMANDS if name.startswith(begun)), "")


async def _help(_controller: ChatController, _argument: str) -> str:
    named = {f"/{name} {each.argument}".rstrip(): each.help for name, each in COMMANDS.items()}
    width = max(map(len, named))
    lines = [f"{name:{width}}  {text}" for name, text in named.items()]
    return "\n".join((*lines, "", "Start a line with a space to send it as a message."))


async def _summarize(controller: ChatController, _argument: str) -> str:
    return describe_compression(await controller.compress())


async def _context(controller: ChatController, _argument: str) -> str:
    status = await controller.status()
    used = [each.text for each in await controller.session.summaries() if not each.undone]
    profile = controller.answerer.profile if controller.answerer is not None else None
    return describe_context(status, profile, used[0] if used and status.summary_tokens else None)


async def _undo(controller: ChatController, _argument: str) -> str:
    undone = await controller.session.undo()
    if undone is None:
        return "Nothing to undo: no compression is in use."
    return "The compression is undone: the summarized messages are in the context again."


async def _history(controller: ChatController, argument: str) -> str:
    if argument.startswith("#"):
        place = _positive_number(argument.removeprefix("#"), "history #")
        messages = await controller.session.messages()
        if place > len(messages):
            raise InputError(f"there is no message #{place}; the last is #{len(messages)}")
        message = messages[place - 1]
        return f"#{place} {message.role}\n{message_text(message)}"
    amount = _positive_number(argument, "history") if argument else _LISTED_MESSAGES
    rows = await controller.session.history(limit=amount)
    return format_history(rows) or "No messages yet."


def _positive_number(text: str, name: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"/{name}: {text!r} is not a number of messages; expected 1 or more")
    return int(text)


async def _search(controller: ChatController, argument: str) -> str:
    if not argument:
        raise InputError("no search words; use /search WORDS")
    return format_hits(await controller.session.search(argument))


async def _pin(controller: ChatController, argument: str) -> str:
    row = await find_message(controller.session, _required(argument, "pin"))
    await controller.session.pin(row.id)
    return f"#{row.depth} is pinned: it stays in the context. /unpin #{row.depth} ends it."


async def _unpin(controller: ChatController, argument: str) -> str:
    row = await find_message(controller.session, _required(argument, "unpin"))
    await controller.session.unpin(row.id)
    return f"#{row.depth} is unpinned: the next compression may summarize it."


def _required(argument: str, name: str) -> str:
    if not argument:
        raise InputError(f"no message; use /{name} #N with its number from /history")
    return argument


async def _pins(controller: ChatController, _argument: str) -> str:
    found = await controller.session.pins()
    return format_pins(found) if found else "No message is pinned. /pin #N pins one."


async def _model(controller: ChatController, argument: str) -> str:
    if argument:
        await controller.use(argument)
    if controller.answerer is None:
        return controller.no_answerer_reason
    profile = controller.answerer.profile
    source = f" (profile {profile})" if profile else ""
    return f"Model: {controller.answerer.connection.name}{source}"


async def _retry(controller: ChatController, argument: str) -> CommandResult:
    if argument not in {"", LOCAL}:
        raise InputError(f"/retry: {argument!r} is unknown; use /retry or /retry {LOCAL}")
    text = ""
    if (await controller.status()).blocked is not None:
        text = describe_compression(await controller.retry(argument or None))
    action = await _answer_if_waiting(controller)
    return CommandResult(text or ("" if action else "Nothing to retry: nothing failed."), action)


async def _acknowledge(controller: ChatController, _argument: str) -> CommandResult:
    if (await controller.status()).blocked is None:
        return CommandResult("Nothing to acknowledge: the session is not blocked.")
    await controller.session.acknowledge()
    text = "Acknowledged: the next request is sent without the compression that failed."
    return CommandResult(text, await _answer_if_waiting(controller))


async def _answer_if_waiting(controller: ChatController) -> ScreenAction | None:
    """Return the action that answers the last message, if it has no answer yet."""
    waits = await unanswered(controller.session) is not None
    return ScreenAction.ANSWER if waits else None


async def _quit(_controller: ChatController, _argument: str) -> CommandResult:
    return CommandResult(action=ScreenAction.LEAVE)


COMMANDS: Mapping[str, Command] = {
    "help": Command(_help, "List the commands."),
    "summarize": Command(_summarize, "Summarize old messages now.", changes=True),
    "context": Command(_context, "Show the context's figures and the summary in use."),
    "undo": Command(_undo, "Undo the last compression.", changes=True),
    "history": Command(
        _history, "Show the last messages, summarized or not; #N shows one in full.", "[N|#N]"
    ),
    "search": Command(_search, "Search all messages, summarized or not.", "WORDS"),
    "pin": Command(_pin, "Keep a message in the context, verbatim.", "#N", changes=True),
    "unpin": Command(_unpin, "Let compressions summarize a message again.", "#N", changes=True),
    "pins": Command(_pins, "Show the messages that stay in the context, and why."),
    "model": Command(_model, "Show or switch the model.", "[PROFILE|PROVIDER:MODEL]", changes=True),
    "retry": Command(
        _retry,
        f"Repeat a failed compression or answer; {LOCAL} uses the built-in summarizer.",
        f"[{LOCAL}]",
        changes=True,
    ),
    "acknowledge": Command(
        _acknowledge, "Send the next request without the compression that failed.", changes=True
    ),
    "quit": Command(_quit, "Leave. Everything is stored."),
}
"""Name -> command, in the order of the help."""
