"""Plans and strategies for the tests, as for a conversation without a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from enfold.condensation import Plan
from enfold.messages import Message
from enfold.pipeline import Request, make_plan
from enfold.retention import split
from enfold.standing_instructions import after_instructions
from enfold.strategies import contract
from enfold.strategies.contract import Strategy, Summarizers
from enfold.summaries import Summarizer
from enfold.testing import ScriptedSummarizer
from enfold.tokens import count_messages
from enfold.view import View

TOKENIZER = "o200k_base"


def strategy(
    name: str, config: dict[str, Any] | None = None, *summarizers: Summarizer, parallel: int = 4
) -> Strategy:
    """A strategy with a scripted summarizer, or with the first given; all are profiles by name."""
    given = summarizers or (ScriptedSummarizer("In short."),)
    by_name = {each.name: each for each in given}
    means = Summarizers(given[0], by_name.__getitem__, parallel)
    return contract.get(name).make_from(config, means)


def plan_for(
    messages: Sequence[Message], how: Strategy, *, target: int | None = None, **values: Any
) -> Plan:
    """The plan that a strategy is given where its own config says what stays."""
    counts = count_messages(messages, TOKENIZER)
    view = View.of(messages, counts, TOKENIZER)
    exact = after_instructions(how.retention, messages)
    request = Request(
        view,
        how,
        how.retention,
        goal=target or view.tokens or 1,
        target=target,
        split=None if target else split(messages, counts, exact, room=0),
        restorable_by=None,
        words_share=0,
    )
    return replace(make_plan(request), **values)
