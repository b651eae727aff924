"""A summary that needs many calls of a small model: progress, failures, and going on after them."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.async_api import Page, expect

from tests.llm.servers.loopback import ScriptedAnswer
from tests.llm.servers.openai import failed, streamed
from tests.llm.servers.protocol import KEY, ScriptedReply
from tests.server.processes import serve
from tests.ui.api_client import Api, talk
from tests.ui.test_answers import answered
from tests.ui.test_chat import say
from tests.ui.test_kept_messages import expect_one_problem

PARTS = 30
WAYS = ("Retry", "Use the built-in summarizer", "Continue once")


def part(number: int) -> ScriptedAnswer:
    """Return the summary of a part by the model."""
    return streamed(ScriptedReply((f"They talked about alpha and beta up to part {number}.",)))


async def test_a_summary_of_thirty_calls_survives_a_failure_and_the_end_of_the_process(
    page: Page, tmp_path: Path
) -> None:
    database, home = tmp_path / "chats.db", str(tmp_path)
    with serve(database, HOME=home, HARBOUR_KEY=KEY) as first:
        api = Api(first.address)
        api.model("compatible:smol", max_input=4_000, max_output=500, retention_tokens=300)
        api.set(background=False)
        written = [part(n) for n in range(1, 100)]
        script = (
            *written[:10],
            failed(401),
            *written[10:15],
            ScriptedAnswer(silent=True),
            *written[15:],
        )
        async with answered(api, *script) as model:
            path = api.session("long", *talk(100, 150))
            await page.goto(first.address + path)
            await say(page, "And now?")
            await expect_one_problem(page, "Paused: the summary failed.", *WAYS)
            assert len(model.requests) == 11
            await page.get_by_role("button", name="Retry").click()
            running = page.get_by_text(re.compile(r"part 16 of \d+, about .* left"))
            await expect(running).to_be_visible()
            words = await running.inner_text()
            parts = int(words.split(" of ")[1].split(",")[0])
            assert parts >= PARTS
            assert len(model.requests) == 17  # ten parts, a failure, five parts, one that hangs
            await page.goto("about:blank")
            first.stop()
            api.close()
            with serve(database, HOME=home, HARBOUR_KEY=KEY) as second:
                await page.goto(second.address + path)
                await page.get_by_role("button", name="Retry").click()
                done = page.get_by_role("status").filter(has_text="Summarized")
                await expect(done).to_be_visible()
                await expect(page.get_by_role("article", name="You, message 201")).to_be_visible()
                await expect(page.get_by_role("article", name="Model, message 202")).to_be_visible()
    # Every part is written once; after them comes the answer.
    assert len(model.requests) == parts + 2 + 1
