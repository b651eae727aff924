"""A talk in a pipe: the answer on standard output, everything else on standard error."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from enfold.cli.chat import answer_piped_text
from enfold.errors import ConfigError, InputError, UnavailableError
from enfold.llm.calls import Call, Connection, Reply
from enfold.testing import ScriptedGateway, reply
from tests.gateways import Halting
from tests.talk.desk import Desk, fill, said

Capture = pytest.CaptureFixture[str]


async def test_the_answer_is_all_of_standard_output(desk: Desk, capsys: Capture) -> None:
    desk.answer_with(ScriptedGateway("It is\nthe tide."))
    talk = await desk.talk()
    await answer_piped_text(talk, "Why?\n")
    assert capsys.readouterr() == ("It is\nthe tide.\n", "")
    assert await said(talk) == [("user", "Why?"), ("assistant", "It is\nthe tide.")]


async def test_a_compression_on_the_way_is_told_beside_it(desk: Desk, capsys: Capture) -> None:
    talk = await desk.talk()
    await fill(talk, 40)
    await answer_piped_text(talk, "And?")
    out, err = capsys.readouterr()
    assert out == "An answer.\n"
    assert err.startswith("Folded ")


async def test_commands_work_too(desk: Desk, capsys: Capture) -> None:
    talk = await desk.talk()
    await fill(talk, 3)
    await answer_piped_text(talk, "/search alpha\n")
    assert capsys.readouterr().out.endswith("3 messages found.\n")
    await answer_piped_text(talk, "/quit")
    assert capsys.readouterr() == ("", "")


async def test_retry_answers_what_waits(desk: Desk, capsys: Capture) -> None:
    talk = await desk.talk()
    await talk.session.append("Why?")
    await answer_piped_text(talk, "/retry")
    assert capsys.readouterr().out == "An answer.\n"


async def test_an_answer_that_was_cut_off_is_said(desk: Desk, capsys: Capture) -> None:
    async def cut(connection: Connection, call: Call) -> Reply:
        return reply("It", connection, call, ending="length")

    desk.answer_with(ScriptedGateway(cut))
    await answer_piped_text(await desk.talk(), "Why?")
    out, err = capsys.readouterr()
    assert out == "It\n"
    assert "cut off" in err


@pytest.mark.parametrize("text", ["", " \n"])
async def test_nothing_said_is_refused(text: str, desk: Desk) -> None:
    with pytest.raises(InputError, match="nothing was said"):
        await answer_piped_text(await desk.talk(), text)


async def test_failures_are_raised_and_the_question_stays(desk: Desk) -> None:
    desk.answer_with(ScriptedGateway(UnavailableError("out of reach")))
    talk = await desk.talk()
    with pytest.raises(UnavailableError):
        await answer_piped_text(talk, "Why?")
    assert await said(talk) == [("user", "Why?")]


async def test_nobody_to_answer_is_an_error_that_says_what_to_do(desk: Desk) -> None:
    talk = await desk.talk(answered=False)
    with pytest.raises(ConfigError, match="enfold profiles add"):
        await answer_piped_text(talk, "Why?")
    assert await said(talk) == []


async def test_an_interrupt_keeps_what_came(desk: Desk, capsys: Capture) -> None:
    gateway = Halting("It is ")
    desk.answer_with(gateway)
    talk = await desk.talk()
    before = signal.getsignal(signal.SIGINT)
    turn = asyncio.ensure_future(answer_piped_text(talk, "Why?"))
    out = ""
    while "It is" not in out:
        await asyncio.sleep(0.01)
        out += capsys.readouterr().out
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert gateway.closed
    assert await said(talk) == [("user", "Why?"), ("assistant", "It is ")]
    assert signal.getsignal(signal.SIGINT) is before
