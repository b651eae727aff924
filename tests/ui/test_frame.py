"""The frame: the way about, the colours that are remembered, and a drawer that makes room."""

from __future__ import annotations

from playwright.async_api import Browser, Page, expect

from tests.server.processes import Process
from tests.ui.browser import window


async def test_colours_are_remembered(page: Page, server: Process) -> None:
    await page.goto(server.address)
    await page.get_by_role("button", name="Colours: auto").click()
    await page.get_by_role("button", name="Colours: light").click()
    await expect(page.locator("body.body--dark")).to_be_attached()
    await page.wait_for_function("document.cookie.includes('enfold-scheme=dark')")
    await page.reload()
    await expect(page.get_by_role("button", name="Colours: dark")).to_be_visible()
    await expect(page.locator("body.body--dark")).to_be_attached()


async def test_the_list_of_sessions_is_hidden_on_a_phone(browser: Browser, server: Process) -> None:
    async with window(browser, width=390, height=800) as (page, _):
        await page.goto(server.address)
        pages = page.get_by_role("navigation", name="Pages")
        await expect(pages).not_to_be_in_viewport()
        await page.get_by_role("button", name="Show or hide sessions").click()
        await expect(pages).to_be_in_viewport()
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
