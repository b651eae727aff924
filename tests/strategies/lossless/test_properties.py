"""Any session: restored exactly, valid, never larger, the same every time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold import wire as dialects
from enfold.condensation import EditedMessage
from enfold.history import open_loop_start, orphans
from enfold.jsontext import dumps, loads
from enfold.messages import Conversation, Message, Text, ToolResult
from enfold.retention import Retention
from enfold.strategies.lossless import shorten
from enfold.strategies.lossless.config import LosslessConfig
from enfold.strategies.lossless.markers import (
    SUPERSEDED_LIST,
    Names,
    expand,
    find_markers,
    has_marker,
)
from enfold.strategies.lossless.texts import texts_of_messages
from tests.histories import histories
from tests.strategies.lossless.sessions import (
    check,
    plan_for,
    restores,
    results,
    sessions,
    view,
)

configs = st.builds(
    LosslessConfig,
    deduplicate_file_reads=st.booleans(),
    deduplicate_blocks=st.booleans(),
    consolidate_tool_results=st.booleans(),
    remove_obsolete_state=st.booleans(),
    reencode=st.booleans(),
    keep=st.sampled_from(["first", "last"]),
    min_saving=st.sampled_from([1, 12, 40]),
)
retentions = st.builds(
    Retention, st.just("messages"), st.integers(0, 6), keep_first=st.integers(0, 6)
)


@given(sessions(), configs, retentions)
def test_every_answer_holds(
    messages: list[Message], config: LosslessConfig, retention: Retention
) -> None:
    plan = plan_for(messages, retention)
    answer = shorten(plan, config)
    check(plan, answer)
    assert orphans(view(plan, answer)) == orphans(messages)
    assert shorten(plan, config) == answer


@given(histories(), configs)
def test_histories_of_any_shape_hold(messages: list[Message], config: LosslessConfig) -> None:
    plan = plan_for(messages)
    check(plan, shorten(plan, config))


@given(sessions(), configs, retentions)
def test_protected_messages_stay_as_they_are(
    messages: list[Message], config: LosslessConfig, retention: Retention
) -> None:
    plan = plan_for(messages, retention)
    assert plan.zones is not None
    answer = shorten(plan, config)
    touched = {entry.index for entry in answer.entries if isinstance(entry, EditedMessage)}
    kept_in_loop = range(max(plan.zones.recent, open_loop_start(messages)), len(messages))
    assert not touched & set(kept_in_loop)
    assert not touched & plan.protected
    protected = {edit.index for edit in answer.edits if not edit.lossless}
    assert protected <= set(plan.editable)


@given(sessions(), configs, retentions)
def test_only_results_are_edited_in_their_order_and_each_is_smaller(
    messages: list[Message], config: LosslessConfig, retention: Retention
) -> None:
    plan = plan_for(messages, retention)
    answer = shorten(plan, config)
    after = view(plan, answer)
    assert [_frame(message) for message in after] == [_frame(message) for message in messages]
    assert all(edit.tokens < plan.counts[edit.index] for edit in answer.edits)
    for was, now in zip(messages, after, strict=True):
        assert was == now or was.role == "tool" or SUPERSEDED_LIST in str(now.parts)


@given(sessions(), configs)
def test_errors_stay_separate(messages: list[Message], config: LosslessConfig) -> None:
    plan = plan_for(messages)
    after = view(plan, shorten(plan, config.model_copy(update={"reencode": False})))
    for was, now in zip(messages, after, strict=True):
        for before, shown in zip(_errors(was), _errors(now), strict=True):
            assert shown[:10] == before[:10]


def _frame(message: Message) -> tuple[str, list[str]]:
    ids = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
    return message.role, ids


def _errors(message: Message) -> list[str]:
    """The texts of results that are errors."""
    failed = (part for part in message.parts if isinstance(part, ToolResult) and part.is_error)
    return [each.text for part in failed for each in part.parts if isinstance(each, Text)]


@given(sessions(), configs)
def test_markers_name_texts_that_are_there(messages: list[Message], config: LosslessConfig) -> None:
    plan = plan_for(messages)
    answer = shorten(plan, config)
    texts = texts_of_messages(view(plan, answer))
    names = Names(texts)
    edited = {edit.index: edit for edit in answer.edits}
    for holder, text in enumerate(texts):
        sources = {
            source.message
            for each in (edited[text.message].shortenings if text.message in edited else ())
            if each.shown == text.text
            for source in each.sources
        }
        found: set[int] = set()
        for marker in find_markers(text.text) if text.is_result and sources else ():
            targets = names.targets(marker.name, holder) if marker.name else []
            found.update(texts[index].message for index in targets)
        assert sources - {text.message} <= found or "\\" in text.text


@given(sessions(), configs)
def test_markers_lead_a_reader_to_the_text_that_they_stand_for(
    messages: list[Message], config: LosslessConfig
) -> None:
    plan = plan_for(messages)
    after = view(plan, shorten(plan, config.model_copy(update={"reencode": False})))
    for index, (message, targets) in expand(after).items():
        assert targets
        for was, now in zip(results([messages[index]]), results([message]), strict=True):
            if "no longer shown" not in now and not has_marker(now) and not has_marker(was):
                assert _bare(now) == _bare(was)


def _bare(text: str) -> list[str]:
    """The lines without their numbers, which a marker does not lay out."""
    return [re.sub(r"^ *\d+[→\t|:-]", "", line) for line in text.split("\n")]


@given(sessions(), configs, retentions)
def test_a_view_that_was_condensed_stays_as_it_is(
    messages: list[Message], config: LosslessConfig, retention: Retention
) -> None:
    plan = plan_for(messages, retention)
    again = plan_for(view(plan, shorten(plan, config)), retention)
    assert shorten(again, config).is_unchanged


@pytest.mark.parametrize("dialect", list(dialects.DIALECTS))
@given(messages=sessions(), config=configs)
def test_every_dialect_is_restored_byte_for_byte(
    dialect: str, messages: list[Message], config: LosslessConfig
) -> None:
    wire = dialects.render(Conversation(tuple(messages)), dialect)
    conversation = dialects.parse(loads(dumps(wire)), dialect)
    plan = plan_for(conversation.messages)
    answer = shorten(plan, config)
    restores(conversation, answer, view(plan, answer))
