"""The dashboard: empty at first, then what was saved, what failed, and what to do about it."""

from __future__ import annotations

from pathlib import Path

import httpx
from playwright.async_api import Browser, Page, expect

from enfold import wire
from enfold.messages import Conversation
from enfold.sample import sample_messages
from tests.cli.processes import run_in_pipes
from tests.server.processes import Process
from tests.ui.browser import window
from tests.ui.settings.conftest import SettingsApi, fits


def _fill(server: Process) -> tuple[int, int]:
    """Two compressed conversations, a third that fails; the tokens saved in each."""
    messages = wire.render(Conversation(sample_messages(1), "openai"), "openai")
    freed = []
    with httpx.Client(base_url=f"{server.address}/api", timeout=300) as client:
        api = SettingsApi(client)
        api.set(model="openai:gpt-4o")
        for id, strategy in (("one", "native"), ("two", "truncation")):
            api.ask("POST", "/sessions", json={"id": id, "title": f"Session {id}"})
            api.ask("POST", f"/sessions/{id}/messages", json={"messages": messages})
            body = {"settings": {"strategy": strategy}}
            done = api.ask("POST", f"/sessions/{id}/compress", json=body)
            freed.append(done["tokens_before"] - done["tokens_after"])
        first = api.ask("GET", "/sessions/one/messages")["messages"][0]["id"]
        assert client.post(f"/sessions/one/messages/{first}/pin").is_success
        api.ask("POST", "/sessions", json={"id": "three", "title": "Session three"})
        api.ask("POST", "/sessions/three/messages", json={"messages": messages})
        fields = {"provider": "openai", "model": "gpt-4o", "key": "env:NOT_SET"}
        api.ask("PUT", "/profiles/broken", json={"fields": fields})
        for _ in range(3):
            body = {"settings": {"summarizer": "broken"}}
            assert client.post("/sessions/three/compress", json=body).status_code >= 400
        api.ask("PATCH", "/sessions/three/settings", json={"settings": {"threshold": 0.05}})
    return freed[0], freed[1]


async def test_the_dashboard_shows_savings_and_advice(page: Page, server: Process) -> None:
    await page.goto(f"{server.address}/dashboard")
    await expect(page.get_by_text("No compressions and no model calls")).to_be_visible()
    native, truncation = _fill(server)
    await page.reload()
    short = page.get_by_role("region", name="Totals")
    figures = {
        "Tokens saved": f"{native + truncation:,}",
        "Compressions": "2",
        "Failures": "3",
        "Money saved": "≈ $",
        "Spent on summaries": "$0.00",
        "Read from cache": "unknown",
        "Compressions that helped": "0",
        "Recalls": "0",
        "Messages pinned": "1",
    }
    for title, value in figures.items():
        group = short.get_by_role("group", name=title, exact=True)
        await expect(group).to_contain_text(value)
    by_strategy = page.get_by_role("group", name="Tokens saved by strategy")
    await expect(by_strategy).to_contain_text(f"{truncation:,} tokens")
    await expect(page.get_by_role("group", name="Tokens saved by model")).to_contain_text("gpt-4o")
    by_client = page.get_by_role("group", name="Tokens saved by client")
    await expect(by_client).to_contain_text("no client")
    lists = page.get_by_role("region", name="Lists")
    unused = lists.get_by_role("group", name="Compressions that have not helped")
    await expect(unused.get_by_role("link", name="Session two")).to_be_visible()
    await expect(unused).to_contain_text("not used yet")
    await expect(lists.get_by_role("group", name="Recalled")).to_contain_text("None in")
    await expect(lists.get_by_role("group", name="Pinned")).to_contain_text("Session one")
    drawn = page.get_by_role("group", name="Compressions and failures")
    await expect(drawn.locator("svg text", has_text="failed")).to_be_visible()
    await drawn.get_by_text("Show as table").click()
    row = drawn.get_by_role("row").nth(1)
    await expect(row).to_contain_text("2")
    await expect(row).to_contain_text("3")
    advice = page.get_by_role("article", name="Many compressions fail")
    await expect(advice).to_contain_text("3 failed and 2 succeeded")
    await advice.get_by_role("link", name="Test profiles").click()
    await expect(page.get_by_role("article", name="broken")).to_be_visible()


def _recall(server: Process) -> None:
    """A question to a history, through the API."""
    with httpx.Client(base_url=f"{server.address}/api", timeout=300) as client:
        api = SettingsApi(client)
        api.ask("POST", "/sessions", json={"id": "recalled"})
        messages = [{"role": "user", "content": "Ada brings the lanterns."}]
        api.ask("POST", "/sessions/recalled/messages", json={"messages": messages})
        api.ask("GET", "/sessions/recalled/recall?question=Who+brings+the+lanterns%3F")


async def test_recalls_by_the_command_line_and_the_api_are_listed(
    page: Page, server: Process, database: Path
) -> None:
    _recall(server)
    question = "What does Ada bring?"
    done = run_in_pipes("recall", "recalled", question, "--db", f"sqlite:///{database}")
    assert done.code == 0, done.err
    await page.goto(f"{server.address}/dashboard")
    short = page.get_by_role("region", name="Totals")
    await expect(short.get_by_role("group", name="Recalls", exact=True)).to_contain_text("2")
    listed = page.get_by_role("region", name="Lists").get_by_role("group", name="Recalled")
    await expect(listed).to_contain_text("Who brings the lanterns?")
    await expect(listed).to_contain_text(question)


async def test_another_time_can_be_chosen(page: Page, server: Process) -> None:
    await page.goto(f"{server.address}/dashboard")
    await page.get_by_role("button", name="7 days").click()
    await expect(page).to_have_url(f"{server.address}/dashboard?days=7")
    await expect(page.get_by_role("region", name="Charts").locator("svg").first).to_be_visible()


async def test_the_page_fits_a_phone_in_dark_mode(browser: Browser, server: Process) -> None:
    async with window(browser, width=390, height=800, dark=True) as (page, _):
        await page.goto(f"{server.address}/dashboard")
        await expect(page.get_by_role("region", name="Totals")).to_be_visible()
        assert await fits(page)
        text = page.locator(".db-chart svg text").first
        ink = await text.evaluate("each => getComputedStyle(each).fill")
        assert ink == "rgb(163, 172, 189)"
