"""The preview of a config on a session, before it is saved."""

from __future__ import annotations

from playwright.async_api import expect

from tests.ui.settings.conftest import SESSION, TITLE, SettingsApi, Visit, choose
from tests.ui.settings.test_passes import OLD, SUMMARY, opened


async def test_a_preview_says_what_would_come_of_it(visit: Visit, api: SettingsApi) -> None:
    page = await visit("/settings/strategy")
    await page.get_by_role("button", name="Configure Truncation").click()
    # The form of the previous strategy has a list of sessions too: wait until it is replaced.
    await expect(page.get_by_role("spinbutton", name="Preserve recent count")).to_be_visible()
    await choose(page, "Preview session", TITLE)
    await page.get_by_role("button", name="Preview").click()
    preview = page.get_by_role("region", name="Preview on a session")
    await expect(preview).to_contain_text("Saved")
    await expect(preview.get_by_role("table", name="Steps")).to_contain_text("truncate")
    await expect(preview).to_contain_text("none: no model is called")
    assert not api.ask("GET", f"/sessions/{SESSION}/summaries")


async def test_passes_are_tried_on_a_session_before_they_are_kept(visit: Visit) -> None:
    page = await opened(visit)
    await page.get_by_role("button", name=f"Delete {SUMMARY}").click()
    await choose(page, "Preview session", TITLE)
    await page.get_by_role("button", name="Preview").click()
    steps = page.get_by_role("table", name="Steps")
    await expect(steps).to_contain_text(OLD)
    await expect(steps).not_to_contain_text(SUMMARY)
