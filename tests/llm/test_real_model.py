"""A real model on this machine: what it reports is what we counted on."""

from __future__ import annotations

import pytest
from openai import AsyncOpenAI

pytestmark = pytest.mark.model


async def test_the_model_answers_and_says_what_it_used(model_url: str) -> None:
    async with AsyncOpenAI(base_url=model_url, api_key="none") as client:
        reply = await client.chat.completions.create(
            model="smollm2", messages=[{"role": "user", "content": "Say hello."}], max_tokens=12
        )
    assert reply.choices[0].message.content
    assert reply.usage is not None
    assert 0 < reply.usage.completion_tokens <= 12
