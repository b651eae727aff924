"""Facts of messages: the same as by reading them, however often and in whichever order."""

from __future__ import annotations

import json

import pytest

from enfold.errors import DialectError
from enfold.identity import content_hash
from enfold.server.proxy.bodies import MessageFacts, MessageFactsCache, parse_message
from enfold.tokens import count_message
from enfold.wire import estimate

RAWS = [json.dumps({"role": "user", "content": f"message {i}"}).encode() for i in range(30)]


def _read(raw: bytes) -> MessageFacts:
    message = parse_message(raw, "openai")
    tokens = count_message(message, "o200k_base")
    return MessageFacts(message.role, content_hash(message), tokens, estimate(message))


@pytest.mark.parametrize("size", [5, 1_000])
async def test_cached_facts_equal_fresh_ones(size: int) -> None:
    memory = MessageFactsCache(size)
    for raws in (RAWS[:4], RAWS[2:6], RAWS, RAWS[::-1], RAWS):
        assert await memory.facts(raws, "openai", "o200k_base") == [_read(raw) for raw in raws]


async def test_large_messages_are_read_in_a_thread_with_the_same_result() -> None:
    raw = json.dumps({"role": "user", "content": "word " * 20_000}).encode()
    assert await MessageFactsCache().facts([raw], "openai", "o200k_base") == [_read(raw)]


async def test_the_tokenizer_and_the_dialect_are_part_of_what_is_known() -> None:
    memory = MessageFactsCache()
    raw = json.dumps({"role": "user", "content": "Überraschungen " * 9}).encode()
    (new,) = await memory.facts([raw], "openai", "o200k_base")
    (old,) = await memory.facts([raw], "openai", "cl100k_base")
    assert new.tokens != old.tokens


async def test_a_prompt_and_tools_are_counted_apart() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    raw = json.dumps({"messages": [], "tools": [tool]}).encode()
    system, tools = await MessageFactsCache().overhead_tokens(raw, "openai", "o200k_base")
    assert system == 0
    assert tools > 5


async def test_an_invalid_message_is_refused() -> None:
    with pytest.raises(DialectError):
        await MessageFactsCache().facts([b"7"], "openai", "o200k_base")
