"""An agent of the OpenAI Agents SDK whose conversation stays inside its model's window.

Runs without a key: the model here has scripted answers. With a real model, leave out `model=`.
Needs `pip install 'enfold[openai-agents]'`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.items import TResponseStreamEvent
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

import enfold
from enfold.adapters.openai_agents import AgentSession

WINDOW = 6_000
"""Tokens; small, so that a few turns fill it."""


class ScriptedModel(Model):
    """A model with long answers that counts the items it receives."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Return the same answer to everything."""
        items = kwargs["input"] if "input" in kwargs else args[1]
        self.sent.append(len(items))
        text = f"Stop {len(self.sent)}: " + "moor at the east quay, then check the ropes. " * 30
        answer = ResponseOutputText(text=text, type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id=f"msg_{len(self.sent)}",
            content=[answer],
            role="assistant",
            status="completed",
            type="message",
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        """Not used here."""
        raise NotImplementedError


async def main() -> None:
    """Chat until the window is full, and continue."""
    set_tracing_disabled(disabled=True)
    model = ScriptedModel()
    agent = Agent(name="Harbour pilot", instructions="Plan the tour.", model=model)
    async with enfold.open("sqlite:///agents.db") as engine:
        await engine.models.edit("example:small", max_input=WINDOW, max_output=20_000)
        stored = await engine.session("tour", model="example:small")
        session = AgentSession(stored)
        for turn in range(1, 21):
            await Runner.run(agent, f"Where do we stop on day {turn}?", session=session)
        history = await stored.messages()
        status = await stored.status()
        print(f"So far: {len(history)} messages, all of them stored.")
        print(f"Sent at the last turn: {model.sent[-1]} items (at most {max(model.sent)}).")
        print(f"In use: {status.current_token_count:,} of {WINDOW:,} tokens.")
        first = await session.get_items()
        print("The view begins with:", str(first[0].get("content"))[:31])


if __name__ == "__main__":
    asyncio.run(main())
