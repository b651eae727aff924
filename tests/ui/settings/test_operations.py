"""What becomes of each type of content in a pass, and whatever else a pass says."""

from __future__ import annotations

from playwright.async_api import expect

from tests.ui.settings.conftest import Api, Visit, choose
from tests.ui.settings.test_passes import OLD, opened, save


async def test_everything_of_a_pass_can_be_edited(visit: Visit, api: Api) -> None:
    page = await opened(visit)
    await page.get_by_role("button", name=f"Edit {OLD}").click()
    await choose(page, "Selection", "All but the most recent, by share")
    await page.get_by_role("spinbutton", name="Keep percentage").fill("40")
    results = page.get_by_role("group", name="Tool results", exact=True)
    await results.get_by_role("button", name="summarize").click()
    await expect(results).to_contain_text("Summarized by a model")
    tokens = results.get_by_role("spinbutton", name="Max tokens")
    await tokens.fill("3")
    await expect(page.get_by_text("a whole number, 16 or more, found 3")).to_be_visible()
    await tokens.fill("90")
    await results.get_by_role("button", name="Example").click()
    example = page.get_by_role("region", name="Example of tool results")
    await expect(example).to_contain_text("at most 90 tokens")
    said = page.get_by_role("group", name="Message text", exact=True)
    await said.get_by_role("button", name="suppress").click()
    await choose(page, "Execution", "Only above a number of tokens")
    await page.get_by_role("spinbutton", name="Token threshold").fill("25000")
    await page.get_by_text("Operations for single messages").click()
    await page.get_by_role("button", name="Add message").click()
    await page.get_by_role("spinbutton", name="Message index").fill("2")
    first = (await save(page, api))[0]
    assert first["selection"] == {"type": "preserve_percent", "keepPercentage": 40}
    assert first["execution"] == {"type": "conditional", "condition": {"tokenThreshold": 25_000}}
    operations = first["individualConfig"]["defaults"]
    assert operations["messageText"] == {"operation": "suppress"}
    assert operations["toolResults"]["params"]["summarize"]["maxTokens"] == 90
    (other,) = first["individualConfig"]["overrides"]
    assert other["messageIndex"] == 2
    assert other["operations"]["toolResults"]["operation"] == "keep"
