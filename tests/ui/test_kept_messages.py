"""A person's messages stay: while a summary or an answer fails, and after a reload."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.llm.servers.openai import failed, streamed
from tests.llm.servers.protocol import KEY, ScriptedReply
from tests.server.processes import Process, serve
from tests.ui.api_client import Api, talk
from tests.ui.test_answers import answered
from tests.ui.test_chat import say

FIRST = streamed(ScriptedReply(("It is the tide.",)))
SECOND = streamed(ScriptedReply(("It is the moon.",)))


@pytest.fixture(scope="module")
def server(
    database: Path, port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Process]:
    home = str(tmp_path_factory.mktemp("home"))
    with serve(database, "--port", str(port), HOME=home, HARBOUR_KEY=KEY) as process:
        yield process


async def expect_one_problem(page: Page, text: str, *buttons: str) -> None:
    """Expect exactly one card with a problem, no running compression, and these buttons."""
    alert = page.get_by_role("alert").filter(has=page.get_by_role("button"))
    await expect(alert).to_have_count(1)
    await expect(alert).to_contain_text(text)
    await expect(alert.get_by_role("button")).to_have_text(buttons)
    await expect(page.get_by_text("Summarizing")).not_to_be_attached()
    await expect(page.get_by_role("article", name="Model, answering")).not_to_be_attached()


async def test_a_message_stays_when_its_summary_fails_and_every_way_on_answers_it(
    page: Page, server: Process, api: Api
) -> None:
    api.model("compatible:smol", max_input=4_000, max_output=500, retention_tokens=300)
    api.set(background=False)  # a failure in the background is tried again before it counts
    ways = ("Retry", "Use the built-in summarizer", "Continue once")
    async with answered(api, failed(401), FIRST):
        await page.goto(server.address + api.session("once", *talk(10, 170)))
        await say(page, "Why **does** it rise?")
        question = page.get_by_role("article", name="You, message 21")
        await expect(question).to_contain_text("Why does it rise?")
        await expect_one_problem(page, "Paused: the summary failed.", *ways)
        await page.reload()
        await expect(question).to_contain_text("Why does it rise?")
        await expect_one_problem(page, "Paused: the summary failed.", *ways)
        await page.get_by_role("button", name="Continue once").click()
        await expect(page.get_by_text("It is the tide.")).to_be_visible()
        await expect(page.get_by_role("alert").get_by_role("button")).to_have_count(0)
    async with answered(api, failed(401), failed(401), SECOND) as model:
        await page.goto(server.address + api.session("built-in", *talk(10, 170)))
        await say(page, "And why does it fall?")
        await expect_one_problem(page, "Paused: the summary failed.", *ways)
        await page.get_by_role("button", name="Retry").click()
        while len(model.requests) < 2:  # the retry is on its way
            await page.wait_for_timeout(50)
        await expect_one_problem(page, "Paused: the summary failed.", *ways)
        await page.get_by_role("button", name="Use the built-in summarizer").click()
        await expect(page.get_by_text("It is the moon.")).to_be_visible()
        await expect(page.get_by_role("status").filter(has_text="Summarized")).to_be_visible()
        await expect(page.get_by_role("alert").get_by_role("button")).to_have_count(0)
    assert [each["role"] for each in api.messages("built-in")][-2:] == ["user", "assistant"]


async def test_a_message_stays_when_its_answer_fails_and_is_answered_after_a_reload(
    page: Page, server: Process, api: Api
) -> None:
    async with answered(api, failed(401), FIRST):
        await page.goto(server.address + api.session("reloaded"))
        await say(page, "Why does it rise?")
        await expect_one_problem(page, "key", "Retry", "Dismiss")
        await page.reload()
        await expect(page.get_by_role("article", name="You, message 1")).to_be_visible()
        await expect_one_problem(page, "has no answer yet", "Retry", "Dismiss")
        await page.get_by_role("button", name="Retry").click()
        await expect(page.get_by_text("It is the tide.")).to_be_visible()
        await expect(page.get_by_role("alert").get_by_role("button")).to_have_count(0)
