"""Savings of compressions: exact in tokens, estimated in money, unknown without a price."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from enfold.engine.activity import (
    Activity,
    Saving,
    Total,
    compare_costs,
    day_of,
    read_activity,
)
from enfold.errors import SummaryError
from enfold.records import DailyFailures, DailyUsage, UsageEvent
from tests.engine.conftest import MODEL, Bench, talk


async def test_tokens_are_exact_and_money_follows_the_replies(bench: Bench) -> None:
    session = await bench.engine.session("priced", model="openai:gpt-4o")
    await talk(session, 30)
    done = await session.compress(keep_tokens=300)
    once = (await read_activity(bench.engine)).total
    freed = done.tokens_before - done.tokens_after
    assert (once.compressions, once.tokens, once.spared, once.dollars) == (1, freed, 0, 0.0)
    for _ in range(3):
        await session.record_usage(UsageEvent("reply"))
    found = await read_activity(bench.engine)
    assert (found.total.tokens, found.total.spared) == (freed, 3 * freed)
    assert found.total.dollars == pytest.approx(3 * freed * 2.5 / 1_000_000)
    assert list(found.by_strategy) == ["native"]
    assert list(found.by_model) == ["openai:gpt-4o"]


async def test_cached_tokens_are_saved_at_their_own_price(bench: Bench) -> None:
    session = await bench.engine.session("priced", model="openai:gpt-4o")
    await talk(session, 30)
    done = await session.compress(keep_tokens=300)
    await session.record_usage(UsageEvent("reply", input_tokens=1_000, cached_tokens=800))
    found = await read_activity(bench.engine)
    freed = done.tokens_before - done.tokens_after
    saved = freed * (0.2 * 2.5 + 0.8 * 1.25)
    # The first reply read the new view at the full price: the compression discarded the cache.
    discarded = done.tokens_after * 0.8 * (2.5 - 1.25)
    assert found.total.dollars == pytest.approx((saved - discarded) / 1_000_000)


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


async def test_a_compression_is_judged_by_what_it_saved_and_cost(bench: Bench) -> None:
    session = await bench.engine.session("priced", model="openai:gpt-4o", title="Priced")
    await talk(session, 30)
    await session.compress(keep_tokens=300)
    (unused,) = (await read_activity(bench.engine)).savings
    assert (unused.verdict, unused.session, unused.title) == ("unused", "priced", "Priced")
    await session.record_usage(UsageEvent("reply"))
    found = await read_activity(bench.engine)
    assert (found.helped, found.savings[0].verdict) == (1, "helped")
    assert found.with_verdict("loss", "no gain") == []
    assert replace(unused, replies=1, dollars=0.1, cost=0.2).verdict == "loss"
    assert replace(unused, replies=1, tokens=0).verdict == "no gain"
    assert replace(unused, replies=1, dollars=None).verdict == "helped"


async def test_pins_and_recalls_are_counted_with_their_texts(bench: Bench) -> None:
    session = await bench.engine.session("asked", title="Asked")
    await talk(session, 3)
    last = (await session.history(limit=1))[0]
    await session.pin(last.id)
    await session.recall("Who has the key?")
    found = await read_activity(bench.engine)
    assert (found.pinned, found.recalls, found.is_empty) == (1, 1, False)
    (pin,), (recall,) = found.latest_pins, found.latest_recalls
    assert (pin.session, pin.title, pin.position) == ("asked", "Asked", last.depth)
    assert pin.text
    assert (recall.session, recall.text) == ("asked", "Who has the key?")
    assert (await read_activity(bench.engine, "others")).is_empty


async def test_a_recommendation_says_what_was_measured(bench: Bench) -> None:
    engine = bench.engine
    for name, model in (("large", "gpt-4o"), ("small", "gpt-4o-mini")):
        await engine.profiles.save(name, {"provider": "openai", "model": model})
    await engine.set("summarizer", "large")
    best, *_ = await compare_costs(engine, "", 100_000, 2_000)
    assert best.reason is not None
    assert "measured" not in best.reason
    session = await bench.session()
    for model, costs in (("gpt-4o", (0.3, 0.1, None)), ("gpt-4o-mini", (0.02,))):
        for cost in costs:
            await session.record_usage(UsageEvent("summary", model=f"openai:{model}", cost=cost))
    await session.record_usage(UsageEvent("reply", model="openai:gpt-4o-mini", cost=9.0))
    found = {each.profile: each for each in await compare_costs(engine, "", 100_000, 2_000)}
    large, small = found["large"], found["small"]
    assert (large.is_current, large.measured_calls) == (True, 2)
    assert large.measured_cost_per_call == pytest.approx(0.2)
    assert (small.measured_calls, small.measured_cost_per_call) == (1, 0.02)
    assert large.cost is not None
    assert small.cost is not None
    assert small.saved == pytest.approx(large.cost - small.cost)
    (reason,) = (each.reason for each in found.values() if each.is_cheapest)
    assert reason is not None
    assert "2 calls of openai:gpt-4o (-90%)" in reason
    others = await compare_costs(engine, "others", 100_000, 2_000)
    assert [each.measured_calls for each in others] == [0] * len(others)


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
    assert (found.bill, found.bill_without) == (None, None)
    assert day_of(0) == date(1970, 1, 1)


def test_the_bill_has_all_calls_and_what_was_saved_comes_on_top() -> None:
    usage = (
        DailyUsage(1, "reply", "a:b", 2, 100, 25, 5, 2.0, 0),
        DailyUsage(1, "summary", "a:b", 1, 100, 0, 5, 0.5, 0),
    )
    found = Activity((Saving(date(2026, 1, 2), "smart", "a:b", 10, 30, 1.5),), usage)
    assert (found.bill, found.bill_without) == (2.5, 3.5)
    unknown = replace(found, savings=(replace(found.savings[0], dollars=None),))
    assert (unknown.bill, unknown.bill_without) == (2.5, None)


def test_nothing_happened() -> None:
    assert Activity().is_empty
    assert Activity().cached_share is None
