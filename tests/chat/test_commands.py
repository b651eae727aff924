"""Slash commands do what their help says."""

from __future__ import annotations

import pytest

from enfold.chat import commands
from enfold.chat.commands import COMMANDS, ScreenAction, complete_command, is_command, run_command
from enfold.chat.controller import ChatController
from enfold.errors import BlockedError, ConfigError, InputError, NotFoundError, SummaryError
from enfold.testing import ScriptedGateway, assistant, call, result
from tests.chat.setup import LARGE, ChatSetup, fill, stored_texts


async def show(chat: ChatController, line: str) -> str:
    return (await run_command(chat, line)).text


@pytest.fixture
async def chat(chat_setup: ChatSetup) -> ChatController:
    return await chat_setup.open_chat()


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
def test_is_command(text: str, expected: bool) -> None:
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
def test_changing_command_names_commands_that_change_the_session(
    text: str, expected: str | None
) -> None:
    assert commands.changing_command(text) == expected


@pytest.mark.parametrize(
    ("begun", "rest"),
    [("/", ""), ("/se", "arch"), ("/SE", "arch"), ("/search", ""), ("/x", ""), ("se", "")],
)
def test_completion(begun: str, rest: str) -> None:
    assert complete_command(begun) == rest


async def test_help_lists_every_command(chat: ChatController) -> None:
    text = await show(chat, "/help")
    assert all(f"/{name}" in text and each.help in text for name, each in COMMANDS.items())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/sumarize", ("/sumarize", "did you mean /summarize?", "/help")),
        ("/zzz", ("no command /zzz", "/help")),
        ("hello", ("not a command",)),
        ("/search", ("/search WORDS",)),
        ("/history many", ("'many'", "1 or more")),
        ("/history 0", ("'0'",)),
        ("/history #9", ("no message #9",)),
    ],
)
async def test_a_wrong_command_names_the_right_one(
    line: str, words: tuple[str, ...], chat: ChatController
) -> None:
    with pytest.raises(InputError) as caught:
        await run_command(chat, line)
    assert all(word in str(caught.value) for word in words)


async def test_summarize_and_undo(chat: ChatController) -> None:
    assert "Nothing was summarized" in await show(chat, "/summarize")
    await fill(chat, 20)
    before = (await chat.status()).current_token_count
    summarized = await show(chat, "/summarize")
    after = (await chat.status()).current_token_count
    assert f"{before:,} → {after:,} tokens" in summarized
    assert "by scripted" in summarized
    assert "is undone" in await show(chat, "/undo")
    assert (await chat.status()).current_token_count == before
    assert "Nothing to undo" in await show(chat, "/undo")


async def test_context_has_figures_and_the_summary_in_use(chat: ChatController) -> None:
    await fill(chat, 20)
    assert "Summary in use" not in await show(chat, "/context")
    await run_command(chat, "/summarize")
    text = await show(chat, "/context")
    status = await chat.status()
    assert f"{status.context_limit:,}" in text
    assert f"{status.summary_tokens:,}" in text
    assert "They agreed on the mooring plan." in text
    await run_command(chat, "/undo")
    assert "mooring plan" not in await show(chat, "/context")


async def test_history_is_brief_or_one_message_whole(chat: ChatController) -> None:
    assert "No messages yet" in await show(chat, "/history")
    await fill(chat, 8)
    await run_command(chat, "/summarize")
    last = await show(chat, "/history")
    assert last.startswith("#7 user")
    assert "#16 assistant" in last
    assert "…" in last
    assert (await show(chat, "/history 2")).count("#") == 2
    whole = await show(chat, "/history #1")
    assert whole.count("alpha") == 50


async def test_history_shows_placeholders_for_parts_without_text(chat: ChatController) -> None:
    await chat.session.append("Look.", assistant("", call("c1", "read_file")), result("c1", "ok"))
    text = await show(chat, "/history")
    assert "[call of read_file]" in text
    assert "ok" in text


async def test_search_finds_summarized_messages(chat: ChatController) -> None:
    await fill(chat, 20)
    await run_command(chat, "/summarize")
    found = await show(chat, '/search "Question 3"')
    assert "#7 user" in found
    assert found.endswith("1 message found.")
    assert await show(chat, "/search zebra") == "0 messages found."


async def test_model_shows_and_switches_the_model(chat: ChatController) -> None:
    assert await show(chat, "/model") == "Model: compatible:small (profile small)"
    assert await show(chat, "/model large") == "Model: compatible:large (profile large)"
    assert (await chat.status()).model == LARGE
    with pytest.raises(NotFoundError, match="no profile 'missing'"):
        await run_command(chat, "/model missing")
    assert chat.answerer is not None
    assert chat.answerer.connection.name == LARGE


async def test_retry_and_acknowledge_when_nothing_failed(chat: ChatController) -> None:
    assert "Nothing to retry" in await show(chat, "/retry")
    assert "not blocked" in await show(chat, "/acknowledge")


async def test_retry_answers_the_last_message(chat: ChatController) -> None:
    await chat.session.append("Why?")
    assert (await run_command(chat, "/retry")).action is ScreenAction.ANSWER
    with pytest.raises(InputError, match="/retry local"):
        await run_command(chat, "/retry everything")


@pytest.mark.parametrize("window", [None, 3_000])
async def test_retry_of_a_compression_that_blocked(
    window: int | None, chat_setup: ChatSetup
) -> None:
    chat = await chat_setup.open_chat(window=window)
    await fill(chat, 40)
    chat_setup.summarizer.script(SummaryError("away"))
    with pytest.raises(BlockedError):
        await chat.ask("And?", lambda _: None)
    with pytest.raises((BlockedError, SummaryError)):
        await run_command(chat, "/retry")
    assert (await stored_texts(chat))[-1] == ("user", "And?")
    retried = await run_command(chat, "/retry local")
    assert retried.text.startswith("Summarized")
    assert "by the built-in summarizer" in retried.text
    assert retried.action is ScreenAction.ANSWER
    assert (await chat.status()).blocked is None


async def test_acknowledging_lets_requests_go_on(chat_setup: ChatSetup) -> None:
    chat_setup.answer_with(ScriptedGateway("Yes."))
    chat = await chat_setup.open_chat()
    await fill(chat, 40)
    chat_setup.summarizer.script(SummaryError("away"))
    with pytest.raises(BlockedError):
        await chat.ask("And?", lambda _: None)
    acknowledged = await run_command(chat, "/acknowledge")
    assert "the next request" in acknowledged.text
    assert acknowledged.action is ScreenAction.ANSWER
    assert (await chat.answer(lambda _: None)).text == "Yes."
    assert (await stored_texts(chat))[-2:] == [("user", "And?"), ("assistant", "Yes.")]


async def test_quit_and_a_talk_without_a_model(chat_setup: ChatSetup) -> None:
    chat = await chat_setup.open_chat(answered=False)
    assert (await run_command(chat, "/quit")).action is ScreenAction.LEAVE
    assert "enfold profiles add" in await show(chat, "/model")
    with pytest.raises(ConfigError, match="enfold profiles add"):
        await chat.ask("Why?", lambda _: None)
    await chat_setup.add("small")
    await run_command(chat, "/model small")
    assert (await chat.ask("Why?", lambda _: None)).text == "An answer."


def test_no_command_begins_like_a_path() -> None:
    assert all(commands.is_command(f"/{name}") for name in COMMANDS)


async def test_a_message_is_pinned_and_unpinned_by_its_number(chat: ChatController) -> None:
    await chat.session.append("The port is 4711.", assistant("Noted."))
    assert "No message is pinned" in await show(chat, "/pins")
    assert "#1 is pinned" in await show(chat, "/pin #1")
    (pinned,) = await chat.session.pins()
    listed = await show(chat, "/pins")
    assert f"#1 user, pinned, {pinned.tokens} tokens" in listed
    assert "The port is 4711." in listed
    assert "#1 is unpinned" in await show(chat, "/unpin 1")
    assert await chat.session.pins() == ()


@pytest.mark.parametrize("line", ["/pin", "/unpin"])
async def test_a_pin_needs_a_message(line: str, chat: ChatController) -> None:
    with pytest.raises(InputError, match="/history"):
        await run_command(chat, line)
    with pytest.raises(NotFoundError):
        await run_command(chat, f"{line} #9")
