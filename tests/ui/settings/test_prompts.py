"""The prompt: checked while it is written, seen on a real excerpt, kept, put back."""

from __future__ import annotations

from playwright.async_api import Browser, expect

from tests.server.processes import Process
from tests.ui.browser import window
from tests.ui.settings.conftest import SESSION, TITLE, SettingsApi, Visit, choose, fits


async def test_a_prompt_is_checked_previewed_kept_and_put_back(
    visit: Visit, api: SettingsApi
) -> None:
    page = await visit("/settings/prompts")
    prompt = page.get_by_role("textbox", name="Your prompt")
    await choose(page, "Example from", TITLE)
    user_text = page.get_by_role("region", name="User text")
    await expect(user_text).to_contain_text("Lindvik")
    await prompt.fill("Only {nonsense} matters")
    await expect(page.get_by_text("unknown placeholders: nonsense")).to_be_visible()
    save = page.get_by_role("button", name="Save prompt")
    await expect(save).to_be_disabled()
    await prompt.fill("Keep every price. {conversation_history} Answer in rhyme.")
    await expect(user_text).to_contain_text("Answer in rhyme.")
    await expect(user_text).to_contain_text("Lindvik")
    await save.click()
    await expect(page.get_by_text("from: set for all sessions")).to_be_visible()
    assert api.setting("prompt", SESSION).startswith("Keep every price.")
    await page.get_by_role("button", name="Reset prompt").click()
    await expect(prompt).to_have_value("")
    await expect(user_text).not_to_contain_text("Answer in rhyme.")
    assert api.setting("prompt") is None


async def test_the_page_warns_that_a_strategys_prompt_wins(visit: Visit, api: SettingsApi) -> None:
    api.set(strategy_config={"native": {"prompt": "Mine"}})
    page = await visit("/settings/prompts")
    await expect(page.get_by_text("has its own prompt")).to_be_visible()
    api.set(strategy_config=None)


async def test_the_page_fits_a_phone_in_dark_mode(
    browser: Browser, server: Process, api: SettingsApi
) -> None:
    async with window(browser, width=390, height=800, dark=True) as (page, _):
        await page.goto(f"{server.address}/settings/prompts")
        await expect(page.get_by_role("region", name="User text")).to_be_visible()
        assert await fits(page)
