"""The general settings: found by a word, changed, explained, put back."""

from __future__ import annotations

from playwright.async_api import Browser, expect

from enfold.ui.settings.scope import LISTED
from tests.server.processes import Process
from tests.ui.browser import window
from tests.ui.settings.conftest import LONG_TITLE, SESSION, TITLE, SettingsApi, Visit, choose, fits


async def test_a_word_leaves_only_what_answers_to_it(visit: Visit) -> None:
    page = await visit("/settings")
    await expect(page.get_by_role("textbox", name="Recent tokens kept")).to_be_visible()
    await expect(page.get_by_role("textbox", name="Early mark")).not_to_be_visible()
    search = page.get_by_role("searchbox", name="Search settings")
    await search.fill("early mark")
    await expect(page.get_by_role("textbox", name="Early mark")).to_be_visible()
    await expect(page.get_by_role("textbox", name="Recent tokens kept")).not_to_be_visible()
    await search.fill("tokenizer")
    await expect(page.get_by_role("link", name="Models and their limits")).to_be_visible()
    await search.fill("nothing of the kind")
    await expect(page.get_by_text("No results for")).to_be_visible()
    await search.fill("")
    await expect(page.get_by_role("textbox", name="Recent tokens kept")).to_be_visible()


async def test_help_shows_quotation_marks_and_placeholders_fit_their_fields(visit: Visit) -> None:
    page = await visit("/settings")
    await expect(page.get_by_text("The author of summaries: “local”")).to_be_visible()
    fields = page.get_by_role("textbox").and_(page.locator("[placeholder]:visible"))
    await expect(fields.first).to_be_visible()
    cut_off = await fields.evaluate_all(
        """fields => fields.filter(field => {
            const pen = document.createElement('canvas').getContext('2d');
            pen.font = getComputedStyle(field).font;
            return pen.measureText(field.placeholder).width > field.clientWidth;
        }).map(field => field.placeholder)"""
    )
    assert cut_off == []


async def test_the_fields_of_all_settings_are_in_one_column(visit: Visit) -> None:
    page = await visit("/settings")
    await page.get_by_text("Advanced", exact=True).first.click()
    names = ("Threshold", "Early mark", "Trigger ratio", "Maximum tokens", "Recent tokens kept")
    fields = [page.get_by_role("textbox", name=name, exact=True) for name in names]
    await expect(fields[3]).to_be_visible()
    boxes = [await field.bounding_box() for field in fields]
    assert len({round(box["x"]) for box in boxes if box}) == 1


async def test_a_threshold_is_checked_kept_explained_and_put_back(
    visit: Visit, api: SettingsApi
) -> None:
    page = await visit("/settings")
    effective = page.get_by_role("region", name="Effective threshold")
    await expect(effective).to_contain_text("100,734 tokens")
    await expect(effective).to_contain_text("from: default")
    field = page.get_by_role("textbox", name="Threshold", exact=True)
    await field.fill("3")
    await expect(
        page.get_by_text("threshold = '3': expected 0.05 to 1; 95 % is 0.95")
    ).to_be_visible()
    await field.press("Enter")
    assert api.setting("threshold") is None
    await field.fill("0.5")
    await field.press("Enter")
    await expect(effective).to_contain_text("53,018 tokens")
    await expect(effective).to_contain_text("from: set for all sessions")
    assert api.setting("threshold") == 0.5
    await field.fill("60")
    await field.press("Enter")
    await expect(effective).to_contain_text("63,621 tokens")
    assert api.setting("threshold") == 0.6
    await page.get_by_role("button", name="Reset Threshold").click()
    await expect(effective).to_contain_text("from: default")
    await expect(field).to_have_value("")
    assert api.setting("threshold") is None


async def test_a_session_can_have_other_settings(visit: Visit, api: SettingsApi) -> None:
    page = await visit("/settings")
    await choose(page, "Settings of", f"Session: {TITLE}")
    await choose(page, "Style", "Concise")
    await expect(page.get_by_role("button", name="Reset Style")).to_be_visible()
    assert api.setting("style", SESSION) == "concise"
    assert api.setting("style") == "default"
    await page.get_by_role("switch", name="Show compressions").click()
    await expect(page.get_by_role("button", name="Reset Show compressions")).to_be_visible()
    assert api.setting("notifications", SESSION) is False
    await choose(page, "Settings of", "All sessions")
    await expect(page.get_by_role("button", name="Reset Style")).not_to_be_visible()
    await expect(page.get_by_role("switch", name="Show compressions")).to_be_checked()


async def test_a_link_names_the_session(visit: Visit) -> None:
    page = await visit(f"/settings?session={SESSION}")
    await expect(page.get_by_role("combobox", name="Settings of")).to_have_value(
        f"Session: {TITLE}"
    )


async def test_a_session_can_be_summarized_from_here(visit: Visit, api: SettingsApi) -> None:
    page = await visit("/settings")
    await choose(page, "Session", LONG_TITLE)
    await page.get_by_role("button", name="Summarize conversation history").click()
    await page.get_by_role("button", name="Summarize now").click()
    done = page.get_by_role("region", name="Summarize now").get_by_text("Summarized", exact=False)
    await expect(done.first).to_be_visible()
    assert api.ask("GET", "/sessions/long/summaries")


async def test_the_page_fits_a_phone_in_dark_mode(
    browser: Browser, server: Process, api: SettingsApi
) -> None:
    async with window(browser, width=390, height=800, dark=True) as (page, _):
        await page.goto(f"{server.address}/settings?session=long")
        await expect(page.get_by_role("textbox", name="Threshold", exact=True)).to_be_visible()
        assert await fits(page)


async def test_a_link_names_a_session_that_the_field_does_not_list(
    visit: Visit, api: SettingsApi
) -> None:
    newer = [f"newer-{number}" for number in range(LISTED)]
    for id in newer:
        api.ask("POST", "/sessions", json={"id": id})
    page = await visit(f"/settings?session={SESSION}")
    field = page.get_by_role("combobox", name="Settings of")
    await expect(field).to_have_value(f"Session: {SESSION}")
    await page.goto(page.url.replace(SESSION, "missing"))
    await expect(field).to_have_value("All sessions")
    for id in newer:
        api.ask("DELETE", f"/sessions/{id}")
