"""Translation of messages between dialects.

A dialect's own messages are left as they are. Messages of another dialect are reduced to their
typed fields and brought into the order that the target accepts. Two orders exist:

- items: tool results are messages of their own, which follow their calls (`translate_to_items`);
- turns: only user and assistant speak, the user first. The system prompt is separate, and a turn's
  tool results come first in it (`translate_to_turns`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from itertools import groupby, takewhile
from typing import Any

from enfold.errors import DialectError
from enfold.jsontext import dump_text
from enfold.messages import (
    NOTHING,
    Attachment,
    Conversation,
    Data,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)

OPENING = "[The assistant speaks first.]"
"""The user's message before a translated conversation that begins with the assistant."""
_LONGEST_CALL_ID = 40
"""Chat Completions refuses longer ids."""
_ERROR_PREFIX = "Error: "
_FILES_NOTE = "[attachments of the tool results above]"


def portable_tools(tools: Iterable[Tool]) -> list[Tool]:
    """Return the tools' typed fields, without the built-in tools of a provider."""
    return [
        replace(tool, extras=NOTHING)
        for tool in tools
        if tool.parameters is not None or not tool.extras
    ]


def describe_file(file: Attachment) -> Text:
    """Return a text in place of a file that the dialect cannot carry."""
    facts = ", ".join(fact for fact in (file.name, file.mime, file.url) if fact)
    return Text(f"[attachment: {facts}]" if facts else "[attachment]")


def single_entry(entries: list[dict[str, Any]], dialect: str) -> dict[str, Any]:
    """Return the only entry that a message was translated to."""
    if len(entries) == 1:
        return entries[0]
    raise DialectError(
        f"the message becomes {len(entries)} entries in {dialect}; render its conversation instead"
    )


def without_extras(
    message: Message, dialect: str, *, drop: tuple[type[Part], ...] = (Unknown, Reasoning)
) -> Message:
    """Return the message with its typed fields only, for a dialect that cannot read its extras.

    Reasoning is signed for its provider, and unknown parts have no meaning elsewhere: both are
    dropped, unless the dialect can carry them.
    """
    parts = tuple(
        _part_without_extras(part) for part in message.parts if not isinstance(part, drop)
    )
    return replace(message, parts=parts, dialect=dialect, extras=NOTHING)


def _part_without_extras(part: Any) -> Any:
    if isinstance(part, ToolResult):
        inner = tuple(_part_without_extras(p) for p in part.parts if not isinstance(p, Unknown))
        part = replace(part, parts=inner)
    return replace(part, extras=NOTHING)


def pair_calls(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Fill in the ids and names of tool calls and results that the wire left out.

    A call without an id becomes `name#n`, counted over the conversation. A result without an id
    belongs to the first unanswered call of its name in the model's latest turn: providers without
    ids accept results for that turn only, so earlier open calls were interrupted.
    """
    pairs = _CallPairs()
    return tuple(pairs.fill(message) for message in messages)


class _CallPairs:
    """The calls found so far in one conversation."""

    def __init__(self) -> None:
        self._numbers: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._open: list[ToolCall] = []
        self._role = ""

    def fill(self, message: Message) -> Message:
        if message.role == "assistant" and self._role != "assistant":
            self._open = []
        self._role = message.role
        if not any(isinstance(part, ToolCall | ToolResult) for part in message.parts):
            return message
        return replace(message, parts=tuple(self._fill_part(part) for part in message.parts))

    def _fill_part(self, part: Part) -> Part:
        match part:
            case ToolCall():
                return self._fill_call(part)
            case ToolResult():
                return self._fill_result(part)
        return part

    def _fill_call(self, call: ToolCall) -> ToolCall:
        if not call.id:
            call = replace(call, id=self._next_id(call.name))
        self._names[call.id] = call.name
        self._open.append(call)
        return call

    def _fill_result(self, result: ToolResult) -> ToolResult:
        answered = next((call for call in self._open if _answers(result, call)), None)
        self._open = [call for call in self._open if call is not answered]
        call_id = result.call_id or (answered.id if answered else self._next_id(result.name))
        return replace(result, call_id=call_id, name=result.name or self._names.get(call_id, ""))

    def _next_id(self, name: str) -> str:
        self._numbers[name] += 1
        return f"{name}#{self._numbers[name]}"


def _answers(result: ToolResult, call: ToolCall) -> bool:
    if result.call_id:
        return result.call_id == call.id
    return result.name in ("", call.name)


# Items


def translate_to_items(messages: Iterable[Message], dialect: str) -> list[Message]:
    """Return the messages for a dialect in which results are messages of their own.

    A message of another dialect may become several messages, or none.
    """
    given = tuple(messages)
    if all(message.dialect == dialect for message in given):
        return list(given)
    translated: list[Message] = []
    for message, paired in zip(given, pair_calls(given), strict=True):
        translated += [message] if message.dialect == dialect else _items_of(paired, dialect)
    return translated


def join_calls(messages: Iterable[Message]) -> list[Message]:
    """Join neighbouring translated messages of the assistant if one of them calls a tool.

    For a dialect that wants all calls of a turn in one message.
    """
    joined: list[Message] = []
    for message in messages:
        if joined and _are_one_turn(joined[-1], message):
            joined[-1] = replace(joined[-1], parts=joined[-1].parts + message.parts)
        else:
            joined.append(message)
    return joined


def _are_one_turn(before: Message, after: Message) -> bool:
    return (
        before.role == after.role == "assistant"
        and not (before.extras or after.extras)
        and any(isinstance(part, ToolCall) for part in (*before.parts, *after.parts))
    )


def files_after_results(messages: Iterable[Message]) -> list[Message]:
    """Move the files of translated tool results into a user's message after the results.

    For a dialect that takes only text from a tool.
    """
    moved: list[Message] = []
    for _, run in groupby(messages, lambda message: message.role == "tool"):
        files: list[Part] = []
        for message in run:
            text_only, attached = _take_files(message)
            moved.append(text_only)
            files += attached
        if files:
            parts = (Text(_FILES_NOTE), *files)
            moved.append(Message("user", parts, dialect=moved[-1].dialect))
    return moved


def _take_files(message: Message) -> tuple[Message, list[Attachment]]:
    match message.parts:
        case (ToolResult(parts=parts) as result,) if not message.extras:
            texts = tuple(
                describe_file(part) if isinstance(part, Attachment) else part for part in parts
            )
            files = [part for part in parts if isinstance(part, Attachment)]
            return replace(message, parts=(replace(result, parts=texts),)), files
    return message, []


def _items_of(message: Message, dialect: str) -> list[Message]:
    plain = without_extras(message, dialect)
    is_user = plain.role in ("user", "tool")
    parts = tuple(_item_part(part, is_user=is_user) for part in plain.parts)
    return with_results_apart(message, replace(plain, parts=parts))


def with_results_apart(message: Message, translated: Message) -> list[Message]:
    """Return the entries of a translated message, in which each tool result is a message.

    A message of which no part could be translated has none. A user's text comes after the tool
    results of the same message, because results must follow their calls.
    """
    plain = replace(translated, role="user" if message.role == "tool" else message.role)
    if not message.parts:
        return [plain]
    parts = list(plain.parts)
    if plain.role != "assistant":
        parts.sort(key=lambda part: not isinstance(part, ToolResult))
    entries: list[Message] = []
    for is_result, group in groupby(parts, lambda part: isinstance(part, ToolResult)):
        if is_result:
            entries += [Message("tool", (result,), dialect=plain.dialect) for result in group]
        else:
            entries.append(replace(plain, parts=tuple(group)))
    return entries


def _item_part(part: Part, *, is_user: bool) -> Part:
    match part:
        case ToolCall(id=call_id):
            return replace(part, id=_short_id(call_id))
        case ToolResult(call_id, inner, is_error):
            texts = tuple(_as_text(inner_part) for inner_part in inner)
            parts = _with_error_prefix(texts) if is_error else texts
            # These dialects repeat the tool's name in the call only.
            return replace(part, call_id=_short_id(call_id), parts=parts, name="")
        case Attachment() if not is_user:
            return describe_file(part)
        case Data() | Attachment():
            return _as_text(part)
    return part


def _short_id(call_id: str) -> str:
    """Return the id, or a hash of it if it is too long; the same for a call and its result."""
    if len(call_id) <= _LONGEST_CALL_ID:
        return call_id
    return f"call_{sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _as_text(part: ResultPart) -> ResultPart:
    """Return structured output as JSON text, and a note for a file without content or address."""
    match part:
        case Data(value):
            return Text(dump_text(value))
        case Attachment(data=data, url=url) if not (data or url):
            return describe_file(part)
    return part


def _with_error_prefix(parts: tuple[ResultPart, ...]) -> tuple[ResultPart, ...]:
    match parts:
        case (Text(text), *_) if text.startswith(_ERROR_PREFIX):
            return parts
        case (Text(text), *rest):
            return (Text(_ERROR_PREFIX + text), *rest)
    return (Text(_ERROR_PREFIX), *parts)


# Turns


def translate_to_turns(conversation: Conversation, dialect: str) -> Conversation:
    """Return the conversation for a dialect in which user and assistant take turns.

    Leading system messages of another dialect join the system prompt; a bare array becomes a body
    for it, because anywhere else they would have only a user's authority. A request needs a
    message, so they become the user's if nothing follows them. Later system messages become the
    user's too: older models accept no system role there.
    """
    if conversation.dialect == dialect:
        system = _join_system((conversation.system,), dialect)
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
        system=_join_system((conversation.system, *prompts), dialect),
        tools=tuple(portable_tools(conversation.tools)),
        extras=None if conversation.extras is None else {},
    )


def translate_to_turn(message: Message, dialect: str) -> Message:
    """Return one message as a turn of the dialect."""
    if message.dialect == dialect:
        return message
    role: Role = "assistant" if message.role == "assistant" else "user"
    return Message(role, _results_first(_turn_parts(message, dialect)), dialect=dialect)


def _turns(messages: tuple[Message, ...], dialect: str) -> tuple[Message, ...]:
    """Translate the messages and join translated neighbours of one role.

    Providers join neighbours of the dialect itself.
    """
    if all(message.dialect == dialect for message in messages):
        return messages
    turns: list[Message] = []
    is_joinable = False
    for message, paired in zip(messages, pair_calls(messages), strict=True):
        if message.dialect == dialect:
            turns.append(message)
            is_joinable = False
            continue
        turn = translate_to_turn(paired, dialect)
        if is_joinable and turns[-1].role == turn.role:
            turns[-1] = replace(turn, parts=_results_first((*turns[-1].parts, *turn.parts)))
        elif turn.parts:
            turns.append(turn)
            is_joinable = True
    return tuple(turns)


def _join_system(messages: Iterable[Message | None], dialect: str) -> Message | None:
    """Return the texts of several system prompts as one; a single one of the dialect as it is."""
    given = [message for message in messages if message is not None]
    match given:
        case [only] if only.dialect == dialect:
            return only
    parts = tuple(
        part
        for message in given
        for part in _turn_parts(message, dialect)
        if isinstance(part, Text)
    )
    return Message("system", parts, dialect=dialect) if parts else None


def _turn_parts(message: Message, dialect: str) -> tuple[Part, ...]:
    plain = (_turn_part(part, message.role) for part in without_extras(message, dialect).parts)
    return tuple(part for part in plain if not _is_blank(part))


def _turn_part(part: Part, role: Role) -> Part:
    """Return the part; a text for a file without content or address, or in a model's turn."""
    match part:
        case ToolResult(parts=inner):
            carried = (_portable_file(inner_part) for inner_part in inner)
            return replace(part, parts=tuple(p for p in carried if not _is_blank(p)))
        case Attachment() if role == "assistant":
            return describe_file(part)
        case Attachment():
            return _portable_file(part)
    return part


def _portable_file(part: ResultPart) -> ResultPart:
    match part:
        case Attachment(data=data, url=url) if not data and not url:
            return describe_file(part)
    return part


def _is_blank(part: Part) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def _results_first(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: not isinstance(part, ToolResult)))
