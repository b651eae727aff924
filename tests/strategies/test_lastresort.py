"""The last resort: the view of a plan without a summary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.condensation import accept
from enfold.errors import NoGainError
from enfold.messages import Message
from enfold.strategies.fallback import OPERATION, truncated
from enfold.testing import assistant, user
from tests.strategies.conversations import conversations
from tests.strategies.tasks import plan_for, strategy


@given(conversations(), st.integers(1, 400))
def test_every_answer_is_acceptable(messages: tuple[Message, ...], target: int) -> None:
    plan = plan_for(messages, strategy("native"), target=target)
    answer = truncated(plan, "away")
    assert accept(plan, answer, may_be_unchanged=True).entries == answer.entries
    assert answer.is_unchanged == (OPERATION not in answer.operations)


def test_a_conversation_that_cannot_shrink_stays_unchanged() -> None:
    plan = plan_for([user("Hello")], strategy("native"), target=1)
    answer = truncated(plan, "away")
    assert answer.is_unchanged
    with pytest.raises(NoGainError):
        accept(plan, answer)


def test_users_words_below_the_floors_are_no_reason_to_refuse_it() -> None:
    texts = [f"Keep quay{n}.conf, /srv/boats/{n} and 1{n}7.25 in mind." for n in range(40)]
    messages = [each for text in texts for each in (user(text), assistant("Noted. " * 30))]
    plan = plan_for(messages, strategy("native"), target=200, restorable_by="store")
    answer = accept(plan, truncated(plan, "away"))
    assert answer.summary is not None
    assert answer.receipt is not None
    assert answer.receipt.total.restorable > answer.receipt.total.kept
