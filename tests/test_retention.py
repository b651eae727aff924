"""Retention: the messages that stay verbatim."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.errors import ConfigError
from enfold.history import cut_points, last_user_message, orphans
from enfold.messages import Message, Text, ToolResult
from enfold.retention import Measure, Retention, Zones, split, zones
from enfold.testing import assistant, call, result, user
from tests.histories import histories


def chat(size: int) -> list[Message]:
    return [user(f"q{i}") if i % 2 == 0 else assistant(f"a{i}") for i in range(size)]


def test_the_most_messages_that_fit_are_kept() -> None:
    counts = [500, 200, 300, 300, 300]
    divided = split(chat(5), counts, Retention("tokens", 1_000))
    assert (divided.cut, divided.tail_tokens, divided.overshoot) == (2, 900, 0)


def test_exactly_the_budget_still_fits() -> None:
    assert split(chat(3), [500, 500, 500], Retention("tokens", 1_000)).cut == 1


def test_the_last_user_message_stays_even_if_it_alone_is_too_large() -> None:
    divided = split(chat(3), [10, 10, 5_000], Retention("tokens", 1_000))
    assert (divided.cut, divided.tail_tokens, divided.overshoot) == (2, 5_000, 4_000)


def test_the_tail_reaches_back_to_the_last_user_message() -> None:
    messages = [user("a"), assistant("b"), user("c"), assistant("d"), assistant("e")]
    assert split(messages, [10] * 5, Retention("tokens", 10)).cut == 2


def test_a_long_run_of_an_agent_is_cut_and_its_request_kept() -> None:
    rounds = [m for i in range(10) for m in (assistant("", call(str(i))), result(str(i)))]
    messages = [user("old"), assistant("done"), user("do it"), *rounds]
    counts = [10] * 3 + [100] * 20
    for enough in (5_000, 2_010):  # the request and its rounds have 2,010 tokens
        roomy = split(messages, counts, Retention("tokens", 500), room=enough)
        assert (roomy.cut, roomy.kept) == (2, frozenset())
    tight = split(messages, counts, Retention("tokens", 500), room=1_000)
    assert (tight.cut, tight.kept, tight.tail_tokens) == (19, frozenset({2}), 400)


def test_keeping_the_first_message_keeps_its_whole_tool_group() -> None:
    messages = [assistant("", call("1")), result("1"), *chat(6)]
    divided = split(messages, [10] * 8, Retention("messages", 2, keep_first=1))
    assert (divided.head, divided.cut) == (2, 6)


@pytest.mark.parametrize(
    ("by", "amount", "cut"),
    [
        ("messages", 3, 7),
        ("percent", 40, 6),
        ("percent", 100, 0),
        ("ratio", 0.2, 8),
        ("ratio", 1, 0),
        ("messages", 0, 8),
    ],
)
def test_other_measures(by: Measure, amount: float, cut: int) -> None:
    assert split(chat(10), [10] * 10, Retention(by, amount)).cut == cut


def test_everything_that_fits_leaves_nothing_to_fold() -> None:
    assert split(chat(4), [10] * 4, Retention("tokens", 1_000)).is_empty
    assert split([], [], Retention()).is_empty


def test_a_kept_message_alone_is_nothing_to_summarize() -> None:
    messages = [user("do it"), assistant("", call("1")), result("1")]
    divided = split(messages, [10, 100, 100], Retention("tokens", 200), room=50)
    assert divided.is_empty


@pytest.mark.parametrize(
    ("by", "amount", "first", "message"),
    [
        ("tokens", -1, 0, "retention by tokens: -1 is not 0 or more"),
        ("ratio", 1.1, 0, "retention by ratio: 1.1 is not between 0 and 1"),
        ("percent", 101, 0, "retention by percent: 101 is not between 0 and 100"),
        ("tokens", 1, -1, "keep_first: -1 is not 0 or more"),
        ("lines", 1, 0, "expected one of tokens, ratio, messages, percent"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(
    by: Measure, amount: float, first: int, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Retention(by, amount, first)


@given(
    histories(),
    st.sampled_from(["tokens", "ratio", "messages", "percent"]),
    st.floats(0, 1),
    st.integers(0, 3),
    st.one_of(st.none(), st.integers(0, 500)),
)
def test_the_rules_win_over_every_policy(
    messages: list[Message], by: Measure, amount: float, keep_first: int, room: int | None
) -> None:
    counts = [10 + 7 * index % 50 for index in range(len(messages))]
    scale = {"tokens": 400.0, "ratio": 1.0, "messages": 12.0, "percent": 100.0}[by]
    divided = split(messages, counts, Retention(by, amount * scale, keep_first), room=room)
    points = cut_points(messages)
    assert divided.cut in points
    assert divided.head in points
    assert divided.head <= divided.cut < len(messages)
    assert divided.tail_tokens == sum(counts[divided.cut :])
    assert not orphans(messages[divided.cut :])
    user_index = last_user_message(messages)
    assert user_index is not None
    assert user_index not in divided.summarized


def test_zones_are_what_a_policy_leaves_old() -> None:
    counts = [100] * 6
    assert zones(counts, Retention("messages", 2, keep_first=1)) == Zones(1, 4)
    assert list(Zones(1, 4).old) == [1, 2, 3]
    assert zones(counts, Retention("tokens", 250)) == Zones(0, 4)
    assert list(zones(counts, Retention("messages", 9, keep_first=9)).old) == []


def test_a_last_message_that_answers_a_call_is_not_torn_from_it() -> None:
    mixed = Message("user", (ToolResult("1", (Text("out"),)), Text("and go on")))
    rounds = [m for n in range(4) for m in (assistant("", call(f"r{n}")), result(f"r{n}"))]
    messages = [user("a"), assistant("", call("1")), mixed, *rounds]
    divided = split(messages, [50] * len(messages), Retention("messages", 2), room=0)
    assert not divided.kept
    assert divided.cut == 1
