"""A server with two conversations in it, and what tests ask of it beside the browser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias

import httpx
import pytest
from playwright.async_api import Locator, Page

from enfold import wire
from enfold.messages import Conversation
from enfold.sample import sample_messages
from tests.server.processes import Process

Visit: TypeAlias = Callable[[str], Awaitable[Page]]
SESSION, TITLE = "harbour", "Planning the harbour festival"
LONG_TITLE = "Everything about " + "Donaudampfschifffahrtsgesellschaftskapitän" * 2


class SettingsApi:
    """The server's API, asked while a browser waits."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def ask(self, method: str, path: str, **more: Any) -> Any:
        """Return the answer; an error fails the test."""
        answer = self._client.request(method, path, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def setting(self, name: str, session: str = "") -> Any:
        """Return the value in force, in general or in a session."""
        path = f"/sessions/{session}/settings" if session else "/settings"
        return self.ask("GET", path)[name]["value"]

    def set(self, **settings: Any) -> None:
        """Set something for everybody."""
        self.ask("PATCH", "/settings", json={"settings": settings})


@pytest.fixture(scope="module")
def api(server: Process) -> Iterator[SettingsApi]:
    """The API of a server in which two conversations were stored."""
    messages = wire.render(Conversation(sample_messages(2), "openai"), "openai")
    with httpx.Client(base_url=f"{server.address}/api", timeout=300) as client:
        made = SettingsApi(client)
        for id, title in ((SESSION, TITLE), ("long", LONG_TITLE)):
            made.ask("POST", "/sessions", json={"id": id, "title": title})
            made.ask("POST", f"/sessions/{id}/messages", json={"messages": messages})
        yield made


@pytest.fixture
def visit(page: Page, server: Process, api: SettingsApi) -> Visit:
    """Opens a path of the server."""

    async def go(path: str) -> Page:
        await page.goto(server.address + path)
        return page

    return go


async def choose(page: Page, field: str, option: str, *, within: Locator | None = None) -> None:
    """Choose an option of a field; `within` is the part of the page with the field."""
    await (within or page).get_by_role("combobox", name=field, exact=True).click()
    await page.get_by_role("option", name=option, exact=True).click()


async def fits(page: Page) -> bool:
    """Return True if nothing exceeds the page's width."""
    return bool(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
