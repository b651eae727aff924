"""Slash commands: each does what its help says, whatever the screen."""

from __future__ import annotations

import pytest

from enfold.chat import commands
from enfold.chat.commands import COMMANDS, ScreenAction, complete_command, is_command, run_command
from enfold.chat.controller import ChatController
from enfold.errors import BlockedError, ConfigError, InputError, NotFoundError, SummaryError
from enfold.testing import ScriptedGateway, assistant, call, result
from tests.talk.desk import LARGE, Desk, fill


async def told(talk: ChatController, line: str) -> str:
    outcome = await run_command(talk, line)
    assert isinstance(outcome, str)
    return outcome


@pytest.fixture
async def talk(desk: Desk) -> ChatController:
    return await desk.talk()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/help", True),
        ("/search a b\nc ", True),
        ("/nonsense", True),
        ("/etc/hosts is empty", False),
        (" /help", False),
        ("1/2", False),
        ("/", False),
    ],
)
def test_what_is_a_command(text: str, expected: bool) -> None:
    assert is_command(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/UNDO", "undo"),
        ("/model small", "model"),
        ("/history 3", None),
        ("/nonsense", None),
        ("undo", None),
    ],
)
def test_which_command_changes_something(text: str, expected: str | None) -> None:
    assert commands.changing_command(text) == expected


@pytest.mark.parametrize(
    ("begun", "rest"),
    [("/", ""), ("/se", "arch"), ("/SE", "arch"), ("/search", ""), ("/x", ""), ("se", "")],
)
def test_completion(begun: str, rest: str) -> None:
    assert complete_command(begun) == rest


async def test_help_has_every_command(talk: ChatController) -> None:
    text = await told(talk, "/help")
    assert all(f"/{name}" in text and each.help in text for name, each in COMMANDS.items())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/sumarize", ("/sumarize", "did you mean /summarize?", "/help")),
        ("/zzz", ("no command /zzz", "/help")),
        ("hello", ("no command",)),
        ("/search", ("/search WORDS",)),
        ("/history many", ("'many'", "1 or more")),
        ("/history 0", ("'0'",)),
        ("/history #9", ("no message #9",)),
    ],
)
async def test_what_cannot_be_done_says_what_can(
    line: str, words: tuple[str, ...], talk: ChatController
) -> None:
    with pytest.raises(InputError) as caught:
        await run_command(talk, line)
    assert all(word in str(caught.value) for word in words)


async def test_summarize_and_undo(talk: ChatController) -> None:
    assert "Nothing was folded" in await told(talk, "/summarize")
    await fill(talk, 20)
    before = (await talk.status()).current_token_count
    folded = await told(talk, "/summarize")
    after = (await talk.status()).current_token_count
    assert f"{before:,} → {after:,} tokens" in folded
    assert "by scripted" in folded
    assert "taken back" in await told(talk, "/undo")
    assert (await talk.status()).current_token_count == before
    assert "Nothing to undo" in await told(talk, "/undo")


async def test_context_has_figures_and_the_summary_in_use(talk: ChatController) -> None:
    await fill(talk, 20)
    assert "The summary in use" not in await told(talk, "/context")
    await run_command(talk, "/summarize")
    text = await told(talk, "/context")
    status = await talk.status()
    assert f"{status.context_limit:,}" in text
    assert f"{status.summary_tokens:,}" in text
    assert "They agreed on the mooring plan." in text
    await run_command(talk, "/undo")
    assert "mooring plan" not in await told(talk, "/context")


async def test_history_is_brief_or_one_message_whole(talk: ChatController) -> None:
    assert "Nothing has been said" in await told(talk, "/history")
    await fill(talk, 8)
    await run_command(talk, "/summarize")
    last = await told(talk, "/history")
    assert last.startswith("#7 user")
    assert "#16 assistant" in last
    assert "…" in last
    assert (await told(talk, "/history 2")).count("#") == 2
    whole = await told(talk, "/history #1")
    assert whole.count("alpha") == 50


async def test_history_names_what_has_no_text(talk: ChatController) -> None:
    await talk.session.append("Look.", assistant("", call("c1", "read_file")), result("c1", "ok"))
    text = await told(talk, "/history")
    assert "[call of read_file]" in text
    assert "ok" in text


async def test_search_finds_what_was_folded(talk: ChatController) -> None:
    await fill(talk, 20)
    await run_command(talk, "/summarize")
    found = await told(talk, '/search "Question 3"')
    assert "#7 user" in found
    assert found.endswith("1 message found.")
    assert await told(talk, "/search zebra") == "0 messages found."


async def test_model_tells_and_changes_who_answers(talk: ChatController) -> None:
    assert await told(talk, "/model") == "compatible:small of profile small answers."
    assert await told(talk, "/model large") == "compatible:large of profile large answers."
    assert (await talk.status()).model == LARGE
    with pytest.raises(NotFoundError, match="no profile 'nobody'"):
        await run_command(talk, "/model nobody")
    assert talk.answerer is not None
    assert talk.answerer.connection.name == LARGE


async def test_retry_and_acknowledge_when_nothing_failed(talk: ChatController) -> None:
    assert "nothing to try again" in await told(talk, "/retry")
    assert "not blocked" in await told(talk, "/acknowledge")


async def test_retry_asks_again_what_has_no_answer(talk: ChatController) -> None:
    await talk.session.append("Why?")
    assert await run_command(talk, "/retry") is ScreenAction.ANSWER


@pytest.mark.parametrize("window", [None, 3_000])
async def test_retry_of_a_compression_that_blocked(window: int | None, desk: Desk) -> None:
    talk = await desk.talk(window=window)
    await fill(talk, 40)
    desk.summarizer.script(SummaryError("away"))
    with pytest.raises(BlockedError):
        await talk.ask("And?", lambda _: None)
    with pytest.raises((BlockedError, SummaryError)):
        await run_command(talk, "/retry")
    desk.summarizer.script("They agreed.")
    assert (await told(talk, "/retry")).startswith("Folded")
    assert (await talk.status()).blocked is None


async def test_acknowledging_lets_requests_go_on(desk: Desk) -> None:
    desk.answer_with(ScriptedGateway("Yes."))
    talk = await desk.talk()
    await fill(talk, 40)
    desk.summarizer.script(SummaryError("away"))
    with pytest.raises(BlockedError):
        await talk.ask("And?", lambda _: None)
    assert "acknowledged" in await told(talk, "/acknowledge")
    assert (await talk.ask("And?", lambda _: None)).text == "Yes."


async def test_quit_and_a_talk_without_a_model(desk: Desk) -> None:
    talk = await desk.talk(answered=False)
    assert await run_command(talk, "/quit") is ScreenAction.LEAVE
    assert "enfold profiles add" in await told(talk, "/model")
    with pytest.raises(ConfigError, match="enfold profiles add"):
        await talk.ask("Why?", lambda _: None)
    await desk.add("small")
    await run_command(talk, "/model small")
    assert (await talk.ask("Why?", lambda _: None)).text == "An answer."


def test_no_command_begins_like_a_path() -> None:
    assert all(commands.is_command(f"/{name}") for name in COMMANDS)
