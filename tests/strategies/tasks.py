"""Tasks and strategies for the tests, as a conversation without a store would have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from enfold.condensation import Plan
from enfold.messages import Message
from enfold.plan import Aim
from enfold.plan import plan as make_plan
from enfold.retention import zones
from enfold.strategies import contract
from enfold.strategies.contract import Means, Strategy
from enfold.strategies.native import keeping_instructions
from enfold.summaries import Summarizer
from enfold.testing import ScriptedSummarizer
from enfold.tokens import count_messages

TOKENIZER = "o200k_base"


def strategy(
    name: str, config: dict[str, Any] | None = None, *summarizers: Summarizer, parallel: int = 4
) -> Strategy:
    """A strategy with a scripted summarizer, or with the first given; all are profiles by name."""
    given = summarizers or (ScriptedSummarizer("In short."),)
    known = {each.name: each for each in given}
    means = Means(given[0], known.__getitem__, parallel)
    return contract.get(name).make_from(config, means)


def plan_for(
    messages: Sequence[Message], how: Strategy, *, target: int | None = None, **values: Any
) -> Plan:
    """The plan that a strategy is given where its own config says what stays."""
    counts = tuple(count_messages(messages, TOKENIZER))
    retention = keeping_instructions(how.retention, messages)
    aim = Aim(retention, target or sum(counts) or 1, room=target or 0)
    planned = make_plan(messages, counts, aim)
    return Plan(
        tuple(messages),
        counts,
        planned.split,
        TOKENIZER,
        summary_tokens=planned.summary_tokens,
        target=target,
        zones=zones(counts, retention),
        **values,
    )
