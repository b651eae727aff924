"""The chat on a terminal, typed as a person would type it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from enfold.chat.controller import ChatController
from enfold.cli.chat import run_terminal
from enfold.cli.chat.terminal import (
    ActivityLine,
    ChatApp,
    Notice,
    PromptInput,
    ReplyView,
    TokenBar,
    UserMessage,
)
from enfold.engine.turns import is_interrupted
from enfold.errors import ConfigError, SummaryError, UnavailableError
from enfold.llm.calls import Call, Connection
from enfold.summaries import SummaryRequest
from enfold.testing import ScriptedGateway
from tests.chat.setup import LARGE, ChatSetup, fill, stored_texts
from tests.gateways import Halting

Hand: TypeAlias = Pilot[None]


@asynccontextmanager
async def shown(
    chat: ChatController, width: int = 100, *, light: bool = False
) -> AsyncIterator[Hand]:
    """The chat on a screen."""
    app = ChatApp(chat, light=light)
    async with app.run_test(size=(width, 40)) as hand:
        await hand.pause()
        yield hand
    await app.settled()


async def send(hand: Hand, text: str) -> None:
    """Type a line and send it."""
    keys = {" ": "space", "/": "slash", "?": "question_mark", ".": "full_stop", ":": "colon"}
    await hand.press(*(keys.get(sign, sign) for sign in text), "enter")


async def until(hand: Hand, holds: Callable[[], bool]) -> None:
    """Wait until the screen has come so far."""
    for _ in range(500):
        await hand.pause(0.01)
        if holds():
            return
    pytest.fail(f"it never came to that; the screen says: {screen(hand)}")


async def done(hand: Hand) -> None:
    """Wait until nothing runs any more."""
    app = hand.app
    assert isinstance(app, ChatApp)
    await hand.pause()
    await app.settled()
    await until(hand, lambda: not app.query_one(ActivityLine).what)


def screen(hand: Hand) -> list[str]:
    """Return the lines of the log, from top to bottom."""
    kinds = (UserMessage, Notice, ReplyView)
    log = hand.app.query_one("#log")
    return [
        each.source if isinstance(each, ReplyView) else str(each.content)
        for each in log.children
        if isinstance(each, kinds) and isinstance(each, Static | ReplyView)
    ]


def left(hand: Hand) -> bool:
    return not hand.app.is_running


def level(hand: Hand) -> str:
    meter = hand.app.query_one(TokenBar).meter
    assert meter is not None
    return meter.level


def prompt(hand: Hand) -> PromptInput:
    return hand.app.query_one(PromptInput)


async def test_a_question_is_answered_on_the_screen_and_in_the_session(
    chat_setup: ChatSetup,
) -> None:
    chat_setup.answer_with(ScriptedGateway("It is **the tide**."))
    chat = await chat_setup.open_chat()
    async with shown(chat) as hand:
        await send(hand, "Why?")
        await done(hand)
        assert screen(hand) == ["Why?", "It is **the tide**."]
        assert prompt(hand).text == ""
    assert await stored_texts(chat) == [("user", "Why?"), ("assistant", "It is **the tide**.")]


async def test_the_answer_is_seen_while_it_is_written(chat_setup: ChatSetup) -> None:
    chat_setup.answer_with(Halting("It is ", "the ti"))
    chat = await chat_setup.open_chat()
    async with shown(chat) as hand:
        await send(hand, "Why?")
        await until(hand, lambda: screen(hand)[-1:] == ["It is the ti"])
        assert "compatible:small is answering" in str(hand.app.query_one(ActivityLine).content)


async def test_interrupting_stops_the_answer_and_keeps_what_came(chat_setup: ChatSetup) -> None:
    chat_setup.answer_with(Halting("It is ", "the ti"))
    chat = await chat_setup.open_chat()
    async with shown(chat) as hand:
        await send(hand, "Why?")
        await until(hand, lambda: screen(hand)[-1:] == ["It is the ti"])
        await hand.press("ctrl+c")
        await done(hand)
        assert not left(hand)
        assert "interrupted" in str(hand.app.query_one(ReplyView).border_subtitle)
        await hand.press("ctrl+c")
        await hand.pause()
        assert left(hand)
    assert await stored_texts(chat) == [("user", "Why?"), ("assistant", "It is the ti")]
    assert is_interrupted((await chat.session.messages())[-1])


async def test_interrupting_twice_leaves_and_still_keeps_what_came(chat_setup: ChatSetup) -> None:
    chat_setup.answer_with(Halting("It is ", "the ti"))
    chat = await chat_setup.open_chat()
    async with shown(chat) as hand:
        await send(hand, "Why?")
        await until(hand, lambda: screen(hand)[-1:] == ["It is the ti"])
        await hand.press("ctrl+c", "ctrl+c")
        await hand.pause()
        assert left(hand)
    assert await stored_texts(chat) == [("user", "Why?"), ("assistant", "It is the ti")]


async def test_leaving_in_the_middle_of_an_answer_keeps_what_came(chat_setup: ChatSetup) -> None:
    chat_setup.answer_with(Halting("It is "))
    chat = await chat_setup.open_chat()
    async with shown(chat) as hand:
        await send(hand, "Why?")
        await until(hand, lambda: screen(hand)[-1:] == ["It is "])
        await hand.press("ctrl+q")
    assert await stored_texts(chat) == [("user", "Why?"), ("assistant", "It is ")]


async def test_a_model_that_fails_leaves_the_question_and_a_way_on(chat_setup: ChatSetup) -> None:
    chat_setup.answer_with(
        ScriptedGateway(UnavailableError("compatible:small is out of reach"), "The tide.")
    )
    chat = await chat_setup.open_chat()
    async with shown(chat) as hand:
        await send(hand, "Why?")
        await done(hand)
        assert "out of reach" in screen(hand)[-1]
        assert "/retry" in screen(hand)[-1]
        await send(hand, "/retry")
        await done(hand)
        assert screen(hand)[-1] == "The tide."
    assert await stored_texts(chat) == [("user", "Why?"), ("assistant", "The tide.")]


async def test_half_an_answer_of_a_failing_model_is_shown_as_not_kept(
    chat_setup: ChatSetup,
) -> None:
    chat_setup.answer_with(Halting("It is", error=UnavailableError("the line is down")))
    chat = await chat_setup.open_chat()
    async with shown(chat) as hand:
        await send(hand, "Why?")
        await done(hand)
        assert "not stored" in str(hand.app.query_one(ReplyView).border_subtitle)
        assert "the line is down" in screen(hand)[-1]
    assert await stored_texts(chat) == [("user", "Why?")]


async def test_a_compression_is_shown_with_its_scope_and_its_result(chat_setup: ChatSetup) -> None:
    go_on = asyncio.Event()

    async def slow(_: SummaryRequest) -> str:
        await go_on.wait()
        return "They agreed."

    chat_setup.summarizer.script(slow)
    chat = await chat_setup.open_chat()
    await fill(chat, 40)
    async with shown(chat) as hand:
        await send(hand, "/summarize")
        working = hand.app.query_one(ActivityLine)
        await until(hand, lambda: "Summarizing" in working.what)
        assert "messages" in working.what
        assert "tokens" in working.what
        go_on.set()
        await done(hand)
        assert "→" in screen(hand)[-1]
        assert "no cost" in screen(hand)[-1]
        assert "/undo" in screen(hand)[-1]


async def test_a_compression_before_an_answer_is_shown(chat_setup: ChatSetup) -> None:
    chat = await chat_setup.open_chat()
    await fill(chat, 40)
    async with shown(chat) as hand:
        await send(hand, "And?")
        await done(hand)
        question, summarized, answer = screen(hand)[-3:]
        assert (question, answer) == ("And?", "An answer.")
        assert summarized.startswith("Summarized")


async def test_a_failed_compression_keeps_the_message_and_shows_the_ways_on(
    chat_setup: ChatSetup,
) -> None:
    chat_setup.summarizer.script(SummaryError("the summarizer is away"))
    chat = await chat_setup.open_chat()
    await fill(chat, 40)
    before = await stored_texts(chat)
    async with shown(chat) as hand:
        await send(hand, "And?")
        await done(hand)
        assert "the summarizer is away" in screen(hand)[-1]
        assert "/retry" in screen(hand)[-1]
        assert "/acknowledge" in screen(hand)[-1]
        assert hand.app.query_one(ActivityLine).what == ""
        assert prompt(hand).text == ""
        assert await stored_texts(chat) == [*before, ("user", "And?")]
        await send(hand, "/acknowledge")
        await done(hand)
        assert any("Acknowledged" in line for line in screen(hand))
        assert screen(hand)[-1] == "An answer."
        assert (await stored_texts(chat))[-2:] == [("user", "And?"), ("assistant", "An answer.")]


async def test_a_summary_in_parts_shows_them_and_goes_on_after_a_failure(
    chat_setup: ChatSetup,
) -> None:
    go_on = asyncio.Event()

    async def slow(_: SummaryRequest) -> str:
        await go_on.wait()
        return "They agreed on more."

    summarizer = chat_setup.summarizer
    summarizer.max_input = 3_000
    summarizer.script("They met.", SummaryError("away"), slow)
    chat = await chat_setup.open_chat()
    await fill(chat, 40)
    async with shown(chat) as hand:
        await send(hand, "And?")
        await done(hand)
        assert "away" in screen(hand)[-1]
        await send(hand, "/retry")
        working = hand.app.query_one(ActivityLine)
        await until(hand, lambda: "part 2 of" in working.what)
        go_on.set()
        await done(hand)
        assert screen(hand)[-1] == "An answer."
    previous = [request.previous for request in summarizer.requests]
    assert previous[:3] == [None, "They met.", "They met."]  # the first part is written once
    assert None not in previous[1:]


async def test_a_blocked_session_says_so_when_it_is_opened(chat_setup: ChatSetup) -> None:
    chat_setup.summarizer.script(SummaryError("the summarizer is away"))
    chat = await chat_setup.open_chat()
    await fill(chat, 40)
    async with shown(chat) as hand:
        await send(hand, "And?")
        await done(hand)
    chat_setup.summarizer.script("They agreed.")
    async with shown(chat) as hand:
        assert "blocked" in screen(hand)[-1]
        assert "And?" in screen(hand)
        await send(hand, "/retry")
        await done(hand)
        assert screen(hand)[-2].startswith("Summarized")
        assert screen(hand)[-1] == "An answer."


async def test_earlier_messages_are_shown_and_older_ones_counted(chat_setup: ChatSetup) -> None:
    chat = await chat_setup.open_chat()
    await fill(chat, 20)
    async with shown(chat) as hand:
        assert screen(hand)[0].startswith("10 earlier messages")
        assert screen(hand)[-1].startswith("Answer 19")


async def test_a_question_without_an_answer_is_pointed_out(chat_setup: ChatSetup) -> None:
    chat = await chat_setup.open_chat()
    await chat.session.append("Why?")
    async with shown(chat) as hand:
        assert "/retry" in screen(hand)[-1]


async def test_without_a_model_one_can_look_search_and_fold(chat_setup: ChatSetup) -> None:
    chat = await chat_setup.open_chat(answered=False)
    await fill(chat, 40)
    async with shown(chat) as hand:
        assert "enfold profiles add" in screen(hand)[-1]
        await send(hand, "/search alpha")
        await done(hand)
        assert "messages found" in screen(hand)[-1]
        await send(hand, "/summarize")
        await done(hand)
        assert screen(hand)[-1].startswith("Summarized")
        await send(hand, "Why?")
        await done(hand)
        assert "enfold profiles add" in screen(hand)[-1]
        assert (await stored_texts(chat))[-1] == ("user", "Why?")


async def test_the_token_bar_follows_and_changes_its_level(chat_setup: ChatSetup) -> None:
    chat = await chat_setup.open_chat()
    async with shown(chat) as hand:
        bar = hand.app.query_one(TokenBar)
        assert bar.meter is not None
        assert bar.meter.used == 0
        await fill(chat, 29)
        await send(hand, "/context")
        await done(hand)
        assert level(hand) == "warm"
        await send(hand, "/summarize")
        await done(hand)
        assert level(hand) == "calm"
        assert bar.meter.summary > 0
        await send(hand, "/undo")
        await done(hand)
        assert bar.meter.summary == 0


async def test_another_model_can_take_over(chat_setup: ChatSetup) -> None:
    chat = await chat_setup.open_chat()
    async with shown(chat) as hand:
        await send(hand, f"/model {LARGE}")
        await done(hand)
        assert "compatible:large" in screen(hand)[-1]
        assert "harbour · compatible:large · large" in str(
            hand.app.query_one("#title", Static).content
        )
        assert (await chat.status()).model == LARGE


async def test_commands_complete_themselves(chat_setup: ChatSetup) -> None:
    async with shown(await chat_setup.open_chat()) as hand:
        await hand.press("slash", "s", "u")
        assert prompt(hand).suggestion == "mmarize"
        await hand.press("tab")
        assert prompt(hand).text == "/summarize "


async def test_an_unknown_command_names_the_nearest(chat_setup: ChatSetup) -> None:
    async with shown(await chat_setup.open_chat()) as hand:
        await send(hand, "/sumarize")
        await done(hand)
        assert "did you mean /summarize?" in screen(hand)[-1]


async def test_a_text_may_have_lines_and_comes_back_with_up(chat_setup: ChatSetup) -> None:
    chat = await chat_setup.open_chat()
    async with shown(chat) as hand:
        await hand.press("o", "n", "e", "ctrl+j", "t", "w", "o", "enter")
        await done(hand)
        assert (await stored_texts(chat))[0] == ("user", "one\ntwo")
        await hand.press("up")
        assert prompt(hand).text == "one\ntwo"
        await hand.press("down")
        assert prompt(hand).text == ""


async def test_a_message_that_is_sent_meanwhile_waits_and_commands_can_be_typed(
    chat_setup: ChatSetup,
) -> None:
    go_on = asyncio.Event()

    async def fail(_connection: Connection, _call: Call) -> str:
        await go_on.wait()
        raise UnavailableError("the line is down")

    chat_setup.answer_with(ScriptedGateway(fail, "Ada.", "Per."))
    chat = await chat_setup.open_chat()
    async with shown(chat) as hand:
        await send(hand, "Why?")
        await send(hand, "And the boat?")
        await until(hand, lambda: "And the boat?" in screen(hand))
        assert prompt(hand).text == ""
        go_on.set()
        await done(hand)
        assert "the line is down" in screen(hand)[-1]
        assert [text for _, text in await stored_texts(chat)] == ["Why?"]
        await send(hand, "/context")
        await done(hand)
        assert "tokens" in screen(hand)[-1]
        await send(hand, "/retry")
        await until(hand, lambda: screen(hand)[-2:] == ["And the boat?", "Per."])
        await done(hand)
        assert not hand.app.query(".waiting")
    texts = [text for _, text in await stored_texts(chat)]
    assert texts == ["Why?", "Ada.", "And the boat?", "Per."]


async def test_after_an_interrupted_answer_the_message_that_waits_is_sent(
    chat_setup: ChatSetup,
) -> None:
    chat_setup.answer_with(Halting("It is"))
    chat = await chat_setup.open_chat()
    async with shown(chat) as hand:
        await send(hand, "Why?")
        await until(hand, lambda: "It is" in screen(hand))
        await send(hand, "And the boat?")
        chat_setup.answer_with(ScriptedGateway("Per."))
        await hand.press("ctrl+c")
        await until(hand, lambda: screen(hand)[-2:] == ["And the boat?", "Per."])
        await done(hand)


async def test_a_message_that_waits_is_stored_when_the_chat_ends(chat_setup: ChatSetup) -> None:
    chat_setup.answer_with(Halting("It is"))
    chat = await chat_setup.open_chat()
    async with shown(chat) as hand:
        await send(hand, "Why?")
        await until(hand, lambda: "It is" in screen(hand))
        await send(hand, "And the boat?")
        await until(hand, lambda: screen(hand)[-1:] == ["And the boat?"])
        app = hand.app
        app.exit()
        await until(hand, lambda: left(hand))
    assert isinstance(app, ChatApp)
    await app.store_waiting()
    assert (await stored_texts(chat))[-1] == ("user", "And the boat?")


async def test_without_textual_it_says_what_to_install(
    chat_setup: ChatSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "enfold.cli.chat.terminal")
    monkeypatch.setitem(sys.modules, "textual", None)
    with pytest.raises(ConfigError, match=r"enfold\[chat\]"):
        await run_terminal(await chat_setup.open_chat())


async def test_quit_leaves(chat_setup: ChatSetup) -> None:
    async with shown(await chat_setup.open_chat()) as hand:
        await send(hand, "/quit")
        await hand.pause()
        assert left(hand)


async def test_text_that_would_steer_a_terminal_is_shown(chat_setup: ChatSetup) -> None:
    chat_setup.answer_with(ScriptedGateway("A \x1b[31mred\x1b[0m word [bold]and markup[/bold]."))
    async with shown(await chat_setup.open_chat()) as hand:
        await send(hand, "Why?")
        await done(hand)
        assert screen(hand)[-1] == "A \\x1b[31mred\\x1b[0m word [bold]and markup[/bold]."


@pytest.mark.parametrize("width", [20, 60, 200])
@pytest.mark.parametrize("light", [False, True], ids=["dark", "light"])
async def test_every_width_is_drawn(width: int, light: bool, chat_setup: ChatSetup) -> None:
    chat_setup.answer_with(
        ScriptedGateway("# Title\n\n" + "unbreakable" * 30 + "\n\n```\ncode\n```\n")
    )
    chat = await chat_setup.open_chat()
    async with shown(chat, width, light=light) as hand:
        await send(hand, "Why?")
        await done(hand)
        drawn = hand.app.query_one(TokenBar).render()
        assert max(map(len, drawn.plain.splitlines())) <= width
