"""Chains of compressions: content of the first one, and planted rules."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from enfold.engine import Engine
from enfold.evaluation.cases import Case, Probe
from enfold.evaluation.measures import COMPRESSIONS, measure_decay, measure_rules
from enfold.messages import Conversation
from enfold.testing import assistant, user
from enfold.wiring import open_engine

THINGS = ("anchor", "sextant", "compass", "lantern", "rudder", "capstan", "windlass", "barometer")
PLACES = ("chart room", "forward hold", "galley locker", "captain's cabin", "sail loft")


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    async with open_engine("sqlite:///:memory:") as engine:
        yield engine


def talk(turns: int) -> Case:
    """Talk with hardly an exact item in it."""
    exchange = [
        (
            f"The {THINGS[n % 8]} was carried into the {PLACES[n % 5]} by the {THINGS[n * 3 % 8]} "
            f"keeper, and the mate wrote down that its {THINGS[n * 5 % 8]} needed mending again."
        )
        for n in range(turns)
    ]
    messages = (assistant(each) if n % 2 else user(each) for n, each in enumerate(exchange))
    return Case("plain", Conversation(tuple(messages)))


async def test_quotations_count_where_there_are_hardly_any_items(engine: Engine) -> None:
    found = await measure_decay(engine, talk(160), "native", 0.2)
    assert found is not None
    assert found.quotations > found.items
    assert len(found.in_view) == COMPRESSIONS + 1
    assert found.in_view[0] == found.reachable[0] == 1
    assert found.reachable[-1] >= 0.9
    assert found.evidence is None


async def test_questions_about_the_first_third_are_asked_at_both_ends(engine: Engine) -> None:
    probes = (Probe("Who is the mate?", evidence=(2, 3)), Probe("And later?", evidence=(2, 159)))
    found = await measure_decay(engine, replace(talk(160), probes=probes), "native", 0.2)
    assert found is not None
    assert found.evidence is not None
    assert [each.loosest.questions for each in found.evidence] == [1, 1]
    assert found.evidence[0].loosest.reachable >= found.evidence[1].loosest.reachable


async def test_a_short_talk_has_no_chain(engine: Engine) -> None:
    assert await measure_decay(engine, talk(8), "native", 0.2) is None


RULES = ("Never sell the sextant to anyone.", "From now on we only sail on Tuesdays.")


async def test_planted_rules_are_looked_for_after_each_compression(engine: Engine) -> None:
    found = await measure_rules(engine, talk(160), "native", 0.2, RULES)
    assert found is not None
    assert len(found) == COMPRESSIONS + 1
    assert all(share in (0, 0.5, 1) for share in found)


async def test_rules_need_a_typed_message_and_a_chain(engine: Engine) -> None:
    assert await measure_rules(engine, talk(8), "native", 0.2, RULES) is None
    silent = tuple(replace(each, role="assistant") for each in talk(160).messages)
    case = Case("silent", Conversation(silent))
    assert await measure_rules(engine, case, "native", 0.2, RULES) is None
