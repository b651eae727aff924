"""A chat in a pipe: the answer on standard output, everything else on standard error."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from enfold.cli.chat import answer_piped_text
from enfold.errors import ConfigError, InputError, UnavailableError
from enfold.llm.calls import Call, Connection, ModelReply
from enfold.testing import ScriptedGateway, reply
from tests.chat.setup import ChatSetup, fill, stored_texts
from tests.gateways import Halting

Capture = pytest.CaptureFixture[str]


async def test_the_answer_is_all_of_standard_output(chat_setup: ChatSetup, capsys: Capture) -> None:
    chat_setup.answer_with(ScriptedGateway("It is\nthe tide."))
    chat = await chat_setup.open_chat()
    await answer_piped_text(chat, "Why?\n")
    assert capsys.readouterr() == ("It is\nthe tide.\n", "")
    assert await stored_texts(chat) == [("user", "Why?"), ("assistant", "It is\nthe tide.")]


async def test_a_compression_is_reported_on_standard_error(
    chat_setup: ChatSetup, capsys: Capture
) -> None:
    chat = await chat_setup.open_chat()
    await fill(chat, 40)
    await answer_piped_text(chat, "And?")
    out, err = capsys.readouterr()
    assert out == "An answer.\n"
    assert err.startswith("Summarized ")


async def test_commands_work_too(chat_setup: ChatSetup, capsys: Capture) -> None:
    chat = await chat_setup.open_chat()
    await fill(chat, 3)
    await answer_piped_text(chat, "/search alpha\n")
    assert capsys.readouterr().out.endswith("3 messages found.\n")
    await answer_piped_text(chat, "/quit")
    assert capsys.readouterr() == ("", "")


async def test_retry_answers_what_waits(chat_setup: ChatSetup, capsys: Capture) -> None:
    chat = await chat_setup.open_chat()
    await chat.session.append("Why?")
    await answer_piped_text(chat, "/retry")
    assert capsys.readouterr().out == "An answer.\n"


async def test_a_truncated_answer_is_reported(chat_setup: ChatSetup, capsys: Capture) -> None:
    async def cut(connection: Connection, call: Call) -> ModelReply:
        return reply("It", connection, call, ending="length")

    chat_setup.answer_with(ScriptedGateway(cut))
    await answer_piped_text(await chat_setup.open_chat(), "Why?")
    out, err = capsys.readouterr()
    assert out == "It\n"
    assert "cut off" in err


@pytest.mark.parametrize("text", ["", " \n"])
async def test_an_empty_question_is_refused(text: str, chat_setup: ChatSetup) -> None:
    with pytest.raises(InputError, match="the message is empty"):
        await answer_piped_text(await chat_setup.open_chat(), text)


async def test_failures_are_raised_and_the_question_stays(chat_setup: ChatSetup) -> None:
    chat_setup.answer_with(ScriptedGateway(UnavailableError("out of reach")))
    chat = await chat_setup.open_chat()
    with pytest.raises(UnavailableError):
        await answer_piped_text(chat, "Why?")
    assert await stored_texts(chat) == [("user", "Why?")]


async def test_without_a_model_the_error_says_what_to_do(chat_setup: ChatSetup) -> None:
    chat = await chat_setup.open_chat(answered=False)
    with pytest.raises(ConfigError, match="enfold profiles add"):
        await answer_piped_text(chat, "Why?")
    assert await stored_texts(chat) == [("user", "Why?")]


async def test_an_interrupt_keeps_what_came(chat_setup: ChatSetup, capsys: Capture) -> None:
    gateway = Halting("It is ")
    chat_setup.answer_with(gateway)
    chat = await chat_setup.open_chat()
    before = signal.getsignal(signal.SIGINT)
    turn = asyncio.ensure_future(answer_piped_text(chat, "Why?"))
    out = ""
    while "It is" not in out:
        await asyncio.sleep(0.01)
        out += capsys.readouterr().out
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert gateway.closed
    assert await stored_texts(chat) == [("user", "Why?"), ("assistant", "It is ")]
    assert signal.getsignal(signal.SIGINT) is before
