"""The list of sessions: begun, named, found, exported and deleted as a person does it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.async_api import Locator, Page, expect

from tests.server.processes import Process
from tests.ui.api_client import Api, assistant, talk, user


def listed(page: Page) -> Locator:
    return page.get_by_role("list", name="Sessions")


async def choose(page: Page, session: str, item: str) -> None:
    """Open the session's menu, and choose from it."""
    await page.get_by_role("button", name=f"Actions for {session}").click()
    await page.get_by_role("menu").get_by_text(item, exact=True).click()


async def test_a_session_is_created_and_named(page: Page, server: Process) -> None:
    await page.goto(server.address)
    await page.get_by_role("button", name="New conversation").click()
    await expect(page).to_have_url(re.compile("/s/chat-"))
    await choose(page, "New conversation", "Rename")
    await page.get_by_role("textbox", name="Title").fill("The quay <b>today</b>")
    await page.get_by_role("button", name="Save").click()
    await expect(listed(page)).to_contain_text("The quay <b>today</b>")


async def test_a_session_is_titled_after_its_first_message(page: Page, server: Process) -> None:
    await page.goto(server.address)
    before = page.url
    await page.get_by_role("button", name="New conversation").click()
    await page.wait_for_url(lambda url: url != before)
    await page.get_by_role("textbox", name="Message").fill("When does the ferry leave?")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("When does the ferry leave?")
    await expect(listed(page)).to_contain_text("When does the ferry leave?")


async def test_sessions_created_elsewhere_are_listed(page: Page, server: Process, api: Api) -> None:
    await page.goto(server.address)
    await expect(listed(page)).to_be_attached()
    api.session("from-a-program", user("x"), title="Made by a program")
    await expect(listed(page)).to_contain_text("Made by a program")


async def test_a_row_stays_the_same_while_sessions_change(
    page: Page, server: Process, api: Api
) -> None:
    for number in range(3):
        api.session(f"s{number}", user("x"), title=f"Row {number}")
    await page.goto(server.address)
    button = page.get_by_role("button", name="Actions for Row 0")
    await button.evaluate("element => { element.dataset.first = 'true' }")
    await expect(listed(page).get_by_role("listitem").first).to_contain_text("Row 2")
    api.append("s0", assistant("y"))
    api.session("s3", user("x"), title="Row 3")
    rows = listed(page).get_by_role("listitem")
    for place, text in enumerate(("Row 3", "Row 02 messages", "Row 2", "Row 1")):
        await expect(rows.nth(place)).to_contain_text(text)
    await expect(button).to_have_attribute("data-first", "true")


async def test_a_session_is_deleted_only_after_a_confirmation(
    page: Page, server: Process, api: Api
) -> None:
    api.session("doomed", user("x"), title="The doomed one")
    await page.goto(f"{server.address}/s/doomed")
    await choose(page, "The doomed one", "Delete")
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("dialog")).not_to_be_visible()
    await choose(page, "The doomed one", "Delete")
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page).not_to_have_url(re.compile("doomed"))
    await expect(listed(page)).not_to_contain_text("doomed")


async def test_sessions_are_searched_by_title_and_by_message(
    page: Page, server: Process, api: Api
) -> None:
    api.session("one", user("about the lighthouse"), title="Alpha talk")
    api.session("two", user("nothing"), title="Beta talk")
    await page.goto(f"{server.address}/s/two")
    search = page.get_by_role("searchbox", name="Search all conversations")
    await search.fill("alpha")
    await expect(listed(page)).to_contain_text("Alpha talk")
    await expect(listed(page)).not_to_contain_text("Beta talk")
    await search.fill("lighthouse")
    await expect(listed(page)).to_contain_text("about the lighthouse")
    await listed(page).get_by_text("about the lighthouse").click()
    await expect(page).to_have_url(re.compile("/s/one/history"))
    await expect(page.get_by_role("main")).to_contain_text("lighthouse")


async def test_a_search_without_a_find_says_so(page: Page, server: Process) -> None:
    await page.goto(server.address)
    await page.get_by_role("searchbox", name="Search all conversations").fill("zyxwv")
    await expect(listed(page)).to_contain_text("No results for “zyxwv”.")


async def test_a_session_is_exported_as_a_file(page: Page, server: Process, api: Api) -> None:
    await page.goto(server.address + api.session("leaving", user("a"), assistant("b")))
    async with page.expect_download() as download:
        await choose(page, "leaving", "Export")
    assert _contents(await (await download.value).path()) == ["a", "b"]


def _contents(file: Path) -> list[str]:
    entries = json.loads(file.read_text("utf-8"))["entries"]
    return [each["message"]["content"] for each in entries]


async def test_the_audit_log_records_actions_of_the_ui(
    page: Page, server: Process, api: Api
) -> None:
    path = api.session("watched", *talk(8, 150), title="Watched talk")
    api.compress("watched")
    await page.goto(server.address + path)
    card = page.get_by_role("region", name="Summary of")
    await card.get_by_role("button", name="Summary of").click()
    await card.get_by_role("button", name="Undo").click()
    await expect(card).not_to_be_visible()
    box = page.get_by_role("textbox", name="Message")
    await box.fill("And now?")
    await box.press("Enter")
    await expect(page.get_by_text("And now?").first).to_be_visible()
    await choose(page, "Watched talk", "Delete")
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("dialog")).not_to_be_visible()
    done = [action for action, _ in api.audited("watched") if action.startswith("UI")]
    assert done == ["UI undo", "UI append", "UI delete session"]


async def test_a_dialog_stays_open_while_the_list_changes(
    page: Page, server: Process, api: Api
) -> None:
    api.session("old", user("a"), title="Old talk")
    await page.goto(server.address)
    await choose(page, "Old talk", "Delete")
    sure = page.get_by_role("dialog").get_by_role("button", name="Delete")
    await expect(sure).to_be_visible()
    api.session("new", user("b"), title="New talk")
    await expect(listed(page)).to_contain_text("New talk")
    await sure.click()
    await expect(page.get_by_text("Old talk")).to_have_count(0)


async def test_the_menu_summarizes(page: Page, server: Process, api: Api) -> None:
    api.session("menu", user("a"), title="Menu talk")
    await page.goto(server.address)
    await choose(page, "Menu talk", "Summarize conversation history")
    await expect(page).to_have_url(re.compile("/s/menu"))
    await expect(page.get_by_role("dialog")).to_contain_text("Summarize conversation history")
