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

from playwright.async_api import Browser, ConsoleMessage, Page, Playwright, Request

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 120_000
"""Milliseconds to wait for a condition before a test fails."""
_INSIDE = frozenset({"127.0.0.1", "localhost", ""})


def executable(playwright: Playwright) -> str | None:
    """The browser's program: the one that is named, the system's, or Playwright's own."""
    named = os.environ.get("ENFOLD_TEST_BROWSER")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    own = playwright.chromium.executable_path
    return found or (own if Path(own).exists() else None)


@dataclass
class Watch:
    """What must not happen while a page is open."""

    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()
    """Parts of errors that a test brings about on purpose."""

    def over(self, page: Page) -> None:
        """Look at a page from now on."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(f"page: {error}"))
        page.on("request", self._request)

    def check(self) -> None:
        """Nothing went wrong in the browser, and nothing was asked of another machine."""
        wrong = [each for each in self.errors if not any(part in each for part in self.expected)]
        assert not wrong, "\n".join(wrong)
        assert not self.outside, "\n".join(self.outside)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"console: {message.text} {message.location}")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in {"http", "https", "ws", "wss"} and parts.hostname not in _INSIDE:
            self.outside.append(request.url)


@asynccontextmanager
async def window(
    browser: Browser, *, width: int = 1280, height: int = 860, dark: bool = False
) -> AsyncIterator[tuple[Page, Watch]]:
    """A window of its own memory; at its end nothing may have gone wrong in it."""
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE)
    watch = Watch()
    page = await context.new_page()
    watch.over(page)
    try:
        yield page, watch
    finally:
        # Chromium now and then never says that it has closed a page that is just leaving. The
        # browser's end closes what is left, so nothing depends on this limit.
        with suppress(TimeoutError):
            await asyncio.wait_for(context.close(), timeout=5)
    watch.check()
