"""The context bar: the parts of the context, its share, and the budget in words."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.server.processes import Process
from tests.ui.api_client import Api, talk, user

WINDOW = 4_000


@pytest.fixture(scope="module")
def path(api: Api) -> str:
    """A session with a small window, about half full."""
    api.model("test:small", max_input=WINDOW, max_output=1_000, retention_tokens=200)
    return api.session("bar", *talk(8, 85), model="test:small")


async def test_the_bar_shows_the_share_and_its_parts(
    page: Page, server: Process, path: str
) -> None:
    await page.goto(server.address + path)
    bar = page.get_by_role("button", name=re.compile(r"^Context: \d+ % [\d,]+ of [\d,]+ tokens"))
    await expect(bar).to_be_visible()
    await bar.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_text("Messages", exact=True)).to_be_visible()
    await expect(dialog.get_by_text("95 % of the limit (default)")).to_be_visible()
    await expect(dialog.get_by_text("are reserved for the reply")).to_be_visible()
    await dialog.get_by_role("button", name="Close").click()
    await expect(dialog).not_to_be_visible()


@pytest.mark.parametrize(("share", "level"), [(0.85, "warm"), (0.97, "full")])
async def test_the_bar_warns_at_its_levels(
    page: Page, server: Process, api: Api, share: float, level: str
) -> None:
    words = int(WINDOW * 0.95 * share / 8)
    path = api.session(
        f"level-{level}", *(user("alpha " * (words - 5)) for _ in range(8)), model="test:small"
    )
    await page.goto(server.address + path)
    await expect(page.locator(f".ef-meter.ef-level-{level}")).to_be_visible()
    advice = page.get_by_role("button", name="Compression recommended", exact=True)
    await expect(advice).to_be_visible()


async def test_the_bar_follows_new_messages(
    page: Page, server: Process, api: Api, path: str
) -> None:
    await page.goto(server.address + path)
    share = page.locator(".ef-share")
    await expect(share).to_be_visible()
    before = await share.inner_text()
    api.append("bar", user("more " * 800))
    await expect(share).not_to_have_text(before)


async def test_the_bar_measures_the_chosen_model_and_shows_a_changed_limit_at_once(
    page: Page, server: Process, api: Api
) -> None:
    fields = {"provider": "compatible", "base_url": "http://127.0.0.1:9/v1"}
    for name, tokens in (("narrow", 3_000), ("wide", 50_000)):
        api.profile(name, model=name, **fields)
        api.model(f"compatible:{name}", max_input=tokens, max_output=1_000)
    await page.goto(server.address + api.session("chosen", *talk(8, 85)))
    words = page.locator(".ef-meter-words")
    await expect(words).to_contain_text("of 2,850 tokens")  # the first profile; 5 % are a margin
    await page.get_by_role("combobox", name="Profile that answers").click()
    await page.get_by_role("option", name="wide").click()
    await expect(words).to_contain_text("of 47,500 tokens")
    await expect(words).to_contain_text("turns left")
    await expect(page.get_by_title("A compression is due from")).to_be_attached()
    api.model("compatible:wide", max_input=40_000)
    await expect(words).to_contain_text("of 38,000 tokens")
    api.set(threshold=0.5)
    await expect(page.get_by_title("A compression is due from 19,000 tokens")).to_be_attached()
    await page.get_by_role("button", name="Context:").click()
    await expect(page.get_by_role("dialog")).to_contain_text("due from 19,000 tokens: 50 %")
    api.set(threshold=None)
    for name in ("narrow", "wide"):
        api.delete_profile(name)
