"""One browser for all tests of the UI in a process, one server for each module.

Playwright's objects belong to the loop they were made in, so these tests share one loop.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.server.processes import Process, serve
from tests.ui.api_client import Api
from tests.ui.browser import FLAGS, PATIENCE, Watch, executable, window

HOW = "run `make browser`, or name one in ENFOLD_TEST_BROWSER"
# Milliseconds. Only a test that fails waits this long, so a busy machine does not matter.
expect.set_options(timeout=PATIENCE)
HERE = Path(__file__).parent
SECONDS = 900
"""The limit of one test: a browser test has several conditions to wait for."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            item.add_marker(pytest.mark.timeout(SECONDS))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        found = executable(playwright)
        if found is None:
            pytest.skip(f"no Chromium was found on this machine; {HOW}")
        opened = await playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield opened
        await opened.close()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ui") / "chats.db"


@pytest.fixture(scope="session")
def port() -> int:
    """The port of all modules' servers: the browser has the app's files from the first of them.

    The system gives none of these ports to a program that asks for any.
    """
    numbers = iter(range(10_000 + os.getpid() % 10_000, 32_000))
    while True:
        with socket.socket() as tried, suppress(OSError):
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(("127.0.0.1", found := next(numbers)))
            return found


@pytest.fixture(scope="module")
def server(
    database: Path, port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Process]:
    """`enfold serve` over a database of the module's own."""
    home = tmp_path_factory.mktemp("home")
    with serve(database, "--port", str(port), HOME=str(home)) as process:
        yield process


@pytest.fixture(scope="module")
def api(server: Process) -> Iterator[Api]:
    """For what a test needs to be there."""
    made = Api(server.address)
    yield made
    made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def watched(browser: Browser) -> AsyncIterator[tuple[Page, Watch]]:
    """A window, and what is seen in it; a test that brings an error about says which."""
    async with window(browser) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def page(watched: tuple[Page, Watch]) -> Page:
    """An empty window; the test fails if anything goes wrong in it."""
    return watched[0]
