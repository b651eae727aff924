"""The app in a browser: pages come up whole, quietly, and from this machine alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from tests.cli.processes import environment
from tests.server.processes import Process, serve
from tests.ui.api_client import Api, user
from tests.ui.browser import window

TOKEN = "quite-a-secret"


async def test_the_first_page_comes_up(page: Page, server: Process) -> None:
    await page.goto(server.address)
    await expect(page).to_have_title("Set up a model · enfold")
    await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    await page.get_by_role("link", name="Continue without a model").click()
    await expect(page).to_have_title("Chat · enfold")
    await expect(page.get_by_text("No conversation yet.")).to_be_visible()


async def test_an_unknown_session_is_called_missing(page: Page, server: Process) -> None:
    await page.goto(f"{server.address}/s/nowhere")
    await expect(page.get_by_role("alert")).to_contain_text("there is no session 'nowhere'")
    await page.get_by_role("link", name="Back to conversations").click()
    await expect(page).to_have_url(f"{server.address}/")


async def test_a_name_may_have_a_slash_in_it(page: Page, server: Process, api: Api) -> None:
    api.session("a/b %?", user("slashed"))
    await page.goto(server.address)
    await page.get_by_role("list", name="Sessions").get_by_text("a/b %?").click()
    await expect(page.get_by_role("article")).to_contain_text("slashed")


async def test_a_sample_can_be_summarized_searched_and_undone(
    browser: Browser, tmp_path: Path
) -> None:
    with serve(tmp_path / "chats.db", "--sample") as server:
        async with window(browser) as (page, _):
            await page.goto(server.address)
            await page.get_by_text("Planning the harbour festival").first.click()
            await page.get_by_role("button", name="Summarize conversation history").click()
            await page.get_by_role("button", name="Summarize now").click()
            card = page.get_by_role("region", name="Summary of")
            await expect(card).to_be_visible()
            search = page.get_by_role("searchbox", name="Search all conversations")
            await search.fill("E-4031")
            await expect(page.get_by_role("list", name="Sessions")).to_contain_text("E-4031")
            await card.get_by_role("button", name="Summary of").click()
            await card.get_by_role("button", name="Undo").click()
            await expect(card).not_to_be_attached()
            await expect(page.get_by_role("button", name="Show earlier messages")).to_be_attached()


async def test_a_server_with_a_token_asks_for_it(browser: Browser, tmp_path: Path) -> None:
    with serve(tmp_path / "chats.db", ENFOLD_TOKEN=TOKEN) as server:
        async with window(browser) as (page, watch):
            watch.expected = ("401",)
            await page.goto(f"{server.address}/?from=afar")
            await page.get_by_label("Access token").fill("wrong")
            await page.get_by_role("button", name="Sign in").click()
            await expect(page.get_by_role("alert")).to_contain_text("invalid access token")
            await page.get_by_label("Access token").fill(TOKEN)
            await page.get_by_role("button", name="Sign in").click()
            await expect(page).to_have_url(f"{server.address}/?from=afar")
            await page.get_by_role("button", name="New conversation").click()
            await expect(page.get_by_role("textbox", name="Message")).to_be_visible()
            await page.get_by_role("button", name="Sign out").click()
            await expect(page.get_by_label("Access token")).to_be_visible()
        assert TOKEN not in "".join(server.stderr_lines)


async def test_open_windows_do_not_hold_up_the_end(browser: Browser, tmp_path: Path) -> None:
    with serve(tmp_path / "chats.db", "--sample") as server:
        async with window(browser) as (page, watch):
            watch.expected = ("ERR_CONNECTION", "WebSocket")
            await page.goto(f"{server.address}/s/sample")
            await expect(page.get_by_role("article").last).to_be_visible()
            assert server.stop() == 0
        log = "".join(server.stderr_lines)
        assert "graceful shutdown exceeded" not in log
        assert "mistake" not in log


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1"])
def test_a_foreign_page_gets_no_socket(server: Process, origin: str) -> None:
    upgrade = {
        "connection": "upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "origin": origin,
    }
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    assert httpx.get(f"{server.address}{path}", headers=upgrade, timeout=60).status_code == 403


def test_without_the_library_the_rest_is_served(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['nicegui'] = None\n")
    path = f"{tmp_path}:{environment()['PYTHONPATH']}"
    with serve(tmp_path / "chats.db", PYTHONPATH=path) as server:
        assert httpx.get(f"{server.address}/readyz", timeout=60).status_code == 200
        assert httpx.get(server.address, timeout=60).status_code == 404
        assert server.stop() == 0
    log = "".join(server.stderr_lines)
    assert "pip install 'enfold[ui]'" in log
    assert "in a browser" not in log


def test_the_server_without_ui_does_not_load_nicegui() -> None:
    program = "import sys, enfold.cli, enfold.server; sys.exit('nicegui' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], env=environment(), check=False)
    assert done.returncode == 0
