"""Turns: any conversation as the user and assistant turns that Anthropic and Gemini take.

Their wires differ; what they ask of a conversation does not. Only user and assistant speak, the
user first, and the system prompt stands beside the messages. A tool's results are said by the
user, before anything else in that turn. A part that says nothing is refused.

Messages of the dialect itself are left as they are: both providers join neighbours of one role by
themselves. Neighbours that came from elsewhere are joined here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile

from enfold.messages import (
    Attachment,
    Conversation,
    Message,
    Part,
    ResultPart,
    Role,
    Text,
    ToolResult,
)
from enfold.wire.fields import pair_calls, without_extras
from enfold.wire.openai_shared import note_of, offered

OPENING = "[The assistant speaks first.]"
"""Said by the user where a translated conversation has the assistant begin."""


def adopt(conversation: Conversation, dialect: str) -> Conversation:
    """The conversation as `dialect` has it: its own untouched, another's translated.

    The leading system messages of another's join its system prompt, and make a body of a bare
    array: anywhere else they would have no more authority than what a user says. Where nothing
    follows them they do become what the user says, because a request needs a message. So does
    every other system message, in its place: older models know no system role there.
    """
    if conversation.dialect == dialect:
        system = _system((conversation.system,), dialect)
        return replace(conversation, system=system, messages=_turns(conversation.messages, dialect))
    prompts = tuple(takewhile(lambda message: message.role == "system", conversation.messages))
    if len(prompts) == len(conversation.messages):
        prompts = ()
    turns = _turns(conversation.messages[len(prompts) :], dialect)
    if turns and turns[0].role == "assistant":
        turns = (Message("user", (Text(OPENING),), dialect=dialect), *turns)
    return Conversation(
        messages=turns,
        dialect=dialect,
        system=_system((conversation.system, *prompts), dialect),
        tools=tuple(offered(conversation.tools)),
        extras=None if conversation.extras is None else {},
    )


def adopt_message(message: Message, dialect: str) -> Message:
    """One message as `dialect` has it: its own untouched, another's as a turn of its own."""
    if message.dialect == dialect:
        return message
    role: Role = "assistant" if message.role == "assistant" else "user"
    return Message(role, _results_first(_plain_parts(message, dialect)), dialect=dialect)


def _turns(messages: tuple[Message, ...], dialect: str) -> tuple[Message, ...]:
    if all(message.dialect == dialect for message in messages):
        return messages
    turns: list[Message] = []
    is_joinable = False
    for message, paired in zip(messages, pair_calls(messages), strict=True):
        if message.dialect == dialect:
            turns.append(message)
            is_joinable = False
            continue
        turn = adopt_message(paired, dialect)
        if is_joinable and turns[-1].role == turn.role:
            turns[-1] = replace(turn, parts=_results_first((*turns[-1].parts, *turn.parts)))
        elif turn.parts:
            turns.append(turn)
            is_joinable = True
    return tuple(turns)


def _system(messages: Iterable[Message | None], dialect: str) -> Message | None:
    """The texts of several system prompts as one; a single one of the dialect itself as it is."""
    given = [message for message in messages if message is not None]
    match given:
        case [only] if only.dialect == dialect:
            return only
    parts = tuple(
        part
        for message in given
        for part in _plain_parts(message, dialect)
        if isinstance(part, Text)
    )
    return Message("system", parts, dialect=dialect) if parts else None


def _plain_parts(message: Message, dialect: str) -> tuple[Part, ...]:
    """What of the message's parts another dialect can say."""
    plain = (_plain_part(part, message.role) for part in without_extras(message, dialect).parts)
    return tuple(part for part in plain if not _is_empty(part))


def _plain_part(part: Part, role: Role) -> Part:
    """A file becomes words where only its own provider holds it, or where a model shows it."""
    match part:
        case ToolResult(parts=inner):
            carried = (_plain_result_part(inner_part) for inner_part in inner)
            return replace(part, parts=tuple(p for p in carried if not _is_empty(p)))
        case Attachment() if role == "assistant":
            return note_of(part)
        case Attachment():
            return _plain_result_part(part)
    return part


def _plain_result_part(part: ResultPart) -> ResultPart:
    match part:
        case Attachment(data=data, url=url) if not data and not url:
            return note_of(part)
    return part


def _is_empty(part: Part) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def _results_first(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: not isinstance(part, ToolResult)))
