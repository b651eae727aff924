"""The history processor for Pydantic AI, in its own agents with a scripted model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

import enfold
from enfold.adapters.pydantic_ai import HistoryProcessor, translate
from enfold.engine.stateless import Condensed
from enfold.errors import ConfigError, SummaryError
from enfold.messages import Attachment, Message, Text, ToolResult, text_of
from enfold.summaries import HEADING
from enfold.testing import ScriptedSummarizer
from tests.conftest import ROOT

WINDOW = 4_000
LONG = "the tide turns at noon and the ropes hold well " * 12


def user_request(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def answered(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def talk(turns: int) -> list[ModelMessage]:
    """Return a number of questions and answers, and a last question."""
    messages: list[ModelMessage] = []
    for turn in range(turns):
        messages += [user_request(f"Question {turn}: {LONG}"), answered(f"Answer {turn}: {LONG}")]
    return [*messages, user_request("And now?")]


def text_in(messages: Sequence[ModelMessage]) -> str:
    translated = [entry.message for entry in translate(messages) if entry.message is not None]
    return "\n".join(text_of(message.parts) for message in translated)


def tokens(messages: Sequence[ModelMessage]) -> int:
    return enfold.count([entry.message for entry in translate(messages) if entry.message])


def unpaired(messages: Sequence[ModelMessage]) -> set[str]:
    """Calls without a return, and returns without a call before them."""
    waiting: set[str] = set()
    wrong: set[str] = set()
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                waiting.add(part.tool_call_id)
            elif isinstance(part, ToolReturnPart):
                wrong |= {part.tool_call_id} - waiting
                waiting.discard(part.tool_call_id)
    return waiting | wrong


class ToolCallingAgentModel:
    """Calls the tool twice at once on every turn, then answers; remembers what it was sent."""

    def __init__(self) -> None:
        self.sent: list[list[ModelMessage]] = []

    def __call__(self, messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        self.sent.append(list(messages))
        if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
            return answered(f"Answer: {LONG}")
        return ModelResponse(
            parts=[
                ToolCallPart("tide", {"port": port}, tool_call_id=f"{len(self.sent)}{port}")
                for port in ("East", "West")
            ]
        )


def tide(port: str) -> str:
    """The tide of a port."""
    return f"{port}: {LONG}"


async def run(agent: Agent[None, str], turns: int) -> list[ModelMessage]:
    history: list[ModelMessage] = []
    for turn in range(turns):
        result = await agent.run(f"Question {turn}?", message_history=history)
        history = result.all_messages()
    return history


async def test_a_very_long_prompt_is_reduced_to_its_rules() -> None:
    log = " ".join(f"line {number} of the log" for number in range(1_000))
    picture = ImageUrl("https://example.com/quay.png")
    long = ModelRequest(parts=[UserPromptPart([f"Always answer in French.\n{log}", picture])])
    done: list[Condensed] = []
    history = HistoryProcessor(WINDOW, on_condensed=done.append)
    given_ = [user_request("Hello."), answered("Yes."), long, answered("Oui."), *talk(6)]
    sent = await history(given_)
    assert tokens(sent) <= done[0].report.tokens_after < WINDOW
    (prompt,) = (
        part.content
        for message in sent
        for part in message.parts
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str)
    )
    assert prompt[1:] == [picture]
    assert str(prompt[0]).startswith("Always answer in French.")
    assert "line 500" not in text_in(sent)
    again = [*given_, answered("Now."), user_request("And then?")]
    assert (await history(again))[: len(sent)] == sent


async def test_messages_that_fit_are_sent_unchanged() -> None:
    messages = talk(2)
    given_ = await HistoryProcessor(WINDOW)(messages)
    assert all(after is before for after, before in zip(given_, messages, strict=True))


async def test_kept_messages_are_the_same_objects_around_one_summary() -> None:
    messages = talk(20)
    given_ = await HistoryProcessor(WINDOW)(messages)
    assert tokens(given_) < WINDOW < tokens(messages)
    (summary,) = [each for each in given_ if not any(each is before for before in messages)]
    assert text_in([summary]).startswith(HEADING)
    assert isinstance(summary.parts[0], UserPromptPart)
    assert given_[0] is messages[0]
    assert given_[-1] is messages[-1]


async def test_an_agent_goes_on_past_the_window_and_its_history_stays_whole() -> None:
    speaker = ToolCallingAgentModel()
    history = HistoryProcessor(WINDOW)
    agent = Agent(
        FunctionModel(speaker),
        tools=[tide],
        system_prompt="You are a pilot.",
        instructions="Be brief.",
        capabilities=[history.capability()],
    )
    messages = await run(agent, 10)
    assert len(messages) == 40
    questions = [
        part.content for each in messages for part in each.parts if isinstance(part, UserPromptPart)
    ]
    assert questions == [f"Question {turn}?" for turn in range(10)]
    assert any(HEADING in text_in(sent) for sent in speaker.sent)
    for sent in speaker.sent:
        assert not unpaired(sent)
        assert tokens(sent) < WINDOW
        assert "You are a pilot." in text_in(sent)
        assert isinstance(sent[-1], ModelRequest)


async def test_pydantic_ais_own_capability_takes_it_too() -> None:
    speaker = ToolCallingAgentModel()
    agent = Agent(
        FunctionModel(speaker),
        tools=[tide],
        system_prompt="You are a pilot.",
        capabilities=[ProcessHistory(HistoryProcessor(WINDOW))],
    )
    messages = await run(agent, 12)
    assert len(messages) < 48
    assert text_in(messages).count(HEADING) == 1
    for sent in speaker.sent:
        assert not unpaired(sent)
        assert tokens(sent) < WINDOW
        assert "You are a pilot." in text_in(sent)


async def test_a_beginning_that_was_summarized_stays_so() -> None:
    summarizer = ScriptedSummarizer("One.", "Two.", "Three.")
    history = HistoryProcessor(WINDOW, summarizer=summarizer)
    messages = talk(20)
    before = await history(messages)
    for turn in range(3):
        messages = [*messages, answered(f"Then {turn}."), user_request(f"And then {turn}?")]
        after = await history(messages)
        assert all(a is b for a, b in zip(before, after[: len(before)], strict=True))
        before = after
    assert len(summarizer.requests) == 1
    again = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages))
    assert await history(again) == after
    assert len(summarizer.requests) == 1


async def test_a_longer_conversation_is_summarized_again_with_what_was_summarized() -> None:
    summarizer = ScriptedSummarizer("The anchor weighs nine stone.", "Two ropes.")
    history = HistoryProcessor(WINDOW, summarizer=summarizer)
    messages = talk(20)
    await history(messages)
    messages = [*messages, *talk(20)[1:]]
    given_ = await history(messages)
    assert "Two ropes." in text_in(given_)
    assert "anchor" not in text_in(given_)
    assert "anchor" in str(summarizer.requests[1])
    assert text_in(given_).count(HEADING) == 1
    assert await history(messages) == given_
    assert len(summarizer.requests) == 2


async def test_conversations_do_not_share_a_fold() -> None:
    history = HistoryProcessor(WINDOW, summarizer=ScriptedSummarizer("One.", "Two."))
    one, other = talk(20), talk(20)
    other[2] = user_request(f"Another question: {LONG}")
    assert "One." in text_in(await history(one))
    assert "Two." in text_in(await history(other))
    assert "One." in text_in(await history(one))


async def test_a_long_run_of_tools_keeps_what_the_user_asked() -> None:
    messages: list[ModelMessage] = [user_request("How are the tides?")]
    for n in range(40):
        call = ToolCallPart("tide", {"port": str(n)}, tool_call_id=str(n))
        back = ToolReturnPart("tide", f"{n}: {LONG}", tool_call_id=str(n))
        messages += [ModelResponse(parts=[call]), ModelRequest(parts=[back])]
    given_ = await HistoryProcessor(WINDOW)(messages)
    assert len(given_) < len(messages)
    assert given_[0] is messages[0]
    assert given_[-1] is messages[-1]
    assert not unpaired(given_)


async def test_the_first_request_keeps_its_prompts_and_what_steers() -> None:
    prompt, delta = (
        SystemPromptPart("You are a pilot."),
        ToolAvailabilityDeltaPart(tools_added=["tide"]),
    )
    first = ModelRequest(parts=[prompt, UserPromptPart(f"First: {LONG}"), delta])
    messages = [first, *talk(20)]
    given_ = await HistoryProcessor(WINDOW)(messages)
    parts = [part for message in given_ for part in message.parts]
    assert parts[0] is prompt
    assert any(part is delta for part in parts)
    assert len(given_) < len(messages)
    assert first.parts == [prompt, first.parts[1], delta]


@pytest.mark.parametrize("kind", ["instructions", "tools"])
async def test_instructions_and_tools_count_too(kind: str) -> None:
    sent: list[int] = []
    messages = talk(10)

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        sent.append(len(messages))
        return answered("Yes.")

    def wordy(port: str) -> str:
        return port

    wordy.__doc__ = LONG * 12
    more: dict[str, Any] = (
        {"instructions": LONG * 12} if kind == "instructions" else {"tools": [wordy]}
    )
    for options in ({}, more):
        capability = HistoryProcessor(WINDOW).capability()
        agent = Agent(FunctionModel(answer), capabilities=[capability], **options)
        await agent.run(message_history=messages)
    assert sent[0] == len(messages)
    assert sent[1] < len(messages)


async def test_the_callback_receives_the_condensed_result() -> None:
    reports: list[Condensed] = []
    messages = talk(20)
    await HistoryProcessor(WINDOW, on_condensed=reports.append)(messages)
    (done,) = reports
    assert done.report.tokens_after < done.report.tokens_before
    restored = enfold.restore(done.messages, done.ledger)
    assert len(restored["messages"]) == len(messages)


async def test_keep_tokens_says_how_much_stays() -> None:
    messages = talk(20)
    little = await HistoryProcessor(WINDOW, keep_tokens=0)(messages)
    much = await HistoryProcessor(WINDOW, keep_tokens=1_500)(messages)
    assert len(little) < len(much)


async def test_a_failed_summarizer_is_reported_and_nothing_is_remembered() -> None:
    summarizer = ScriptedSummarizer(SummaryError("no model answers"), "One.")
    history = HistoryProcessor(WINDOW, summarizer=summarizer)
    messages = talk(20)
    with pytest.raises(SummaryError, match="no model answers"):
        await history(messages)
    assert "One." in text_in(await history(messages))


async def test_messages_that_cannot_shrink_are_sent_unchanged() -> None:
    messages: list[ModelMessage] = [user_request(LONG * 20)]
    assert await HistoryProcessor(WINDOW)(messages) == messages


def test_a_window_without_room_is_refused() -> None:
    with pytest.raises(ConfigError, match="window is 0"):
        HistoryProcessor(0)


def test_parts_are_read_for_what_they_say() -> None:
    picture = BinaryContent(b"\x89PNG", media_type="image/png")
    url = ImageUrl("https://example.org/a.png")
    feedback = RetryFeedbackPart("no output", retry=RetryInfo(cause="model_retry"))
    messages: list[ModelMessage] = [
        ModelRequest(
            parts=[
                SystemPromptPart("Be brief."),
                UserPromptPart(["Look", picture, url, CachePoint()]),
            ]
        ),
        ModelResponse(parts=[ThinkingPart("Hm"), ToolCallPart("tide", '{"a": 1}', "c1")]),
        ModelRequest(
            parts=[ToolReturnPart("tide", {"height": 3}, "c1", outcome="failed"), feedback]
        ),
        answered("Bye."),
    ]
    entries = translate(messages)
    assert [each.owner for each in entries] == [0, 0, 1, 2, 2, 3]
    translated = [each.message for each in entries if each.message is not None]
    assert [each.id for each in translated] == ["0", "1", "2", "3", "4", "5"]
    assert [each.role for each in translated] == [
        "system",
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]
    assert translated[1].parts == (
        Text("Look"),
        Attachment(mime="image/png", size=4),
        Attachment(mime="image/png", url="https://example.org/a.png"),
    )
    (result,) = translated[3].parts
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.name, result.is_error) == ("c1", "tide", True)
    assert "height" in text_of(translated[3].parts)


@given(st.lists(st.sampled_from(["ask", "answer", "call", "steer"]), max_size=60))
async def test_nothing_is_orphaned_and_nothing_kept_is_copied(kinds: list[str]) -> None:
    messages: list[ModelMessage] = []
    for n, kind in enumerate(kinds):
        if kind == "ask":
            messages.append(user_request(f"{n} {LONG}"))
        elif kind == "answer":
            messages.append(answered(f"{n} {LONG}"))
        elif kind == "steer":
            messages.append(ModelRequest(parts=[ToolAvailabilityDeltaPart(tools_added=[str(n)])]))
        else:
            call = ToolCallPart("tide", {}, tool_call_id=str(n))
            back = ToolReturnPart("tide", LONG, tool_call_id=str(n))
            after = UserPromptPart(f"{n} {LONG}")
            messages += [ModelResponse(parts=[call]), ModelRequest(parts=[back, after])]
    messages.append(user_request("And now?"))
    given_ = await HistoryProcessor(2_000)(messages)
    assert not unpaired(given_)
    assert given_[-1] is messages[-1]
    part_ids = {id(part) for message in messages for part in message.parts}
    new = [part for message in given_ for part in message.parts if id(part) not in part_ids]
    assert len(new) <= 1
    steering = [each for each in messages if isinstance(each.parts[0], ToolAvailabilityDeltaPart)]
    assert all(any(each is kept for kept in given_) for each in steering)


def test_the_last_message_is_one_whatever_it_holds() -> None:
    back, after = ToolReturnPart("tide", "high", "c1"), UserPromptPart("And now?")
    (entry,) = translate([ModelRequest(parts=[back, after])])
    assert entry.parts == (0, 1)
    assert isinstance(entry.message, Message)
    assert entry.message.role == "user"


def test_the_error_names_the_missing_extra() -> None:
    program = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "from enfold.adapters.pydantic_ai import HistoryProcessor\n"
        "from enfold.errors import ConfigError\n"
        "try:\n    HistoryProcessor(1000).capability()\n"
        "except ConfigError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "enfold[pydantic-ai]" in done.stdout
