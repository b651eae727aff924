"""Counts of messages and conversations.

A message counts `STRUCTURE_TOKENS` plus the texts of its parts (`collect` defines which). Calls of
tools and their results count as messages, because some dialects write them so and others inside a
message. A system prompt counts as a message, also if it is a separate field of the wire. So the
same content has the same count in every dialect.

Counts of different tokenizers are never added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import accumulate, chain, islice, pairwise
from operator import attrgetter
from os import cpu_count, getpid
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeAlias, TypeVar, get_args

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

PartKind: TypeAlias = Literal["text", "tool_call", "tool_result", "attachment"]
PART_KINDS: tuple[PartKind, ...] = ("text", "tool_call", "tool_result", "attachment")

_SHORT = 400
"""Characters of a call's arguments whose text is remembered. A longer one is written again at
each count, to save memory."""


def collect(parts: tuple[Part, ...], into: Mapping[PartKind, list[str]]) -> int:
    """Add the texts of a message's parts to the lists of their kinds; return its structure tokens.

    Parts of a tool result count as `tool_result`, except attachments.
    """
    tools = 0
    for part in parts:
        if type(part) is ToolResult or type(part) is ToolCall:
            tools += 1
        if type(part) is ToolResult:
            for inner in part.parts:
                kind, write = _WRITERS[type(inner)]
                into["attachment" if kind == "attachment" else "tool_result"].append(write(inner))
        else:
            kind, write = _WRITERS[type(part)]
            into[kind].append(write(part))
    return STRUCTURE_TOKENS * (tools + (tools < len(parts) or not parts))


def tool_text(tool: Tool) -> str:
    """Return the text of a tool's definition."""
    if tool.parameters is None and tool.extras:
        return dump_text(tool.extras)
    return dump_text(
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters or {}}
    )


def _call_text(call: ToolCall) -> str:
    if isinstance(call.arguments, str) and len(call.arguments) <= _SHORT:
        return _short_call_text(call.name, call.arguments)
    return _call_json(call.name, call.arguments)


@lru_cache(maxsize=8_192)  # of short calls, so that it is bounded in bytes too
def _short_call_text(name: str, arguments: str) -> str:
    # Cached, because writing a call as JSON takes longer than finding its count.
    return _call_json(name, arguments)


def _call_json(name: str, arguments: str | Mapping[str, Any]) -> str:
    value: Any = arguments
    if isinstance(arguments, str):
        try:
            value = loads(arguments or "{}")
        except InputError:
            value = arguments
    return dump_text({"name": name, "arguments": value})


def _attachment_text(file: Attachment) -> str:
    size = "" if file.size is None else str(file.size)
    return " ".join(word for word in (file.name, file.mime, size) if word)


_WRAPPERS = frozenset({"output", "result", "error"})
"""The fields in which Gemini's results have a text; other dialects send the text itself."""


def _data_text(data: Data) -> str:
    match data.value:
        case {**fields} if len(fields) == 1 and fields.keys() <= _WRAPPERS:
            (text,) = fields.values()
            if isinstance(text, str):
                return text
    return dump_text(data.value)


_WRITERS: Mapping[type, tuple[PartKind, Callable[[Any], str]]] = {
    Text: ("text", attrgetter("text")),
    Reasoning: ("text", attrgetter("text")),
    ToolCall: ("tool_call", _call_text),
    Data: ("tool_result", _data_text),
    Attachment: ("attachment", _attachment_text),
    Unknown: ("text", lambda unknown: dump_text(unknown.extras)),
}
"""Type of a part -> the kind that it counts as, and a function that returns its text."""


STRUCTURE_TOKENS = 4
"""Tokens for the role and the marks around a message, a tool call or a tool result."""

_ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Count:
    """The tokens of a conversation, by role and by kind of part."""

    tokenizer: str
    messages: int
    """The number of messages, without a system prompt in a separate field."""
    by_role: Mapping[Role, int]
    """Tokens of parts and structure by role."""
    by_part: Mapping[PartKind, int]
    """Tokens of parts by kind, without structure."""
    tools: int = 0
    """Tokens of the tools' definitions."""

    @classmethod
    def nothing(cls, tokenizer: str = DEFAULT) -> Count:
        """Return zero counts."""
        return cls(tokenizer, 0, {}, dict.fromkeys(PART_KINDS, 0))

    @property
    def total(self) -> int:
        """All tokens: those of every role, and the tools' definitions."""
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
            {kind: self.by_part[kind] + other.by_part[kind] for kind in PART_KINDS},
            self.tools + other.tools,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the count as a JSON object; `tools` only if there are definitions."""
        return {
            "tokenizer": self.tokenizer,
            "total": self.total,
            "messages": self.messages,
            "by_role": dict(self.by_role),
            "by_part": dict(self.by_part),
            **({"tools": self.tools} if self.tools else {}),
        }


def count_message(message: Message, tokenizer: str | Tokenizer = DEFAULT) -> int:
    """Return the tokens of one message."""
    match message.parts:
        case (Text(text),):  # most messages, which one lookup counts
            return STRUCTURE_TOKENS + get(tokenizer).count(text)
    return count_messages((message,), tokenizer)[0]


def count_messages(messages: Sequence[Message], tokenizer: str | Tokenizer = DEFAULT) -> list[int]:
    """Return the tokens of each message; one call for many messages is faster than many calls."""
    texts: list[str] = []
    by_kind = dict.fromkeys(PART_KINDS, texts)  # one list, whatever the kind
    ends, structures = [0], list[int]()
    for message in messages:
        parts = message.parts
        if len(parts) == 1 and type(part := parts[0]) is Text:  # nearly all messages of a chat
            texts.append(part.text)
            structures.append(STRUCTURE_TOKENS)
        else:
            structures.append(collect(parts, by_kind))
        ends.append(len(texts))
    sums = list(accumulate(get(tokenizer).count_many(texts), initial=0))
    return [
        structure + sums[end] - sums[start]
        for structure, (start, end) in zip(structures, pairwise(ends), strict=True)
    ]


def count_conversation(conversation: Conversation, tokenizer: str | Tokenizer = DEFAULT) -> Count:
    """Return the tokens of a conversation with its system prompt and its tools."""
    system = () if conversation.system is None else (conversation.system,)
    messages = (*system, *conversation.messages)
    by_role = dict.fromkeys(_ROLES, 0)
    by_part = dict.fromkeys(PART_KINDS, 0)
    cells: dict[tuple[Role, PartKind], list[str]]
    cells = {(role, kind): [] for role in _ROLES for kind in PART_KINDS}
    rows = {role: {kind: cells[role, kind] for kind in PART_KINDS} for role in _ROLES}
    for message in messages:
        by_role[message.role] += collect(message.parts, rows[message.role])
    definitions = [tool_text(tool) for tool in conversation.tools]
    counter = get(tokenizer)
    counts = iter(counter.count_many([*chain.from_iterable(cells.values()), *definitions]))
    for (role, kind), texts in cells.items():
        tokens = sum(islice(counts, len(texts)))
        by_role[role] += tokens
        by_part[kind] += tokens
    present = {role: tokens for role, tokens in by_role.items() if tokens}
    return Count(counter.name, len(conversation.messages), present, by_part, tools=sum(counts))


if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Content = TypeVar("Content", bound=Conversation | Sequence[Any])
Params = ParamSpec("Params")
Result = TypeVar("Result")

_COMPUTE_THREAD = "enfold-compute"
_COUNTING_THREADS = max(1, min(4, (cpu_count() or 1) - 1))
_SMALL_MESSAGES = 50
_SMALL_CHARACTERS = 40_000
"""About a millisecond of work: no more than starting a thread takes on a busy machine."""


async def count_async(
    count: Callable[[Content, Tokenizer], Result],
    content: Content,
    tokenizer: str | Tokenizer = DEFAULT,
) -> Result:
    """Run a function that counts, in a thread unless there is little to count.

    `content` is a conversation, or messages in any form: also texts, and mappings of a dialect.
    """
    import asyncio

    counter = get(tokenizer)
    messages = content.messages if isinstance(content, Conversation) else content
    if _is_little(messages):
        return count(content, counter)
    return await asyncio.get_running_loop().run_in_executor(
        counting_threads(), count, content, counter
    )


async def compute_async(
    work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
) -> Result:
    """Run a long computation in the one compute thread, one after the other.

    Several threads would not be faster, because the interpreter runs one at a time. A request that
    comes meanwhile would wait for each of them in turn, dozens of times. A computation that starts
    another one, such as a strategy that condenses a part by itself, runs it in its place.
    """
    import asyncio
    from contextvars import copy_context
    from threading import current_thread

    if current_thread().name.startswith(_COMPUTE_THREAD):
        return work(*args, **kwargs)
    thread = _threads(_COMPUTE_THREAD, 1, getpid())
    call = partial(copy_context().run, work, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(thread, call)


def _is_little(messages: Sequence[Any]) -> bool:
    return len(messages) <= _SMALL_MESSAGES and sum(map(characters, messages)) <= _SMALL_CHARACTERS


def characters(part: Any) -> int:
    """Return the characters of a message's texts, or a large number for an unknown object."""
    match part:
        case str(text) | bytes(text) | {"content": str(text)}:
            return len(text)
        case Message(parts=inner):
            return sum(map(characters, inner))
        case Text(text) | Reasoning(text) | ToolCall(arguments=str(text)):
            return len(text)
        case ToolResult(parts=inner):
            return sum(map(characters, inner))
        case Attachment():
            return 0
    return _SMALL_CHARACTERS + 1  # an object, whose size is known only after it is written


def counting_threads() -> ThreadPoolExecutor:
    """Return the counting threads; the library keeps about 8 MB for each thread it ran in."""
    return _threads("enfold-count", _COUNTING_THREADS, getpid())


@cache
def _threads(name: str, count: int, _process: int) -> ThreadPoolExecutor:
    """Return a process's threads; a forked process needs new ones."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(count, thread_name_prefix=name)
