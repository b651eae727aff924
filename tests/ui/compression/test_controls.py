"""Compressions as a person asks for them, follows them, and gets over those that fail."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from enfold.engine import Engine
from tests.cli.processes import ROOT
from tests.llm.servers.loopback import Loopback, ScriptedAnswer
from tests.llm.servers.openai import failed, streamed
from tests.llm.servers.protocol import ScriptedReply
from tests.server.processes import Process, serve
from tests.ui.api_client import Api, talk
from tests.ui.browser import window
from tests.ui.talks import in_engine
from tests.ui.talks import talk as talk_in

BUTTON = "Summarize conversation history"
WRITTEN = streamed(ScriptedReply(("They talked ", "about **files**.")))
SILENT = ScriptedAnswer(silent=True)


@asynccontextmanager
async def model(api: Api, *answers: ScriptedAnswer) -> AsyncIterator[Loopback]:
    """A model that gives these answers, and writes the summaries of all sessions meanwhile."""
    async with Loopback(*answers) as away:
        api.profile("away", provider="compatible", model="test", base_url=f"{away.url}/v1")
        api.set(summarizer="away")
        try:
            yield away
        finally:
            api.set(summarizer=None)


async def open_session(
    page: Page, server: Process, api: Api, id: str, *, turns: int = 6, words: int = 200
) -> None:
    """Open a window on a new session with a number of turns.

    A few long messages: the browser's work depends on their number.
    """
    await page.goto(server.address + api.session(id, *talk(turns, words)))
    await expect(page.get_by_role("textbox", name="Message")).to_be_visible()


async def ask(page: Page) -> Locator:
    """The dialog."""
    await page.get_by_role("button", name=BUTTON).first.click()
    return page.get_by_role("dialog", name=BUTTON)


async def preview(page: Page) -> Locator:
    """The dialog, once it knows what it comes to."""
    dialog = await ask(page)
    await expect(dialog.get_by_text("Changes", exact=True)).to_be_visible()
    return dialog


async def test_a_compression_is_previewed_confirmed_and_reported(
    page: Page, server: Process, api: Api
) -> None:
    await open_session(page, server, api, "usual")
    dialog = await preview(page)
    await expect(dialog).to_contain_text(re.compile(r"Changes\s*\d+ of 12 messages"))
    await expect(dialog).to_contain_text("none: no model is called")
    await expect(dialog).to_contain_text("Native, by the built-in summarizer")
    await dialog.get_by_role("button", name="Summarize now").click()
    report = page.get_by_role("status").filter(has_text="Summarized")
    for name in ("Before", "After", "Saved", "Cost", "Time", "Native, by the built-in summarizer"):
        await expect(report).to_contain_text(name)
    await expect(page.get_by_role("button", name="Summary of")).to_be_visible()
    await report.get_by_role("link", name="Show changes").click()
    await expect(page.get_by_role("region", name="This compression")).to_be_visible()


async def test_nothing_happens_if_it_is_thought_better_of(
    page: Page, server: Process, api: Api
) -> None:
    await open_session(page, server, api, "declined")
    dialog = await preview(page)
    await dialog.get_by_role("button", name="Cancel", exact=True).click()
    await expect(dialog).not_to_be_visible()
    await expect(page.get_by_role("button", name="Summary of")).not_to_be_visible()


async def test_a_single_run_may_keep_more_and_use_another_strategy(
    page: Page, server: Process, api: Api
) -> None:
    await open_session(page, server, api, "once")
    dialog = await preview(page)
    await dialog.get_by_role("button", name="For this run only").click()
    kept = dialog.get_by_label("Recent messages kept")
    await kept.fill("4")
    # Of the other 8 messages, the 4 that a person typed stay too.
    await expect(dialog).to_contain_text("4 of 12 messages")
    await kept.fill("-1")
    await expect(dialog).to_contain_text("expected a whole number, 0 or more, found -1")
    await expect(dialog.get_by_role("button", name="Summarize now")).to_be_disabled()
    await kept.fill("4")
    await dialog.get_by_label("Strategy").click()
    await page.get_by_role("option", name="smart").click()
    await expect(dialog).to_contain_text("Smart, by the built-in summarizer")
    await dialog.get_by_role("button", name="Summarize now").click()
    await expect(page.get_by_role("status").filter(has_text="passes")).to_be_visible()
    await page.get_by_role("button", name=re.compile(r"\d passes")).click()
    await expect(page.get_by_text("Lossless prelude:")).to_be_visible()


async def test_the_command_summarizes_at_once(page: Page, server: Process, api: Api) -> None:
    await open_session(page, server, api, "command")
    await page.get_by_role("textbox", name="Message").fill("/summarize")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status").filter(has_text="Summarized")).to_be_visible()


async def test_the_dialog_says_that_there_is_nothing_to_summarize(
    page: Page, server: Process, api: Api
) -> None:
    await open_session(page, server, api, "short", turns=1)
    await page.get_by_role("button", name=BUTTON).first.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Nothing to summarize")
    await expect(dialog.get_by_role("button", name="Summarize now")).to_be_disabled()


async def test_two_windows_see_it_run_and_the_one_that_began_can_call_it_off(
    page: Page, browser: Browser, server: Process, api: Api
) -> None:
    await open_session(page, server, api, "slow")
    async with window(browser) as (other, _), model(api, SILENT) as away:
        await other.goto(f"{server.address}/s/slow")
        await expect(other.get_by_role("textbox", name="Message")).to_be_visible()
        dialog = await preview(page)
        await expect(dialog).to_contain_text("unknown")  # what the model costs
        await dialog.get_by_role("button", name="Summarize now").click()
        for each in (page, other):
            running = each.get_by_role("status").filter(has_text="Summarizing")
            await expect(running).to_contain_text(re.compile(r"\d+ messages \([\d,]+ tokens\)"))
        await away.request_arrived.wait()
        await other.reload()  # a window that opens in the middle sees it too
        await expect(other.get_by_role("status").filter(has_text="Summarizing")).to_be_visible()
        await expect(other.get_by_role("button", name="Cancel", exact=True)).not_to_be_visible()
        # The page goes on while it runs.
        await page.get_by_role("textbox", name="Message").fill("not held up")
        await page.get_by_role("button", name="Cancel", exact=True).click()
        for each in (page, other):
            await expect(each.get_by_text("Cancelled. Nothing was changed.")).to_be_visible()


async def test_runs_started_elsewhere_are_followed_to_their_result(
    page: Page, server: Process, api: Api
) -> None:
    await open_session(page, server, api, "elsewhere")
    api.compress("elsewhere")
    await expect(page.get_by_role("status").filter(has_text="Summarized")).to_be_visible()
    await expect(page.get_by_role("button", name="Summary of")).to_be_visible()
    await page.get_by_role("button", name="Dismiss").click()
    await expect(page.get_by_role("status").filter(has_text="Summarized")).not_to_be_visible()


async def test_the_report_itself_can_say_that_it_is_not_wanted(
    page: Page, server: Process, api: Api
) -> None:
    await open_session(page, server, api, "muted")
    api.compress("muted")
    await page.get_by_role("button", name="Hide these notices").click()
    api.append("muted", *talk(6, 200))
    api.compress("muted")
    await expect(page.get_by_role("button", name="Summary of")).to_be_visible()
    await expect(page.get_by_role("status").filter(has_text="Summarized")).not_to_be_visible()
    dialog = await ask(page)
    await dialog.get_by_role("switch", name="Show compressions while they run").click()
    await dialog.get_by_role("button", name="Cancel", exact=True).click()
    await expect(dialog).not_to_be_visible()  # by now the server has heard of both
    await page.reload()
    await expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    api.append("muted", *talk(4, 201))
    api.compress("muted")
    await expect(page.get_by_role("status").filter(has_text="Summarized")).to_be_visible()


async def test_a_failure_says_why_and_can_be_tried_again(
    page: Page, server: Process, api: Api
) -> None:
    await open_session(page, server, api, "failing")
    async with model(api, failed(401), WRITTEN):
        await page.get_by_role("textbox", name="Message").fill("/summarize")
        await page.keyboard.press("Enter")
        alert = page.get_by_role("alert").filter(has_text="The summary failed.")
        await expect(alert).to_contain_text("away")
        await alert.get_by_role("button", name="Retry").click()
        await expect(page.get_by_role("status").filter(has_text="Summarized")).to_be_visible()
        await expect(alert).not_to_be_visible()


async def test_a_blocked_session_says_so_in_every_window_until_a_person_decides(
    page: Page, browser: Browser, server: Process, api: Api
) -> None:
    await open_session(page, server, api, "waiting", turns=12, words=100)
    async with window(browser) as (other, _), model(api, failed(401)):
        await asyncio.to_thread(partial(api.prepare_and_fail, "waiting", max_tokens=500))
        banner = page.get_by_role("alert").filter(has_text="Paused: the summary failed.")
        await expect(banner).to_contain_text("No request is sent until a summary succeeds.")
        await other.goto(f"{server.address}/s/waiting")
        there = other.get_by_role("alert").filter(has_text="Paused: the summary failed.")
        await expect(there).to_contain_text("Continue once sends the next request")
        await there.get_by_role("button", name="Use the built-in summarizer").click()
        for each in (page, other):
            await expect(each.get_by_text("Paused")).not_to_be_visible()


async def test_messages_left_out_without_a_summary_are_marked_and_can_be_summarized(
    page: Page, server: Process, api: Api
) -> None:
    await open_session(page, server, api, "truncated", turns=30, words=40)
    async with model(api, failed(401)):
        settings = {"max_tokens": 800, "retention_tokens": 100, "on_failure": "truncate"}
        await asyncio.to_thread(partial(api.prepare, "truncated", **settings))
    report = page.get_by_role("status").filter(has_text="Shortened")
    await expect(report).to_contain_text("truncated, because the summary failed: ")
    await page.reload()
    card = page.get_by_role("region", name="messages left out without a summary")
    await expect(card).to_contain_text("Note: truncated, because the summary failed: ")
    await card.get_by_role("button", name="left out").click()
    await card.get_by_role("button", name="Regenerate").click()
    await expect(page.get_by_role("region", name="Summary of")).to_be_visible()
    await expect(page.get_by_text("because the summary failed")).not_to_be_visible()


async def test_notices_can_be_switched_off_but_errors_are_always_shown(
    page: Page, server: Process, api: Api
) -> None:
    await open_session(page, server, api, "quiet")
    dialog = await preview(page)
    await dialog.get_by_role("switch", name="Show compressions while they run").click()
    await dialog.get_by_role("button", name="Cancel", exact=True).click()
    await expect(dialog).not_to_be_visible()  # by now the server has heard of both
    await page.reload()
    await page.get_by_role("textbox", name="Message").fill("/summarize")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Summary of")).to_be_visible()
    await expect(page.get_by_text("Summarized", exact=False)).not_to_be_visible()
    async with model(api, failed(401)):
        card = page.get_by_role("region", name="Summary of")
        await card.get_by_role("button", name="Summary of").click()
        await card.get_by_role("button", name="Regenerate").click()
        await expect(page.get_by_role("alert")).to_contain_text("The summary failed.")


@pytest.fixture(scope="module")
def countless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server on a machine on which the libraries that count have gone."""
    folder = tmp_path_factory.mktemp("countless")
    for library in ("toktok", "splintr"):
        (folder / f"{library}.py").write_text("raise ImportError('it has gone')\n")
    database = folder / "chats.db"

    async def fill(engine: Engine) -> None:
        await talk_in(await engine.session("countless"), 6, words=200)

    in_engine(database, fill)
    with serve(database, PYTHONPATH=f"{folder}:{ROOT / 'src'}") as process:
        yield process


async def test_after_a_failed_count_there_is_only_another_try(
    browser: Browser, countless: Process
) -> None:
    async with window(browser) as (page, watch):
        watch.expected = ("500",)
        await page.goto(f"{countless.address}/s/countless")
        await page.get_by_role("textbox", name="Message").fill("/summarize")
        await page.keyboard.press("Enter")
        alert = page.get_by_role("alert").filter(has_text="The tokens could not be counted")
        await expect(alert.get_by_role("button", name="Retry")).to_be_visible()
        await expect(alert.get_by_role("button")).to_have_text(["Retry", "Dismiss"])


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_the_dialog_and_the_report_fit_a_phone(
    browser: Browser, server: Process, api: Api, dark: bool
) -> None:
    async with window(browser, width=390, height=800, dark=dark) as (page, _):
        await open_session(page, server, api, f"phone-{dark}")
        dialog = await preview(page)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await dialog.get_by_role("button", name="Summarize now").click()
        await expect(page.get_by_role("status").filter(has_text="Summarized")).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
