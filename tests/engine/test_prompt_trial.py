"""A prompt on trial: a share of the sessions uses it, and both are compared."""

from __future__ import annotations

import enfold
from enfold.engine import Engine
from enfold.engine.activity import PromptFigures, read_prompt_trial
from enfold.testing import ScriptedSummarizer
from tests.engine.conftest import Bench, talk

SESSIONS = [f"chat-{number}" for number in range(24)]


async def _compress(engine: Engine, ids: list[str], model: str) -> None:
    for id in ids:
        session = await engine.session(id, model=model)
        await talk(session, 12)
        await session.compress()


async def test_a_share_of_the_sessions_uses_it_and_both_are_compared(bench: Bench) -> None:
    engine, requests = bench.engine, bench.summarizer.requests
    assert set((await read_prompt_trial(engine)).values()) == {PromptFigures()}
    await engine.set("prompt", "The usual one.")
    await engine.set("trial_prompt", "The new one.")
    await engine.set("trial_share", 0.25)
    await _compress(engine, SESSIONS, "test:small")
    used = [request.prompt for request in requests]
    trial = used.count("The new one.")
    assert 0 < trial < len(SESSIONS) / 2
    assert trial + used.count("The usual one.") == len(SESSIONS)
    found = await read_prompt_trial(engine)
    assert {name: each.summaries for name, each in found.items()} == {
        "trial": trial,
        "usual": len(SESSIONS) - trial,
    }
    assert all(0 < each.tokens_after < each.tokens_before for each in found.values())
    assert set((await read_prompt_trial(engine, "others")).values()) == {PromptFigures()}
    # A session keeps its prompt, and a larger share takes in those that had it.
    await engine.set("trial_share", 0.5)
    for id in SESSIONS:
        session = await engine.find(id)
        await talk(session, 12, start=50)
        await session.compress()
    again = [request.prompt for request in requests[len(SESSIONS) :]]
    assert all(
        new == "The new one." for old, new in zip(used, again, strict=True) if "new" in (old or "")
    )
    assert again.count("The new one.") > trial


async def test_a_session_with_its_own_prompt_takes_no_part(bench: Bench) -> None:
    await bench.engine.set("trial_prompt", "The new one.")
    await bench.engine.set("trial_share", 1)
    session = await bench.session()
    await session.configure(prompt="Its own.")
    await talk(session, 12)
    done = await session.compress()
    assert done.compressed
    assert bench.summarizer.requests[-1].prompt == "Its own."
    assert set((await read_prompt_trial(bench.engine)).values()) == {PromptFigures()}


async def test_a_prompt_trial_works_on_every_database(url: str) -> None:
    summarizer = ScriptedSummarizer("They agreed on the plan.")
    async with enfold.open(url, summarizers={"scripted": summarizer}) as engine:
        await engine.models.edit("test:small", max_input=4_000, max_output=2_000)
        await engine.set("summarizer", "scripted")
        await engine.set("trial_prompt", "The new one.")
        await engine.set("trial_share", 1)
        await _compress(engine, ["one"], "test:small")
        assert (await read_prompt_trial(engine))["trial"].summaries == 1
