"""The context bar: what is in the context, how full it is, and the budget in words."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.server.processes import Process
from tests.ui.filling import Api, talk, user

WINDOW = 4_000


@pytest.fixture(scope="module")
def path(api: Api) -> str:
    """A session with a small window, about half full."""
    api.model("test:small", max_input=WINDOW, max_output=1_000, retention_tokens=200)
    return api.session("bar", *talk(30), model="test:small")


async def test_it_says_how_full_the_context_is_and_of_what(
    page: Page, server: Process, path: str
) -> None:
    await page.goto(server.address + path)
    bar = page.get_by_role("button", name=re.compile(r"^Context: [\d,]+ of [\d,]+ tokens, \d+ %"))
    await expect(bar).to_be_visible()
    await bar.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_text("Messages", exact=True)).to_be_visible()
    await expect(dialog.get_by_text("95 % of the limit, set by the default")).to_be_visible()
    await expect(dialog.get_by_text("are reserved for the reply")).to_be_visible()
    await dialog.get_by_role("button", name="Close").click()
    await expect(dialog).not_to_be_visible()


@pytest.mark.parametrize(("share", "level"), [(0.85, "warm"), (0.97, "full")])
async def test_it_warns_in_time(
    page: Page, server: Process, api: Api, share: float, level: str
) -> None:
    words = int(WINDOW * 0.95 * share / 20)
    path = api.session(
        f"level-{level}", *(user("alpha " * (words - 5)) for _ in range(20)), model="test:small"
    )
    await page.goto(server.address + path)
    await expect(page.locator(f".ef-meter.ef-level-{level}")).to_be_visible()
    advice = page.get_by_role("button", name="Compression recommended", exact=True)
    await expect(advice).to_be_visible()


async def test_it_is_live(page: Page, server: Process, api: Api, path: str) -> None:
    await page.goto(server.address + path)
    share = page.locator(".ef-share")
    await expect(share).to_be_visible()
    before = await share.inner_text()
    api.append("bar", user("more " * 800))
    await expect(share).not_to_have_text(before)
