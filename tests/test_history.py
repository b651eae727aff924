"""Where a history may be cut."""

from hypothesis import given

from enfold.history import (
    answers_a_call,
    cut_points,
    last_user_message,
    open_loop_start,
    orphans,
    signed_replies,
    unanswered,
)
from enfold.messages import Message, Reasoning, Text, ToolCall, ToolResult
from enfold.testing import assistant, call, result, system, user
from tests.histories import histories


def test_plain_turns_may_be_cut_anywhere() -> None:
    assert cut_points([user("a"), assistant("b"), user("c")]) == (0, 1, 2, 3)


def test_nothing_has_one_cut_point() -> None:
    assert cut_points([]) == (0,)


def test_a_call_and_its_result_stay_together() -> None:
    messages = [user("a"), assistant("", call("1")), result("1"), assistant("b")]
    assert cut_points(messages) == (0, 1, 3, 4)


def test_parallel_calls_stay_with_all_their_results() -> None:
    messages = [user("a"), assistant("", call("1"), call("2")), result("1"), result("2"), user("b")]
    assert cut_points(messages) == (0, 1, 4, 5)


def test_a_message_between_a_call_and_its_result_stays_too() -> None:
    messages = [user("a"), assistant("", call("1")), user("wait"), result("1"), assistant("b")]
    assert cut_points(messages) == (0, 1, 4, 5)


def test_a_call_that_waits_for_its_result_forbids_every_cut_after_it() -> None:
    messages = [user("a"), assistant("", call("1"), call("2")), result("1")]
    assert cut_points(messages) == (0, 1)


def test_an_interrupted_call_forbids_nothing_once_the_talk_went_on() -> None:
    messages = [user("a"), assistant("", call("1")), user("never mind"), assistant("fine")]
    assert cut_points(messages) == (0, 1, 2, 3, 4)


def test_items_of_one_reply_that_wait_for_results_are_one_unit() -> None:
    calls = [Message("assistant", (call(id),)) for id in ("1", "2")]
    messages = [user("a"), *calls, result("1")]
    assert cut_points(messages) == (0, 1)


def test_reasoning_stays_with_the_item_that_follows_it() -> None:
    thought = Message("assistant", (Reasoning("hm"),))
    messages = [user("a"), thought, assistant("b"), user("c")]
    assert cut_points(messages) == (0, 1, 3, 4)
    assert cut_points([user("a"), thought, user("c"), user("d")]) == (0, 1, 3, 4)


def test_the_same_id_used_twice_pairs_with_the_nearest_call() -> None:
    turn = [assistant("", call("1")), result("1")]
    assert cut_points([user("a"), *turn, user("b"), *turn]) == (0, 1, 3, 4, 6)


def test_a_result_inside_a_user_message_counts_as_a_result() -> None:
    reply = Message("user", (ToolResult("1", (Text("x"),)), Text("and then")))
    messages = [user("a"), assistant("", call("1")), reply, assistant("b")]
    assert cut_points(messages) == (0, 1, 3, 4)
    assert last_user_message(messages) == 2


def test_the_last_user_message_is_one_of_a_person() -> None:
    only_result = Message("user", (ToolResult("1"),))
    messages = [system("s"), user("a"), assistant("", call("1")), only_result]
    assert last_user_message(messages) == 1
    assert last_user_message([assistant("b")]) is None
    added = user("<system-reminder>The file has changed.</system-reminder>")
    assert last_user_message([user("a"), assistant("b"), added]) == 0
    assert last_user_message([assistant("b"), added]) == 1


def test_an_open_loop_begins_after_the_last_user_message() -> None:
    done = [user("a"), assistant("", call("1")), result("1"), assistant("b")]
    assert open_loop_start(done) == 4
    assert open_loop_start(done[:3]) == 1
    assert open_loop_start(done[:2]) == 1
    assert open_loop_start([]) == 0


def test_orphans_are_results_without_a_call() -> None:
    assert orphans([user("a"), result("1"), assistant("", call("2")), result("2")]) == (1,)


def test_calls_without_a_result_are_unanswered() -> None:
    assert unanswered([assistant("", call("1"), call("2")), result("2"), assistant("")]) == (0,)
    assert unanswered([assistant("", call("1")), result("1")]) == ()


def test_a_message_may_answer_a_call() -> None:
    messages = [Message("assistant", (Reasoning("hm"),)), assistant("so"), result("1")]
    assert [answers_a_call(message) for message in messages] == [False, False, True]


THOUGHT = Message("assistant", (Reasoning("hm"),))


def test_the_items_of_a_reply_with_reasoning_are_one_unit() -> None:
    reply = [THOUGHT, assistant("I look."), assistant("", call("1")), result("1")]
    messages = [user("a"), *reply, *reply, assistant("b"), user("c")]
    assert cut_points(messages) == (0, 1, 5, 9, 10, 11)


def test_items_of_a_reply_without_reasoning_may_be_divided() -> None:
    messages = [user("a"), assistant("b"), assistant("c"), user("d")]
    assert cut_points(messages) == (0, 1, 2, 3, 4)


def test_all_items_of_a_reply_with_reasoning_are_signed() -> None:
    reply = [THOUGHT, assistant("I look."), assistant("", call("1")), result("1")]
    assert set(signed_replies([user("a"), *reply, assistant("b")])) == {1, 2, 3}


def test_only_a_running_loop_has_signed_messages() -> None:
    turn = [user("a"), assistant("", call("1"), thinking="hm"), result("1")]
    assert set(signed_replies(turn)) == {1}
    assert not set(signed_replies([*turn, assistant("b")]))
    signed = Message("assistant", (ToolCall("2", "read", {}, {"thoughtSignature": "x"}),))
    assert set(signed_replies([user("a"), signed, result("2")])) == {1}
    assert not set(signed_replies([user("a"), assistant("", call("1")), result("1")]))


def _calls(messages: list[Message]) -> set[str]:
    return {part.id for m in messages for part in m.parts if isinstance(part, ToolCall)}


def _results(messages: list[Message]) -> set[str]:
    return {part.call_id for m in messages for part in m.parts if isinstance(part, ToolResult)}


@given(histories())
def test_no_cut_divides_a_call_from_its_result(messages: list[Message]) -> None:
    for point in cut_points(messages):
        before, after = messages[:point], messages[point:]
        assert not _calls(before) & _results(after)
        assert not orphans(after)


@given(histories())
def test_every_cut_that_divides_nothing_is_found(messages: list[Message]) -> None:
    points = set(cut_points(messages))
    answered = _results(messages)
    for index in range(len(messages) + 1):
        before, after = messages[:index], messages[index:]
        divides = bool(_calls(before) & _results(after))
        waits = bool(_calls(before) - answered)
        assert index in points or divides or waits
