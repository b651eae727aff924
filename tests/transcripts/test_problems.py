from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from enfold.messages import Message, Role, Text, ToolCall, ToolResult
from enfold.transcripts import problems


def message(role: Role, text: str = "…", id: str | None = None) -> Message:
    return Message(role, (Text(text),), id=id)


def calls(*ids: str) -> Message:
    return Message("assistant", tuple(ToolCall(id, "run", "{}") for id in ids))


def results(*ids: str) -> Message:
    return Message("tool", tuple(ToolResult(id, (Text("ok"),)) for id in ids))


def problem_texts(*messages: Message) -> list[str]:
    return [str(problem) for problem in problems(messages)]


def test_nothing_is_wrong_with_a_whole_conversation() -> None:
    assert (
        problem_texts(
            message("user", id="1"), calls("a", "b"), results("b"), results("a"), message("user")
        )
        == []
    )


def test_a_result_without_its_call() -> None:
    assert problem_texts(results("a"), calls("a"), results("a")) == [
        "messages[0]: a tool result without its call 'a' before it"
    ]


def test_a_call_without_a_result() -> None:
    assert problem_texts(calls("a", "b"), results("b"), message("user")) == [
        "messages[0]: the call 'a' has no result"
    ]


def test_the_last_reply_may_wait_for_its_results() -> None:
    assert problem_texts(message("user"), calls("a", "b"), results("a")) == []
    assert problem_texts(message("user"), calls("a"), calls("b"), results("b")) == []
    assert problem_texts(message("user"), calls("a")) == []


def test_a_second_result() -> None:
    assert problem_texts(calls("a"), results("a"), results("a")) == [
        "messages[2]: a second result of the call 'a'"
    ]


def test_ids_that_are_used_twice() -> None:
    assert problem_texts(
        message("user", id="1"), message("assistant", id="2"), message("user", id="1")
    ) == ["messages[2]: the id '1' is that of messages[0] too"]
    assert problem_texts(calls("a"), results("a"), calls("a"), results("a")) == [
        "messages[2]: the call id 'a' is used in messages[0] too"
    ]


def test_wires_without_call_ids_cannot_be_checked() -> None:
    assert problem_texts(calls("", ""), results(""), message("user")) == []


@given(st.lists(st.sampled_from("abc"), max_size=8).map(set), st.booleans())
def test_calls_with_all_their_results_are_never_a_problem(ids: set[str], apart: bool) -> None:
    answers = [results(id) for id in ids] if apart else [results(*ids)]
    assert problem_texts(message("user"), calls(*ids), *answers, message("user")) == []


@given(
    st.lists(st.sampled_from([calls("a"), results("a"), results("b"), message("user")]), max_size=9)
)
def test_problems_are_listed_in_order(messages: list[Message]) -> None:
    places = [problem.place for problem in problems(messages)]
    assert places == sorted(places)
    assert all(0 <= int(place[9:-1]) < len(messages) for place in places)
