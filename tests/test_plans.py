"""How tight a compression must be."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.condensation import TIGHTEST_SUMMARY, Plan
from enfold.errors import UncompressibleError
from enfold.messages import Message
from enfold.pipeline import Request, make_plan, run_strategy, tokens_after
from enfold.retention import Retention
from enfold.summaries import fence_tokens
from enfold.testing import assistant, call, result, user
from enfold.tokens import count_messages
from enfold.view import ShownMessage, View
from tests.histories import histories
from tests.strategies.tasks import TOKENIZER, strategy

NATIVE = strategy("native")


def plan(
    messages: Sequence[Message],
    counts: Sequence[int],
    retention: Retention,
    goal: int,
    *,
    previous_tokens: int = 0,
    previous_at: int = 0,
) -> Plan:
    shown = tuple(
        ShownMessage(str(index), message, tokens)
        for index, (message, tokens) in enumerate(zip(messages, counts, strict=True))
    )
    summary = "What was decided." if previous_tokens else None
    view = View(
        shown,
        TOKENIZER,
        summary=summary,
        summary_tokens=previous_tokens,
        summary_at=previous_at,
    )
    return make_plan(Request(view, NATIVE, retention, goal))


def chat(size: int) -> list[Message]:
    return [user(f"q{i}") if i % 2 == 0 else assistant(f"a{i}") for i in range(size)]


def test_the_policy_is_kept_if_the_goal_leaves_room() -> None:
    planned = plan(chat(100), [100] * 100, Retention("tokens", 1_000), 6_000)
    assert planned.split.cut == 90
    assert planned.summary_tokens == 900
    assert not planned.is_tightened


def test_a_summary_takes_a_tenth_of_its_messages_more_than_the_last_one() -> None:
    planned = plan(chat(100), [100] * 100, Retention("tokens", 1_000), 6_000, previous_tokens=700)
    assert planned.summary_tokens == 1_600


def test_a_summary_never_takes_more_than_a_third_of_the_goal() -> None:
    planned = plan(chat(100), [100] * 100, Retention("tokens", 100), 3_000, previous_tokens=9_000)
    assert planned.summary_tokens <= 1_000


def test_a_summary_shrinks_before_the_tail_does() -> None:
    planned = plan(chat(100), [100] * 100, Retention("tokens", 2_000), 2_500)
    assert planned.is_tightened
    assert planned.split.cut == 80
    assert planned.expected_tokens <= 2_500


def test_the_tail_shrinks_where_it_must() -> None:
    planned = plan(chat(100), [100] * 100, Retention("tokens", 5_000), 2_000)
    assert planned.split.cut > 80
    assert planned.expected_tokens <= 2_000


def test_an_unreachable_goal_gets_the_tightest_plan() -> None:
    planned = plan(chat(3), [50, 50, 9_000], Retention("tokens", 1_000), 500)
    assert planned.expected_tokens > 500
    assert planned.summary_tokens == TIGHTEST_SUMMARY


def test_nothing_to_summarize_is_a_plan() -> None:
    assert plan(chat(1), [10], Retention(), 100).split.is_empty
    assert plan([], [], Retention(), 100).split.is_empty


def test_the_head_does_not_reach_past_the_summary_that_is_there() -> None:
    retention = Retention("tokens", 500, keep_first=4)
    planned = plan(chat(50), [100] * 50, retention, 3_000, previous_tokens=300, previous_at=1)
    assert planned.split.head == 1


def test_a_first_summary_takes_what_the_rest_leaves_of_a_goal_far_below_the_history() -> None:
    counts = [100] * 200
    planned = plan(chat(200), counts, Retention("tokens", 300), 2_000)
    assert 1_500 < planned.summary_tokens <= 2_000 - 300 - fence_tokens(TOKENIZER)
    assert planned.expected_tokens <= 2_000


def test_a_summary_that_is_continued_leaves_room() -> None:
    planned = plan(chat(200), [100] * 200, Retention("tokens", 300), 2_000, previous_tokens=1_000)
    assert planned.summary_tokens <= 2_000 // 3


def test_a_running_loop_is_divided_by_hand_and_kept_if_it_can_be_otherwise() -> None:
    loop = [each for n in range(20) for each in (assistant("", call(f"c{n}")), result(f"c{n}"))]
    messages = [*chat(20), user("Do it."), *loop]
    shown = tuple(ShownMessage(str(n), each, 50) for n, each in enumerate(messages))
    request = Request(View(shown, TOKENIZER), NATIVE, Retention("tokens", 200), goal=2_900)
    by_hand, due = make_plan(request), make_plan(replace(request, is_due=True))
    assert due.split.cut <= 21 < by_hand.split.cut
    targeted = make_plan(replace(request, target=2_900))
    assert targeted.split.cut <= 21


async def test_a_due_view_may_take_all_that_is_allowed_and_no_more() -> None:
    messages = [user(f"question {n} " * 40) for n in range(20)]
    view = View.of(messages, count_messages(messages, TOKENIZER), TOKENIZER)
    request = Request(view, NATIVE, Retention("tokens", 200), 1_000, is_due=True, words_share=0)
    plan = make_plan(request)
    after = tokens_after(request, plan, await run_strategy(request, plan))
    await run_strategy(replace(request, allowed=after), plan)
    with pytest.raises(UncompressibleError, match="are allowed"):
        await run_strategy(replace(request, allowed=after - 1), plan)


@given(histories(), st.integers(50, 2_000), st.integers(0, 2_000), st.integers(0, 300))
def test_a_plan_that_promises_the_goal_keeps_the_promise(
    messages: list[Message], goal: int, amount: int, previous: int
) -> None:
    counts = [10 + 13 * index % 90 for index in range(len(messages))]
    planned = plan(messages, counts, Retention("tokens", amount), goal, previous_tokens=previous)
    divided = planned.split
    stays = sum(tokens for index, tokens in enumerate(counts) if index not in divided.summarized)
    assert stays + planned.summary_tokens <= planned.expected_tokens
