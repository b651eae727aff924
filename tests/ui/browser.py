"""A browser for tests: found on this machine, watched while a test uses it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Playwright,
    Request,
)

NAMES = (
    "chromium-headless-shell",  # loads pages with less processor time than the others
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Pages live for seconds, so compiling twice and painting in several threads do not pay.
    "--js-flags=--no-opt --no-maglev --max-lazy",
    "--num-raster-threads=1",
)
PATIENCE = 120_000
"""Milliseconds to wait for a condition before a test fails."""
_INSIDE = frozenset({"127.0.0.1", "localhost", ""})
_IDLE: WeakKeyDictionary[Browser, list[Page]] = WeakKeyDictionary()
"""Empty windows of a browser, for the next test."""


def executable(playwright: Playwright) -> str | None:
    """The browser's program: the one that is named, the system's, or Playwright's own."""
    named = os.environ.get("ENFOLD_TEST_BROWSER")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    bundled = playwright.chromium.executable_path
    return found or (bundled if Path(bundled).exists() else None)


@dataclass
class Watch:
    """Records faults while a page is open."""

    errors: list[str] = field(default_factory=list)
    external_requests: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()
    """Parts of errors that a test brings about on purpose."""
    origins: set[str] = field(default_factory=set)
    """The servers that were asked for anything."""

    def over(self, page: Page) -> None:
        """Look at a page from now on."""
        page.on("console", self._console)
        page.on("pageerror", self._page_error)
        page.on("request", self._request)

    def leave(self, page: Page) -> None:
        """Look at the page no longer."""
        page.remove_listener("console", self._console)
        page.remove_listener("pageerror", self._page_error)
        page.remove_listener("request", self._request)

    def check(self) -> None:
        """Nothing went wrong in the browser, and nothing was asked of another machine."""
        wrong = [each for each in self.errors if not any(part in each for part in self.expected)]
        assert not wrong, "\n".join(wrong)
        assert not self.external_requests, "\n".join(self.external_requests)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"console: {message.text} {message.location}")

    def _page_error(self, error: Error) -> None:
        self.errors.append(f"page: {error}")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in {"http", "https"}:
            self.origins.add(f"{parts.scheme}://{parts.netloc}")
        if parts.scheme in {"http", "https", "ws", "wss"} and parts.hostname not in _INSIDE:
            self.external_requests.append(request.url)


@asynccontextmanager
async def window(
    browser: Browser, *, width: int = 1280, height: int = 860, dark: bool = False
) -> AsyncIterator[tuple[Page, Watch]]:
    """Open an empty window with memory of its own; at its end nothing may have gone wrong in it.

    A window that has loaded the app before loads it with a third of the work, so a window is
    emptied and used again when its test has passed.
    """
    idle = _IDLE.setdefault(browser, [])
    page = idle.pop() if idle else await _new_page(browser)
    await page.set_viewport_size({"width": width, "height": height})
    await page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
    watch = Watch()
    watch.over(page)
    try:
        yield page, watch
    except BaseException:
        await _close(page.context)
        raise
    watch.leave(page)
    if await _emptied(page, watch.origins):
        idle.append(page)
    else:
        await _close(page.context)
    watch.check()


async def _new_page(browser: Browser) -> Page:
    context = await browser.new_context()
    context.set_default_timeout(PATIENCE)
    return await context.new_page()


async def _emptied(page: Page, origins: set[str]) -> bool:
    """Leave the page and delete everything that it stored; false if it cannot be used again."""
    context = page.context
    if context.pages != [page]:
        return False
    try:
        await page.goto("about:blank", timeout=10_000)
    except Error:
        return False
    await context.clear_cookies()
    tools = await context.new_cdp_session(page)
    for origin in origins:
        await tools.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
    await tools.detach()
    return True


async def _close(context: BrowserContext) -> None:
    # Chromium now and then never reports that it has closed a page that is just leaving. The
    # browser's end closes what is left, so nothing depends on this limit.
    with suppress(TimeoutError):
        await asyncio.wait_for(context.close(), timeout=5)
