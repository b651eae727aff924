"""Importing: a transcript is dropped on the list, and becomes a session or a clear word."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.async_api import Page, expect

from tests.server.processes import Process

DROP = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, {type: 'application/json'}));
  const target = document.querySelector('.ef-header');
  for (const kind of ['dragenter', 'dragover', 'drop'])
    target.dispatchEvent(
      new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: data}));
}"""


async def drop(page: Page, name: str, text: str) -> None:
    """Drag a file over the page, far from the list, and let it go there."""
    await page.evaluate(DROP, [name, text])


async def test_a_transcript_is_dropped(page: Page, server: Process) -> None:
    await page.goto(server.address)
    messages = [
        {"role": "user", "content": "Where is the ferry?"},
        {"role": "assistant", "content": "At sea."},
    ]
    await expect(page.get_by_role("button", name="Import a transcript")).to_be_visible()
    await page.wait_for_function("document.ondrop !== null")
    await drop(page, "talk.json", json.dumps(messages))
    await expect(page.get_by_role("article")).to_have_count(2)
    await expect(page.get_by_text("At sea.")).to_be_visible()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Where is the ferry?")


async def test_a_file_is_chosen(page: Page, server: Process, tmp_path: Path) -> None:
    await page.goto(server.address)
    file = tmp_path / "talk.jsonl"
    file.write_text('{"messages": [{"role": "user", "content": "Chosen by hand"}]}\n')
    await page.locator(".ef-import input[type=file]").set_input_files(file)
    chosen = page.get_by_role("article").filter(has_text="Chosen by hand")
    await expect(chosen).to_be_visible()


async def test_an_invalid_transcript_shows_an_error(
    page: Page, server: Process, tmp_path: Path
) -> None:
    await page.goto(server.address)
    file = tmp_path / "picture.json"
    file.write_bytes(b"{nonsense")
    await page.locator(".ef-import input[type=file]").set_input_files(file)
    alert = page.get_by_role("alert").filter(has_text="picture.json")
    await expect(alert).to_be_visible()
    await alert.get_by_role("button", name="Dismiss").click()
    await expect(alert).not_to_be_visible()
