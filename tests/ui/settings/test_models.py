"""Models: found, added with a suggestion, edited, reset, deleted."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from enfold.modelconfig import ModelConfig
from enfold.ui.settings.models import source_words
from tests.server.processes import Process
from tests.ui.browser import window
from tests.ui.settings.conftest import SettingsApi, Visit, fits


async def test_a_model_is_added_with_128000_suggested(visit: Visit, api: SettingsApi) -> None:
    page = await visit("/settings/models")
    await page.get_by_role("button", name="Add model").click()
    dialog = page.get_by_role("dialog", name="Add model")
    size = dialog.get_by_role("spinbutton", name="Maximum input")
    await expect(size).to_have_value("128000")
    await expect(dialog).to_contain_text("Most models accept at least 128,000")
    await dialog.get_by_role("textbox", name="Model (provider:model)").fill("mine")
    await dialog.get_by_role("button", name="Save model").click()
    await expect(dialog).to_contain_text("expected provider:model")
    await dialog.get_by_role("textbox", name="Model (provider:model)").fill("mine:tiny")
    await size.fill("0")
    await expect(dialog).to_contain_text("expected a whole number, 1 or more, found 0")
    await expect(dialog.get_by_role("button", name="Save model")).to_be_disabled()
    await size.fill("32000")
    await dialog.get_by_role("button", name="Save model").click()
    await expect(dialog).not_to_be_visible()
    await page.get_by_role("searchbox", name="Search models").fill("tiny")
    row = page.get_by_role("listitem", name="mine:tiny")
    await expect(row).to_contain_text("32,000 tokens in")
    await expect(row).to_contain_text("from: set by hand")
    assert api.ask("GET", "/models/mine:tiny")["max_input"] == 32_000


async def test_a_model_is_edited_reset_and_deleted(visit: Visit, api: SettingsApi) -> None:
    page = await visit("/settings/models")
    await page.get_by_role("searchbox", name="Search models").fill("gpt-4-turbo")
    row = page.get_by_role("listitem", name="openai:gpt-4-turbo", exact=True)
    await expect(row).to_contain_text("from: shipped with enfold")
    await row.get_by_role("button", name="Edit openai:gpt-4-turbo").click()
    dialog = page.get_by_role("dialog", name="Edit openai:gpt-4-turbo")
    await dialog.get_by_role("spinbutton", name="Threshold").fill("0.7")
    await dialog.get_by_role("button", name="Save model").click()
    await expect(row).to_contain_text("threshold 70 %")
    await expect(row).to_contain_text("from: set by hand")
    await row.get_by_role("button", name="Reset openai:gpt-4-turbo").click()
    await expect(row).to_contain_text("threshold 95 %")
    await row.get_by_role("button", name="Delete openai:gpt-4-turbo").click()
    await expect(row).not_to_be_visible()


async def test_assumed_limits_look_like_an_estimate(visit: Visit, api: SettingsApi) -> None:
    api.ask("GET", "/models/nobody:knows")
    page = await visit("/settings/models")
    await page.get_by_role("searchbox", name="Search models").fill("nobody")
    row = page.get_by_role("listitem", name="nobody:knows")
    await expect(row).to_contain_text("≈ 128,000 tokens in")
    await expect(row).to_contain_text("from: assumed")


async def test_many_models_come_in_pages(visit: Visit) -> None:
    page = await visit("/settings/models")
    items = page.get_by_role("list", name="Models").get_by_role("listitem")
    first = await items.first.get_attribute("aria-label")
    await expect(items).to_have_count(20)
    await page.get_by_role("button", name="2", exact=True).click()
    await expect(items.first).not_to_have_attribute("aria-label", first or "")


async def test_the_page_fits_a_phone_in_dark_mode(
    browser: Browser, server: Process, api: SettingsApi
) -> None:
    async with window(browser, width=390, height=800, dark=True) as (page, _):
        await page.goto(f"{server.address}/settings/models")
        await expect(page.get_by_role("listitem").first).to_be_visible()
        assert await fits(page)
        await page.get_by_role("button", name="Add model").click()
        await expect(page.get_by_role("dialog", name="Add model")).to_be_in_viewport()


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (ModelConfig("openai:gpt-4o", 1, 1), "shipped with enfold"),
        (ModelConfig("a:b", 1, 1), "assumed"),
        (ModelConfig("a:b", 1, 1, source="api"), "the provider"),
        (ModelConfig("a:b", 1, 1, source="library"), "the price list"),
        (ModelConfig("a:b", 1, 1, source="manual"), "set by hand"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_source_of_limits_is_named(config: ModelConfig, words: str) -> None:
    assert source_words(config) == words
