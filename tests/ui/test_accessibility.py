"""Accessibility: axe-core finds nothing serious, and everything can be done with the keyboard."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Page, expect

from tests.cli.processes import ROOT
from tests.server.processes import Process
from tests.ui.api_client import Api, talk
from tests.ui.browser import Watch

AXE = "axe-core@4.14.0"
CACHE = ROOT / ".cache" / "axe"
PAGES = (
    "/s/read",
    "/s/read/history",
    "/dashboard",
    "/setup",
    "/settings",
    "/settings/strategy",
    "/settings/presets",
    "/settings/profiles",
    "/settings/prompts",
    "/settings/models",
    "/settings/access",
    "/nowhere",
)
_SERIOUS_RULES = """axe.run(document, {resultTypes: ['violations'], runOnly: {type: 'rule',
    values: axe._audit.rules
        .filter(rule => rule.enabled && ['critical', 'serious'].includes(rule.impact))
        .filter(rule => !rule.tags.some(tag => ['experimental', 'deprecated'].includes(tag)))
        .map(rule => rule.id)}})"""
"""Run the rules whose findings count; axe gives every finding its rule's impact."""
_COLOUR_RULES = (
    "axe.run(document, {resultTypes: ['violations'], "
    "runOnly: {type: 'rule', values: ['color-contrast', 'link-in-text-block']}})"
)
_TRANSITIONS_END = """Promise.allSettled(document.getAnimations()
    .filter(each => each instanceof CSSTransition).map(each => each.finished))"""


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, fetched once with npm."""
    script = CACHE / "package" / "axe.min.js"
    if not script.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not on PATH, so axe-core cannot be fetched")
        CACHE.mkdir(parents=True, exist_ok=True)
        fetched = subprocess.run(
            [npm, "pack", AXE, "--silent"],
            cwd=CACHE,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if fetched.returncode:
            pytest.skip(f"axe-core could not be fetched: {fetched.stderr.strip()[-200:]}")
        with tarfile.open(CACHE / fetched.stdout.strip()) as archive:
            archive.extract("package/axe.min.js", CACHE, filter="data")
    return Path(script).read_text("utf-8")


async def serious(page: Page, axe: str) -> list[str]:
    """Return the critical and serious findings of a page, in light and dark mode.

    Only the rules about colours depend on the mode.
    """
    if await page.evaluate("!window.axe"):
        await page.evaluate(axe)
    found = (await page.evaluate(_SERIOUS_RULES))["violations"]
    await _show(page, "dark")
    found += (await page.evaluate(_COLOUR_RULES))["violations"]
    await _show(page, "light")
    return [
        f"{page.url} {rule['id']}: {node['html'][:200]}"
        for rule in found
        if rule["impact"] in {"critical", "serious"}
        for node in rule["nodes"]
    ]


async def _show(page: Page, mode: Literal["light", "dark"]) -> None:
    """Change the mode of an open page, and wait until every colour has changed."""
    await page.emulate_media(color_scheme=mode)
    await expect(page.locator(f"body.body--{mode}")).to_be_attached()
    await page.evaluate(_TRANSITIONS_END)


async def test_axe_finds_nothing_serious_on_any_page(
    watched: tuple[Page, Watch], server: Process, api: Api, axe: str
) -> None:
    api.model("test:small", max_input=8_000, max_output=1_000, retention_tokens=300)
    api.session("read", *talk(30), model="test:small", title="Read aloud")
    page, watch = watched
    watch.expected = ("404",)
    found: list[str] = []
    for path in PAGES:
        await page.goto(server.address + path)
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        if path.startswith("/s/"):  # messages come after the page, in no request of their own
            await expect(page.get_by_text("Answer 29:")).to_be_visible()
        await page.wait_for_load_state("networkidle")
        found += await serious(page, axe)
    assert not found, "\n".join(found)


async def test_axe_finds_nothing_serious_in_dialogs_and_on_a_compressed_session(
    page: Page, server: Process, api: Api, axe: str
) -> None:
    api.model("test:small", max_input=8_000, max_output=1_000, retention_tokens=300)
    path = api.session("dialogs", *talk(8, 85), model="test:small", title="Read aloud")
    api.compress("dialogs")
    api.append("dialogs", *talk(8, 85))
    found: list[str] = []
    await page.goto(server.address + path)
    await expect(page.get_by_text("Answer 7:").last).to_be_visible()
    for button, dialog in (
        ("Explain", "Context"),
        ("Pinned messages", "Pinned messages"),
        ("Summarize", "Summarize conversation history"),
    ):
        await page.get_by_role("button", name=button).first.click()
        opened = page.get_by_role("dialog", name=dialog)
        await expect(opened).to_be_visible()
        await page.wait_for_load_state("networkidle")
        found += await serious(page, axe)
        await page.keyboard.press("Escape")
        await expect(opened).to_be_hidden()
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("dialog")).to_be_visible()
    found += await serious(page, axe)
    for changes in (f"{path}/changes/{api.summaries('dialogs')[0]['id']}", f"{path}/history"):
        await page.goto(server.address + changes)
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await page.wait_for_load_state("networkidle")
        found += await serious(page, axe)
    assert not found, "\n".join(found)


async def test_a_missing_page_says_so_and_leads_back(
    watched: tuple[Page, Watch], server: Process
) -> None:
    page, watch = watched
    watch.expected = ("404",)
    answer = await page.goto(f"{server.address}/nowhere")
    assert answer is not None
    assert answer.status == 404
    assert await page.evaluate("document.documentElement.lang") == "en"
    await expect(page.get_by_role("alert")).to_contain_text("There is no page '/nowhere'.")
    await page.get_by_role("link", name="Back to conversations").click()
    await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()


async def test_the_palette_the_shortcuts_and_the_skip_link(
    page: Page, server: Process, api: Api
) -> None:
    api.session("ferry", *talk(2), title="When does the ferry leave?")
    await page.goto(server.address + api.session("other", *talk(2), title="Another one"))
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await page.wait_for_function("window.enfoldKeys")
    await page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search sessions, commands and settings")
    await expect(palette.get_by_role("searchbox")).to_be_focused()
    await page.keyboard.type("ferry")
    await expect(palette.get_by_role("option")).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("When does the ferry leave?")
    await page.wait_for_function("window.enfoldKeys")
    await page.keyboard.press("Control+k")
    await expect(palette.get_by_role("searchbox")).to_be_focused()
    await page.keyboard.type("threshold")
    await expect(palette.get_by_role("option").first).to_contain_text("Threshold")
    await page.keyboard.press("Escape")
    await expect(palette).not_to_be_visible()
    await page.locator("#content").focus()
    await page.keyboard.press("?")
    shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(shortcuts).to_contain_text("Ctrl K or Cmd K")
    await shortcuts.get_by_role("button", name="Close").click()
    await expect(shortcuts).not_to_be_visible()
