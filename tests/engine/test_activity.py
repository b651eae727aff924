"""What compressions saved: exact in tokens, an estimate in money, unknown where a price is."""

from __future__ import annotations

from datetime import date

import pytest

from enfold.engine.activity import Activity, Saving, Total, day_of, read_activity
from enfold.errors import SummaryError
from enfold.records import DailyFailures, DailyUsage, UsageEvent
from tests.engine.conftest import MODEL, Bench, talk


async def test_tokens_are_exact_and_money_follows_the_replies(bench: Bench) -> None:
    session = await bench.engine.session("priced", model="openai:gpt-4o")
    await talk(session, 30)
    done = await session.compress(keep_tokens=300)
    once = (await read_activity(bench.engine)).total
    freed = done.tokens_before - done.tokens_after
    assert (once.compressions, once.tokens, once.spared) == (1, freed, freed)
    assert once.dollars == pytest.approx(freed * 2.5 / 1_000_000)
    for _ in range(3):
        await session.record_usage(UsageEvent("reply"))
    found = await read_activity(bench.engine)
    assert (found.total.tokens, found.total.spared) == (freed, 3 * freed)
    assert list(found.by_strategy) == ["native"]
    assert list(found.by_model) == ["openai:gpt-4o"]


async def test_cached_tokens_are_saved_at_their_own_price(bench: Bench) -> None:
    session = await bench.engine.session("priced", model="openai:gpt-4o")
    await talk(session, 30)
    done = await session.compress(keep_tokens=300)
    await session.record_usage(UsageEvent("reply", input_tokens=1_000, cached_tokens=800))
    found = await read_activity(bench.engine)
    freed = done.tokens_before - done.tokens_after
    assert found.total.dollars == pytest.approx(freed * (0.2 * 2.5 + 0.8 * 1.25) / 1_000_000)


async def test_a_model_without_a_price_saves_an_unknown_amount(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 30)
    await session.compress()
    found = await read_activity(bench.engine)
    assert (found.total.dollars, found.total.unknown) == (0.0, 1)
    assert list(found.by_model) == [MODEL]
    assert (await read_activity(bench.engine, "others")).is_empty


async def test_failures_are_kept(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 30)
    bench.summarizer.script(SummaryError("no"))
    with pytest.raises(SummaryError):
        await session.compress()
    assert (await read_activity(bench.engine)).failed == 1


def test_sums_of_what_happened() -> None:
    one = Saving(date(2026, 1, 2), "native", "a:b", 10, 30, 0.5)
    two = Saving(date(2026, 1, 2), "smart", "a:b", 5, 5, None)
    three = Saving(date(2026, 1, 3), "smart", "c:d", 40, 40, 1.0)
    day = (date(2026, 1, 2) - date(1970, 1, 1)).days
    found = Activity(
        (one, two, three),
        (
            DailyUsage(day, "reply", "a:b", 2, 100, 25, 5, 0.1, 0),
            DailyUsage(day, "summary", "a:b", 2, 100, 0, 5, 0.3, 1),
        ),
        (DailyFailures(day, "x", 2, 1), DailyFailures(day, "y", 1, 1)),
    )
    assert found.total == Total(3, 55, 75, 1.5, 1)
    assert found.by_day()[date(2026, 1, 2)] == Total(2, 15, 35, 0.5, 1)
    assert list(found.by_strategy) == ["smart", "native"]
    assert list(found.by_model) == ["c:d", "a:b"]
    assert (found.failed, found.failures_by_day()) == (3, {date(2026, 1, 2): 3})
    assert (found.cached_share, found.cached_by_day()) == (0.25, {date(2026, 1, 2): 0.25})
    assert (found.spent, found.unknown_costs) == (0.3, 1)
    assert day_of(0) == date(1970, 1, 1)


def test_nothing_happened() -> None:
    assert Activity().is_empty
    assert Activity().cached_share is None
