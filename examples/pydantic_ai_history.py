"""An agent of Pydantic AI whose requests always fit, while its history stays whole.

Runs as it is, without a key: the model here is a function. With a real one, give `Agent` its name
and the processor its window. Needs `pip install 'enfold[pydantic-ai]'`.
"""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from enfold.adapters.pydantic_ai import HistoryProcessor

WINDOW = 4_000
"""Tokens: small, so that a few turns fill it."""

sent: list[int] = []
"""How many messages each request had."""


def pilot(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """A model that answers at length."""
    sent.append(len(messages))
    text = f"Stop {len(sent)}: " + "moor at the east quay, then check the ropes. " * 20
    return ModelResponse(parts=[TextPart(text)])


async def main() -> None:
    """Talk until the window is full, and go on talking."""
    history = HistoryProcessor(
        WINDOW,
        on_condensed=lambda done: print(
            f"Condensed: {done.report.tokens_before:,} tokens became {done.report.tokens_after:,}."
        ),
    )
    agent = Agent(
        FunctionModel(pilot), instructions="Plan the tour.", capabilities=[history.capability()]
    )
    said: list[ModelMessage] = []
    for day in range(1, 31):
        result = await agent.run(f"Where do we stop on day {day}?", message_history=said)
        said = result.all_messages()
    print(f"Said so far: {len(said)} messages, none is lost.")
    print(f"Sent at the last turn: {sent[-1]} messages (of {max(sent)} at most).")


if __name__ == "__main__":
    asyncio.run(main())
