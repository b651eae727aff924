"""What is counted of a message, and the sums of it.

A message counts `STRUCTURE_TOKENS` and its parts:

- text, and reasoning as far as it can be read. Opaque reasoning counts nothing here: `estimates`
  has a figure for it.
- a tool call: `{"name":…,"arguments":…}` as compact JSON, key order kept, nothing escaped that
  need not be. Arguments that the wire carries as text are parsed first, so that both kinds of wire
  count the same; text that is not JSON counts as a JSON string. Ids do not count.
- a tool result: its text as it is, not quoted; structured output as compact JSON.
- an attachment: name, MIME type and size in bytes, with a space between. Never its content.
- a part that enfold does not know: all of it as compact JSON.

A tool's definition counts as `{"name":…,"description":…,"parameters":…}`, a provider's built-in
tool as the JSON that describes it. A system prompt counts as a message, also where a wire puts it
beside the messages. So the same content has the same count in every dialect, whoever the provider.

Counts of different tokenizers are never added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from enfold.errors import InputError, TokenCountError
from enfold.jsontext import dump_text, loads
from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)
from enfold.tokens.tokenizers import DEFAULT, Tokenizer, get

STRUCTURE_TOKENS = 4
"""For a message's role and the marks around it."""

PartKind: TypeAlias = Literal["text", "tool_call", "tool_result", "attachment"]
_PART_KINDS: tuple[PartKind, ...] = ("text", "tool_call", "tool_result", "attachment")
_ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Count:
    """The tokens of a conversation, by role and by kind of part."""

    tokenizer: str
    messages: int
    """How many there are, the system prompt among them."""
    by_role: Mapping[Role, int]
    """Parts and structure. A message that holds only tool results is the tool's on every wire."""
    by_part: Mapping[PartKind, int]
    """Parts alone, without structure."""
    tools: int = 0
    """The tools' definitions."""

    @classmethod
    def nothing(cls, tokenizer: str = DEFAULT) -> Count:
        """The count that others are added to."""
        return cls(tokenizer, 0, {}, dict.fromkeys(_PART_KINDS, 0))

    @property
    def total(self) -> int:
        """All tokens."""
        return sum(self.by_role.values()) + self.tools

    def __add__(self, other: Count) -> Count:
        if self.tokenizer != other.tokenizer:
            raise TokenCountError(
                f"tokens of {self.tokenizer} and of {other.tokenizer} cannot be added; "
                "count both with one tokenizer"
            )
        roles = [role for role in _ROLES if role in self.by_role or role in other.by_role]
        return Count(
            self.tokenizer,
            self.messages + other.messages,
            {role: self.by_role.get(role, 0) + other.by_role.get(role, 0) for role in roles},
            {kind: self.by_part[kind] + other.by_part[kind] for kind in _PART_KINDS},
            self.tools + other.tools,
        )

    def as_json(self) -> dict[str, Any]:
        """As the command line and the API show it; `tools` only where there are definitions."""
        return {
            "tokenizer": self.tokenizer,
            "total": self.total,
            "messages": self.messages,
            "by_role": dict(self.by_role),
            "by_part": dict(self.by_part),
            **({"tools": self.tools} if self.tools else {}),
        }


def count_message(message: Message, tokenizer: str | Tokenizer = DEFAULT) -> int:
    """The tokens of one message."""
    return count_messages((message,), tokenizer)[0]


def count_messages(messages: Sequence[Message], tokenizer: str | Tokenizer = DEFAULT) -> list[int]:
    """The tokens of each message; one call for many messages is faster than many calls."""
    pieces = _pieces_of(messages)
    totals = [STRUCTURE_TOKENS] * len(messages)
    for owner, count in zip(pieces.owners, get(tokenizer).count_many(pieces.texts), strict=True):
        totals[owner] += count
    return totals


def count_conversation(conversation: Conversation, tokenizer: str | Tokenizer = DEFAULT) -> Count:
    """The tokens of a conversation with its system prompt and its tools."""
    counter = get(tokenizer)
    beside = () if conversation.system is None else (conversation.system,)
    messages = (*beside, *conversation.messages)
    pieces = _pieces_of(messages)
    counts = counter.count_many(pieces.texts)
    roles = [_role_of(message) for message in messages]
    by_role = {role: STRUCTURE_TOKENS * roles.count(role) for role in _ROLES if role in roles}
    by_part = dict.fromkeys(_PART_KINDS, 0)
    for owner, kind, count in zip(pieces.owners, pieces.kinds, counts, strict=True):
        by_role[roles[owner]] += count
        by_part[kind] += count
    tools = sum(counter.count_many([_tool_text(tool) for tool in conversation.tools]))
    return Count(counter.name, len(messages), by_role, by_part, tools)


@dataclass(slots=True)
class _Pieces:
    """The texts of some messages, in columns, so that all are counted in one call."""

    owners: list[int] = field(default_factory=list)
    """The index of the message that the text is of."""
    kinds: list[PartKind] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def add(self, owner: int, kind: PartKind, text: str) -> None:
        self.owners.append(owner)
        self.kinds.append(kind)
        self.texts.append(text)


def _pieces_of(messages: Sequence[Message]) -> _Pieces:
    pieces = _Pieces()
    for owner, message in enumerate(messages):
        for part in message.parts:
            for kind, text in _texts_of(part):
                pieces.add(owner, kind, text)
    return pieces


def _texts_of(part: Part) -> Iterable[tuple[PartKind, str]]:
    match part:
        case Text(text) | Reasoning(text):
            return (("text", text),)
        case ToolResult(parts=inner):
            return [
                ("attachment" if kind == "attachment" else "tool_result", text)
                for each in inner
                for kind, text in _texts_of(each)
            ]
        case ToolCall():
            return (("tool_call", _call_text(part)),)
        case Data(value):
            return (("tool_result", dump_text(value)),)
        case Attachment():
            return (("attachment", _attachment_text(part)),)
        case Unknown(extras):
            return (("text", dump_text(extras)),)


def _call_text(call: ToolCall) -> str:
    arguments: Any = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = loads(arguments or "{}")
        except InputError:
            arguments = call.arguments
    return dump_text({"name": call.name, "arguments": arguments})


def _attachment_text(file: Attachment) -> str:
    size = "" if file.size is None else str(file.size)
    return " ".join(word for word in (file.name, file.mime, size) if word)


def _tool_text(tool: Tool) -> str:
    if tool.parameters is None and tool.extras:
        return dump_text(tool.extras)
    return dump_text(
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters or {}}
    )


def _role_of(message: Message) -> Role:
    """Whose the tokens are: some wires put tool results into a user's message."""
    if message.parts and all(type(part) is ToolResult for part in message.parts):
        return "tool"
    return message.role
