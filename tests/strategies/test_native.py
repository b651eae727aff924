"""The native strategy: its requests and its answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import enfold
from enfold import wire as dialects
from enfold.condensation import Condensation, KeptMessage, Plan, SummarizedMessages, validate
from enfold.errors import ConfigError, SummaryError
from enfold.history import last_user_message
from enfold.messages import Conversation, Message, Text, ToolCall, ToolResult
from enfold.retention import Retention, split
from enfold.strategies.contract import Summarizers
from enfold.strategies.native import KIND, Native, NativeConfig
from enfold.summaries import Summary, SummaryRequest, Usage, fence_tokens
from enfold.summaries.request import divide, watch_calls
from enfold.testing import ScriptedSummarizer, assistant, call, result, user
from enfold.tokens import count_messages, get
from tests.histories import histories

LONG = "alpha " * 400
STATEMENTS = (
    "Listen.",
    "Red sails.",
    "A storm.",
    "Two oars.",
    "Old ropes.",
    "New paint.",
    "Night falls.",
)
LENGTHY = "".join(f"long-{n} " for n in range(75))


def plan_for(messages: list[Message], retention: Retention, **values: object) -> Plan:
    counts = tuple(count_messages(messages, "o200k_base"))
    divided = split(messages, counts, retention)
    return Plan(tuple(messages), counts, divided, "o200k_base", **values)  # type: ignore[arg-type]


def native(summarizer: ScriptedSummarizer, **values: Any) -> Native:
    return Native(NativeConfig(**values), Summarizers(summarizer))


CHAT = [user(f"{LONG} {n}") if n % 2 == 0 else assistant(f"{LONG} {n}") for n in range(10)]


async def test_first_summary_and_last_messages_stay_in_that_order() -> None:
    plan = plan_for(CHAT, Retention("messages", 2, keep_first=1))
    answer = await native(ScriptedSummarizer("In short.")).condense(plan)
    validate(plan, answer)
    kinds = [type(entry) for entry in answer.entries]
    assert kinds == [KeptMessage, SummarizedMessages, KeptMessage, KeptMessage]
    assert answer.summary is not None
    assert answer.summary.indexes == tuple(range(1, 8))
    assert answer.steps[0].tokens_after == answer.tokens(plan) < plan.tokens


async def test_the_previous_summary_and_the_recent_messages_are_handed_over() -> None:
    summarizer = ScriptedSummarizer()
    plan = plan_for(CHAT, Retention("messages", 2), previous="Before.", previous_tokens=9)
    await native(summarizer, style="code", prompt="Mine: {conversation_history}").condense(plan)
    (request,) = summarizer.requests
    assert request.previous == "Before."
    assert request.messages == tuple(CHAT[:8])
    assert request.recent == tuple(CHAT[8:])
    assert (request.style, request.prompt) == ("code", "Mine: {conversation_history}")


async def test_more_than_can_be_read_is_summarized_in_sequence() -> None:
    summarizer = ScriptedSummarizer("One.", "Two.", "Three.", max_input=4_000)
    plan = plan_for(CHAT, Retention("messages", 2), summary_tokens=100)
    answer = await native(summarizer).condense(plan)
    assert answer.summary is not None
    requests = summarizer.requests
    assert [request.previous for request in requests] == [None, "One."]
    assert [bool(request.recent) for request in requests] == [False, True]
    assert tuple(m for request in requests for m in request.messages) == tuple(CHAT[:8])


async def test_an_oversized_text_is_read_in_pieces() -> None:
    summarizer = ScriptedSummarizer("So far.", max_input=4_000)
    huge = "".join(f"word{n} " for n in range(6_000))
    plan = plan_for([user(huge), user("and now?")], Retention("messages", 1), summary_tokens=100)
    await native(summarizer).condense(plan)
    read = [
        part.text
        for request in summarizer.requests
        for message in request.messages
        for part in message.parts
        if isinstance(part, Text)
    ]
    assert len(summarizer.requests) > 1
    assert "".join(read) == huge


async def test_tool_calls_are_read_with_their_results() -> None:
    rounds = [m for n in range(6) for m in (assistant(LONG, call(str(n))), result(str(n), LONG))]
    summarizer = ScriptedSummarizer("So far.", max_input=4_000)
    plan = plan_for([user("go"), *rounds, user("and?")], Retention("messages", 1))
    await native(summarizer).condense(plan)
    for request in summarizer.requests:
        parts = [part for message in request.messages for part in message.parts]
        calls = {part.id for part in parts if isinstance(part, ToolCall)}
        assert calls == {part.call_id for part in parts if isinstance(part, ToolResult)}


@pytest.mark.parametrize("reply", ["", "  \n", SummaryError("away")])
async def test_nothing_usable_is_an_error(reply: str | Exception) -> None:
    with pytest.raises(SummaryError):
        await native(ScriptedSummarizer(reply)).condense(plan_for(CHAT, Retention("messages", 2)))


HONEST = "They read src/part_1.py and src/part_2.py; it took 102 ms."
NAMED = [user(f"{LONG} Look at src/part_{n}.py, it takes {n + 100} ms.") for n in range(12)]


async def test_an_invention_is_asked_about_once_and_then_reported() -> None:
    plan = plan_for(NAMED, Retention("messages", 1))
    made_up = "They read src/part_1.py and lib/ghost.py; it took 102 ms."
    corrected = ScriptedSummarizer(made_up, HONEST)
    answer = await native(corrected).condense(plan)
    assert answer.summary is not None
    assert answer.summary.text == HONEST
    assert corrected.requests[1].invented == ("lib/ghost.py",)
    assert corrected.requests[1].draft == made_up
    stubborn = ScriptedSummarizer(made_up)
    answer = await native(stubborn).condense(plan)
    assert len(stubborn.requests) == 2
    assert answer.receipt is not None
    assert answer.receipt.invented == (("path", "lib/ghost.py"),)
    assert answer.receipt.as_json()["invented"] == [{"class": "path", "item": "lib/ghost.py"}]
    assert "Not in the summary's input: lib/ghost.py" in str(answer.receipt)
    assert any("its input does not have" in each for each in answer.warnings)


async def test_a_revision_that_does_not_fit_is_not_requested() -> None:
    plan = plan_for(NAMED, Retention("messages", 1))
    named = " ".join(f"They read src/part_{n}.py; it takes {n + 100} ms." for n in range(12))
    made_up = f"{named} They read lib/ghost.py."
    roomy = ScriptedSummarizer(made_up)
    await native(roomy).condense(plan)
    assert len(roomy.requests) == 2
    first, _ = roomy.requests
    least = next(size for size in range(1_000, 99_000, 20) if len(divide(first, size)) == 1)
    tight = ScriptedSummarizer(made_up, max_input=least)
    await native(tight).condense(plan)
    assert tight.requests == [first]


async def test_a_summary_that_was_read_in_parts_is_not_revised() -> None:
    class Divided(ScriptedSummarizer):
        async def summarize(self, request: SummaryRequest) -> Summary:
            return replace(await super().summarize(request), parts=3)

    writer = Divided("They read src/part_1.py and lib/ghost.py; it took 102 ms.")
    answer = await native(writer).condense(plan_for(NAMED, Retention("messages", 1)))
    assert len(writer.requests) == 1
    assert answer.invented == (("path", "lib/ghost.py"),)


async def test_a_part_by_the_built_in_summarizer_is_not_kept_for_the_model() -> None:
    class Kept:
        parts: ClassVar[list[Summary]] = []

        async def get(self, key: str) -> None:
            assert key

        async def keep(self, key: str, summary: Summary) -> None:
            assert key
            self.parts.append(summary)

    plan = plan_for(NAMED, Retention("messages", 1))
    for answer, authors in (("no " * 40, []), (HONEST, ["scripted"])):
        async with watch_calls(None, None, Kept()):
            await native(ScriptedSummarizer(answer)).condense(plan)
        assert [each.author for each in Kept.parts] == authors


async def test_a_summary_a_little_too_long_is_accepted_or_loses_its_last_sentences() -> None:
    text = " ".join(f"Alpha {n} is a word." for n in range(20))
    tokens = get("o200k_base").count(text)
    plan = plan_for(CHAT, Retention("messages", 2), summary_tokens=int(tokens / 1.3))
    writer = ScriptedSummarizer(text)
    accepted = await native(writer).condense(plan)
    assert accepted.summary is not None
    assert accepted.summary.text == text
    room = accepted.tokens(plan) - accepted.summary.tokens
    fenced = room + fence_tokens("o200k_base", plan.summary_tokens)
    tight = replace(plan, target=fenced + plan.summary_tokens)
    shortened = await native(writer).condense(tight)
    assert shortened.summary is not None
    assert shortened.summary.text.endswith(" is a word.")
    assert shortened.tokens(plan) <= (tight.target or 0)
    assert len(writer.requests) == 2, "no attempt was repeated"
    assert any("its last sentences were left out" in each for each in shortened.warnings)


@given(histories(), st.integers(0, 200), st.integers(0, 2))
async def test_every_message_is_in_the_summary_or_in_the_view(
    messages: list[Message], tokens: int, first: int
) -> None:
    summarizer = ScriptedSummarizer("s")
    plan = plan_for(messages, Retention("tokens", tokens, first))
    if plan.split.is_empty:
        return
    answer: Condensation = await native(summarizer).condense(plan)
    (request,) = summarizer.requests
    kept = [
        plan.messages[entry.index] for entry in answer.entries if isinstance(entry, KeptMessage)
    ]
    assert len(kept) + len(request.messages) == len(messages)
    user_index = last_user_message(messages)
    assert user_index is not None
    assert KeptMessage(user_index) in answer.entries


def test_the_config_sets_the_retention() -> None:
    usual = Retention("messages", 3, keep_first=1, is_default=True)
    assert native(ScriptedSummarizer()).retention == usual
    assert native(ScriptedSummarizer(), keep_first=2, keep_last=5).retention == Retention(
        "messages", 5, keep_first=2
    )
    assert native(ScriptedSummarizer(), fresh_start=True).retention == Retention("messages", 0)


def test_a_prompt_that_cannot_be_used_is_named() -> None:
    with pytest.raises(ConfigError, match="prompt: "):
        KIND.read({"prompt": "{nonsense}"})


class Paid(ScriptedSummarizer):
    async def summarize(self, request: SummaryRequest) -> Summary:
        summary = await super().summarize(request)
        return replace(summary, usage=Usage(), cost=0.25)


@pytest.mark.parametrize("answer", ["ok", "I cannot help with that."])
async def test_a_programs_answer_that_is_no_summary_is_replaced(answer: str) -> None:
    chat = [
        user(f"{each} The anchor of boat {n} weighs nine stone.")
        for n, each in enumerate(STATEMENTS)
    ]
    done = await enfold.condense(chat, summarizer=Paid(answer))
    assert answer not in str(done.messages)
    assert "anchor" in str(done.messages[1])
    assert any("was no summary" in each for each in done.report.warnings)
    assert done.report.cost == 0.25


async def test_calls_in_vain_are_in_the_cost() -> None:
    chat = [user("The anchor weighs nine stone."), assistant("Noted."), user("And the mast?")]
    done = await enfold.condense(chat, summarizer=Paid(LENGTHY), keep_tokens=0)
    assert done.report.tokens_after == done.report.tokens_before
    assert done.report.cost == 0.5


async def test_a_summary_over_its_limit_never_makes_the_view_larger() -> None:
    chat = [
        user(f"The anchor of boat {n} weighs {n} stone, and its mast is high.") for n in range(9)
    ]
    summary = " ".join(f"The anchor of boat {n} weighs {n} stone." for n in range(1, 40))
    done = await enfold.condense(chat, summarizer=ScriptedSummarizer(summary), keep_tokens=0)
    assert done.report.tokens_after < done.report.tokens_before
    assert "anchor" in str(done.messages)


async def test_no_model_is_called_if_nothing_can_be_summarized() -> None:
    summarizer = ScriptedSummarizer()
    plan = plan_for(CHAT, Retention("messages", 99))
    answer = await native(summarizer).condense(plan)
    assert answer.is_unchanged
    assert answer.warnings == ("there is nothing to summarize",)
    assert summarizer.requests == []


async def test_every_attempt_costs() -> None:
    plan = plan_for(CHAT, Retention("messages", 2), summary_tokens=100)
    answer = await native(Paid(LENGTHY * 2, "Short.")).condense(plan)
    assert answer.cost == 0.5


@given(histories())
@settings(max_examples=20)
async def test_condensing_again_changes_nothing(messages: list[Message]) -> None:
    wire = dialects.render(Conversation(tuple(messages)), "openai")
    first = await enfold.condense(wire, summarizer=ScriptedSummarizer("In short."))
    again = await enfold.condense(first.messages, summarizer=ScriptedSummarizer("Shorter."))
    assert again.messages == first.messages


async def test_a_summary_is_summarized_again_where_the_target_asks_for_it() -> None:
    chat = [user(f"{turn} " + "word " * 100) for turn in range(20)]
    wire = dialects.render(Conversation(tuple(chat)), "openai")
    first = await enfold.condense(wire, summarizer=ScriptedSummarizer(LENGTHY))
    assert "long-7 " in str(first.messages)
    again = await enfold.condense(
        first.messages, target=300, summarizer=ScriptedSummarizer("Shorter.")
    )
    assert "Shorter." in str(again.messages)
