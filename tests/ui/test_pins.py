"""Pins: a button at every message, and the list of the messages that stay."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from enfold.engine import Engine
from tests.server.processes import Process
from tests.ui.api_client import Api, assistant, talk, user
from tests.ui.browser import window
from tests.ui.compression.test_names import nameless
from tests.ui.talks import in_engine
from tests.ui.test_chat import CALL, RESULT

RULE = {"role": "system", "content": "Answer in French."}


def standing(database: Path, session: str) -> list[tuple[int, str]]:
    """The positions and reasons of the messages that stay, as the engine has them."""

    async def read(engine: Engine) -> list[tuple[int, str]]:
        return [(each.position, each.why) for each in await (await engine.find(session)).pins()]

    return in_engine(database, read)


async def open_list(page: Page) -> Locator:
    await page.get_by_role("button", name="Pinned messages", exact=True).first.click()
    dialog = page.get_by_role("dialog", name="Pinned messages")
    await expect(dialog).to_be_visible()
    return dialog


async def pin(page: Page, number: int) -> None:
    await page.get_by_role("button", name=f"Pin message {number}", exact=True).focus()
    await page.keyboard.press("Enter")
    release = page.get_by_role("button", name=f"Release message {number}", exact=True)
    await expect(release).to_be_visible()


async def test_a_message_is_pinned_listed_and_released_in_the_chat(
    page: Page, server: Process, api: Api, database: Path
) -> None:
    await page.goto(server.address + api.session("pinned", *talk(3)))
    await pin(page, 4)
    assert (4, "pinned") in standing(database, "pinned")
    dialog = await open_list(page)
    item = dialog.get_by_role("listitem").filter(has_text="Answer 1:")
    await expect(item).to_contain_text("You pinned this message.")
    await expect(item).to_contain_text(re.compile(r"\d+ tokens"))
    await item.get_by_role("button", name="Release message 4").click()
    await expect(item).not_to_be_attached()
    await dialog.get_by_role("button", name="Close").click()
    await expect(page.get_by_role("button", name="Pin message 4", exact=True)).to_be_attached()
    assert (4, "pinned") not in standing(database, "pinned")
    assert ("UI pin", 200) in api.audited("pinned")
    assert ("UI unpin", 200) in api.audited("pinned")


async def test_a_pin_is_there_when_the_page_is_opened_again(
    page: Page, server: Process, api: Api
) -> None:
    await page.goto(server.address + api.session("again", *talk(2)))
    await pin(page, 2)
    await page.reload()
    await page.get_by_role("button", name="Release message 2").click()
    await expect(page.get_by_role("button", name="Pin message 2", exact=True)).to_be_attached()


async def test_a_list_without_messages_says_how_to_pin_one(
    page: Page, server: Process, api: Api
) -> None:
    await page.goto(server.address + api.session("none", assistant("Good morning.")))
    await expect(await open_list(page)).to_contain_text("No messages. Pin one with the pin button")


async def test_system_messages_stay_and_can_be_released(
    page: Page, server: Process, api: Api, database: Path
) -> None:
    await page.goto(server.address + api.session("rules", RULE, *talk(1)))
    dialog = await open_list(page)
    item = dialog.get_by_role("listitem").filter(has_text="Answer in French.")
    await expect(item).to_contain_text("System and developer messages stay.")
    assert await nameless(page) == []
    await item.get_by_role("button", name="Release message 1").click()
    await expect(item).not_to_be_attached()
    assert 1 not in dict(standing(database, "rules"))


async def test_calls_and_results_can_be_pinned_too(
    page: Page, server: Process, api: Api, database: Path
) -> None:
    await page.goto(server.address + api.session("tools", user("What is in it?"), CALL, RESULT))
    button = page.get_by_role("button", name=re.compile(r"^(Pin|Release) message \d$"))
    await expect(button).to_have_count(3)
    await pin(page, 3)
    assert (3, "pinned") in standing(database, "tools")
    assert await nameless(page) == []


async def test_the_context_bar_has_a_part_for_them(page: Page, server: Process, api: Api) -> None:
    await page.goto(server.address + api.session("part", assistant("One."), assistant("Two.")))
    await expect(page.locator(".ef-part-messages")).to_be_visible()
    await expect(page.locator(".ef-part-standing")).not_to_be_attached()
    await pin(page, 1)
    await expect(page.locator(".ef-part-standing")).to_be_visible()
    await page.get_by_role("button", name=re.compile("^Context: ")).click()
    part = page.get_by_role("dialog", name="Context").get_by_role("listitem")
    await expect(part.filter(has_text="Pinned and standing messages")).to_contain_text(
        re.compile(r"[1-9]\d* tokens")
    )


@pytest.mark.parametrize("width", [1280, 390])
async def test_a_message_of_the_full_history_is_pinned(
    browser: Browser, server: Process, api: Api, database: Path, width: int
) -> None:
    name = f"history-{width}"
    path = api.session(name, *talk(10, 150))
    api.compress(name)
    async with window(browser, width=width, height=800) as (page, _):
        await page.goto(f"{server.address}{path}/history?m=2")
        message = page.locator("#m2")
        await message.get_by_role("button", name="Pin message 2").click()
        await expect(message.get_by_role("button", name="Release message 2")).to_be_visible()
        assert (2, "pinned") in standing(database, name)
        dialog = await open_list(page)
        item = dialog.get_by_role("listitem").filter(has_text="Answer 0:")
        await expect(item).to_contain_text("the next compression shows it again")
        assert await nameless(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
