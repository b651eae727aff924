"""The strategy as others use it: chosen by name, set by JSON, kept to what may be touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from enfold.condensation import EditedMessage, validate
from enfold.errors import CompressionError, ConfigError
from enfold.jsontext import dumps
from enfold.messages import Conversation, Message, Text, ToolResult
from enfold.retention import Retention
from enfold.strategies import contract
from enfold.strategies.contract import Summarizers
from enfold.strategies.lossless import Lossless, shorten
from enfold.strategies.lossless.config import LosslessConfig
from enfold.testing import ScriptedSummarizer, assistant, user
from tests.strategies.lossless.sessions import (
    Session,
    code,
    condense,
    numbered,
    plan_for,
    restores,
    results,
    view,
)

APP = code("app", 40)
UNUSED_SUMMARIZER = ScriptedSummarizer()
MEANS = Summarizers(UNUSED_SUMMARIZER)


def make(value: Any = None) -> Lossless:
    made = contract.get("lossless").make_from(value, MEANS)
    assert isinstance(made, Lossless)
    return made


def test_the_former_option_names_are_accepted() -> None:
    names = ("deduplicateFileReads", "consolidateToolResults", "removeObsoleteState")
    config = make(dict.fromkeys(names, False)).config
    assert not config.deduplicate_file_reads
    assert not config.consolidate_tool_results
    assert not config.remove_obsolete_state
    assert make({"removeObsoleteState": True}).config.remove_obsolete_state
    assert make().config == LosslessConfig()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"deduplicate": True}, "deduplicate: unknown field"),
        ({"keep": "middle"}, "keep: expected one of first, last"),
        ({"minSaving": 0}, "minSaving"),
        ({"encodings": {"lineNumbers": 1}}, "encodings.lineNumbers"),
        ({"encodings": {"rot13": True}}, "encodings.rot13: unknown"),
    ],
)
def test_an_invalid_option_is_refused_by_name(value: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make(value)


async def test_the_result_lists_its_steps_without_model_calls() -> None:
    plan = plan_for(Session().read("a.py", numbered(APP)).read("a.py", numbered(APP)).end())
    strategy = make({"removeObsoleteState": False})
    answer = await strategy.condense(plan)
    validate(plan, answer)
    assert answer.strategy == "lossless"
    assert [step.name for step in answer.steps] == [
        "reencoding",
        "result_consolidation",
        "file_deduplication",
        "block_deduplication",
    ]
    assert answer.operations[0] == "reencoding_completed"
    foretold = await strategy.estimate(plan)
    assert foretold.reduction.tokens_after == answer.tokens(plan)
    assert foretold.cost.dollars == 0
    assert strategy.touches(plan) == (2, 4)
    assert not UNUSED_SUMMARIZER.requests


async def test_an_unchanged_conversation_is_reported() -> None:
    answer = await make().condense(plan_for([user("Hi."), assistant("Hello."), user("Bye.")]))
    assert answer.is_unchanged
    assert answer.warnings == ("nothing that may be shortened is in view twice",)


async def test_an_empty_view_is_left_empty() -> None:
    answer = await make().condense(replace(plan_for([user("a")]), messages=(), counts=()))
    assert answer.entries == ()


def test_protected_messages_may_only_become_references() -> None:
    session = Session().read("a.py", numbered(APP)).read("a.py", numbered(APP[:30]))
    messages = [*session.messages, assistant("Done."), user("And?"), assistant("Yes.")]
    plan = plan_for(messages, Retention("messages", 9, keep_first=9))
    assert plan.editable == ()
    first, second = results(view(plan, shorten(plan)))
    assert first == numbered(APP)
    assert second == "⟨ lines 1-30 as in a.py ⟩"
    validate(plan, shorten(plan))


def test_an_edit_in_a_protected_place_that_hides_something_is_refused() -> None:
    session = Session().read("a.py", numbered(APP)).read("b.py", numbered(code("b", 9)))
    messages = session.end()
    answer = shorten(plan_for(messages))
    validate(plan_for(messages), answer)
    with pytest.raises(CompressionError, match="protected"):
        validate(plan_for(messages, Retention("messages", 9, keep_first=9)), answer)


def test_results_in_a_running_loop_are_shortened_but_for_those_that_stay() -> None:
    session = Session().read("a.py", numbered(APP)).read("a.py", numbered(APP))
    session.read("a.py", numbered(APP))
    plan = plan_for(session.messages)
    answer = shorten(plan, LosslessConfig(reencode=False))
    assert [edit.index for edit in answer.edits] == [4]
    validate(plan, answer)


def test_a_reference_whose_source_is_gone_is_refused() -> None:
    plan = plan_for(Session().read("a.py", numbered(APP)).read("a.py", numbered(APP)).end())
    answer = shorten(plan)
    entries = list(answer.entries)
    edit = entries[2]
    assert isinstance(edit, EditedMessage)
    other = replace(edit.message, parts=(ToolResult("call_1", (Text("gone"),)),))
    entries[2] = EditedMessage(2, other, 9)
    with pytest.raises(CompressionError, match="message 4 points to message 2"):
        validate(plan, replace(answer, entries=tuple(entries)))


def test_more_than_the_shortened_texts_may_not_change() -> None:
    plan = plan_for(Session().read("a.py", numbered(APP)).read("a.py", numbered(APP)).end())
    answer = shorten(plan)
    edit = answer.entries[4]
    assert isinstance(edit, EditedMessage)
    (part,) = edit.message.parts
    assert isinstance(part, ToolResult)
    worse = replace(edit.message, parts=(replace(part, extras={"x": 1}),))
    entries = (*answer.entries[:4], replace(edit, message=worse), *answer.entries[5:])
    with pytest.raises(CompressionError, match="changed in more"):
        validate(plan, replace(answer, entries=entries))


def test_targets_of_earlier_references_stay_unchanged() -> None:
    session = Session().read("old.py", numbered(APP[:20])).read("a.py", numbered(APP))
    session.read("a.py", numbered(APP))
    once = condense(session.end(), reencode=False, deduplicate_blocks=False)
    assert results(once)[2].startswith("⟨ File content already provided above: see a.py")
    assert results(condense(once, reencode=False)) == results(once)
    assert results(condense(once))[1] == results(once)[1]  # else it would point to old.py


def test_the_same_again_changes_nothing() -> None:
    session = Session().read("a.py", numbered(APP)).run("cat a.py", "\n".join([*APP, "end"]))
    once = condense(session.end())
    assert condense(once) == once


def test_assistants_are_never_edited() -> None:
    message = Message("assistant", (ToolResult("call_9", (Text(numbered(APP)),)),))
    messages = [*Session().read("a.py", numbered(APP)).messages, message, *Session().end()[1:]]
    assert condense(messages)[3] == message


def test_a_message_that_would_come_out_no_smaller_is_left_alone() -> None:
    line = (
        "options.length gamma options.length options.length self.name self.name return alpha "
        "self.name options.length"
    )
    session = Session().run("one", f"{line}\nfirst\nsecond").run("two", f"{{\n{line}\n\ny")
    assert shorten(plan_for(session.end()), LosslessConfig(min_saving=1)).is_unchanged


def test_verbatim_messages_can_be_configured() -> None:
    assert make().retention == Retention("messages", 3, keep_first=1)
    value = {"preserveFirstCount": 2, "preserveRecentCount": 5}
    assert make(value).retention == Retention("messages", 5, keep_first=2)


def test_the_ledger_of_repeats_holds_places_and_hashes_and_no_content() -> None:
    listing = "\n".join(f"{n:>9} file_{n}.txt" for n in range(30))
    session = Session().read("a.py", numbered(APP)).read("a.py", numbered(APP))
    session.read("a.py", numbered([*APP[:20], "    new = True", *APP[20:]]))
    session.run("ls", listing).run("ls", listing)
    plan = plan_for(session.end())
    answer = shorten(plan, LosslessConfig(reencode=False))
    conversation = Conversation(plan.messages, dialect=plan.messages[0].dialect)
    written = dumps(restores(conversation, answer, view(plan, answer)).as_json()).decode()
    assert len(answer.edits) == 3
    assert all(each.recipe.digest in written for edit in answer.edits for each in edit.shortenings)
    assert not any(word in written for word in ("compute", "file_", "new = True"))
