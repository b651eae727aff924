"""The Python interface: `enfold.count` counts all forms of a conversation alike."""

from __future__ import annotations

from typing import Any

import pytest

import enfold
from enfold import tokens, wire
from enfold.errors import NotFoundError
from enfold.library import Messages
from enfold.summaries import SummaryRequest
from enfold.testing import ScriptedSummarizer
from tests.llm.servers.loopback import Loopback
from tests.llm.servers.openai import COMPATIBLE
from tests.llm.servers.protocol import ScriptedReply

OPENAI: list[dict[str, Any]] = [
    {"role": "user", "content": "What is the weather in Oslo?"},
    {"role": "assistant", "content": "Four degrees, and rain."},
]
GEMINI = {
    "contents": [
        {"role": "user", "parts": [{"text": "What is the weather in Oslo?"}]},
        {"role": "model", "parts": [{"text": "Four degrees, and rain."}]},
    ]
}


def test_a_text_is_counted_as_it_is() -> None:
    assert enfold.count("hello world") == 2
    assert enfold.count("") == 0


@pytest.mark.parametrize("tokenizer", ["o200k_base", "cl100k_base"])
def test_a_conversation_counts_what_its_counter_says(tokenizer: str) -> None:
    conversation = wire.parse(OPENAI)
    expected = tokens.count_conversation(conversation, tokenizer).total
    assert expected > 0
    assert enfold.count(OPENAI, tokenizer) == expected


def test_every_form_of_a_conversation_counts_alike() -> None:
    conversation = wire.parse(OPENAI)
    forms: list[Messages] = [
        OPENAI,
        tuple(OPENAI),
        {"model": "any", "messages": OPENAI},
        GEMINI,
        conversation,
        conversation.messages,
        list(conversation.messages),
    ]
    assert len({enfold.count(form) for form in forms}) == 1


def test_no_messages_are_no_tokens() -> None:
    assert enfold.count([]) == 0


def test_messages_of_two_kinds_are_refused() -> None:
    mixed: list[Any] = [enfold.Message("user", (enfold.Text("hello"),)), OPENAI[1]]
    with pytest.raises(enfold.InputError, match="give one kind"):
        enfold.count(mixed)


def test_an_invalid_conversation_is_refused() -> None:
    with pytest.raises(enfold.InputError):
        enfold.count({"weather": "rain"})


def test_an_unknown_tokenizer_is_refused() -> None:
    with pytest.raises(enfold.ConfigError, match="no tokenizer 'abacus'"):
        enfold.count("hello", "abacus")


async def test_a_profile_or_a_summarizer_writes_not_both() -> None:
    with pytest.raises(enfold.ConfigError, match="one of them writes"):
        await enfold.condense(OPENAI, summarizer=ScriptedSummarizer(), profile="mine")
    with pytest.raises(NotFoundError, match="no profile 'mine'"):
        await enfold.condense(OPENAI, profile="mine")


async def test_models_write_for_a_profile_of_the_database() -> None:
    long = [{"role": "user", "content": f"Part {n}: " + "tea " * 400} for n in range(12)]
    async with Loopback(COMPATIBLE.streamed(ScriptedReply(("They drank tea.",)))) as server:
        fields = {"provider": "compatible", "model": "tiny", "base_url": server.url}
        async with enfold.open() as engine:
            await engine.profiles.save("mine", {**fields, "prompt": "Only tea."})
        done = await enfold.condense(long, profile="mine")
    assert "They drank tea." in done.messages[1]["content"]
    _, prompt = COMPATIBLE.read_request(server.requests[0]).messages[-1]
    assert prompt.startswith("Only tea.")
    assert done.report.cost is None


async def test_an_agents_conversation_is_summarized_in_the_style_for_agents() -> None:
    def turn(number: int) -> list[dict[str, Any]]:
        function = {"name": "bash", "arguments": '{"command": "pytest -q"}'}
        call = {"id": f"c{number}", "type": "function", "function": function}
        output = f"{number} failed, 12 passed in module_{number}.py " + "trace " * 60
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": output},
        ]

    task = {"role": "user", "content": "Repair the failing tests of the billing service."}
    talk = [task, *(message for number in range(12) for message in turn(number))]
    done = await enfold.condense(talk, "native", target=500)
    assert "## State" in str(done.messages)
    plain = await enfold.condense(talk, "native", target=500, config={"style": "default"})
    assert "## State" not in str(plain.messages)


async def test_the_built_in_summarizer_writes_where_a_models_answer_is_no_summary() -> None:
    long = [{"role": "user", "content": f"Part {n}: " + "tea " * 400} for n in range(12)]
    async with Loopback(COMPATIBLE.streamed(ScriptedReply(("no " * 60,)))) as server:
        fields = {"provider": "compatible", "model": "tiny", "base_url": server.url}
        async with enfold.open() as engine:
            await engine.profiles.save("mine", fields)
        done = await enfold.condense(long, profile="mine")
    assert len(done.messages) < len(long)
    (note,) = [each for each in done.report.warnings if "was no summary" in each]
    assert note.endswith("the built-in summarizer wrote it")


def test_a_program_may_change_its_messages_after_they_are_condensed() -> None:
    said = ("Use port 8080 for the proxy. " * 9, "Noted. " * 30, "Go on.", "Done.")
    roles = ("user", "assistant", "user", "assistant")
    messages = [{"role": role, "content": text} for role, text in zip(roles, said, strict=True)]
    before = [dict(message) for message in messages]
    done = enfold.condense_sync(messages, "native", keep_tokens=1)
    assert done.messages != before
    for message in messages:
        message["content"] = "changed"
    assert enfold.restore(done.messages, done.ledger) == before


async def test_a_program_may_change_its_messages_while_they_are_condensed() -> None:
    said = ("Use port 8080 for the proxy. " * 9, "Noted. " * 30, "Go on.", "Done.")
    roles = ("user", "assistant", "user", "assistant")
    messages = [{"role": role, "content": text} for role, text in zip(roles, said, strict=True)]
    before = [dict(message) for message in messages]

    async def change(_request: SummaryRequest) -> str:
        for message in messages:
            message["content"] = "changed"
        return "Use port 8080 for the proxy."

    summarizer = ScriptedSummarizer(change)
    done = await enfold.condense(messages, "native", keep_tokens=1, summarizer=summarizer)
    assert summarizer.requests
    assert enfold.restore(done.messages, done.ledger) == before
