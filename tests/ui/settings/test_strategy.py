"""The strategy: chosen, compared and configured, built in or not."""

from __future__ import annotations

from pathlib import Path

import httpx
from playwright.async_api import Browser, Page, expect

from tests.cli.processes import ROOT
from tests.server.processes import Process, serve
from tests.ui.browser import window
from tests.ui.settings.conftest import SESSION, SettingsApi, Visit, choose, fits

PLUGIN = '''
from dataclasses import dataclass
from typing import Literal
from pydantic import Field
from enfold.condensation import unchanged
from enfold.retention import Retention
from enfold.fields import CamelModel
from enfold.strategies.contract import Capabilities, Estimate, EstimatedCost, Reduction
from enfold.strategies.contract import StrategyKind


class Rule(CamelModel):
    """One rule."""

    pattern: str = Field(description="What it looks for")
    weight: float = Field(default=0.5, description="How much it counts", ge=0, le=1)


class Config(CamelModel):
    """The options."""

    eager: bool = Field(default=False, description="Whether it hurries")
    depth: int = Field(default=3, description="How deep it goes", ge=1, le=9)
    mood: Literal["calm", "wild"] = Field(default="calm", description="How it feels")
    words: tuple[str, ...] = Field(default=(), description="Words it spares", strict=False)
    rules: tuple[Rule, ...] = Field(default=(), description="What it goes by", strict=False)
    extra: Rule | None = Field(default=None, description="One more")


@dataclass(frozen=True)
class Gentle:
    config: Config
    means: object
    id = "gentle"
    retention = Retention("messages", 1)

    def touches(self, task):
        return ()

    async def condense(self, task):
        return unchanged(task, self.id, "gentle")

    async def estimate(self, task, prices=None):
        return Estimate(Reduction(task.tokens, task.tokens), EstimatedCost())


ABLE = Capabilities(lossless=True)
KIND = StrategyKind("gentle", "Gentle", "Leaves things be.", ABLE, Config, Gentle)
'''


def card(strategy: str) -> str:
    return f"article[aria-label='{strategy}']"


async def test_strategies_are_compared_by_what_was_measured(visit: Visit) -> None:
    page = await visit("/settings/strategy")
    await page.get_by_text("Compare strategies").click()
    table = page.get_by_role("table", name="Strategies compared")
    await expect(table.get_by_role("row", name="Tokens saved")).to_contain_text("18 %")
    await expect(table.get_by_role("row", name="When to use it")).to_contain_text("speed")
    for name in ("Native", "Lossless", "Truncation", "Smart"):
        await expect(table.get_by_role("columnheader", name=name)).to_be_visible()


async def test_a_strategy_is_used_and_let_go_of(visit: Visit, api: SettingsApi) -> None:
    page = await visit("/settings/strategy")
    await page.get_by_role("button", name="Use Lossless").click()
    await expect(page.locator(card("Lossless")).get_by_text("in use")).to_be_visible()
    assert api.setting("strategy") == "lossless"
    await page.get_by_role("button", name="Reset strategy").click()
    await expect(page.locator(card("Native")).get_by_text("in use")).to_be_visible()
    assert api.setting("strategy") == "native"


async def test_a_config_is_checked_in_the_engines_words_and_kept(
    visit: Visit, api: SettingsApi
) -> None:
    page = await visit("/settings/strategy")
    await page.get_by_role("button", name="Configure Truncation").click()
    recent = page.get_by_role("spinbutton", name="Preserve recent count")
    await expect(recent).to_have_value("10")
    await recent.fill("-3")
    await expect(page.get_by_text("a whole number, 0 or more, found -3")).to_be_visible()
    save = page.get_by_role("button", name="Save config")
    await expect(save).to_be_disabled()
    await recent.fill("7")
    await page.get_by_role("switch", name="Head and tail").click()
    await choose(page, "Truncation mode", "suppress")
    await save.click()
    await expect(page.get_by_text("Saved. It applies")).to_be_visible()
    kept = api.setting("strategy_config")["truncation"]
    assert kept["preserveRecentCount"] == 7
    assert (kept["headAndTail"], kept["truncationMode"]) == (True, "suppress")
    await page.get_by_role("button", name="Reset config").click()
    await expect(recent).to_have_value("10")
    assert api.setting("strategy_config") == {}


async def test_the_active_preset_is_shown_and_can_be_dropped(
    visit: Visit, api: SettingsApi
) -> None:
    api.set(preset="speed")
    page = await visit("/settings/strategy")
    await expect(page.locator(card("Smart")).get_by_text("in use")).to_be_visible()
    await expect(page.get_by_text("preset speed")).to_be_visible()
    await page.get_by_role("button", name="Remove preset").click()
    await expect(page.locator(card("Native")).get_by_text("in use")).to_be_visible()
    assert api.setting("preset") is None


async def test_parts_within_a_config_can_be_opened(visit: Visit, api: SettingsApi) -> None:
    page = await visit(f"/settings/strategy?session={SESSION}")
    await page.get_by_role("button", name="Configure Lossless").click()
    await page.get_by_text("The ways of writing in use").click()
    await page.get_by_role("switch", name="Tables").click()
    await page.get_by_role("button", name="Save config").click()
    await expect(page.get_by_text("from: set for this session")).to_be_visible()
    kept = api.setting("strategy_config", SESSION)["lossless"]
    assert kept["encodings"]["tables"] is False
    assert api.setting("strategy_config") == {}


async def test_a_strategy_of_another_package_has_a_form_too(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "gentle.py").write_text(PLUGIN)
    about = tmp_path / "gentle-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gentle\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[enfold.strategies]\ngentle = gentle:KIND\n")
    path = f"{ROOT / 'src'}:{tmp_path}"
    with serve(tmp_path / "chats.db", PYTHONPATH=path) as server:
        async with window(browser) as (page, _):
            await page.goto(f"{server.address}/settings/strategy")
            await _configure_gentle(page)
        with httpx.Client(base_url=f"{server.address}/api", timeout=60) as client:
            kept = SettingsApi(client).setting("strategy_config")
        assert kept["gentle"] == {
            "eager": True,
            "depth": 4,
            "mood": "wild",
            "words": ["please", "thanks"],
            "rules": [{"pattern": "TODO"}],
            "extra": {"pattern": "x", "weight": 0.25},
        }


async def _configure_gentle(page: Page) -> None:
    await expect(page.get_by_text("Leaves things be.")).to_be_visible()
    await page.get_by_role("button", name="Configure Gentle").click()
    await page.get_by_role("switch", name="Eager").click()
    await page.get_by_role("spinbutton", name="Depth").fill("4")
    await choose(page, "Mood", "wild")
    await page.get_by_role("textbox", name="Words").fill("please, thanks")
    await page.get_by_role("button", name="Add rule").click()
    await expect(page.get_by_text("is missing")).to_be_visible()
    await page.get_by_role("textbox", name="Pattern").fill("TODO")
    await page.get_by_text("One more").click()
    await page.get_by_role("switch", name="Set extra").click()
    await page.get_by_role("textbox", name="Pattern").nth(1).fill("x")
    weight = page.get_by_role("spinbutton", name="Weight").nth(1)
    await weight.fill("2")
    await expect(page.get_by_text("expected 0 to 1, found 2")).to_be_visible()
    await weight.fill("0.25")
    await page.get_by_role("button", name="Save config").click()
    await expect(page.get_by_text("Saved. It applies")).to_be_visible()


async def test_the_page_fits_a_phone_in_dark_mode(
    browser: Browser, server: Process, api: SettingsApi
) -> None:
    async with window(browser, width=390, height=800, dark=True) as (page, _):
        await page.goto(f"{server.address}/settings/strategy")
        await page.get_by_text("Compare strategies").click()
        await expect(page.get_by_role("table", name="Strategies compared")).to_be_visible()
        assert await fits(page)
