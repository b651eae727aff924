"""The fakes that others test with."""

import asyncio
from contextlib import aclosing

import pytest

from enfold.errors import RateLimitError, SummaryError
from enfold.llm.calls import Call, Connection, Delta, Gateway, ModelReply
from enfold.messages import Reasoning, Text, ToolCall
from enfold.summaries import SummaryRequest
from enfold.testing import (
    ScriptedGateway,
    ScriptedSummarizer,
    assistant,
    call,
    reply,
    result,
    system,
    user,
)

REQUEST = SummaryRequest((user("a"),))
CONNECTION = Connection("openai", "gpt-4o")
QUESTION = Call((user("How many?"),), system="Be brief.")


async def test_a_script_is_followed_and_its_last_line_repeated() -> None:
    summarizer = ScriptedSummarizer("one", SummaryError("two"), "three")
    assert (await summarizer.summarize(REQUEST)).text == "one"
    with pytest.raises(SummaryError, match="two"):
        await summarizer.summarize(REQUEST)
    assert [(await summarizer.summarize(REQUEST)).text for _ in range(2)] == ["three", "three"]
    assert summarizer.requests == [REQUEST] * 4


async def test_a_reply_can_take_its_time() -> None:
    async def slow(request: SummaryRequest) -> str:
        return f"{len(request.messages)} message"

    summary = await ScriptedSummarizer(slow, name="slow").summarize(REQUEST)
    assert (summary.text, summary.author, summary.tokens) == ("1 message", "slow", 2)


def test_builders_make_messages() -> None:
    assert [m.role for m in (system("s"), user("u"), assistant("a"), result("1"))] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    parts = assistant("said", call("1", "run", {"a": 1}), thinking="hm").parts
    assert parts == (Reasoning("hm"), Text("said"), ToolCall("1", "run", {"a": 1}))


async def test_a_gateway_follows_its_script_and_repeats_the_last_line() -> None:
    gateway = ScriptedGateway("One.", RateLimitError("slow down"), "Three.")
    port: Gateway = gateway
    first = await port.complete(CONNECTION, QUESTION)
    assert first.message == assistant("One.")
    assert (first.ending, first.model) == ("stop", "gpt-4o")
    with pytest.raises(RateLimitError, match="slow down"):
        await port.complete(CONNECTION, QUESTION)
    again = [await port.complete(CONNECTION, QUESTION) for _ in range(2)]
    assert [each.message for each in again] == [assistant("Three.")] * 2
    assert gateway.calls == [QUESTION] * 4
    assert gateway.connections == [CONNECTION] * 4
    assert not gateway.abandoned


async def test_a_gateway_counts_the_tokens_of_calls_and_replies() -> None:
    usage = (await ScriptedGateway("One two").complete(CONNECTION, QUESTION)).usage
    less = (await ScriptedGateway("One two").complete(CONNECTION, Call(QUESTION.messages))).usage
    assert usage.output_tokens == 2
    assert (usage.input_tokens or 0) > (less.input_tokens or 0) > 0


async def test_a_gateway_can_give_a_whole_reply_in_its_own_time() -> None:
    async def cut_off(connection: Connection, call: Call) -> ModelReply:
        return reply("Once upon", connection, call, ending="length")

    assert (await ScriptedGateway(cut_off).complete(CONNECTION, QUESTION)).ending == "length"


@pytest.mark.parametrize("text", ["", " ", "One", " One  two\n\nthree. "])
async def test_a_stream_says_it_word_by_word_and_then_whole(text: str) -> None:
    gateway = ScriptedGateway(text)
    *deltas, last = [item async for item in gateway.stream(CONNECTION, QUESTION)]
    assert "".join(item.text for item in deltas if isinstance(item, Delta)) == text
    assert isinstance(last, ModelReply)
    assert last.message == assistant(text)
    assert not gateway.abandoned


async def test_calls_that_are_given_up_are_remembered() -> None:
    gateway = ScriptedGateway("One two three")
    async with aclosing(gateway.stream(CONNECTION, QUESTION)) as stream:
        await anext(stream)
    assert gateway.abandoned == [QUESTION]

    called = asyncio.Event()

    async def never(_connection: Connection, _call: Call) -> str:
        called.set()
        await asyncio.Event().wait()
        return ""

    gateway.script(never)
    waiting = asyncio.create_task(gateway.complete(CONNECTION, QUESTION))
    await called.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert gateway.abandoned == [QUESTION] * 2
