"""Profiles: added with a key that is never seen again, tried, compared by cost, deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from enfold.llm.profiles import read
from enfold.ui.settings.profiles import key_words
from tests.llm.servers.loopback import Loopback
from tests.llm.servers.openai import failed, whole
from tests.llm.servers.protocol import ScriptedReply
from tests.server.processes import Process, serve
from tests.ui.browser import window
from tests.ui.settings.conftest import SettingsApi, Visit, choose, fits

KEY = "sk-never-to-be-seen-again"
COMPATIBLE = "Any server with OpenAI's protocol, such as Ollama, llama.cpp or vLLM"


@pytest.fixture(scope="module")
def server(
    database: Path, port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Process]:
    """A server that has something to encrypt keys with."""
    home = tmp_path_factory.mktemp("home")
    variables = {"HOME": str(home), "ENFOLD_SECRET_KEY": "k" * 32, "WORK_KEY": "w"}
    with serve(database, "--port", str(port), **variables) as process:
        yield process


@pytest.fixture
def no_profiles(api: SettingsApi) -> Iterator[None]:
    """No profile before and after."""
    yield
    for each in api.ask("GET", "/profiles"):
        api.ask("DELETE", f"/profiles/{each['name']}?force=true")
    api.set(summarizer=None)


async def add(page: Page, name: str, model: str, provider: str = "OpenAI") -> None:
    await page.get_by_role("button", name="Add profile").click()
    dialog = page.get_by_role("dialog", name="Add profile")
    await dialog.get_by_role("textbox", name="Name", exact=True).fill(name)
    if provider != "OpenAI":
        await choose(page, "Provider", provider)
    await dialog.get_by_role("textbox", name="Model", exact=True).fill(model)
    await dialog.get_by_role("switch", name="Test before saving").click()


async def save(page: Page) -> None:
    await page.get_by_role("button", name="Save profile").click()
    await expect(page.get_by_role("dialog")).not_to_be_visible()


@pytest.mark.usefixtures("no_profiles")
async def test_a_key_is_stored_and_never_shown_again(
    visit: Visit, api: SettingsApi, database: Path
) -> None:
    page = await visit("/settings/profiles")
    await expect(page.get_by_text("No profile yet.")).to_be_visible()
    await add(page, "work", "gpt-4o")
    await choose(page, "Key source", "Stored in enfold, encrypted")
    await page.get_by_role("textbox", name="Key", exact=True).fill(KEY)
    await save(page)
    profile = page.get_by_role("article", name="work")
    await expect(profile).to_contain_text("Key: stored, encrypted")
    await expect(profile).to_contain_text("Summaries by gpt-4o-mini.")
    await profile.get_by_role("button", name="Edit work").click()
    field = page.get_by_role("textbox", name="Key", exact=True)
    await expect(field).to_have_value("")
    assert KEY not in await page.content()
    await page.get_by_role("switch", name="Test before saving").click()
    await save(page)
    assert api.ask("GET", "/profiles/work")["fields"]["key"] == "stored"
    assert KEY.encode() not in b"".join(
        file.read_bytes() for file in database.parent.glob(f"{database.name}*")
    )


@pytest.mark.usefixtures("no_profiles")
async def test_the_dialog_shows_errors_while_it_is_filled_in(
    visit: Visit, api: SettingsApi
) -> None:
    page = await visit("/settings/profiles")
    await add(page, "home", "tiny", COMPATIBLE)
    dialog = page.get_by_role("dialog", name="Add profile")
    await expect(dialog).to_contain_text("needs the server's address")
    await expect(page.get_by_role("button", name="Save profile")).to_be_disabled()
    address = dialog.get_by_role("textbox", name="Base URL")
    await address.fill("nowhere")
    await expect(dialog).to_contain_text("expected an address such as")
    await address.fill("http://127.0.0.1:9/v1")
    await page.get_by_text("Summaries, threshold, prices").click()
    percent = page.get_by_role("spinbutton", name="Threshold")
    await percent.fill("3")
    await expect(dialog).to_contain_text("3 is neither a share")
    await percent.fill("80")
    await page.get_by_text("US dollars per million tokens.").click()
    await page.get_by_role("switch", name="Set prices").click()
    await page.get_by_role("spinbutton", name="Input", exact=True).fill("0.5")
    await save(page)
    fields = api.ask("GET", "/profiles/home")["fields"]
    assert (fields["threshold"], fields["prices"]) == (80, {"input": 0.5})


@pytest.mark.usefixtures("no_profiles")
async def test_a_connection_is_tested_and_its_failure_explained(
    visit: Visit, api: SettingsApi
) -> None:
    async with Loopback(whole(ScriptedReply()), failed(401)) as model:
        fields = {"provider": "compatible", "model": "tiny", "base_url": f"{model.url}/v1"}
        api.ask("PUT", "/profiles/local-one", json={"fields": fields})
        page = await visit("/settings/profiles")
        profile = page.get_by_role("article", name="local-one")
        await profile.get_by_role("button", name="Test local-one").click()
        # The library that asks models is loaded by the first call, which takes a while.
        await expect(profile).to_contain_text("Test passed:")
        await expect(profile.get_by_role("status")).to_contain_text("unknown")
        await profile.get_by_role("button", name="Test local-one").click()
        await expect(profile).to_contain_text("Test failed:")
        await expect(profile).to_contain_text("key")


@pytest.mark.usefixtures("no_profiles")
async def test_costs_are_compared_and_the_cheapest_recommended(
    visit: Visit, api: SettingsApi
) -> None:
    work = {"provider": "openai", "model": "gpt-4o", "key": "env:WORK_KEY"}
    tiny = {"provider": "compatible", "model": "tiny", "base_url": "http://127.0.0.1:9/v1"}
    small = {**work, "model": "gpt-4o-mini"}
    for name, fields in (("work", work), ("tiny", tiny), ("small", small)):
        api.ask("PUT", f"/profiles/{name}", json={"fields": fields})
    page = await visit("/settings/profiles")
    table = page.get_by_role("table", name="Costs compared")
    await expect(page.get_by_text("small costs")).to_be_visible()
    await expect(table.get_by_role("row", name="small")).to_contain_text("recommended")
    unknown = table.get_by_role("row", name="tiny")
    await expect(unknown.locator(".ef-unknown").first).to_have_text("unknown")
    await expect(table.get_by_role("row", name="small")).to_contain_text("≈ $0.016")
    await page.get_by_role("button", name="Use small for all summaries").click()
    await expect(table.get_by_role("row", name="small")).to_contain_text("in use")
    assert api.setting("summarizer") == "small"


@pytest.mark.usefixtures("no_profiles")
async def test_deleting_a_profile_names_its_uses_and_falls_back(
    visit: Visit, api: SettingsApi
) -> None:
    cheap = {"provider": "openai", "model": "gpt-4o-mini", "key": "env:WORK_KEY"}
    work = {"provider": "openai", "model": "gpt-4o", "condensing_profile": "cheap"}
    api.ask("PUT", "/profiles/cheap", json={"fields": cheap})
    api.ask("PUT", "/profiles/work", json={"fields": work})
    api.set(summarizer="cheap", default_profile="cheap")
    page = await visit("/settings/profiles")
    await page.get_by_role("button", name="Delete cheap").click()
    dialog = page.get_by_role("dialog")
    for words in ("condenses for work", "writes all summaries", "is the default profile"):
        await expect(dialog).to_contain_text(words)
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(dialog).not_to_be_visible()
    await page.get_by_role("button", name="Delete cheap").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("article", name="cheap")).not_to_be_visible()
    assert api.ask("GET", "/profiles/work")["fields"].get("condensing_profile") is None
    assert api.setting("summarizer") is None
    assert api.setting("default_profile") is None


@pytest.mark.usefixtures("no_profiles")
async def test_the_page_fits_a_phone_in_dark_mode(
    browser: Browser, server: Process, api: SettingsApi
) -> None:
    name = "a-very-long-name-of-a-profile-that-nobody-can-pronounce-without-a-pause-in-the-middle"
    fields = {"provider": "openai", "model": "gpt-4o-with-an-unusually-long-name-2026-01-01"}
    api.ask("PUT", f"/profiles/{name}", json={"fields": fields})
    async with window(browser, width=390, height=800, dark=True) as (page, _):
        await page.goto(f"{server.address}/settings/profiles")
        await expect(page.get_by_role("article", name=name)).to_be_visible()
        assert await fits(page)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"provider": "openai", "key": "env:MINE"}, "the variable MINE"),
        ({"provider": "openai", "key": "file:/k"}, "the file /k"),
        ({"provider": "openai", "key": "stored"}, "stored, encrypted"),
        ({"provider": "openai"}, "the variable OPENAI_API_KEY"),
        ({"provider": "compatible", "base_url": "http://127.0.0.1/v1"}, "not needed"),
    ],
    ids=["environment", "file", "stored", "usual", "none"],
)
def test_the_source_of_a_key_is_named(fields: dict[str, str], words: str) -> None:
    assert key_words(read("p", {"model": "m", **fields})) == words
