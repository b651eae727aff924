"""Pieces that a summarizer can read."""

from hypothesis import given
from hypothesis import strategies as st

from enfold.history import orphans
from enfold.messages import Message
from enfold.summaries import SummaryRequest
from enfold.summaries.request import divide, transcript
from enfold.testing import user
from enfold.tokens import get
from tests.histories import histories


def test_without_a_limit_there_is_one_piece() -> None:
    messages = (user("a " * 9_000), user("b"))
    assert [each.messages for each in divide(SummaryRequest(messages), None)] == [messages]


def test_messages_that_fit_are_one_piece() -> None:
    messages = (user("a"), user("b"))
    assert [each.messages for each in divide(SummaryRequest(messages), 100_000)] == [messages]


def test_a_piece_fits_with_its_instructions_and_its_answer() -> None:
    messages = tuple(user(f"{n} " + "word " * 300) for n in range(40))
    divided = [each.messages for each in divide(SummaryRequest(messages, max_tokens=500), 6_000)]
    count = get("o200k_base").count
    assert len(divided) > 1
    assert all(count(transcript(piece)) + 1_500 + 500 <= 6_000 for piece in divided)


def test_a_small_model_gets_a_shorter_limit_and_less_context() -> None:
    """A conversation for a large model has more recent messages than a small model can read."""
    messages = tuple(user(f"{n} " + "word " * 300) for n in range(400))
    request = SummaryRequest(messages, recent=messages[:100], max_tokens=20_000)
    *parts, last = divide(request, 8_000)
    count = get("o200k_base").count
    assert len(parts) > 20
    assert not any(part.recent for part in parts)
    assert last.recent == messages[100 - len(last.recent) : 100] != ()
    for part in (*parts, last):
        read = sum(count(transcript(each)) for each in (part.messages, part.recent))
        # Its own summary, and the one that it continues.
        assert read + 1_500 + 2 * part.max_tokens <= 8_000


@given(histories(), st.integers(1_000, 4_000))
def test_every_message_is_in_one_piece_and_no_pair_is_divided(
    messages: list[Message], max_input: int
) -> None:
    request = SummaryRequest(tuple(messages), max_tokens=100)
    divided = [each.messages for each in divide(request, max_input)]
    assert [message for piece in divided for message in piece] == messages
    assert not any(orphans(piece) for piece in divided)
