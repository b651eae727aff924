"""The changes of a compression in the browser: before and after, and the receipt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from enfold.engine import Engine
from enfold.testing import user
from tests.server.processes import Process, serve
from tests.ui.browser import window
from tests.ui.talks import in_engine, read_files, talk

ADDRESSES: dict[str, str] = {}
"""Of the compressions that the tests look at, by the session's name."""


@pytest.fixture(scope="module")
def server(database: Path, port: int) -> Iterator[Process]:
    async def fill(engine: Engine) -> None:
        worded = await engine.session("worded")
        await talk(worded, 30)
        kept = await worded.compress()
        ADDRESSES["worded"] = f"/s/worded/changes/{kept.snapshot}"
        # From here on people's words are summarized too: one row of messages, one summary.
        await engine.set("words_share", 0.0)
        talked = await engine.session("talked")
        await talk(talked, 30)
        done = await talked.compress()
        ADDRESSES["talked"] = f"/s/talked/changes/{done.snapshot}"
        await talk(talked, 20, start=30)
        again = await talked.compress()
        ADDRESSES["again"] = f"/s/talked/changes/{again.snapshot}"
        files = await engine.session("files")
        await read_files(files)
        await files.append(user("Thank you."))
        shortened = await files.compress(strategy="lossless", keep_tokens=100)
        ADDRESSES["files"] = f"/s/files/changes/{shortened.snapshot}"

    in_engine(database, fill)
    with serve(database, "--port", str(port)) as process:
        yield process


async def open_changes(page: Page, server: Process, name: str, query: str = "") -> None:
    await page.goto(f"{server.address}{ADDRESSES[name]}{query}")
    await expect(page.get_by_role("region", name="This compression")).to_be_visible()


async def test_the_figures_come_first(page: Page, server: Process) -> None:
    await open_changes(page, server, "talked")
    figures = page.get_by_role("region", name="This compression")
    await expect(figures).to_contain_text("Native, by the built-in summarizer")
    await expect(figures).to_contain_text("summarized")
    await expect(figures).to_contain_text("unchanged")
    await page.get_by_role("link", name="Back to conversation").click()
    await expect(page).to_have_url(f"{server.address}/s/talked")


async def test_summarized_messages_stand_next_to_their_summary_and_open(
    page: Page, server: Process
) -> None:
    await open_changes(page, server, "talked")
    await expect(page.get_by_role("group", name="Summary")).to_be_visible()
    gone = page.locator(".ef-side-gone")
    await expect(gone).not_to_contain_text("Question 0:")
    await gone.get_by_role("button", name="messages (#1 to #").click()
    await expect(gone.get_by_text("Question 0: what is in docs/file_0.md?")).to_be_visible()
    await gone.get_by_role("button", name="Show more").click()
    await expect(gone.get_by_text("Question 12: what is in")).to_be_visible()


async def test_typed_messages_stay_between_summarized_ones(page: Page, server: Process) -> None:
    await open_changes(page, server, "worded")
    await expect(page.locator(".ef-side-gone").first).to_contain_text("message")
    unchanged = page.locator(".ef-across").filter(has_text="unchanged").first
    await expect(unchanged).to_contain_text("You")
    await expect(page.get_by_text("the summary covers these messages too").first).to_be_visible()


async def test_the_summary_until_then_is_there_too(page: Page, server: Process) -> None:
    await open_changes(page, server, "again")
    await expect(page.get_by_text("summarized by an earlier compression")).to_be_visible()
    await page.get_by_role("button", name="Earlier summary").click()
    await expect(page.locator(".ef-side-gone .ef-summary-text")).to_contain_text("Question")


async def test_every_marker_opens_where_it_stands_and_closes_again(
    page: Page, server: Process
) -> None:
    await open_changes(page, server, "files")
    await expect(page.get_by_text("shortened").first).to_be_visible()
    marker = page.get_by_role("button", name="⟨ File content already provided").first
    original = page.locator(".ef-original")
    await expect(original).to_have_count(0)
    await marker.click()
    await expect(original).to_contain_text("59 line 59 of file 0")
    await expect(marker).to_have_attribute("aria-expanded", "true")
    await marker.click()
    await expect(original).to_have_count(0)


async def test_unchanged_messages_are_closed_and_can_be_opened(page: Page, server: Process) -> None:
    await open_changes(page, server, "files")
    await page.get_by_role("button", name="unchanged (#1 to #").click()
    await expect(page.get_by_text("Read file 0.").first).to_be_visible()


async def test_the_receipt_counts_groups_and_searches(page: Page, server: Process) -> None:
    await open_changes(page, server, "talked", "?show=receipt")
    await expect(page.get_by_text("Kept", exact=True)).to_be_visible()
    await expect(page.get_by_text("Lost", exact=True)).to_be_visible()
    paths = page.get_by_role("button", name="Paths:")
    await paths.click()
    await expect(page.get_by_text("docs/file_3.md", exact=True)).to_be_visible()
    await page.get_by_label("Search items").fill("file_2")
    await expect(page.get_by_text("docs/file_3.md", exact=True)).not_to_be_visible()
    await expect(page.get_by_text("docs/file_2.md", exact=True)).to_be_visible()
    await page.get_by_label("Search items").fill("zeppelin")
    await expect(page.get_by_text("No matching items.")).to_be_visible()


async def test_restorable_items_link_to_their_message(page: Page, server: Process) -> None:
    await open_changes(page, server, "talked")
    await page.get_by_role("tab", name="Receipt").click()
    await page.get_by_label("Status").click()
    await page.get_by_role("option", name="Restorable").click()
    link = page.get_by_role("link", name="restorable: find it in the full history").first
    await link.click()
    found = page.get_by_role("region", name="Search results")
    await expect(found.locator("mark").first).to_be_visible()
    await found.get_by_role("link").first.click()
    await expect(page.locator("article mark").first).to_be_in_viewport()


async def test_an_unknown_compression_is_called_missing(page: Page, server: Process) -> None:
    await page.goto(f"{server.address}/s/talked/changes/nothing")
    await expect(page.get_by_text("there is no snapshot 'nothing'")).to_be_visible()


@pytest.mark.parametrize("name", ["talked", "files"])
async def test_the_views_are_stacked_on_a_phone(
    browser: Browser, server: Process, name: str
) -> None:
    async with window(browser, width=390, height=800, dark=True) as (page, _):
        await open_changes(page, server, name)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await expect(page.locator(".ef-side-name").first).to_be_visible()
