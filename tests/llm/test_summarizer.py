"""Summaries by a model: its prompt, its accepted answers, and their cost."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from enfold.amounts import CallUsage
from enfold.errors import (
    AuthenticationError,
    BadReplyError,
    ContextOverflowError,
    GatewayError,
    RateLimitError,
    RefusedError,
    SummaryError,
    UnavailableError,
)
from enfold.llm.calls import Call, Connection, Delta, Ending, ModelReply, Secret
from enfold.llm.costs import Prices
from enfold.llm.summarizer import ModelSummarizer, cost_of_call
from enfold.messages import Message, Reasoning, Text, ToolCall, text_of
from enfold.modelconfig import ModelConfig
from enfold.summaries import Summarizer, SummaryRequest, Usage
from enfold.summaries.prompts import build
from enfold.testing import ScriptedGateway, assistant, reply, user

CONNECTION = Connection("openai", "gpt-4o-mini", key=Secret("sk-hush"))
CONFIG = ModelConfig("openai:gpt-4o-mini", 100_000, 16_000, correction=1.25)
REQUEST = SummaryRequest((user("Where is the map?"), assistant("In the drawer.")), max_tokens=900)


def writer(gateway: ScriptedGateway, prices: Prices | None = None) -> ModelSummarizer:
    return ModelSummarizer(gateway, CONNECTION, CONFIG, "cheap (openai:gpt-4o-mini)", prices)


async def test_the_model_is_asked_with_the_prompt_and_little_temperature() -> None:
    gateway = ScriptedGateway(" The map is in the drawer.\n")
    port: Summarizer = writer(gateway)
    summary = await port.summarize(REQUEST)
    assert (summary.text, summary.author) == (
        "The map is in the drawer.",
        "cheap (openai:gpt-4o-mini)",
    )
    assert summary.tokens == 7
    (call,) = gateway.calls
    prompt = build(REQUEST)
    assert call.system == prompt.system
    assert [(m.role, text_of(m.parts)) for m in call.messages] == [("user", prompt.user)]
    assert call.temperature == 0.3
    assert gateway.connections == [CONNECTION]


@pytest.mark.parametrize(
    ("wanted", "most", "allowed"),
    [(900, 16_000, 4_096), (4_000, 16_000, 10_000), (9_000, 16_000, 16_000), (4_000, 0, 10_000)],
)
async def test_the_output_limit_leaves_room_for_long_summaries_and_reasoning(
    wanted: int, most: int, allowed: int
) -> None:
    gateway = ScriptedGateway("Fine.")
    config = ModelConfig(CONFIG.id, 100_000, most, correction=1.25)
    request = SummaryRequest(REQUEST.messages, max_tokens=wanted)
    await ModelSummarizer(gateway, CONNECTION, config, "w").summarize(request)
    assert gateway.calls[0].max_tokens == allowed


def test_the_input_limit_follows_the_correction_of_the_model() -> None:
    assert writer(ScriptedGateway()).max_input == 80_000


def _answer(*parts: Text | Reasoning | ToolCall, ending: Ending = "stop") -> ModelReply:
    return ModelReply(Message("assistant", parts), CallUsage(), ending, "gpt-4o-mini")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (_answer(), "was empty"),
        (_answer(Text(" \n\t")), "was empty"),
        (_answer(Reasoning("Let me think")), "was empty"),
        (_answer(Text("<think>Let me see.</think>")), "was empty"),
        (_answer(Text("<think>Let me see")), "still thinking"),
        (_answer(Text("The map is in the"), ending="length"), "cut off"),
        (_answer(ToolCall("1", "search", {}), ending="tool_call"), "called a tool"),
    ],
    ids=str,
)
async def test_unusable_answers_are_refused(answer: ModelReply, words: str) -> None:
    with pytest.raises(SummaryError, match=rf"cheap \(openai:gpt-4o-mini\): .*{words}"):
        await writer(ScriptedGateway(answer)).summarize(REQUEST)


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        ("<think>Drawer?</think>\n\nIn the drawer.", "In the drawer."),
        ("Sorrel grows there.", "Sorrel grows there."),
        ("I'm sorry, said the user; the map was in the drawer.", None),
    ],
    ids=["thinking", "a word that looks like one", "a text that begins like a refusal"],
)
async def test_answers_that_only_resemble_a_refusal_are_accepted(
    answer: str, taken: str | None
) -> None:
    summary = await writer(ScriptedGateway(answer)).summarize(REQUEST)
    assert summary.text == (taken or answer.strip())


@pytest.mark.parametrize(
    "error",
    [
        AuthenticationError("it does not accept the key; check it"),
        RateLimitError("too many; wait"),
        ContextOverflowError("too long; use another"),
        UnavailableError("down; try again"),
        RefusedError("filtered; use another"),
        BadReplyError("no JSON; try again"),
        GatewayError("not there; check its name"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_error_of_the_gateway_keeps_its_words_and_its_cause(error: GatewayError) -> None:
    with pytest.raises(SummaryError) as caught:
        await writer(ScriptedGateway(error)).summarize(REQUEST)
    assert str(caught.value) == f"cheap (openai:gpt-4o-mini): {error}"
    assert caught.value.__cause__ is error


async def test_usage_and_cost_are_those_of_the_call() -> None:
    async def cached(connection: Connection, call: Call) -> ModelReply:
        made = reply("In the drawer.", connection, call)
        return ModelReply(made.message, CallUsage(1_000, 100, 600, 200), made.ending, made.model)

    prices = Prices(input=1, output=10, cache_writes=2, cache_reads=0.1)
    summary = await writer(ScriptedGateway(cached), prices).summarize(REQUEST)
    assert summary.usage == Usage(1_000, 100, 600, 200)
    expected = (200 * 1 + 100 * 10 + 200 * 2 + 600 * 0.1) / 1e6
    assert summary.cost == pytest.approx(expected)


def test_unknown_is_not_zero() -> None:
    assert cost_of_call(CallUsage(), Prices(1, 1)) is None
    assert cost_of_call(CallUsage(10, None), Prices(1, 1)) is None
    assert cost_of_call(CallUsage(10, 10), None) is None
    assert cost_of_call(CallUsage(10, 10), Prices(1, 1)) == pytest.approx(20 / 1e6)


async def test_an_answer_that_never_ends_is_none() -> None:
    class Unfinished(ScriptedGateway):
        async def stream(
            self, connection: Connection, call: Call
        ) -> AsyncGenerator[Delta | ModelReply, None]:
            self.connections.append(connection)
            self.calls.append(call)
            yield Delta("Once")

    with pytest.raises(SummaryError, match="without completing it"):
        await writer(Unfinished()).summarize(REQUEST)
