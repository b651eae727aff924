"""The sample is long, valid, and always the same."""

from enfold.history import orphans
from enfold.sample import sample_messages
from enfold.tokens import count_messages


def test_the_sample_is_a_valid_conversation() -> None:
    messages = sample_messages()
    assert not orphans(messages)
    assert sum(count_messages(messages, "o200k_base")) > 10_000


def test_the_sample_is_always_the_same_and_as_long_as_wanted() -> None:
    assert sample_messages() == sample_messages()
    assert len(sample_messages(4)) == 4 * len(sample_messages(1))
