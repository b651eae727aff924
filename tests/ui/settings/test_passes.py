"""The passes of the smart strategy: added, moved by mouse and by keyboard, edited, tried."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from enfold.ui.settings.strategy import EXAMPLE, badges, effect
from tests.server.processes import Process
from tests.ui.browser import window
from tests.ui.settings.conftest import SettingsApi, Visit, choose, fits

OLD, SUMMARY = "Shorten old tool output", "Summarize old messages"


async def opened(visit: Visit) -> Page:
    page = await visit("/settings/strategy")
    await page.get_by_role("button", name="Configure Smart").click()
    await expect(page.get_by_role("listitem", name=OLD)).to_be_visible()
    return page


async def names(page: Page) -> list[str | None]:
    items = page.get_by_role("list", name="Passes").get_by_role("listitem")
    return [await each.get_attribute("aria-label") for each in await items.all()]


async def save(page: Page, api: SettingsApi) -> list[Any]:
    """The passes as they were kept; the next test begins with the defaults again."""
    await page.get_by_role("button", name="Save config").click()
    await expect(page.get_by_text("Saved. It applies").first).to_be_visible()
    found: list[Any] = api.setting("strategy_config")["smart"]["passes"]
    api.set(strategy_config=None)
    return found


async def test_passes_are_moved_by_keyboard(visit: Visit, api: SettingsApi) -> None:
    page = await opened(visit)
    await expect(page.get_by_role("button", name=f"Move {OLD} up")).to_be_disabled()
    await page.get_by_role("button", name=f"Move {OLD} down").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name=f"Move {OLD} down")).to_be_disabled()
    assert await names(page) == [SUMMARY, OLD]
    assert [each["name"] for each in await save(page, api)] == [SUMMARY, OLD]


async def test_passes_are_dragged(visit: Visit, api: SettingsApi) -> None:
    page = await opened(visit)
    handles = page.locator(".st-handle")
    await handles.first.scroll_into_view_if_needed()
    start = await handles.first.bounding_box()
    end = await page.get_by_role("listitem", name=SUMMARY).bounding_box()
    assert start is not None
    assert end is not None
    await page.mouse.move(start["x"] + 8, start["y"] + 8)
    await page.mouse.down()
    await page.mouse.move(start["x"] + 8, start["y"] + 30, steps=5)
    await page.mouse.move(end["x"] + 40, end["y"] + end["height"] - 4, steps=10)
    await page.mouse.up()
    await expect(page.get_by_role("button", name=f"Move {OLD} down")).to_be_disabled()
    assert await names(page) == [SUMMARY, OLD]
    assert [each["name"] for each in await save(page, api)] == [SUMMARY, OLD]


async def test_a_pass_is_added_copied_and_deleted(visit: Visit, api: SettingsApi) -> None:
    page = await opened(visit)
    await page.get_by_role("button", name="Add pass").click()
    await page.get_by_role("textbox", name="Name").fill("Mine")
    await page.get_by_role("button", name="Duplicate New pass").click()
    await expect(page.get_by_role("listitem", name="Mine (copy)")).to_be_visible()
    await page.get_by_role("button", name=f"Delete {SUMMARY}").click()
    kept = await save(page, api)
    assert [(each["id"], each["name"]) for each in kept] == [
        ("shorten_old_output", OLD),
        ("new_pass", "Mine"),
        ("new_pass_2", "Mine (copy)"),
    ]


async def test_two_passes_with_one_id_are_refused(visit: Visit) -> None:
    page = await opened(visit)
    await page.get_by_role("button", name=f"Edit {SUMMARY}").click()
    await page.get_by_role("textbox", name="Id").fill("shorten_old_output")
    await expect(page.get_by_text("'shorten_old_output' is the id of 2").first).to_be_visible()
    await expect(page.get_by_role("button", name="Save config")).to_be_disabled()


async def test_a_pass_becomes_a_summary_of_many_messages(visit: Visit, api: SettingsApi) -> None:
    page = await opened(visit)
    await page.get_by_role("button", name=f"Edit {OLD}").click()
    await choose(page, "Mode", "Batch: one summary of many messages")
    await page.get_by_role("spinbutton", name="Keep last").fill("5")
    await page.get_by_role("textbox", name="Custom prompt").fill("Tell {me} all")
    await expect(page.get_by_text("unknown placeholders: me")).to_be_visible()
    await page.get_by_role("textbox", name="Custom prompt").fill("Tell me all")
    first = (await save(page, api))[0]
    assert first["mode"] == "batch"
    assert "individualConfig" not in first
    assert first["batchConfig"]["summarizationConfig"]["keepLast"] == 5
    assert first["batchConfig"]["summarizationConfig"]["customPrompt"] == "Tell me all"


async def test_everything_in_a_pass_can_be_edited(visit: Visit, api: SettingsApi) -> None:
    page = await opened(visit)
    await page.get_by_role("button", name=f"Edit {OLD}").click()
    await choose(page, "Selection", "All but the most recent, by share")
    share = page.get_by_role("spinbutton", name="Keep percentage")
    await expect(share).to_have_value("30")
    await share.fill("40")
    await expect(page.get_by_role("spinbutton", name="Keep recent count")).not_to_be_visible()
    results = page.get_by_role("group", name="Tool results", exact=True)
    summarize = "Summarize: by a model or the built-in summarizer"
    await choose(page, "Operation", summarize, within=results)
    await expect(results.get_by_role("spinbutton", name="Max lines")).not_to_be_visible()
    tokens = results.get_by_role("spinbutton", name="Max tokens")
    await tokens.fill("3")
    await expect(page.get_by_text("a whole number, 16 or more, found 3")).to_be_visible()
    await tokens.fill("90")
    await results.get_by_role("button", name="Example").click()
    example = results.get_by_role("region", name="Example of the operation")
    await expect(example).to_contain_text("at most 90 tokens")
    text = page.get_by_role("group", name="Message text", exact=True)
    await choose(page, "Operation", "Suppress: replaced by a marker", within=text)
    await choose(page, "Execution", "Only above a number of tokens or a share of the target")
    await page.get_by_role("spinbutton", name="Token threshold").fill("25000")
    await page.get_by_role("button", name="Add override").click()
    override = page.get_by_role("listitem", name="override 1")
    await override.get_by_role("spinbutton", name="Message index").fill("2")
    await override.get_by_role("switch", name="Set tool results").click()
    await expect(override.get_by_role("combobox", name="Operation")).to_be_visible()
    first = (await save(page, api))[0]
    assert first["selection"] == {"type": "preserve_percent", "keepPercentage": 40}
    assert first["execution"] == {"type": "conditional", "condition": {"tokenThreshold": 25_000}}
    operations = first["individualConfig"]["defaults"]
    assert operations["messageText"] == {"operation": "suppress"}
    assert operations["toolResults"]["params"] == {"summarize": {"maxTokens": 90}}
    (other,) = first["individualConfig"]["overrides"]
    assert other == {"messageIndex": 2, "operations": {"toolResults": {"operation": "keep"}}}


async def test_the_page_fits_a_phone(browser: Browser, server: Process, api: SettingsApi) -> None:
    async with window(browser, width=390, height=800) as (page, _):
        await page.goto(f"{server.address}/settings/strategy")
        await page.get_by_role("button", name="Configure Smart").click()
        await page.get_by_role("button", name=f"Edit {OLD}").click()
        await expect(page.get_by_role("group", name="Tool results", exact=True)).to_be_visible()
        assert await fits(page)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({}, ["individual", "?", "always"]),
        (
            {
                "mode": "batch",
                "selection": {"type": "preserve_percent", "keepPercentage": 30},
                "execution": {"type": "conditional", "condition": {"tokenThreshold": 40_000}},
            },
            ["batch", "all but the last 30 %", "above 40,000 tokens"],
        ),
        (
            {"execution": {"type": "conditional", "condition": {"targetShare": 1.0}}},
            ["individual", "?", "above the target"],
        ),
        (
            {
                "execution": {
                    "type": "conditional",
                    "condition": {"tokenThreshold": 9_000, "targetShare": 0.8},
                }
            },
            ["individual", "?", "above 9,000 tokens and 80 % of the target"],
        ),
        (
            {"selection": {"type": "custom"}, "execution": {"type": "conditional"}},
            ["individual", "selected messages", "above ? tokens"],
        ),
    ],
    ids=["nothing", "everything", "share", "tokens and share", "half"],
)
def test_a_pass_in_a_few_words(step: dict[str, Any], expected: list[str]) -> None:
    assert badges(step) == expected


@pytest.mark.parametrize(
    ("operation", "lines", "words"),
    [
        ({"operation": "keep"}, 40, "step 40"),
        ({"operation": "suppress"}, 1, "suppressed"),
        ({"operation": "truncate", "params": {"truncate": {"maxLines": 3}}}, 4, "37 of 40 lines"),
        ({"operation": "summarize", "params": {"summarize": {"maxTokens": 90}}}, 2, "90 tokens"),
    ],
    ids=["keep", "suppress", "truncate", "summarize"],
)
def test_the_example_shows_the_operation(operation: dict[str, Any], lines: int, words: str) -> None:
    shown = effect(operation)
    assert shown is not None
    assert len(shown.splitlines()) == lines
    assert words in shown


def test_an_invalid_operation_has_no_example() -> None:
    assert effect({"operation": "truncate", "params": {"truncate": {"maxLines": -1}}}) is None


def test_the_example_is_long() -> None:
    assert len(EXAMPLE.splitlines()) == 40
