"""The first run: from the first page to an answered message, in at most three steps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.llm.servers.loopback import Loopback, ScriptedAnswer
from tests.llm.servers.openai import failed, streamed, whole
from tests.llm.servers.protocol import KEY, ScriptedReply
from tests.server.processes import serve
from tests.ui.api_client import Api
from tests.ui.browser import window
from tests.ui.test_chat import say

LISTED = ScriptedAnswer.of({"data": [{"id": "tiny"}, {"id": "large"}]})
READY = whole(ScriptedReply(("ready",)))
HELLO = streamed(ScriptedReply(("Hello from the model.",)))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


async def test_a_local_server_is_found_tested_and_answers(
    browser: Browser, home: Path, port: int
) -> None:
    async with Loopback(LISTED, READY, LISTED, HELLO) as model:
        variables = {"HOME": str(home), "ENFOLD_LOCAL_SERVERS": f"{model.url}/v1"}
        arguments = ("--sample", "--port", str(port))
        with serve(home / "chats.db", *arguments, **variables) as server:
            async with window(browser) as (page, _):
                await page.goto(server.address)
                await page.get_by_role("button", name="Use Local server").click()  # step 1
                dialog = page.get_by_role("dialog", name="Context window")
                await dialog.get_by_role("spinbutton", name="Tokens").fill("8000")
                await dialog.get_by_role("button", name="Save").click()  # step 2
                await expect(page).to_have_url(re.compile("/s/chat-"))
                await say(page, "Who are you?")  # step 3
                await expect(page.get_by_text("Hello from the model.")).to_be_visible()
                await expect(page.get_by_title("compatible:tiny")).to_be_visible()
            api = Api(server.address)
            assert [each["role"] for each in api.messages(api.sessions()[0]["id"])] == [
                "user",
                "assistant",
            ]
            api.close()


@pytest.mark.parametrize("storage", ["file", "memory"])
async def test_a_typed_key_is_tested_before_it_is_kept(
    browser: Browser, home: Path, port: int, storage: str
) -> None:
    async with Loopback(LISTED, LISTED, failed(401), READY, LISTED, HELLO) as model:
        variables = {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home),
            "PYTHON_KEYRING_BACKEND": _NO_KEYRING,
        }
        with serve(home / "chats.db", "--port", str(port), **variables) as server:
            async with window(browser) as (page, _):
                await page.goto(server.address)
                await _fill_in(page, f"{model.url}/v1", storage)
                await page.get_by_role("button", name="Test and start").click()
                await expect(page.get_by_text("nothing was saved")).to_be_visible()
                api = Api(server.address)
                assert api.profiles() == []
                await page.get_by_role("button", name="Test and start").click()
                await page.get_by_role("button", name="Assume").click()
                await say(page, "Who are you?")
                await expect(page.get_by_text("Hello from the model.")).to_be_visible()
                (profile,) = api.profiles()
                api.close()
                assert KEY not in await page.content()
        _expect_kept(home, profile["key"], storage)


def _expect_kept(home: Path, source: str, storage: str) -> None:
    """Expect the key in a private file or nowhere, and not in the database."""
    stored = b"".join(path.read_bytes() for path in home.glob("chats.db*"))
    assert KEY.encode() not in stored
    files = [path for path in home.rglob("keys/*") if path.is_file()]
    if storage == "memory":
        assert (files, source) == ([], "memory")
        return
    (file,) = files
    assert source == f"file:{file}"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text().strip() == KEY


_NO_KEYRING = "keyring.backends.fail.Keyring"


async def _fill_in(page: Page, address: str, storage: str) -> None:
    await page.get_by_role("combobox", name="Provider").click()
    await page.get_by_role("option", name="Another server").click()
    await page.get_by_role("textbox", name="Base URL").fill(address)
    await page.get_by_label("Key, if the server needs one").fill(KEY)
    await page.get_by_label("Key, if the server needs one").blur()
    await expect(page.get_by_role("combobox", name="Model")).to_have_value("large")
    words = {"file": "Store it in a file", "memory": "Keep it in memory"}[storage]
    await page.get_by_role("radio", name=words).click()
