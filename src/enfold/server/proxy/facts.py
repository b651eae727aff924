"""Facts: what has to be known of a message, once for the same bytes.

Clients send their whole history on every turn. A message that was seen before costs one digest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from enfold import dialects
from enfold.estimates import estimate
from enfold.identity import content_hash
from enfold.jsontext import loads
from enfold.messages import Message, Role
from enfold.tokens import count_conversation, count_messages

if TYPE_CHECKING:
    from hashlib import _Hash

Result = TypeVar("Result")
Key: TypeAlias = bytes
"""The digest of dialect, tokenizer, and a message's bytes."""

_REMEMBERED = 50_000
"""How many messages; about 300 bytes each."""
_LARGE = 50_000
"""Bytes of unseen messages from which the work is done beside the event loop."""
_COUNTING = ThreadPoolExecutor(max_workers=2, thread_name_prefix="enfold-counting")
"""Few threads that stay: a tokenizer's library keeps about 8 MB for each that ever counted."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a message by its bytes."""

    role: Role
    content: str
    """The hash of what it says."""
    tokens: int
    estimate: int


class Memory:
    """The facts of messages, by the digest of their bytes; the oldest are forgotten first."""

    def __init__(self, size: int = _REMEMBERED) -> None:
        self._size = size
        self._facts: dict[Key, Facts] = {}
        self._beside: dict[Key, tuple[int, int]] = {}

    async def facts(self, raws: Sequence[bytes], dialect: str, tokenizer: str) -> list[Facts]:
        """The facts of every message, counted by the tokenizer."""
        keys = _keys(raws, dialect, tokenizer)
        known = [self._facts.get(key) for key in keys]
        unseen = {
            key: raw for key, raw, fact in zip(keys, raws, known, strict=True) if fact is None
        }
        if not unseen:
            return cast("list[Facts]", known)
        found = await _apart(_find, tuple(unseen.values()), dialect, tokenizer)
        new = dict(zip(unseen, found, strict=True))
        self._remember(new)
        return [fact or new[key] for key, fact in zip(keys, known, strict=True)]

    async def beside(self, raw: bytes, dialect: str, tokenizer: str) -> tuple[int, int]:
        """What a system prompt and tools take, given as a body with no messages in it."""
        (key,) = _keys([raw], dialect, tokenizer)
        if key not in self._beside:
            if len(self._beside) >= self._size:
                self._beside.clear()
            self._beside[key] = await _apart(_count_beside, (raw,), dialect, tokenizer)
        return self._beside[key]

    def _remember(self, found: dict[Key, Facts]) -> None:
        if len(self._facts) + len(found) > self._size:
            for key in list(self._facts)[: self._size // 4 + len(found)]:
                del self._facts[key]
        self._facts.update(found)


def _keys(raws: Sequence[bytes], dialect: str, tokenizer: str) -> list[Key]:
    """Processors have instructions for this hash, and long histories are hashed on every turn."""
    beginning = _beginning(dialect, tokenizer)
    keys = []
    for raw in raws:
        hashing = beginning.copy()
        hashing.update(raw)
        keys.append(hashing.digest())
    return keys


@cache
def _beginning(dialect: str, tokenizer: str) -> _Hash:
    return sha256(f"{dialect} {tokenizer} ".encode())


def parse(raw: bytes, dialect: str) -> Message:
    """The message of its bytes."""
    return dialects.get(dialect).parse_message(loads(raw))


async def _apart(
    work: Callable[[Sequence[bytes], str, str], Result],
    raws: Sequence[bytes],
    dialect: str,
    tokenizer: str,
) -> Result:
    if sum(map(len, raws)) < _LARGE:
        return work(raws, dialect, tokenizer)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_COUNTING, work, raws, dialect, tokenizer)


def _find(raws: Sequence[bytes], dialect: str, tokenizer: str) -> list[Facts]:
    messages = [parse(raw, dialect) for raw in raws]
    counts = count_messages(messages, tokenizer)
    return [
        Facts(message.role, content_hash(message), tokens, estimate(message))
        for message, tokens in zip(messages, counts, strict=True)
    ]


def _count_beside(raws: Sequence[bytes], dialect: str, tokenizer: str) -> tuple[int, int]:
    conversation = dialects.parse(loads(raws[0]), dialect)
    counted = count_conversation(conversation, tokenizer)
    return counted.total - counted.tools, counted.tools
