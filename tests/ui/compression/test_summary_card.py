"""The summary card: the report of a compression in the chat, and its actions."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.async_api import Browser, Locator, Page, expect

from enfold.engine import Engine
from enfold.engine.inspection import read_placement, read_summarized
from tests.server.processes import Process
from tests.ui.api_client import Api, talk, user
from tests.ui.browser import window
from tests.ui.talks import in_engine
from tests.ui.talks import talk as talk_in

EVIL = "<img src=x onerror=\"document.title='taken'\"> <script>document.title='taken'</script>"


def test_the_card_knows_the_messages_behind_its_summary(tmp_path: Path) -> None:
    async def places(engine: Engine) -> tuple[list[int], list[int], int]:
        session = await engine.session("talk")
        await talk_in(session, 30)
        done = await session.compress(keep_first=2)
        (snapshot,) = await session.summaries()
        rows = await read_summarized(engine, session, snapshot)
        places = await read_placement(engine, session)
        gone = [depth for depth in range(1, 61) if places.state(depth) == "summarized"]
        return [row.depth for row in rows], gone, done.messages

    depths, gone, count = in_engine(tmp_path / "chats.db", places)
    assert depths == gone
    assert len(depths) == count
    assert 0 < count < depths[-1] - depths[0], "what people typed stays in between"


async def open_card(page: Page, server: Process, api: Api, id: str) -> Locator:
    """Open a compressed session and the card of its summary."""
    path = api.session(id, *talk(8, 150))
    api.compress(id)
    await page.goto(server.address + path)
    card = page.get_by_role("region", name="Summary of")
    await card.get_by_role("button", name="Summary of").click()
    return card


async def test_closed_it_says_what_it_is_and_opened_what_it_says(
    page: Page, server: Process, api: Api
) -> None:
    path = api.session("closed", *talk(8, 150))
    api.compress("closed")
    await page.goto(server.address + path)
    card = page.get_by_role("region", name="Summary of")
    head = card.get_by_role("button", name="Summary of")
    await expect(head).to_have_attribute("aria-expanded", "false")
    await expect(head).to_contain_text(re.compile(r"Summary of \d+ messages"))
    await expect(card).to_contain_text(re.compile(r"[\d,]+ tokens"))
    await expect(card).to_contain_text("Native, by the built-in summarizer")
    await expect(card.get_by_text("Answer 0")).not_to_be_visible()
    await head.click()
    await expect(head).to_have_attribute("aria-expanded", "true")
    await expect(card.get_by_text("Answer 0").first).to_be_visible()
    await head.click()
    await expect(card.get_by_text("Answer 0").first).not_to_be_visible()


async def test_the_messages_that_it_stands_for_are_at_hand(
    page: Page, server: Process, api: Api
) -> None:
    path = api.session("stands", *talk(28, 75))
    number = api.compress("stands")["messages"]
    assert 20 < number <= 40, "more than one page of the list, and not more than two"
    await page.goto(server.address + path)
    card = page.get_by_role("region", name=f"Summary of {number} messages")
    await card.get_by_role("button", name="Summary of").click()
    await card.get_by_role("button", name="Summarized messages").click()
    await expect(card.locator("article")).to_have_count(20)
    await card.get_by_role("button", name="Show more").click()
    await expect(card.locator("article")).to_have_count(number)


async def test_a_summary_can_be_edited_and_its_old_text_stays_recorded(
    page: Page, server: Process, api: Api
) -> None:
    card = await open_card(page, server, api, "edited")
    await card.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Summary").fill("  ")
    await expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
    await dialog.get_by_label("Summary").fill(f"In *my* words. {EVIL}")
    await dialog.get_by_role("button", name="Save").click()
    card = page.get_by_role("region", name="Summary of")
    await expect(card).to_contain_text("by you")
    await card.get_by_role("button", name="Summary of").click()
    await expect(page.get_by_text("words.")).to_be_visible()
    assert await page.locator(".ef-summary img, .ef-summary script").count() == 0
    assert "taken" not in await page.title()
    assert len(api.summaries("edited")) == 2
    await card.get_by_role("button", name="Other summaries of this conversation").click()
    await card.get_by_role("link", name="Summary of").click()
    await expect(page.get_by_role("region", name="This compression")).to_contain_text(
        "by the built-in summarizer"
    )


async def test_a_summary_can_be_regenerated(page: Page, server: Process, api: Api) -> None:
    card = await open_card(page, server, api, "anew")
    first = api.summaries("anew")[0]
    await card.get_by_role("button", name="Regenerate").click()
    await expect(page.get_by_role("status").filter(has_text="Summarized")).to_be_visible()
    again = api.summaries("anew")
    assert len(again) == 2
    assert again[0]["cutoff"] == first["cutoff"]


async def test_a_summary_is_deleted_after_a_confirmation(
    page: Page, server: Process, api: Api
) -> None:
    card = await open_card(page, server, api, "deleted")
    await card.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("The messages that it replaced are kept")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(card).to_be_visible()
    await card.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(card).not_to_be_visible()
    assert api.summaries("deleted")[0]["text"] is None


async def test_undone_in_one_window_it_is_gone_in_both(
    page: Page, browser: Browser, server: Process, api: Api
) -> None:
    card = await open_card(page, server, api, "undone")
    async with window(browser) as (other, _):
        await other.goto(f"{server.address}/s/undone")
        await expect(other.get_by_role("button", name="Summary of")).to_be_visible()
        await card.get_by_role("button", name="Undo").click()
        await expect(card).not_to_be_visible()
        await expect(other.get_by_role("button", name="Summary of")).not_to_be_visible()


async def test_the_card_links_to_the_changes_and_the_receipt(
    page: Page, server: Process, api: Api
) -> None:
    card = await open_card(page, server, api, "leads")
    await card.get_by_role("link", name="Receipt").click()
    tab = page.get_by_role("tab", name="Receipt")
    await expect(tab).to_have_attribute("aria-selected", "true")
    await expect(page.get_by_text("No exact items left the view")).to_be_visible()


async def test_shortened_messages_without_a_summary_have_a_card_too(
    page: Page, server: Process, api: Api
) -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "read", "arguments": '{"path": "a.txt"}'},
    }
    lines = "\n".join(f"line {n} of the file" for n in range(80))
    for n in range(4):
        repeated_call = {**call, "id": f"c{n}"}
        answer = {"role": "tool", "tool_call_id": f"c{n}", "content": lines}
        calling = {"role": "assistant", "content": None, "tool_calls": [repeated_call]}
        rest = (user("Read it."), calling, answer, {"role": "assistant", "content": "Read."})
        path = api.session("shortened", *rest)
    api.compress("shortened", keep_tokens=50, settings={"strategy": "lossless"})
    await page.goto(server.address + path)
    card = page.get_by_role("region", name="messages shortened")
    await card.get_by_role("button", name="messages shortened").click()
    await expect(card.get_by_role("link", name="Show changes")).to_be_visible()
    await expect(card.get_by_role("button", name="Edit")).not_to_be_visible()
    marker = page.get_by_role("button", name="⟨ File content already provided").first
    await page.locator("summary", has_text="Result").last.click()
    await marker.click()
    await expect(page.locator(".ef-original")).to_contain_text("line 79 of the file")
