from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from enfold.errors import ConfigError
from enfold.messages import (
    Attachment,
    Conversation,
    Data,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from enfold.tokens import Tokenizer, count_async, count_conversation, count_messages

LONG = "word " * 20_000


def where(_messages: Sequence[Message], _tokenizer: Tokenizer) -> str:
    """Counts nothing; says where it was called."""
    return threading.current_thread().name


async def test_the_answer_is_that_of_the_function() -> None:
    few = [Message("user", (Text("hello world"),))]
    many = [Message("user", (Text(f"number {number}"),)) for number in range(500)]
    assert await count_async(count_messages, few) == count_messages(few)
    assert await count_async(count_messages, many, "cl100k_base") == count_messages(
        many, "cl100k_base"
    )
    conversation = Conversation(tuple(many))
    assert await count_async(count_conversation, conversation) == count_conversation(conversation)


@pytest.mark.parametrize(
    "part",
    [
        Text("short"),
        Reasoning("short"),
        ToolCall("1", "f", "{}"),
        ToolResult("1", (Text("short"),)),
        Attachment("a.png", data=LONG),
    ],
    ids=lambda part: type(part).__name__,
)
async def test_short_texts_are_counted_at_once(part: Part) -> None:
    assert await count_async(where, [Message("user", (part,))]) == threading.current_thread().name


@pytest.mark.parametrize(
    "part",
    [
        Text(LONG),
        Reasoning(LONG),
        ToolCall("1", "f", f'{{"a":"{LONG}"}}'),
        ToolCall("1", "f", {"a": LONG}),
        ToolResult("1", (Text(LONG),)),
        ToolResult("1", (Data({"a": LONG}),)),
    ],
    ids=["text", "reasoning", "call", "call as an object", "result", "result as an object"],
)
async def test_long_texts_are_counted_in_a_thread(part: Part) -> None:
    assert (await count_async(where, [Message("user", (part,))])).startswith("enfold-count")


async def test_many_messages_are_counted_in_a_thread() -> None:
    many = [Message("user", (Text("short"),))] * 100
    assert (await count_async(where, many)).startswith("enfold-count")


async def test_the_event_loop_goes_on_meanwhile() -> None:
    released = threading.Event()

    def wait_for_the_loop(_messages: Sequence[Message], _tokenizer: Tokenizer) -> bool:
        return released.wait(timeout=60)

    long = [Message("user", (Text(LONG),))]
    counting = asyncio.create_task(count_async(wait_for_the_loop, long))
    await asyncio.sleep(0)
    released.set()
    assert await counting


async def test_an_unknown_tokenizer_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="no tokenizer 'x'"):
        await count_async(count_messages, [], "x")
