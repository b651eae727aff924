"""The pictures of the web UI in README.md: real pages, in a real browser, on a sample conversation.

`.venv/bin/python scripts/screenshots.py` writes them to docs/.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Page, async_playwright, expect

import enfold
from enfold.records import UsageEvent

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BROWSERS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
SERVE = (sys.executable, "-m", "enfold.cli", "serve", "--port", "0", "--sample")
REPLIES = 24
"""Requests after the summary, on the picture of the dashboard."""
Act = Callable[[Page], Awaitable[None]]


async def nothing(_page: Page) -> None:
    """Show the page as it comes up."""


async def summarize(page: Page) -> None:
    """Summarize the conversation, and open its summary."""
    await page.get_by_role("button", name="Summarize conversation history").click()
    await page.get_by_role("button", name="Summarize now").click()
    card = page.get_by_role("region", name="Summary of")
    await card.get_by_role("button", name="Summary of").click()
    await expect(card.get_by_role("button", name="Undo")).to_be_visible()
    await card.evaluate("card => card.scrollIntoView({block: 'start'})")


async def explain(page: Page) -> None:
    """Open the explanation of the context."""
    await page.get_by_role("button", name=re.compile("^Context:")).click()
    await expect(page.get_by_role("dialog")).to_be_visible()


@dataclass(frozen=True)
class Picture:
    """One picture: the page, the action before it is taken, and the size of the window."""

    path: str
    act: Act = nothing
    width: int = 1280
    height: int = 800
    dark: bool = False


PICTURES = {
    "ui-setup.png": Picture("/setup"),
    "ui-chat.png": Picture("/s/sample"),
    "ui-context.png": Picture("/s/sample", explain),
    "ui-phone.png": Picture("/s/sample", width=390, height=800, dark=True),
    "ui-summary.png": Picture("/s/sample", summarize),
    "ui-dark.png": Picture("/s/sample", dark=True),
    "ui-history.png": Picture("/s/sample/history"),
    "ui-settings.png": Picture("/settings"),
    "ui-dashboard.png": Picture("/dashboard", height=1240),
}
"""File -> picture, in the order they are taken: a summary stays for the next one."""


def main() -> None:
    """Take all pictures, or those named on the command line."""
    wanted = sys.argv[1:] or list(PICTURES)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as address:
        asyncio.run(take({name: PICTURES[name] for name in wanted}, address, Path(folder)))


async def record_replies(folder: Path) -> None:
    """Record requests after the summary, as a model would have answered them."""
    async with enfold.open(f"sqlite:///{folder / 'chats.db'}") as engine:
        session = await engine.session("sample")
        first = (await session.history(limit=1))[0]
        await session.pin(first.id)
        for number in range(REPLIES):
            tokens = 3_500 + 90 * number
            cached = tokens * number // REPLIES
            used = UsageEvent("reply", input_tokens=tokens, cached_tokens=cached)
            await session.record_usage(used)


async def take(pictures: dict[str, Picture], address: str, folder: Path) -> None:
    """Open the pages and write the pictures."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for name, picture in pictures.items():
            context = await browser.new_context(
                viewport={"width": picture.width, "height": picture.height},
                color_scheme="dark" if picture.dark else "light",
                device_scale_factor=2 if picture.width < 600 else 1,  # noqa: PLR2004 - a phone
            )
            page = await context.new_page()
            if picture.path == "/dashboard":
                await record_replies(folder)
            await page.goto(address + picture.path)
            await page.get_by_role("banner").wait_for()
            if re.fullmatch(r"/s/[^/]+", picture.path):
                await page.locator(".ef-share").wait_for()  # counts come after the page
            await page.wait_for_timeout(1_500)  # charts grow
            await picture.act(page)
            await page.mouse.move(0, 0)  # no tooltip
            await page.wait_for_timeout(800)
            await page.screenshot(path=DOCS / name)
            await context.close()
            print(f"docs/{name}")
        await browser.close()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run a server with only the sample conversation, and yield its address."""
    command = [*SERVE, "--db", f"sqlite:///{folder / 'chats.db'}"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr or ():
            if match := re.search(r"serves on (http://\S+)", line):
                yield match[1]
                break
    finally:
        server.terminate()
        server.communicate(timeout=60)


if __name__ == "__main__":
    main()
