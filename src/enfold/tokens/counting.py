"""Counts of messages and conversations.

A message counts `STRUCTURE_TOKENS` and the texts of its parts (`content` says which). A system
prompt counts as a message, also where a wire puts it beside the messages. So the same content has
the same count in every dialect, whoever the provider.

Counts of different tokenizers are never added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise
from typing import Any, get_args

from enfold.errors import TokenCountError
from enfold.messages import Conversation, Message, Role
from enfold.tokens.content import PART_KINDS, PartKind, collect, tool_text
from enfold.tokens.tokenizers import DEFAULT, Tokenizer, get

STRUCTURE_TOKENS = 4
"""For a message's role and the marks around it."""

_ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Count:
    """The tokens of a conversation, by role and by kind of part."""

    tokenizer: str
    messages: int
    """How many there are; a system prompt that stands beside them is none."""
    by_role: Mapping[Role, int]
    """Parts and structure, by the role that the wire gives a message."""
    by_part: Mapping[PartKind, int]
    """Parts alone, without structure."""
    tools: int = 0
    """The tools' definitions."""

    @classmethod
    def nothing(cls, tokenizer: str = DEFAULT) -> Count:
        """What a sum of counts begins with."""
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
    texts: list[str] = []
    by_kind = dict.fromkeys(PART_KINDS, texts)  # one list, whatever the kind
    ends = [0]
    for message in messages:
        collect(message.parts, by_kind)
        ends.append(len(texts))
    sums = list(accumulate(get(tokenizer).count_many(texts), initial=0))
    return [STRUCTURE_TOKENS + sums[end] - sums[start] for start, end in pairwise(ends)]


def count_conversation(conversation: Conversation, tokenizer: str | Tokenizer = DEFAULT) -> Count:
    """The tokens of a conversation with its system prompt and its tools."""
    beside = () if conversation.system is None else (conversation.system,)
    messages = (*beside, *conversation.messages)
    by_role = dict.fromkeys(_ROLES, 0)
    by_part = dict.fromkeys(PART_KINDS, 0)
    cells: dict[tuple[Role, PartKind], list[str]]
    cells = {(role, kind): [] for role in _ROLES for kind in PART_KINDS}
    rows = {role: {kind: cells[role, kind] for kind in PART_KINDS} for role in _ROLES}
    for message in messages:
        by_role[message.role] += STRUCTURE_TOKENS
        collect(message.parts, rows[message.role])
    definitions = [tool_text(tool) for tool in conversation.tools]
    counter = get(tokenizer)
    counts = iter(counter.count_many([*chain.from_iterable(cells.values()), *definitions]))
    for (role, kind), texts in cells.items():
        tokens = sum(islice(counts, len(texts)))
        by_role[role] += tokens
        by_part[kind] += tokens
    present = {role: tokens for role, tokens in by_role.items() if tokens}
    return Count(counter.name, len(conversation.messages), present, by_part, tools=sum(counts))
