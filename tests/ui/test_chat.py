"""The chat as a person uses it."""

from __future__ import annotations

from playwright.async_api import Page, expect


async def test_without_a_conversation_the_page_says_so(page: Page) -> None:
    await expect(page.get_by_text("No conversation yet.")).to_be_visible()
