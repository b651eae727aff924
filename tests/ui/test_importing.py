"""Importing: a transcript is dropped on the list, and becomes a session or a clear word."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.async_api import Page, expect

from tests.server.processes import Process

DROP = """([zone, name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, {type: 'application/json'}));
  for (const kind of ['dragenter', 'dragover', 'drop']) {
    const target = zone.querySelector('.q-uploader__dnd') || zone;
    target.dispatchEvent(
      new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: data}));
  }
}"""


async def drop(page: Page, name: str, text: str) -> None:
    """Drag a file over the list and let it go there."""
    zone = page.locator(".ef-import")
    await zone.evaluate(
        "zone => zone.dispatchEvent(new DragEvent('dragover', {bubbles: true, cancelable: true,"
        " dataTransfer: new DataTransfer()}))"
    )
    await page.evaluate(DROP, [await zone.element_handle(), name, text])


async def test_a_transcript_is_dropped(page: Page, server: Process) -> None:
    await page.goto(server.address)
    said = [
        {"role": "user", "content": "Where is the ferry?"},
        {"role": "assistant", "content": "At sea."},
    ]
    await expect(page.locator(".ef-import")).to_be_visible()
    await drop(page, "talk.json", json.dumps(said))
    await expect(page.get_by_role("article")).to_have_count(2)
    await expect(page.get_by_text("At sea.")).to_be_visible()


async def test_a_file_is_chosen(page: Page, server: Process, tmp_path: Path) -> None:
    await page.goto(server.address)
    file = tmp_path / "talk.jsonl"
    file.write_text('{"messages": [{"role": "user", "content": "Chosen by hand"}]}\n')
    await page.locator(".ef-import input[type=file]").set_input_files(file)
    await expect(page.get_by_text("Chosen by hand")).to_be_visible()


async def test_what_is_no_transcript_is_said_to_be_none(
    page: Page, server: Process, tmp_path: Path
) -> None:
    await page.goto(server.address)
    file = tmp_path / "picture.json"
    file.write_bytes(b"{nonsense")
    await page.locator(".ef-import input[type=file]").set_input_files(file)
    told = page.get_by_role("alert").filter(has_text="picture.json")
    await expect(told).to_be_visible()
    await told.get_by_role("button", name="Dismiss").click()
    await expect(told).not_to_be_visible()
