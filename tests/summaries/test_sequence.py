"""Pieces that a summarizer can read."""

from hypothesis import given
from hypothesis import strategies as st

from enfold.history import orphans
from enfold.messages import Message
from enfold.summaries import SummaryRequest
from enfold.summaries.request import pieces, transcript
from enfold.testing import user
from enfold.tokens import get
from tests.histories import histories


def test_without_a_limit_there_is_one_piece() -> None:
    messages = (user("a " * 9_000), user("b"))
    assert list(pieces(SummaryRequest(messages), None)) == [messages]


def test_messages_that_fit_are_one_piece() -> None:
    messages = (user("a"), user("b"))
    assert list(pieces(SummaryRequest(messages), 100_000)) == [messages]


def test_a_piece_fits_with_its_instructions_and_its_answer() -> None:
    messages = tuple(user(f"{n} " + "word " * 300) for n in range(40))
    divided = list(pieces(SummaryRequest(messages, max_tokens=500), 6_000))
    count = get("o200k_base").count
    assert len(divided) > 1
    assert all(count(transcript(piece)) + 1_500 + 500 <= 6_000 for piece in divided)


@given(histories(), st.integers(1_000, 4_000))
def test_every_message_is_in_one_piece_and_no_pair_is_divided(
    messages: list[Message], max_input: int
) -> None:
    request = SummaryRequest(tuple(messages), max_tokens=100)
    divided = list(pieces(request, max_input))
    assert [message for piece in divided for message in piece] == messages
    assert not any(orphans(piece) for piece in divided)
