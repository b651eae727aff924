"""The app in a browser: pages come up whole, quietly, and from this machine alone."""

from __future__ import annotations

from playwright.async_api import Page, expect


async def test_the_first_page_comes_up(page: Page) -> None:
    await expect(page).to_have_title("Chat · enfold")
    await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
