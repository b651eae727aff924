"""An agent of Pydantic AI: its requests always fit, and its history stays complete.

Runs without a key: the model here is a function. With a real model, pass its name to `Agent` and
its window to the processor. Needs `pip install 'enfold[pydantic-ai]'`.
"""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from enfold.adapters.pydantic_ai import HistoryProcessor

WINDOW = 4_000
"""Tokens; small, so that a few turns fill it."""

sent: list[int] = []
"""Number of messages of each request."""


def pilot(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """A model that answers at length."""
    sent.append(len(messages))
    text = f"Stop {len(sent)}: " + "moor at the east quay, then check the ropes. " * 20
    return ModelResponse(parts=[TextPart(text)])


async def main() -> None:
    """Chat until the window is full, and continue."""
    history = HistoryProcessor(
        WINDOW,
        on_condensed=lambda done: print(
            f"Condensed: {done.report.tokens_before:,} tokens became {done.report.tokens_after:,}."
        ),
    )
    agent = Agent(
        FunctionModel(pilot), instructions="Plan the tour.", capabilities=[history.capability()]
    )
    messages: list[ModelMessage] = []
    for day in range(1, 31):
        result = await agent.run(f"Where do we stop on day {day}?", message_history=messages)
        messages = result.all_messages()
    print(f"So far: {len(messages)} messages, none is lost.")
    print(f"Sent at the last turn: {sent[-1]} messages (at most {max(sent)}).")


if __name__ == "__main__":
    asyncio.run(main())
