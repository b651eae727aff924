"""Answers in the chat: streamed, stopped, failed and asked for again, from a model's server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.llm.servers.loopback import Loopback, ScriptedAnswer, Step
from tests.llm.servers.openai import failed, streamed, whole
from tests.llm.servers.protocol import KEY, ScriptedReply
from tests.server.processes import Process, serve
from tests.ui.api_client import Api
from tests.ui.test_chat import say

WHOLE = streamed(ScriptedReply(("It is **", "the tide**.\n\n```python\n", "wait(6)\n```\n")))
OTHER = streamed(ScriptedReply(("It is the moon.",)))
HALF = ScriptedAnswer(
    (*streamed(ScriptedReply(("The first words", " and more"))).steps[:2], Step.WAIT),
    mime=WHOLE.mime,
)


@pytest.fixture(scope="module")
def server(
    database: Path, port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Process]:
    home = str(tmp_path_factory.mktemp("home"))
    with serve(database, "--port", str(port), HOME=home, HARBOUR_KEY=KEY) as process:
        yield process


@asynccontextmanager
async def answered(api: Api, *answers: ScriptedAnswer) -> AsyncIterator[Loopback]:
    """A model behind the one profile there is, with these answers."""
    async with Loopback(*answers) as model:
        api.profile(
            "harbour",
            provider="compatible",
            model="smol",
            base_url=f"{model.url}/v1",
            key="env:HARBOUR_KEY",
        )
        yield model


async def test_an_answer_is_streamed_and_stored(page: Page, server: Process, api: Api) -> None:
    async with answered(api, WHOLE):
        await page.goto(server.address + api.session("streamed"))
        await expect(page.get_by_text("compatible:smol")).to_be_visible()
        await say(page, "Why?")
        answer = page.get_by_role("article", name="Model, message 2")
        await expect(answer.locator("strong")).to_have_text("the tide")
        await expect(answer.locator("pre code .n")).to_have_text("wait")
    assert [each["role"] for each in api.messages("streamed")] == ["user", "assistant"]


async def test_the_model_names_a_conversation_that_begins_with_a_long_message(
    page: Page, server: Process, api: Api
) -> None:
    title = whole(ScriptedReply(("Wrong tide tables",)))
    async with answered(api, OTHER, title):
        await page.goto(server.address + api.session("named"))
        await say(page, "Could you find out why the tide tables of the harbour are wrong in May?")
        await expect(page.get_by_role("banner")).to_contain_text("Wrong tide tables")
        row = page.get_by_role("list", name="Sessions").get_by_role("link")
        await expect(row.filter(has_text="Wrong tide tables")).to_be_visible()


async def test_an_answer_is_stopped_and_what_came_is_kept(
    page: Page, server: Process, api: Api
) -> None:
    async with answered(api, HALF):
        await page.goto(server.address + api.session("stopped"))
        await say(page, "Why?")
        await expect(page.get_by_text("The first words")).to_be_visible()
        await page.get_by_role("button", name="Stop", exact=True).click()
        answer = page.get_by_role("article", name="Model, message 2")
        await expect(answer).to_contain_text("Interrupted: the answer is incomplete.")
        await expect(page.get_by_role("button", name="Stop", exact=True)).not_to_be_attached()


async def test_a_failure_says_what_to_do_and_can_be_tried_again(
    page: Page, server: Process, api: Api
) -> None:
    async with answered(api, failed(401), WHOLE):
        await page.goto(server.address + api.session("failing"))
        await say(page, "Why?")
        alert = page.get_by_role("alert").filter(has=page.get_by_role("button", name="Retry"))
        await expect(alert).to_contain_text("key")
        assert KEY not in await page.content()
        await alert.get_by_role("button", name="Retry").click()
        await expect(page.get_by_role("article", name="Model, message 2")).to_be_visible()
        await expect(alert).not_to_be_attached()
    assert len(api.messages("failing")) == 2


async def ask_again(page: Page, address: str, first: str) -> None:
    """Ask, and let the model answer once more after its first answer."""
    await page.goto(address)
    await say(page, "Why?")
    await expect(page.get_by_text(first)).to_be_visible()
    answer = page.get_by_role("article", name="Model, message 2")
    await answer.hover()
    await answer.get_by_role("button", name="Regenerate").click()


async def test_another_answer_is_a_branch(page: Page, server: Process, api: Api) -> None:
    async with answered(api, WHOLE, OTHER):
        await ask_again(page, server.address + api.session("again"), "the tide")
        await expect(page.get_by_text("It is the moon.")).to_be_visible()
        await expect(page.get_by_role("group", name="Branch")).to_contain_text("2/2")
        await page.get_by_role("button", name="Previous branch").click()
        await expect(page.get_by_text("the tide")).to_be_visible()


async def test_an_answer_that_fails_brings_the_old_one_back(
    page: Page, server: Process, api: Api
) -> None:
    async with answered(api, OTHER, failed(500)):
        await ask_again(page, server.address + api.session("back"), "It is the moon.")
        await expect(page.get_by_role("button", name="Retry")).to_be_visible()
        await expect(page.get_by_text("It is the moon.")).to_be_visible()


async def test_words_that_are_edited_are_answered(page: Page, server: Process, api: Api) -> None:
    async with answered(api, WHOLE, OTHER):
        await page.goto(server.address + api.session("edited"))
        await say(page, "Why now?")
        await expect(page.get_by_text("the tide")).to_be_visible()
        question = page.get_by_role("article", name="You, message 1")
        await question.hover()
        await question.get_by_role("button", name="Edit").click()
        await page.get_by_role("dialog").get_by_role("textbox").fill("Why then?")
        await page.get_by_role("dialog").get_by_role("button", name="Save").click()
        await expect(page.get_by_text("It is the moon.")).to_be_visible()
        await expect(page.get_by_text("Why then?")).to_be_visible()
