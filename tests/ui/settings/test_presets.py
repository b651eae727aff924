"""Presets: applied with a click, saved, exported, imported, deleted."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.async_api import Browser, expect

from tests.server.processes import Process
from tests.ui.browser import window
from tests.ui.settings.conftest import SESSION, SettingsApi, Visit, fits


async def test_one_click_applies_a_preset(visit: Visit, api: SettingsApi) -> None:
    page = await visit("/settings/presets")
    await page.get_by_role("button", name="Apply balanced").click()
    balanced = page.get_by_role("article", name="balanced")
    await expect(balanced.get_by_text("in use")).to_be_visible()
    assert api.setting("strategy") == "smart"
    assert api.setting("strategy_config")["smart"]["passes"]
    api.set(strategy=None, strategy_config=None)


async def test_a_session_can_have_another_preset(visit: Visit, api: SettingsApi) -> None:
    page = await visit(f"/settings/presets?session={SESSION}")
    await page.get_by_role("button", name="Apply speed").click()
    speed = page.get_by_role("article", name="speed")
    await expect(speed.get_by_text("in use")).to_be_visible()
    assert api.setting("strategy", SESSION) == "smart"
    assert api.setting("strategy") == "native"


async def test_current_settings_are_saved_exported_deleted_and_imported_as_a_preset(
    visit: Visit, api: SettingsApi, tmp_path: Path
) -> None:
    api.set(strategy="truncation", strategy_config={"truncation": {"preserveRecentCount": 4}})
    page = await visit("/settings/presets")
    name = page.get_by_role("textbox", name="Preset name")
    await name.fill("speed")
    await page.get_by_role("button", name="Save preset").click()
    await expect(page.get_by_text("'speed' is built in; give yours another name")).to_be_visible()
    await name.fill("my own")
    await page.get_by_role("textbox", name="Description").fill("The last four.")
    await page.get_by_role("button", name="Save preset").click()
    mine = page.get_by_role("article", name="my own")
    await expect(mine).to_contain_text("The last four.")
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Export my own").click()
    file = tmp_path / (await downloading.value).suggested_filename
    await (await downloading.value).save_as(file)
    assert json.loads(file.read_text())["config"] == {"preserveRecentCount": 4}
    await page.get_by_role("button", name="Delete my own").click()
    await expect(mine).not_to_be_visible()
    await (
        page.get_by_role("region", name="Import").locator("input[type=file]").set_input_files(file)
    )
    await expect(page.get_by_text("my own imported.")).to_be_visible()
    await expect(mine).to_contain_text("The last four.")
    api.set(strategy=None, strategy_config=None)


async def test_a_file_that_is_no_preset_is_refused_by_its_field(
    visit: Visit, tmp_path: Path
) -> None:
    file = tmp_path / "odd.json"
    file.write_text(json.dumps({"version": 1, "name": "odd", "strategy": "smart", "speed": 9}))
    page = await visit("/settings/presets")
    await (
        page.get_by_role("region", name="Import").locator("input[type=file]").set_input_files(file)
    )
    await expect(page.get_by_text("odd.json: speed: unknown field")).to_be_visible()


async def test_the_page_fits_a_phone_in_dark_mode(
    browser: Browser, server: Process, api: SettingsApi
) -> None:
    async with window(browser, width=390, height=800, dark=True) as (page, _):
        await page.goto(f"{server.address}/settings/presets?session=long")
        await expect(page.get_by_role("article", name="quality")).to_be_visible()
        assert await fits(page)
