"""Requests of the Responses API that refer to stored items or declare tools in an item.

The provider is strict: every reference exists, every call is answered, reasoning keeps its place.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import openai
import pytest

from enfold.messages import Message
from enfold.testing import assistant, call
from enfold.testing.provider import ProviderRequest, StrictProvider
from tests.server.proxy.stage import Stage, question, stage

STEPS = 24
PROMPT = "Audit the ferry planner step by step."
SECRET = "The lamp in the cabin is teal."
TOOL: Any = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}


class Loop:
    """A model that calls a tool at every step, with reasoning before the call."""

    def __init__(self) -> None:
        self.step = 0
        self.recalls = False
        """True if the model recalls once more before it ends."""

    def __call__(self, _: ProviderRequest) -> Message:
        self.step += 1
        if self.step <= STEPS:
            looked = call(f"call_{self.step:04}", "look", {"at": self.step})
            return assistant(f"Step {self.step}.", looked, thinking=f"Think of step {self.step}.")
        if self.recalls:
            self.recalls = False
            return assistant("", call("recall_1", "recall", {"query": "lamp cabin"}))
        return assistant("Done.")


@asynccontextmanager
async def _open(tmp_path: Path, loop: Loop) -> AsyncIterator[tuple[Stage, StrictProvider]]:
    url = f"sqlite:///{tmp_path / 'proxy.db'}"
    with StrictProvider(loop) as provider:
        async with stage(url, provider_address=provider.address) as on:
            yield on, provider


async def _run(
    on: Stage, fields: dict[str, Any], begin: list[Any], *, by: str
) -> tuple[Any, list[str]]:
    """Run the loop; return the last reply and the decisions."""
    items, decisions, previous = list(begin), [], None
    async with openai.AsyncOpenAI(
        base_url=f"{on.address}/v1", api_key="k", max_retries=0
    ) as client:
        for number in range(STEPS + 1):
            given: Any = {"model": "small", "input": items, **fields}
            if previous is not None:
                given["previous_response_id"] = previous
            raw = await client.responses.with_raw_response.create(**given)
            reply = raw.parse()
            decisions.append(raw.headers["x-enfold-decision"])
            calls = [item for item in reply.output if item.type == "function_call"]
            if not calls:
                return reply, decisions
            if by == "previous":
                items, previous = [], reply.id
            elif by == "references":
                items += [{"type": "item_reference", "id": item.id} for item in reply.output]
            else:
                items += [item.to_dict() for item in reply.output]
            text = SECRET if number == 1 else ""
            items += [
                {
                    "type": "function_call_output",
                    "call_id": each.call_id,
                    "output": f"{text} {question(number, 700)}",
                }
                for each in calls
            ]
            await on.proxy.idle()
    raise AssertionError("the model never ended the loop")


@pytest.mark.parametrize("by", ["items", "references", "previous"])
async def test_a_long_loop_of_stored_items_stays_valid(by: str, tmp_path: Path) -> None:
    async with _open(tmp_path, Loop()) as (on, provider):
        begin = [{"role": "user", "content": PROMPT}]
        reply, decisions = await _run(on, {"tools": [TOOL]}, begin, by=by)
        records = await on.engine.sessions()
    assert [request.faults for request in provider.refused] == []
    assert reply.output_text == "Done."
    assert 2 <= decisions.count("compressed") <= len(decisions) / 5
    assert len(records) == 1
    for request in provider.requests:
        whole, _ = provider.stored.complete(request.body)
        assert PROMPT in json.dumps(whole["input"])


async def test_the_model_recalls_where_an_item_declares_the_tools(tmp_path: Path) -> None:
    loop = Loop()
    loop.recalls = True
    group = {"type": "namespace", "name": "functions", "description": "", "tools": [TOOL]}
    declared = {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [group]}
    begin = [
        declared,
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": PROMPT},
    ]
    async with _open(tmp_path, loop) as (on, provider):
        reply, decisions = await _run(on, {"store": False}, begin, by="items")
    assert [request.faults for request in provider.refused] == []
    assert reply.output_text == "Done."
    assert [item.type for item in reply.output] == ["message"]
    assert SECRET in json.dumps(provider.requests[-1].messages[-1])
    offered = [request.messages[0] for request in provider.requests]
    first = decisions.index("compressed")
    assert offered[:first] == [declared] * first
    assert len({json.dumps(item) for item in offered[first:]}) == 1
    names = [tool["name"] for group in offered[-1]["tools"] for tool in group["tools"]]
    assert names == ["look", "recall"]
    assert all("tools" not in request.body for request in provider.requests)
    for before, after in pairwise(provider.requests[first:]):
        if len(after.messages) > len(before.messages):
            assert after.messages[: len(before.messages)] == before.messages


async def test_a_conversation_at_the_provider_passes_unchanged_and_is_one_session(
    tmp_path: Path,
) -> None:
    loop = Loop()
    loop.step = STEPS
    async with _open(tmp_path, loop) as (on, provider):
        provider.stored.histories["conv_1"] = []
        async with openai.AsyncOpenAI(base_url=f"{on.address}/v1", api_key="k") as client:
            threads: list[Any] = ["conv_1", {"id": "conv_1"}, "conv_1"]
            for number, conversation in enumerate(threads):
                raw = await client.responses.with_raw_response.create(
                    model="small", input=question(number), conversation=conversation
                )
                assert raw.headers["x-enfold-warning"] == "history-not-visible"
                assert raw.parse().output_text == "Done."
        await on.proxy.idle()
        assert [request.body["input"] for request in provider.requests] == [
            question(number) for number in range(3)
        ]
        assert len(provider.stored.histories["conv_1"]) == 6
        namespace = await on.namespace("k")
        (record,) = await on.engine.sessions(namespace=namespace)
        session = await on.engine.find(record.id, namespace=namespace)
        assert [row.role for row in await session.history()] == ["user", "assistant"] * 3
        assert sum(each.calls for each in await session.usage()) == 3
