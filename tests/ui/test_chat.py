"""The chat as a person uses it."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.server.processes import Process
from tests.ui.api_client import Api, assistant, talk, user
from tests.ui.browser import window

CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "read_file", "arguments": '{"path": "quay.md"}'},
        }
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "Line one of the quay\n<b>two</b>"}


async def say(page: Page, text: str) -> None:
    await page.get_by_role("textbox", name="Message").fill(text)
    await page.keyboard.press("Enter")


async def test_without_a_profile_words_are_kept_and_it_says_how_to_add_one(
    page: Page, server: Process, api: Api
) -> None:
    await page.goto(server.address + api.session("alone"))
    await expect(page.get_by_text("No model answers yet")).to_be_visible()
    await expect(page.get_by_role("link", name="Set up a model")).to_be_visible()
    await say(page, "Keep **this**")
    await expect(page.get_by_role("article").get_by_text("this")).to_be_visible()
    await expect(page.locator("article strong")).to_have_text("this")
    await page.get_by_role("textbox", name="Message").fill("two\nlines")
    await page.get_by_role("button", name="Add message").click()
    await expect(page.get_by_role("article")).to_have_count(2)
    assert next(m["message"]["content"] for m in api.messages("alone")) == "Keep **this**"


async def test_markup_in_messages_is_never_executed(page: Page, server: Process, api: Api) -> None:
    evil = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
    result = {**RESULT, "content": evil}
    path = api.session(
        "evil", user(evil), assistant(f"[x](javascript:alert(1)) {evil}"), title=evil
    )
    api.append("evil", user("go"), CALL, result)
    await page.goto(server.address + path)
    await expect(page.get_by_role("article")).to_have_count(5)
    await page.get_by_text("Result").click()
    await expect(page.get_by_label("Content")).to_contain_text("<script>")
    assert await page.locator("article script, article img").count() == 0
    assert await page.locator("a[href^=javascript]").count() == 0
    assert "taken" not in (await page.title()).replace(evil, "")


async def test_tool_calls_are_collapsed(page: Page, server: Process, api: Api) -> None:
    path = api.session("tools", user("read it"), CALL, RESULT, assistant("It is a quay."))
    await page.goto(server.address + path)
    call = page.locator("summary", has_text="Call")
    await expect(call).to_contain_text("read_file")
    await expect(call).to_contain_text(re.compile(r"\d+ tokens"))
    result = page.locator("summary", has_text="Result")
    await expect(result).to_contain_text("read_file")
    await expect(page.get_by_text("Line one of the quay")).not_to_be_attached()
    await result.click()
    await expect(page.get_by_text("Line one of the quay")).to_be_visible()


async def test_a_very_long_session_opens_at_once_at_its_end(
    page: Page, server: Process, api: Api
) -> None:
    path = api.session("long")
    for part in range(10):
        api.append("long", *(user(f"part {part} message {n}") for n in range(1_000)))
    await page.goto(server.address + path)
    await expect(page.get_by_text("part 9 message 999", exact=True)).to_be_in_viewport()
    assert await page.get_by_role("article").count() == 50


async def test_earlier_messages_come_without_a_jump(page: Page, server: Process, api: Api) -> None:
    path = api.session("pages", *talk(75))
    await page.goto(server.address + path)
    first = page.get_by_text("Question 50:")
    await first.scroll_into_view_if_needed()
    box = await first.bounding_box()
    await expect(page.get_by_text("Question 35:")).to_be_attached()
    after = await first.bounding_box()
    assert box is not None
    assert after is not None
    assert abs(box["y"] - after["y"]) < 40
    for question in (25, 0):
        await page.get_by_text(
            f"Question {question}:", exact=False
        ).first.scroll_into_view_if_needed()
    await expect(page.get_by_role("button", name="Show earlier messages")).not_to_be_attached()
    await expect(page.get_by_role("article")).to_have_count(150)


async def test_two_windows_follow_the_same_session(
    page: Page, browser: Browser, server: Process, api: Api
) -> None:
    path = api.session("shared", user("hello"))
    await page.goto(server.address + path)
    async with window(browser) as (other, _):
        await other.goto(server.address + path)
        await say(page, "seen by both")
        await expect(other.get_by_text("seen by both")).to_be_visible()
        api.append("shared", assistant("and from a program"))
        await expect(page.get_by_text("and from a program")).to_be_visible()
        await expect(other.get_by_text("and from a program")).to_be_visible()


async def test_branches_part_and_can_be_switched(page: Page, server: Process, api: Api) -> None:
    path = api.session("branches", user("first"), assistant("one"), user("second words"))
    await page.goto(server.address + path)
    message = page.get_by_role("article").filter(has_text="second words")
    await message.hover()
    await message.get_by_role("button", name="Edit").click()
    await page.get_by_role("dialog").get_by_role("textbox").fill("other words")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await expect(page.get_by_text("other words")).to_be_visible()
    await expect(page.get_by_text("second words")).not_to_be_attached()
    await expect(page.get_by_role("group", name="Branch")).to_contain_text("2/2")
    await page.get_by_role("button", name="Previous branch").click()
    await expect(page.get_by_text("second words")).to_be_visible()
    await expect(page.get_by_role("group", name="Branch")).to_contain_text("1/2")


async def test_commands_are_completed_and_done(page: Page, server: Process, api: Api) -> None:
    await page.goto(server.address + api.session("commands", user("hello")))
    field = page.get_by_role("textbox", name="Message")
    await field.press_sequentially("/")
    options = page.get_by_role("listbox", name="Commands").get_by_role("option")
    await expect(options.first).to_contain_text("/help")
    await field.press_sequentially("con")
    await expect(options).to_have_count(1)
    await field.press("Tab")
    await expect(field).to_have_value("/context")
    await field.press("Enter")
    output = page.get_by_role("complementary", name="Command output")
    await expect(output).to_contain_text("counted with")
    await output.get_by_role("button", name="Dismiss").click()
    await expect(output).not_to_be_attached()
    await say(page, "/nonsense")
    await expect(page.get_by_text("no command /nonsense")).to_be_visible()
    await expect(page.get_by_role("textbox", name="Message")).to_have_value("/nonsense")


@pytest.mark.parametrize("text", ["مرحبا بالعالم", "x" * 400])
async def test_a_phone_shows_everything_without_scrolling_sideways(
    browser: Browser, server: Process, api: Api, text: str
) -> None:
    path = api.session(
        f"phone-{len(text)}", user(text), assistant(f"```\n{text}\n```"), CALL, RESULT
    )
    async with window(browser, width=390, height=800) as (page, _):
        await page.goto(server.address + path)
        await expect(page.get_by_role("article")).to_have_count(4)
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        assert await page.evaluate("document.querySelector('.ef-scroll').scrollWidth") <= 390


async def test_keys_lead_to_the_composer_and_to_new_lines(
    page: Page, server: Process, api: Api
) -> None:
    await page.goto(server.address + api.session("keys", user("hello")))
    await page.get_by_role("article").first.click()
    await page.keyboard.press("/")
    field = page.get_by_role("textbox", name="Message")
    await expect(field).to_be_focused()
    await field.fill("one")
    await field.press("Shift+Enter")
    await field.press_sequentially("two")
    await expect(field).to_have_value("one\ntwo")
    await field.press("Control+Enter")
    await expect(field).to_have_value("")
    await expect(page.get_by_role("article")).to_have_count(2)


async def test_every_control_has_a_name(page: Page, server: Process, api: Api) -> None:
    path = api.session("named", user("hello"), CALL, RESULT, assistant("done"))
    await page.goto(server.address + path)
    await expect(page.get_by_role("article")).to_have_count(4)
    nameless = await page.evaluate(
        """[...document.querySelectorAll('button, a, input:not([type=file]), textarea, summary')]
        .filter(e => e.offsetParent && !(e.ariaLabel || e.title || e.innerText.trim()
          || e.labels?.length || e.querySelector('input[type=file]')))
        .map(e => e.outerHTML.slice(0, 200))"""
    )
    assert nameless == []
