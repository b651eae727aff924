"""The full history as a person reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import pytest
from playwright.async_api import Browser, Page, expect

from enfold.engine import Engine
from enfold.testing import assistant, user
from enfold.ui.history import HistoryQuery
from tests.server.processes import Process, serve
from tests.ui.browser import window
from tests.ui.talks import in_engine, talk

HOSTILE = "<img src=x onerror=\"document.title='stolen'\"> <script>alert(1)</script>"


@pytest.fixture(scope="module")
def server(database: Path, port: int) -> Iterator[Process]:
    async def fill(engine: Engine) -> None:
        long = await engine.session("long")
        await talk(long, 60)
        await long.compress()
        first = (await long.history(limit=120))[0]
        await long.append(assistant("Elsewhere, at the harbour."), after=first.id)
        await long.switch((await long.branches())[0].tip)
        odd = await engine.session("odd / one")
        await odd.append(user(HOSTILE), assistant("שלום " + "supercalifragilistic" * 30))
        await engine.session("empty")
        huge = await engine.session("huge")
        for start in range(0, 5_000, 500):
            await talk(huge, 500, words=3, start=start)

    in_engine(database, fill)
    with serve(database, "--port", str(port)) as process:
        yield process


async def open_history(page: Page, server: Process, session: str = "long", query: str = "") -> None:
    await page.goto(f"{server.address}/s/{session}/history{query}")
    await expect(page.get_by_text("Full history, not the active context")).to_be_visible()


async def test_the_history_is_marked_as_not_active_and_links_back(
    page: Page, server: Process
) -> None:
    await open_history(page, server)
    await page.get_by_role("link", name="Back to conversation").click()
    await expect(page).to_have_url(f"{server.address}/s/long")


async def test_the_history_opens_at_its_end_and_has_pages(page: Page, server: Process) -> None:
    await open_history(page, server)
    pages = page.get_by_role("navigation", name="History pages").first
    await expect(pages).to_contain_text("Messages 101 to 120 of 120")
    await expect(page.get_by_text("Answer 59:")).to_be_visible()
    await pages.get_by_role("button", name="1", exact=True).click()
    await expect(page.get_by_text("Messages 1 to 50 of 120").first).to_be_visible()
    await expect(page.get_by_text("Question 0:")).to_be_visible()


async def test_every_message_says_whether_the_model_is_sent_it(page: Page, server: Process) -> None:
    await open_history(page, server)
    newest = page.locator("#m120")
    await expect(newest.get_by_text("in context")).to_be_visible()
    await open_history(page, server, query="?m=2")
    await page.locator("#m2").get_by_role("link", name="summarized").click()
    await expect(page.get_by_role("region", name="This compression")).to_be_visible()


async def test_a_search_marks_what_it_finds_and_leads_there(page: Page, server: Process) -> None:
    await open_history(page, server)
    await page.get_by_label("Search full history").fill('"docs/file_7.md"')
    await page.get_by_label("Search full history").press("Enter")
    found = page.get_by_role("region", name="Search results")
    await expect(found).to_contain_text("1 result for")
    await expect(found.locator("mark")).to_have_text("docs/file_7.md")
    await found.get_by_role("link").click()
    target = page.locator("#m15")
    await expect(target).to_be_in_viewport()
    await expect(target.locator("mark")).to_have_text("docs/file_7.md")
    await expect(target).to_have_class(re.compile("target"))


async def test_results_follow_while_a_person_types(page: Page, server: Process) -> None:
    await open_history(page, server)
    field = page.get_by_role("searchbox", name="Search full history")
    results = page.get_by_role("region", name="Search results")
    await field.fill("nowhere-to-be-found")
    await expect(results).to_contain_text("No results for “nowhere-to-be-found”.")
    await field.fill("question 7")
    await expect(results.get_by_role("link").first).to_be_visible()
    await field.fill("")
    await expect(results).not_to_be_attached()


async def test_a_question_is_answered_by_recall(page: Page, server: Process) -> None:
    await open_history(page, server)
    await page.get_by_label("Search full history").fill("Which change of docs/file_7.md was made?")
    found = page.get_by_role("region", name="Search results")
    await expect(found).to_contain_text("about “Which change of docs/file_7.md was made?”")
    await expect(found.get_by_role("link").filter(has_text="docs/file_7.md").first).to_be_visible()


async def test_a_search_without_a_hit_says_so(page: Page, server: Process) -> None:
    await open_history(page, server, query="?q=zeppelin")
    await expect(page.get_by_text("No results for")).to_be_visible()


async def test_another_branch_can_be_read(page: Page, server: Process) -> None:
    await open_history(page, server)
    await expect(page.get_by_text("Elsewhere, at the harbour.")).not_to_be_visible()
    await page.get_by_label("Branch").click()
    await page.get_by_role("option", name="Branch 2: 2 messages").click()
    await expect(page.get_by_text("Elsewhere, at the harbour.")).to_be_visible()
    await expect(page.get_by_text("Messages 1 to 2 of 2").first).to_be_visible()
    await page.get_by_label("Search full history").fill("  harbour ")
    await page.get_by_role("button", name="Search", exact=True).click()
    await expect(page.get_by_role("region", name="Search results")).to_contain_text("1 result for")
    await expect(page).to_have_url(re.compile("branch="))


async def test_markup_in_the_history_is_shown_and_not_executed(page: Page, server: Process) -> None:
    await open_history(page, server, "odd%20%2F%20one")
    await expect(page.get_by_text(HOSTILE)).to_be_visible()
    await expect(page).to_have_title("Full history · enfold")


async def test_an_empty_history_says_so(page: Page, server: Process) -> None:
    await open_history(page, server, "empty")
    await expect(page.get_by_text("No messages yet.")).to_be_visible()


async def test_ten_thousand_messages_are_there_at_once(page: Page, server: Process) -> None:
    started = perf_counter()
    await open_history(page, server, "huge")
    await expect(page.get_by_text("Messages 9,951 to 10,000 of 10,000").first).to_be_visible()
    assert await page.locator("article").count() == 50
    print(f"opened in {perf_counter() - started:.2f} s")  # noqa: T201 - for measurements


@pytest.mark.parametrize("session", ["long", "odd%20%2F%20one"])
async def test_the_history_fits_a_phone(browser: Browser, server: Process, session: str) -> None:
    async with window(browser, width=390, height=800, dark=True) as (page, _):
        await open_history(page, server, session)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(
    ("given", "depth", "page"),
    [
        ({}, 120, 3),
        ({}, 0, 1),
        ({"page": "2"}, 120, 2),
        ({"page": "99"}, 120, 3),
        ({"page": "0"}, 120, 1),
        ({"page": "x"}, 120, 3),
        ({"m": "51"}, 120, 2),
        ({"m": "50"}, 120, 1),
        ({"m": "-3"}, 120, 3),
    ],
    ids=str,
)
def test_the_address_says_which_page(given: dict[str, str], depth: int, page: int) -> None:
    assert HistoryQuery.read(given).page_of(depth) == page
