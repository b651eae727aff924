"""The contract of every strategy, built in or not, for any conversation."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import enfold
from enfold import wire as dialects
from enfold.condensation import (
    Condensation,
    EditedMessage,
    KeptMessage,
    Plan,
    SummarizedMessages,
    validate,
)
from enfold.errors import NoGainError
from enfold.history import last_user_message, open_loop_start, orphans, unanswered
from enfold.jsontext import dumps
from enfold.messages import (
    Attachment,
    Conversation,
    Message,
    Reasoning,
    ToolCall,
    ToolResult,
    Unknown,
)
from enfold.strategies import contract
from enfold.strategies.contract import Strategy
from enfold.summaries import fence
from enfold.testing import ScriptedSummarizer
from enfold.tokens import STRUCTURE_TOKENS, count_message, get
from tests.strategies.conversations import conversations
from tests.strategies.tasks import TOKENIZER, plan_for, strategy

SUPPRESS_ALL = {
    "id": "all",
    "name": "All",
    "selection": {"type": "preserve_recent", "keepRecentCount": 1},
    "mode": "individual",
    "individualConfig": {
        "defaults": {
            "messageText": {"operation": "truncate", "params": {"truncate": {"maxChars": 40}}},
            "toolParameters": "suppress",
            "toolResults": {"operation": "summarize", "params": {"summarize": {"maxTokens": 20}}},
        }
    },
}
FOLD_MOST = {
    "id": "fold",
    "name": "Fold",
    "selection": {"type": "preserve_percent", "keepPercentage": 10},
    "mode": "batch",
    "batchConfig": {
        "operation": "summarize",
        "summarizationConfig": {"keepFirst": 0, "keepLast": 1},
    },
}
HARSH = {
    "preserveRecentCount": 0,
    "preserveFirstCount": 0,
    "preserveUserMessages": False,
    "preserveAssistantText": False,
    "preserveErrors": False,
    "maxToolResultLines": 1,
    "maxMessageChars": 10,
    "maxToolParamChars": 10,
}
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    *((name, {}) for name in contract.names()),
    ("native", {"freshStart": True}),
    ("lossless", {"removeObsoleteState": True}),
    ("truncation", HARSH),
    ("truncation", {**HARSH, "truncationMode": "suppress"}),
    ("truncation", {**HARSH, "headAndTail": True, "maxToolResultLines": 5}),
    ("smart", {"passes": [SUPPRESS_ALL]}),
    ("smart", {"passes": [SUPPRESS_ALL, FOLD_MOST]}),
)
every = pytest.mark.parametrize(("name", "config"), VARIANTS, ids=range(len(VARIANTS)))
some = settings(max_examples=10)


async def run(
    messages: tuple[Message, ...], name: str, config: dict[str, Any], target: int | None = None
) -> tuple[Strategy, Plan, Condensation]:
    how = strategy(name, config)
    plan = plan_for(messages, how, target=target)
    return how, plan, await how.condense(plan)


def shown(plan: Plan, answer: Condensation) -> list[Message]:
    return [
        entry.message if isinstance(entry, EditedMessage) else plan.messages[entry.index]
        for entry in answer.entries
        if not isinstance(entry, SummarizedMessages)
    ]


def frame(message: Message) -> list[Any]:
    """All that no edit may change."""
    return [
        (message.role, message.id, message.name),
        *(
            (part.id, part.name)
            if isinstance(part, ToolCall)
            else (part.call_id, part.is_error, [p for p in part.parts if isinstance(p, Attachment)])
            if isinstance(part, ToolResult)
            else part
            for part in message.parts
            if isinstance(part, ToolCall | ToolResult | Attachment | Unknown)
        ),
    ]


@every
@given(messages=conversations(), target=st.none() | st.integers(1, 3_000))
@some
async def test_the_answer_may_be_used(
    name: str, config: dict[str, Any], messages: tuple[Message, ...], target: int | None
) -> None:
    _, plan, answer = await run(messages, name, config, target)
    with suppress(NoGainError):  # a short summary can be longer than a few short messages
        validate(plan, answer, may_be_unchanged=True)
        assert answer.tokens(plan) <= plan.tokens
    assert answer.strategy == name
    shown_messages = shown(plan, answer)
    assert len(orphans(shown_messages)) <= len(orphans(messages))
    assert len(unanswered(shown_messages)) <= len(unanswered(messages))
    indexes = [entry.index for entry in answer.entries if not isinstance(entry, SummarizedMessages)]
    assert indexes == sorted(indexes)
    assert all(
        operation.endswith("_completed")
        for operation in answer.operations
        if not operation.startswith("skip_")
    )


@every
@given(messages=conversations())
@some
async def test_protected_messages_stay(
    name: str, config: dict[str, Any], messages: tuple[Message, ...]
) -> None:
    _, plan, answer = await run(messages, name, config)
    last = last_user_message(messages)
    assert last is None or KeptMessage(last) in answer.entries
    assert not plan.protected.intersection(edit.index for edit in answer.edits)
    loop = open_loop_start(messages)
    for index, message in enumerate(messages[loop:], loop):
        if message.role == "assistant" and any(isinstance(p, Reasoning) for p in message.parts):
            assert not any(edit.index == index for edit in answer.edits)
    for edit in answer.edits:
        assert frame(edit.message) == frame(messages[edit.index])
        assert not any(isinstance(part, Reasoning) for part in edit.message.parts)
    assert answer.entries[-1] == KeptMessage(len(messages) - 1) or answer.edits


@every
@given(messages=conversations())
@some
async def test_every_count_is_exact(
    name: str, config: dict[str, Any], messages: tuple[Message, ...]
) -> None:
    _, plan, answer = await run(messages, name, config)
    for edit in answer.edits:
        assert edit.tokens == count_message(edit.message, TOKENIZER)
        assert edit.tokens < plan.counts[edit.index]
    if answer.summary is not None:
        text = fence(answer.summary.text)
        assert answer.summary.tokens == STRUCTURE_TOKENS + get(TOKENIZER).count(text)
    if answer.steps:
        assert answer.steps[0].tokens_before == plan.tokens
        assert answer.steps[-1].tokens_after == answer.tokens(plan)


@every
@given(messages=conversations())
@some
async def test_the_same_input_gives_the_same_answer(
    name: str, config: dict[str, Any], messages: tuple[Message, ...]
) -> None:
    _, _, first = await run(messages, name, config)
    _, _, second = await run(messages, name, config)
    assert first == second


@every
@given(messages=conversations())
@some
async def test_estimates_call_no_model_and_are_not_too_good(
    name: str, config: dict[str, Any], messages: tuple[Message, ...]
) -> None:
    writer = ScriptedSummarizer("s")
    how = strategy(name, config, writer)
    plan = plan_for(messages, how)
    foretold = await how.estimate(plan)
    reduction, cost = foretold.reduction, foretold.cost
    assert writer.requests == []
    assert reduction.tokens_before == plan.tokens
    answer = await how.condense(plan)
    if not cost.calls:
        assert reduction.tokens_after == answer.tokens(plan)
        assert reduction.steps == answer.steps
        assert cost.dollars == 0.0
    if not how.touches(plan):
        assert answer.is_unchanged


@every
@given(messages=conversations(max_turns=4), dialect=st.sampled_from(tuple(dialects.DIALECTS)))
@settings(max_examples=20)
async def test_a_wire_is_valid_afterwards_and_restored_to_the_byte(
    name: str, config: dict[str, Any], dialect: str, messages: tuple[Message, ...]
) -> None:
    wire = dialects.render(Conversation(messages), dialect)
    done = await enfold.condense(
        dialects.parse(wire, dialect),
        name,
        config=config,
        summarizer=ScriptedSummarizer("In short."),
    )
    assert dumps(enfold.restore(done.messages, done.ledger)) == dumps(wire)
    again = dialects.parse(done.messages, dialect)
    assert dumps(dialects.render(again)) == dumps(done.messages)
    # Where a summary is a block of another message, the message that it might be is counted too.
    # Each user message that joins another one saves the tokens of its structure.
    fewer = done.report.tokens_after - enfold.count(again)
    assert 0 <= fewer <= STRUCTURE_TOKENS * (len(messages) + 1)
    assert done.report.tokens_after <= done.report.tokens_before == enfold.count(wire)


@pytest.mark.parametrize(
    "config", [config for name, config in VARIANTS if name == "truncation"], ids=range(4)
)
@given(messages=conversations())
async def test_truncating_again_changes_nothing(
    config: dict[str, Any], messages: tuple[Message, ...]
) -> None:
    _, plan, answer = await run(messages, "truncation", config)
    _, _, again = await run(tuple(shown(plan, answer)), "truncation", config)
    assert again.is_unchanged
