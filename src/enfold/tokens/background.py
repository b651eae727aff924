"""Counting without keeping an event loop waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from enfold.messages import (
    Attachment,
    Conversation,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from enfold.tokens.tokenizers import DEFAULT, Tokenizer, get

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Content = TypeVar("Content", bound=Conversation | Sequence[Message])
Result = TypeVar("Result")

_SMALL_MESSAGES = 50
_SMALL_CHARACTERS = 40_000
"""About a millisecond's work, no more than handing it to a thread may take on a busy machine."""


async def count_async(
    count: Callable[[Content, Tokenizer], Result],
    content: Content,
    tokenizer: str | Tokenizer = DEFAULT,
) -> Result:
    """`count_messages` or `count_conversation`, in a thread unless there is little to count.

    The threads are kept, because the library's caches belong to a thread.
    """
    import asyncio

    counter = get(tokenizer)
    messages = content.messages if isinstance(content, Conversation) else content
    if _is_little(messages):
        return count(content, counter)
    return await asyncio.get_running_loop().run_in_executor(_threads(), count, content, counter)


def _is_little(messages: Sequence[Message]) -> bool:
    if len(messages) > _SMALL_MESSAGES:
        return False
    parts = [part for message in messages for part in message.parts]
    return sum(map(_characters, parts)) <= _SMALL_CHARACTERS


def _characters(part: Part) -> int:
    match part:
        case Text(text) | Reasoning(text) | ToolCall(arguments=str(text)):
            return len(text)
        case ToolResult(parts=inner):
            return sum(map(_characters, inner))
        case Attachment():
            return 0
    return _SMALL_CHARACTERS + 1  # an object: how large is known only when it is written out


@cache
def _threads() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(thread_name_prefix="enfold-count")
