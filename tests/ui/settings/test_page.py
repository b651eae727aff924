"""The page of the settings: its sections, and who may change what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from playwright.async_api import Browser, Page, expect

from tests.server.processes import Process, serve
from tests.ui.browser import window
from tests.ui.settings.conftest import SettingsApi, Visit

SECTIONS = ("General", "Strategy", "Presets", "Profiles", "Prompts", "Models", "Access")
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


@asynccontextmanager
async def signed_in(browser: Browser, server: Process, token: str) -> AsyncIterator[Page]:
    """A window on the settings, after a sign-in with the token."""
    async with window(browser) as (page, watch):
        watch.expected = ("401",)
        await page.goto(f"{server.address}/settings")
        await page.get_by_label("Access token").fill(token)
        await page.keyboard.press("Enter")
        yield page


async def test_only_the_owner_changes_common_settings_and_sees_all(
    browser: Browser, tmp_path: Path
) -> None:
    with serve(tmp_path / "two.db", ENFOLD_TOKEN=TOKEN, ENFOLD_THRESHOLD="0.7") as server:
        address = f"{server.address}/api"
        with httpx.Client(
            base_url=address, headers={"x-enfold-token": TOKEN}, timeout=60
        ) as client:
            anns = SettingsApi(client).ask("POST", "/tokens", json={"name": "ann"})["token"]
            SettingsApi(client).ask("POST", "/sessions", json={"id": "owners"})
        with httpx.Client(base_url=address, headers={"x-enfold-token": anns}, timeout=60) as client:
            SettingsApi(client).ask("POST", "/sessions", json={"id": "the ferry"})
        async with signed_in(browser, server, anns) as page:
            await expect(page.get_by_text("You can read all settings")).to_be_visible()
            threshold = page.get_by_role("textbox", name="Threshold", exact=True)
            await expect(threshold).to_be_disabled()
            await expect(threshold).to_have_value("0.7")
            effective = page.get_by_role("region", name="Effective threshold")
            await expect(effective).to_contain_text("from: environment")
            await expect(page.get_by_role("button", name="Reset Threshold")).not_to_be_visible()
            await page.goto(f"{server.address}/settings/access")
            await expect(page.get_by_text("You see the sessions of the token ann")).to_be_visible()
            # The cookie of an owner who looks into a namespace has no effect for others.
            await page.evaluate("document.cookie = 'enfold-namespace=other;path=/'")
            await page.reload()
            await expect(page.get_by_role("list", name="Sessions")).to_contain_text("the ferry")
        async with signed_in(browser, server, TOKEN) as page:
            sessions = page.get_by_role("list", name="Sessions")
            await expect(sessions).to_contain_text("owners")
            await page.get_by_role("link", name="Access", exact=True).click()
            await expect(page.get_by_text("Every access token has a namespace")).to_be_visible()
            await page.get_by_role("button", name="Look into the sessions of ann").click()
            await expect(page.get_by_text("Sessions of ann")).to_be_visible()
            await expect(sessions).to_contain_text("the ferry")
            await expect(sessions).not_to_contain_text("owners")
            await sessions.get_by_role("link", name="the ferry").click()
            await expect(page.get_by_role("heading", name="the ferry")).to_be_visible()
            await page.get_by_role("button", name="Back to yours").click()
            await expect(sessions).to_contain_text("owners")
            await expect(sessions).not_to_contain_text("the ferry")
