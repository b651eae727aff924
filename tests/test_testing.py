"""The fakes that others test with."""

import pytest

from enfold.errors import SummaryError
from enfold.messages import Reasoning, Text, ToolCall
from enfold.summaries import SummaryRequest
from enfold.testing import ScriptedSummarizer, assistant, call, result, system, user

REQUEST = SummaryRequest((user("a"),))


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
