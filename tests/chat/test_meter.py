"""The token meter: its figures, its levels, and how it is drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.chat.controller import ChatController
from enfold.chat.meter import Meter
from enfold.messages import Attachment
from enfold.testing import user
from tests.chat.setup import SMALL, ChatSetup, fill


async def meter_of(chat: ChatController) -> Meter:
    return Meter.of(await chat.status(), chat.window)


HALF = Meter(system=100, summary=400, messages=4_500, estimated=0, limit=10_000)


@pytest.mark.parametrize(
    ("used", "level"),
    [(0, "calm"), (7_999, "calm"), (8_000, "warm"), (9_499, "warm"), (9_500, "full")],
)
def test_the_level_rises_at_80_and_95_percent(used: int, level: str) -> None:
    assert Meter(0, 0, used, 0, 10_000).level == level


def test_parts_add_up() -> None:
    assert HALF.used == 5_000
    assert HALF.share == 0.5
    assert HALF.cells(100) == {"system": 1, "summary": 5, "messages": 44}


amounts = st.integers(0, 200_000)


@given(amounts, amounts, amounts, amounts, st.integers(1, 200_000), st.integers(0, 300))
def test_a_bar_is_never_wider_than_its_room(
    system: int, summary: int, messages: int, estimated: int, limit: int, width: int
) -> None:
    meter = Meter(system, summary, messages, estimated, limit)
    cells = meter.cells(width)
    assert sum(cells.values()) == min(width, max(round(meter.share * width), int(meter.used > 0)))
    assert all(count >= 0 for count in cells.values())
    there = [name for name, tokens in meter.parts.items() if tokens]
    if sum(cells.values()) >= len(there):
        assert all(cells[name] for name in there)


@given(st.integers(0, 300))
def test_the_words_fit(width: int) -> None:
    assert len(HALF.words(width)) <= max(width, len("50%"))


def test_the_words_say_as_much_as_fits() -> None:
    assert HALF.words(100) == (
        "5,000 of 10,000 tokens  ▓ system 100 ▒ summary 400 █ messages 4,500"
    )
    assert HALF.words(60) == "5,000 of 10,000 tokens  ▓ 100 ▒ 400 █ 4,500"
    assert HALF.words(30) == "5,000 of 10,000 tokens"
    assert HALF.words(15) == "5,000 / 10,000"
    assert HALF.words(5) == "50%"


@pytest.mark.parametrize(
    ("meter", "exact"),
    [(HALF, True), (replace(HALF, estimated=1), False), (replace(HALF, corrected=True), False)],
    ids=["exact", "estimated", "corrected"],
)
def test_estimates_and_counts_are_distinguished(meter: Meter, exact: bool) -> None:
    assert meter.is_exact is exact
    assert ("≈" in meter.words(100)) is not exact


async def test_the_figures_are_those_of_the_session(chat_setup: ChatSetup) -> None:
    chat = await chat_setup.open_chat()
    await fill(chat, 10)
    meter = await meter_of(chat)
    status = await chat.status()
    assert meter.used == status.current_token_count
    assert meter.limit == status.context_limit
    await chat.compress()
    summarized = await meter_of(chat)
    assert summarized.summary == (await chat.status()).summary_tokens > 0
    assert summarized.used < meter.used


async def test_an_image_is_an_estimate(chat_setup: ChatSetup) -> None:
    chat = await chat_setup.open_chat()
    await chat.session.append(user("Look", Attachment("a.png", "image/png", 10, url="file:///a")))
    meter = await meter_of(chat)
    assert meter.estimated > 0
    assert not meter.is_exact


async def test_a_smaller_window_is_the_limit(chat_setup: ChatSetup) -> None:
    assert (await meter_of(await chat_setup.open_chat(window=2_000))).limit == 2_000
    assert (await meter_of(await chat_setup.open_chat(window=50_000))).limit == 3_800


async def test_another_tokenizer_makes_the_count_less_than_exact(chat_setup: ChatSetup) -> None:
    await chat_setup.engine.models.edit(SMALL, correction=1.2)
    assert not (await meter_of(await chat_setup.open_chat())).is_exact
