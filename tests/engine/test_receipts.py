"""Receipts: the fate of exact items in summarized messages of a stored session."""

from __future__ import annotations

import pytest

from enfold.engine import Session
from enfold.errors import NotFoundError
from enfold.jsontext import dumps
from enfold.testing import assistant, user
from tests.engine.conftest import Bench


async def project(bench: Bench, turns: int = 30) -> Session:
    """A session in which the user names a file with every question."""
    session = await bench.session()
    for turn in range(turns):
        await session.append(
            user(f"Look at src/file_{turn}.py. " + "alpha " * 40),
            assistant(f"It takes {turn + 1} ms. " + "beta " * 40),
        )
    return session


def kept(count: int) -> str:
    return "They read " + ", ".join(f"src/file_{n}.py" for n in range(count)) + "."


async def test_a_compression_comes_with_its_receipt(bench: Bench) -> None:
    session = await project(bench)
    bench.summarizer.script(kept(10))
    done = await session.compress()
    assert done.receipt is not None
    assert done.receipt.counts["path"].kept >= 10
    assert done.receipt.total.lost == 0
    assert done.receipt.restorable_by == "store"


async def test_the_snapshot_keeps_the_notes_and_the_session_makes_out_the_items(
    bench: Bench,
) -> None:
    session = await project(bench)
    bench.summarizer.script(kept(10))
    done = await session.compress()
    assert done.snapshot is not None
    stored = (await session.summaries())[0].content["receipt"]
    assert done.receipt is not None
    assert stored == done.receipt.notes_as_json()
    assert b"src/" not in dumps(stored)
    again = await session.receipt(done.snapshot)
    assert again.items == done.receipt.items
    assert again.stated == done.receipt.stated


async def test_each_of_several_compressions_has_its_own(bench: Bench) -> None:
    session = await project(bench)
    bench.summarizer.script(kept(10))
    first = await session.compress()
    for turn in range(30, 50):
        await session.append(user(f"Now src/file_{turn}.py. " + "alpha " * 40), assistant("Yes."))
    bench.summarizer.script("Later: " + kept(40))
    second = await session.compress()
    assert first.snapshot is not None
    assert second.snapshot is not None
    for done in (first, second):
        assert done.receipt is not None
        assert (await session.receipt(done.snapshot or "")).items == done.receipt.items
    await session.undo()
    assert first.receipt is not None
    assert (await session.receipt(first.snapshot)).items == first.receipt.items


async def test_other_words_for_the_same_messages_are_judged_by_the_same_messages(
    bench: Bench,
) -> None:
    session = await project(bench)
    bench.summarizer.script(kept(10))
    done = await session.compress()
    edited = await session.edit_summary("Only src/file_0.py matters.")
    assert edited.content["receipt"] is None
    assert done.receipt is not None
    anew = await session.receipt(edited.id)
    assert anew.items["path"].keys() == done.receipt.items["path"].keys()
    assert anew.counts["path"].kept < done.receipt.counts["path"].kept


async def test_a_summary_written_anew_is_judged_by_what_the_first_one_summarized(
    bench: Bench,
) -> None:
    session = await project(bench)
    bench.summarizer.script(kept(10))
    done = await session.compress()
    bench.summarizer.script(kept(12))
    regenerated = await session.regenerate()
    assert done.receipt is not None
    assert regenerated.receipt is not None
    assert regenerated.receipt.items["path"].keys() == done.receipt.items["path"].keys()
    assert (await session.receipt(regenerated.snapshot or "")).items == regenerated.receipt.items


async def test_edited_messages_have_a_receipt_too(bench: Bench) -> None:
    session = await bench.session()
    await session.append(user("Begin."))
    for turn in range(6):
        await session.append(
            assistant(f"See docs/note_{turn}.md " + "beta " * 300), user(f"And {turn}?")
        )
    done = await session.compress(
        strategy="truncation",
        strategy_config={"truncation": {"preserveAssistantText": False, "preserveRecentCount": 2}},
    )
    assert done.edited
    assert done.receipt is not None
    assert done.snapshot is not None
    assert (await session.receipt(done.snapshot)).items == done.receipt.items


async def test_a_summary_that_drops_what_the_user_named_is_written_again(bench: Bench) -> None:
    session = await project(bench)
    bench.summarizer.script("They talked.", kept(10))
    done = await session.compress()
    assert done.summary == kept(10)
    first, second = bench.summarizer.requests[-2:]
    assert first.draft is None
    assert second.draft == "They talked."
    assert "src/file_0.py" in second.missing


async def test_items_that_are_still_missing_are_added_and_nothing_is_blocked(bench: Bench) -> None:
    session = await project(bench, 45)
    bench.summarizer.script("They talked.")
    prepared = await session.prepare("And now?")
    assert prepared.view.summary is not None
    assert prepared.view.summary.startswith("They talked.\n- Mentioned: src/file_")
    assert any("they were added to it as a list" in each for each in prepared.warnings)
    assert len(bench.summarizer.requests) == 2, "one summary and one revision are paid"


async def test_an_unknown_snapshot_has_no_receipt(bench: Bench) -> None:
    session = await project(bench, 1)
    with pytest.raises(NotFoundError):
        await session.receipt("nothing")


async def test_a_compression_reports_as_a_condensation_does(bench: Bench) -> None:
    session = await project(bench)
    bench.summarizer.script(kept(10))
    done = await session.compress()
    assert done.report.as_json()["tokens_after"] == done.tokens_after
    assert done.report.cost == done.cost == 0.0
    assert str(done.report).startswith("Condensed with the Native strategy:")
