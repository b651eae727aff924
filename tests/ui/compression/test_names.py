"""Every button, field and link has an accessible name."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.server.processes import Process
from tests.ui.api_client import Api, talk

CONTROLS = "button|link|textbox|searchbox|combobox|switch|checkbox|tab|spinbutton"
NAMELESS = re.compile(rf'^\s*- ({CONTROLS})\b(?! ")')


async def nameless(page: Page) -> list[str]:
    """Controls on the page without a name."""
    lines = (await page.locator("body").aria_snapshot()).splitlines()
    return [line for line in lines if NAMELESS.match(line)]


def test_a_control_without_a_name_is_seen() -> None:
    assert NAMELESS.match("  - button [disabled]:")
    assert not NAMELESS.match('  - button "Undo" [disabled]')
    assert not NAMELESS.match("- tablist:")


@pytest.fixture(scope="module")
def compressed(api: Api) -> str:
    """The path of the changes of a compressed session."""
    path = api.session("names", *talk(60, 40))
    done = api.compress("names")
    return f"{path}/changes/{done['snapshot']}"


@pytest.mark.parametrize("query", ["", "?show=receipt"])
async def test_the_changes_page_has_no_nameless_control(
    page: Page, server: Process, compressed: str, query: str
) -> None:
    await page.goto(f"{server.address}{compressed}{query}")
    await expect(page.get_by_role("tab", name="Receipt")).to_be_visible()
    assert await nameless(page) == []


async def test_the_full_history(page: Page, server: Process, compressed: str) -> None:
    await page.goto(f"{server.address}/s/names/history?q=question")
    await expect(page.get_by_role("region", name="Search results")).to_be_visible()
    assert await nameless(page) == []


async def test_the_dialog_and_the_card(page: Page, server: Process, compressed: str) -> None:
    await page.goto(f"{server.address}/s/names")
    card = page.get_by_role("region", name="Summary of")
    await card.get_by_role("button", name="Summary of").click()
    await expect(card.get_by_role("button", name="Regenerate")).to_be_visible()
    assert await nameless(page) == []
    await page.get_by_role("button", name="Summarize conversation history").first.click()
    dialog = page.get_by_role("dialog", name="Summarize conversation history")
    await dialog.get_by_role("button", name="For this run only").click()
    await expect(dialog.get_by_label("Strategy")).to_be_visible()
    assert await nameless(page) == []
