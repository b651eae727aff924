"""The page of the settings: its sections, and who may change what."""

from __future__ import annotations

from pathlib import Path

import httpx
from playwright.async_api import Browser, expect

from tests.server.processes import serve
from tests.ui.browser import window
from tests.ui.settings.conftest import Api, Visit

SECTIONS = ("General", "Strategy", "Presets", "Profiles", "Prompts", "Models")
TOKEN = "the-first-token-of-this-server"


async def test_every_section_is_reached_by_its_link(visit: Visit) -> None:
    page = await visit("/settings")
    for title in SECTIONS:
        link = page.get_by_role("navigation", name="Sections").get_by_role("link", name=title)
        await link.click()
        await expect(link).to_have_attribute("aria-current", "page")
        await expect(page.get_by_role("heading", name=f"Settings: {title}")).to_be_visible()


async def test_a_section_that_is_not_there(visit: Visit) -> None:
    page = await visit("/settings/nonsense")
    await expect(page.get_by_role("alert")).to_contain_text("no section 'nonsense'")


async def test_only_the_owner_changes_what_holds_for_everybody(
    browser: Browser, tmp_path: Path
) -> None:
    with serve(tmp_path / "two.db", ENFOLD_TOKEN=TOKEN, ENFOLD_THRESHOLD="0.7") as server:
        owner = {"x-enfold-token": TOKEN}
        with httpx.Client(base_url=f"{server.address}/api", headers=owner) as client:
            anns = Api(client).ask("POST", "/tokens", json={"name": "ann"})["token"]
        async with window(browser) as (page, watch):
            watch.expected = ("401",)
            await page.goto(f"{server.address}/settings")
            await page.get_by_label("Access token").fill(anns)
            await page.keyboard.press("Enter")
            await expect(page.get_by_text("You can read all settings")).to_be_visible()
            threshold = page.get_by_role("textbox", name="Threshold", exact=True)
            await expect(threshold).to_be_disabled()
            await expect(threshold).to_have_value("0.7")
            effective = page.get_by_role("region", name="Effective threshold")
            await expect(effective).to_contain_text("from: environment")
            await expect(page.get_by_role("button", name="Reset Threshold")).not_to_be_visible()
