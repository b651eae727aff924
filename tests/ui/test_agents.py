"""An agent's conversation through the proxy, as its owner watches it in a browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anthropic
import pytest
from playwright.async_api import Browser, Page, expect

from enfold.messages import Message
from enfold.testing import assistant
from enfold.testing.provider import ProviderRequest, StrictProvider
from tests.server.processes import Process, serve
from tests.ui.api_client import Api, user
from tests.ui.browser import window

MODEL = "claude-opus-4-8"
CONTEXT = "<system-reminder>\n# claudeMd\nContents of CLAUDE.md:\nWrite tests.\n</system-reminder>"
TYPED = "Rename the harbour module to port, please."


class CachingProvider(StrictProvider):
    """A provider that reads three quarters of every request from its cache."""

    def answer(self, request: ProviderRequest) -> tuple[int, Any, list[Any]]:
        status, whole, events = super().answer(request)
        if status == HTTPStatus.OK:
            whole["usage"] |= {"input_tokens": 250, "cache_read_input_tokens": 750}
        return status, whole, events


def work(request: ProviderRequest) -> Message:
    return assistant(f"Step {len(request.messages)} is done. " + "beta " * 250)


@pytest.fixture(scope="module")
def provider() -> Iterator[CachingProvider]:
    with CachingProvider(work) as started:
        yield started


@pytest.fixture(scope="module")
def server(
    provider: CachingProvider,
    database: Path,
    port: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Process]:
    """A server between agents and the provider."""
    home = str(tmp_path_factory.mktemp("home"))
    variables = {"HOME": home, "ENFOLD_ANTHROPIC_BASE_URL": provider.address}
    with serve(database, "--port", str(port), **variables) as process:
        yield process


class Agent:
    """A coding agent that keeps its history and sends it whole, as they do."""

    def __init__(self, client: anthropic.AsyncAnthropic) -> None:
        self._client = client
        self._history: list[Any] = []

    async def do(self, text: str) -> None:
        """Send what a person typed, and keep the answer."""
        blocks = [{"type": "text", "text": text}]
        if not self._history:
            blocks.insert(0, {"type": "text", "text": CONTEXT})
        self._history.append({"role": "user", "content": blocks})
        reply = await self._client.messages.create(
            model=MODEL, max_tokens=200, messages=self._history
        )
        self._history.append({"role": "assistant", "content": reply.to_dict()["content"]})


@asynccontextmanager
async def running_agent(server: Process, api: Api, key: str) -> AsyncIterator[Agent]:
    """An agent whose requests go through the server."""
    api.model(f"anthropic:{MODEL}", max_input=8_000, max_output=1_000, retention_tokens=500)
    async with anthropic.AsyncAnthropic(
        base_url=server.address,
        api_key=key,
        default_headers={"user-agent": "claude-cli/2.1.0 (external, cli)"},
    ) as client:
        yield Agent(client)


async def listed_path(api: Api, title: str) -> str:
    """Wait until a session with the title is listed, and return its path."""
    while True:
        for session in api.sessions():
            if session["title"] == title:
                return f"/s/{quote(session['id'], safe='')}"
        await asyncio.sleep(0.05)


async def test_a_session_is_listed_followed_live_and_undone(
    page: Page, server: Process, provider: CachingProvider, api: Api
) -> None:
    async with running_agent(server, api, "live") as agent:
        await page.goto(server.address)
        await agent.do(TYPED)
        await agent.do("Go on with step 1.")
        row = page.get_by_role("list", name="Sessions").get_by_role("link", name=TYPED)
        await expect(row).to_contain_text(f"Claude Code · {MODEL}")
        await row.click()
        details = page.get_by_role("complementary", name="Session details")
        await expect(details).to_contain_text("Claude Code")
        await expect(details).to_contain_text(f"anthropic:{MODEL}")
        await expect(details).to_contain_text("75 %")
        await expect(details).to_contain_text("1,000 tokens")
        await expect(details).to_contain_text("$0.0")
        await expect(page.get_by_text("Claude Code writes this conversation.")).to_be_visible()
        # The provider counted more than the stored messages have: system prompt and tools.
        bar = page.get_by_role("button", name="Context:")
        await expect(bar).to_contain_text("≈")
        await bar.click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("by the provider's count of the last request")
        await dialog.get_by_role("button", name="Close").click()
        await expect(page.get_by_role("textbox", name="Message")).not_to_be_attached()
        await expect(page.get_by_role("button", name="Edit")).not_to_be_attached()
        # Without a reload: what the agent does, what it costs, what was taken out.
        for step in range(2, 30):
            await agent.do(f"Go on with step {step}.")
        await expect(page.get_by_text("Go on with step 29.")).to_be_visible()
        await expect(details.get_by_text("30", exact=True)).to_be_visible()
        used = details.get_by_role("article").filter(has_text="in use")
        await expect(used).to_contain_text("Summary of")
        await expect(details).to_contain_text("tokens taken out of the context")
        await expect(details).to_contain_text("Without compressions")
        standing = details.get_by_role("button", name="Pinned messages")
        await expect(standing).to_contain_text("tokens")
        await used.get_by_role("button", name="Undo").click()
        await expect(details.get_by_role("article").filter(has_text="undone")).to_have_count(1)
        await agent.do("And the last one.")
        await expect(page.get_by_text("And the last one.")).to_be_visible()
    assert not provider.refused


async def test_the_details_open_on_request_on_a_phone(
    browser: Browser, server: Process, api: Api
) -> None:
    async with (
        running_agent(server, api, "phone") as agent,
        window(browser, width=390) as (page, _),
    ):
        await agent.do("Watch this on a phone.")
        await agent.do("Go on.")
        await page.goto(server.address + await listed_path(api, "Watch this on a phone."))
        await expect(page.get_by_text("Watch this on a phone.").last).to_be_visible()
        details = page.get_by_role("complementary", name="Session details")
        await expect(details).not_to_be_visible()
        await page.get_by_role("button", name="Session details").click()
        await expect(details).to_contain_text("Claude Code")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await details.get_by_role("button", name="Close session details").click()
        await expect(details).not_to_be_visible()


async def test_a_session_of_the_chat_has_details_and_a_composer(
    page: Page, server: Process, api: Api
) -> None:
    await page.goto(server.address + api.session("typed-here", user("hello")))
    await expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    details = page.get_by_role("complementary", name="Session details")
    await expect(details).not_to_be_visible()
    await page.get_by_role("button", name="Session details").click()
    await expect(details).to_contain_text("None yet.")
    await expect(details).not_to_contain_text("Client")
