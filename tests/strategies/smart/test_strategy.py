"""The smart strategy: passes in order, what each makes of which messages, and what it says."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from enfold.condensation import Condensation, EditedMessage, Plan, SummarizedMessages, validate
from enfold.errors import NoGainError, SummaryError
from enfold.history import orphans, unanswered
from enfold.messages import Attachment, Message, Reasoning, Text, ToolCall, ToolResult
from enfold.strategies import contract
from enfold.strategies.contract import Summarizers
from enfold.strategies.lossless import Lossless
from enfold.strategies.shortened_text import SUPPRESSED
from enfold.strategies.smart.passes import SUMMARIZED
from enfold.summaries import SummaryRequest
from enfold.testing import ScriptedSummarizer, assistant, call, result, system, user
from enfold.tokens import count_message, count_messages
from tests.strategies.tasks import TOKENIZER, plan_for, strategy

OUTPUT = "\n".join(f"line {n} of some output" for n in range(1, 81))
NO_PRELUDE = {"enabled": False}


def work(rounds: int) -> tuple[Message, ...]:
    """A user who asks, a model that reads and answers."""
    return tuple(
        message
        for n in range(rounds)
        for message in (
            user(f"Question {n}: " + "alpha " * 40),
            assistant(f"Reading {n}.", call(f"c{n}", "read", {"path": f"{n}.py"})),
            result(f"c{n}", f"file {n}\n{OUTPUT}"),
            assistant(f"Answer {n}: " + "beta " * 40),
        )
    )


CHAT = (system("Be brief."), *work(6), user("And now?"))


def individual(id: str = "one", keep: int = 4, **operations: Any) -> dict[str, Any]:
    overrides = operations.pop("overrides", [])
    selection = operations.pop("selection", {"type": "preserve_recent", "keepRecentCount": keep})
    execution = operations.pop("execution", {"type": "always"})
    return {
        "id": id,
        "name": f"Pass {id}",
        "selection": selection,
        "mode": "individual",
        "individualConfig": {"defaults": operations, "overrides": overrides},
        "execution": execution,
    }


def batch(id: str = "fold", keep: int = 0, **values: Any) -> dict[str, Any]:
    return {
        "id": id,
        "name": f"Pass {id}",
        "selection": {"type": "preserve_recent", "keepRecentCount": keep},
        "mode": "batch",
        "batchConfig": {
            "operation": values.pop("operation", "summarize"),
            "summarizationConfig": {"keepFirst": 1, "keepLast": 3, **values},
        },
    }


def truncate(lines: int = 3) -> dict[str, Any]:
    return {"operation": "truncate", "params": {"truncate": {"maxLines": lines}}}


def summarize(**params: Any) -> dict[str, Any]:
    return {"operation": "summarize", "params": {"summarize": {"maxTokens": 60, **params}}}


async def condense(
    *passes: dict[str, Any],
    messages: tuple[Message, ...] = CHAT,
    prelude: dict[str, Any] = NO_PRELUDE,
    summarizers: tuple[ScriptedSummarizer, ...] = (),
    parallel: int = 4,
    **values: Any,
) -> tuple[Plan, Condensation]:
    config = {"losslessPrelude": prelude, "passes": list(passes)}
    how = strategy("smart", config, *summarizers, parallel=parallel)
    plan = plan_for(messages, how, **values)
    answer = await how.condense(plan)
    validate(plan, answer, may_be_unchanged=True)
    return plan, answer


def shown(plan: Plan, answer: Condensation) -> list[Message]:
    return [
        entry.message if isinstance(entry, EditedMessage) else plan.messages[entry.index]
        for entry in answer.entries
        if not isinstance(entry, SummarizedMessages)
    ]


def output(message: Message) -> str:
    part = message.parts[0]
    assert isinstance(part, ToolResult)
    assert isinstance(part.parts[0], Text)
    return part.parts[0].text


async def test_messages_stay_in_order_and_the_recent_ones_as_they_are() -> None:
    plan, answer = await condense(individual(toolResults="suppress"))
    shown_messages = shown(plan, answer)
    assert [message.role for message in shown_messages] == [message.role for message in CHAT]
    assert shown_messages[-4:] == list(CHAT[-4:])
    assert [output(shown_messages[n]) == SUPPRESSED for n in (3, 7, 11, 15, 19, 23)] == [
        True
    ] * 5 + [False]
    assert answer.operations == ("one_completed",)
    assert answer.steps[0].name == "Pass one"
    assert answer.steps[0].tokens_after == answer.tokens(plan)


async def test_each_type_of_content_has_its_own_operation() -> None:
    written = assistant("I write.", call("w", "write", {"path": "a.py", "content": OUTPUT}))
    messages = (user("Go. " + OUTPUT), written, result("w", OUTPUT), *CHAT)
    plan, answer = await condense(
        individual(messageText=truncate(1), toolParameters=truncate(2), toolResults="suppress"),
        messages=messages,
    )
    shown_messages = shown(plan, answer)
    assert isinstance(shown_messages[0].parts[0], Text)
    assert (
        shown_messages[0]
        .parts[0]
        .text.startswith("Go. line 1 of some output\n⟨ ... truncated, 79 of 80")
    )
    assert shown_messages[1].parts[0] == Text("I write.")
    part = shown_messages[1].parts[1]
    assert isinstance(part, ToolCall)
    assert isinstance(part.arguments, dict)
    assert part.arguments["path"] == "a.py"
    assert part.arguments["content"].count("\n") == 2
    assert output(shown_messages[2]) == SUPPRESSED
    (step,) = (step for step in answer.steps if step.saved_by)
    saved = dict(step.saved_by)
    assert saved.keys() == {
        "truncate message_text",
        "truncate tool_parameters",
        "suppress tool_results",
    }
    assert sum(saved.values()) == step.tokens_before - step.tokens_after
    of_text = count_message(messages[0]) - count_message(shown_messages[0])
    of_result = sum(
        plan.counts[edit.index] - edit.tokens
        for edit in answer.edits
        if plan.messages[edit.index].role == "tool"
    )
    assert (saved["truncate message_text"], saved["suppress tool_results"]) == (of_text, of_result)


async def test_a_summary_is_an_operation_that_saves() -> None:
    _, answer = await condense(batch())
    (step,) = (step for step in answer.steps if step.saved_by)
    assert step.saved_by == {"summarize": step.tokens_before - step.tokens_after}


async def test_an_override_changes_one_message() -> None:
    overrides = [
        {"messageIndex": 7, "operations": {"toolResults": "keep"}},
        {"messageIndex": 11, "operations": {"toolResults": truncate(2)}},
    ]
    plan, answer = await condense(individual(toolResults="suppress", overrides=overrides))
    shown_messages = shown(plan, answer)
    assert output(shown_messages[3]) == SUPPRESSED
    assert shown_messages[7] == CHAT[7]
    assert output(shown_messages[11]).count("\n") == 2


@pytest.mark.parametrize(
    ("selection", "edited"),
    [
        ({"type": "preserve_recent", "keepRecentCount": 0}, [3, 7, 11, 15, 19, 23]),
        ({"type": "preserve_recent", "keepRecentCount": 10}, [3, 7, 11, 15]),
        ({"type": "preserve_recent", "keepRecentCount": 99}, []),
        ({"type": "preserve_percent", "keepPercentage": 50}, [3, 7, 11]),
        ({"type": "preserve_percent", "keepPercentage": 0}, [3, 7, 11, 15, 19, 23]),
        ({"type": "custom", "indexes": [7, 8, 99]}, [7]),
        ({"type": "custom", "roles": ["tool"]}, [3, 7, 11, 15, 19, 23]),
        ({"type": "custom", "roles": ["user"], "indexes": [3, 5]}, []),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else None,
)
async def test_a_selection_says_which(selection: dict[str, Any], edited: list[int]) -> None:
    _, answer = await condense(individual(selection=selection, toolResults="suppress"))
    assert [edit.index for edit in answer.edits] == edited


async def test_a_small_list_is_processed_too() -> None:
    selection = {"type": "preserve_percent", "keepPercentage": 10}
    messages = (user("Go."), assistant("", call("1")), result("1", OUTPUT), user("And?"))
    _, answer = await condense(
        individual(selection=selection, toolResults="suppress"), messages=messages
    )
    assert [edit.index for edit in answer.edits] == [2]


async def test_instructions_are_left_alone_unless_asked_for() -> None:
    messages = (system(OUTPUT), CHAT[1], system(OUTPUT), *CHAT[2:])
    _, answer = await condense(individual(messageText="suppress"), messages=messages)
    assert {0, 2}.isdisjoint(edit.index for edit in answer.edits)
    operation = individual(
        selection={"type": "custom", "roles": ["system"]}, messageText="suppress"
    )
    _, answer = await condense(operation, messages=messages)
    assert [edit.index for edit in answer.edits] == [2]


async def test_errors_are_not_suppressed() -> None:
    failed = (user("Go."), assistant("", call("e")), result("e", OUTPUT, is_error=True), *CHAT)
    plan, answer = await condense(individual(toolResults="suppress"), messages=failed)
    assert shown(plan, answer)[2] == failed[2]
    plan, answer = await condense(individual(toolResults=truncate()), messages=failed)
    part = shown(plan, answer)[2].parts[0]
    assert isinstance(part, ToolResult)
    assert part.is_error


async def test_files_ids_and_reasoning_are_dealt_with_as_everywhere() -> None:
    image = Attachment("a.png", "image/png", 6, "aGVsbG8h")
    thinking = Reasoning("Hm.", {"signature": "s"})
    spoken = Message("assistant", (thinking, Text(OUTPUT), call("x")))
    seen_result = Message("tool", (ToolResult("x", (Text(OUTPUT), image)),))
    messages = (user("Go.", image), spoken, seen_result, *CHAT)
    plan, answer = await condense(
        individual(messageText=truncate(), toolResults="suppress"), messages=messages
    )
    shown_messages = shown(plan, answer)
    assert shown_messages[0] == messages[0]
    assert [type(part) for part in shown_messages[1].parts] == [Text, ToolCall]
    part = shown_messages[2].parts[0]
    assert isinstance(part, ToolResult)
    assert part.parts == (Text(SUPPRESSED), image)


async def test_a_batch_summarizes_like_native() -> None:
    writer = ScriptedSummarizer("They talked of alpha.")
    plan, answer = await condense(batch(), summarizers=(writer,))
    summarized = answer.summary
    assert summarized is not None
    assert (summarized.text, summarized.author) == ("They talked of alpha.", "scripted")
    kept = [entry.index for entry in answer.entries if not isinstance(entry, SummarizedMessages)]
    assert kept == [0, 1, 22, 23, 24, 25]
    assert summarized.indexes == tuple(range(2, 22))
    assert isinstance(answer.entries[2], SummarizedMessages)
    (request,) = writer.requests
    assert request.messages == CHAT[2:22]
    assert request.recent == CHAT[22:]
    assert orphans(shown(plan, answer)) == unanswered(shown(plan, answer)) == ()


async def test_a_batch_that_keeps_does_nothing() -> None:
    _, answer = await condense(batch(operation="keep"))
    assert answer.is_unchanged
    assert answer.operations == ("fold_completed",)
    assert answer.warnings == ("no pass found anything to do",)


async def test_a_batch_has_its_own_profile_and_prompt() -> None:
    cheap = ScriptedSummarizer("Alpha, cheaply.", name="cheap")
    _, answer = await condense(
        batch(apiProfile="cheap", customPrompt="Mine: {conversation_history}"),
        summarizers=(ScriptedSummarizer(), cheap),
    )
    assert answer.summary is not None
    assert answer.summary.author == "cheap"
    assert cheap.requests[0].prompt == "Mine: {conversation_history}"


async def test_a_second_batch_takes_in_the_first_summary() -> None:
    writer = ScriptedSummarizer("Alpha first.", "Alpha second.")
    first, second = batch("one", keep=12), batch("two", keep=2)
    plan, answer = await condense(first, second, summarizers=(writer,))
    assert [request.previous for request in writer.requests] == [None, "Alpha first."]
    assert sum(isinstance(entry, SummarizedMessages) for entry in answer.entries) == 1
    assert answer.summary is not None
    assert answer.summary.text == "Alpha second."
    assert not any(each in writer.requests[0].messages for each in writer.requests[1].messages)
    read = len(writer.requests[0].messages) + len(writer.requests[1].messages)
    assert read == len(answer.summary.indexes)
    assert len(shown(plan, answer)) + read == len(CHAT)


async def test_a_batch_takes_in_the_summary_that_the_view_shows() -> None:
    writer = ScriptedSummarizer("All of it.")
    plan, answer = await condense(
        batch(), summarizers=(writer,), previous="Before.", previous_tokens=50, previous_at=1
    )
    assert writer.requests[0].previous == "Before."
    assert isinstance(answer.entries[1], SummarizedMessages)
    kept = [entry.index for entry in answer.entries if not isinstance(entry, SummarizedMessages)]
    assert kept == [0, 22, 23, 24, 25]
    assert answer.tokens(plan) < plan.tokens - 50


async def test_the_users_last_message_stays_even_in_a_long_run() -> None:
    run = (user("Do it all."), *(m for m in CHAT[1:-1] if m.role != "user"))
    plan, answer = await condense(batch(keepFirst=0), messages=run)
    assert shown(plan, answer)[0] == run[0]
    assert answer.summary is not None
    assert 0 not in answer.summary.indexes


async def test_tool_groups_are_summarized_whole_or_not_at_all() -> None:
    for last in range(8):
        plan, answer = await condense(batch(keepLast=last))
        shown_messages = shown(plan, answer)
        assert orphans(shown_messages) == unanswered(shown_messages) == ()


async def test_passes_run_in_order_until_the_target_is_reached() -> None:
    three = (
        individual("a", toolResults=truncate(20)),
        individual("b", toolResults="suppress"),
        batch("c"),
    )
    plan, answer = await condense(*three)
    assert answer.operations == ("a_completed", "b_completed", "c_completed")
    after = [step.tokens_after for step in answer.steps]
    assert after == sorted(after, reverse=True)
    assert after[-1] == answer.tokens(plan)
    _, answer = await condense(*three, target=after[0])
    assert answer.operations == ("a_completed",)
    _, answer = await condense(*three, target=after[1])
    assert answer.operations == ("a_completed", "b_completed")


async def test_a_conditional_pass_runs_only_above_its_threshold() -> None:
    tokens = sum(count_messages(CHAT, TOKENIZER))
    for threshold, done in ((tokens - 1, "x_completed"), (tokens, "skip_x")):
        execution = {"type": "conditional", "condition": {"tokenThreshold": threshold}}
        _, answer = await condense(individual("x", toolResults="suppress", execution=execution))
        assert answer.operations == (done,)


async def test_static_tokens_count_for_the_threshold() -> None:
    tokens = sum(count_messages(CHAT, TOKENIZER))
    execution = {"type": "conditional", "condition": {"tokenThreshold": tokens}}
    step = individual("x", toolResults="suppress", execution=execution)
    _, answer = await condense(step, static_tokens=1)
    assert answer.operations == ("x_completed",)


async def test_a_failed_pass_is_skipped_and_reported_and_the_others_continue() -> None:
    away = ScriptedSummarizer(SummaryError("the model is away"))
    plan, answer = await condense(
        batch("fold"), individual("cut", toolResults="suppress"), summarizers=(away,)
    )
    assert answer.operations == ("skip_fold", "cut_completed")
    assert answer.warnings == ("the pass fold was skipped: the model is away",)
    assert answer.tokens(plan) < plan.tokens


async def test_if_nothing_is_changed_because_all_passes_failed_the_fallback_is_used() -> None:
    away = ScriptedSummarizer(SummaryError("the model is away"))
    with pytest.raises(SummaryError, match="the model is away"):
        await condense(batch("fold"), summarizers=(away,))


async def test_a_failed_prelude_is_skipped_and_reported_and_the_passes_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(_strategy: Lossless, _plan: Plan) -> Condensation:
        raise NoGainError("nothing was freed")

    monkeypatch.setattr(Lossless, "condense", fail)
    _, answer = await condense(individual("cut", toolResults="suppress"), prelude={"enabled": True})
    assert answer.operations == ("skip_lossless_prelude", "cut_completed")
    assert answer.warnings == ("the lossless prelude was skipped: nothing was freed",)


async def test_a_summary_that_is_no_gain_is_a_pass_that_failed() -> None:
    few = (user("Hi."), assistant("Hello."), user("Well?"), assistant("Well."), user("Bye."))
    _, answer = await condense(batch(keepFirst=0, keepLast=1), messages=few)
    assert answer.is_unchanged
    assert answer.operations == ("skip_fold",)
    assert "would have become" in answer.warnings[0]


async def test_summaries_of_single_messages_are_edits() -> None:
    writer = ScriptedSummarizer("A file.")
    plan, answer = await condense(individual(toolResults=summarize()), summarizers=(writer,))
    assert answer.summary is None
    assert output(shown(plan, answer)[3]) == f"{SUMMARIZED}\nA file."
    assert len(writer.requests) == 5
    assert {request.max_tokens for request in writer.requests} == {60}


async def test_texts_shorter_than_their_summary_are_not_summarized() -> None:
    writer = ScriptedSummarizer("A file.")
    await condense(individual(toolResults=summarize(maxTokens=5_000)), summarizers=(writer,))
    assert writer.requests == []


async def test_summaries_are_written_side_by_side_up_to_a_limit_and_stay_in_order() -> None:
    running = most = 0

    async def slow(request: SummaryRequest) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        first = request.messages[0].parts[0]
        assert isinstance(first, Text)
        number = int(first.text.split()[1])
        await asyncio.sleep(0.001 * (6 - number))
        running -= 1
        return f"This was file {number}."

    for parallel in (1, 3):
        running = most = 0
        plan, answer = await condense(
            individual(toolResults=summarize()),
            summarizers=(ScriptedSummarizer(slow),),
            parallel=parallel,
        )
        outputs = [output(message) for message in shown(plan, answer) if message.role == "tool"]
        assert most == parallel
        assert [text.split("\n")[1] for text in outputs[:5]] == [
            f"This was file {n}." for n in range(5)
        ]


async def test_the_same_text_is_summarized_once() -> None:
    writer = ScriptedSummarizer("The same.")
    same = tuple(
        m
        for n in range(5)
        for m in (user(f"Q{n}"), assistant("", call(f"s{n}")), result(f"s{n}", OUTPUT))
    )
    _, answer = await condense(
        individual(toolResults=summarize()), messages=(*same, *CHAT), summarizers=(writer,)
    )
    assert len(writer.requests) == 1 + 5
    assert len(answer.edits) == 5 + 5


async def test_a_text_whose_summary_fails_stays_with_a_warning() -> None:
    replies = (SummaryError("busy"), "Fine.")
    plan, answer = await condense(
        individual(toolResults=summarize()),
        summarizers=(ScriptedSummarizer(*replies),),
        parallel=1,
    )
    assert output(shown(plan, answer)[3]).startswith("file 0")
    assert len(answer.edits) == 4
    assert "1 of 5 summaries failed" in answer.warnings[0]
    assert answer.operations == ("one_completed",)


async def test_a_missing_profile_is_replaced_and_reported() -> None:
    config = {"losslessPrelude": NO_PRELUDE, "passes": [batch(apiProfile="gone")]}
    writer = ScriptedSummarizer("Alpha here.")
    how = contract.get("smart").make_from(config, Summarizers(writer))
    answer = await how.condense(plan_for(CHAT, how))
    assert answer.summary is not None
    assert answer.summary.author == "scripted"
    assert answer.warnings == ("no profile 'gone' is available here; scripted writes instead",)


def repeats(rounds: int) -> tuple[Message, ...]:
    """The same file read again and again."""
    return tuple(
        m
        for n in range(rounds)
        for m in (
            user(f"Once more {n}."),
            assistant("", call(f"r{n}", "read", {"path": "same.py"})),
            result(f"r{n}", OUTPUT),
        )
    )


async def test_the_prelude_comes_first_and_loses_nothing() -> None:
    messages = (*repeats(6), user("And now?"))
    plan, answer = await condense(messages=messages, prelude={"enabled": True})
    assert answer.operations == ("lossless_prelude_completed",)
    assert answer.steps[0].name == "lossless_prelude"
    assert answer.tokens(plan) < plan.tokens / 2
    assert all(edit.shortenings for edit in answer.edits)


async def test_targets_of_the_prelude_are_never_cut() -> None:
    messages = (*repeats(6), user("And now?"))
    for operation in ("suppress", truncate(2), truncate(60)):
        plan, answer = await condense(
            individual(keep=2, toolResults=operation), messages=messages, prelude={"enabled": True}
        )
        validate(plan, answer)
        assert answer.tokens(plan) < plan.tokens


async def test_a_summary_puts_back_what_pointed_to_messages_that_are_gone() -> None:
    messages = (*repeats(6), user("And now?"))
    plan, answer = await condense(batch(), messages=messages, prelude={"enabled": True})
    assert answer.summary is not None
    assert answer.edits == ()
    assert shown(plan, answer)[-2] == messages[-2]
    assert answer.tokens(plan) < plan.tokens


async def test_after_a_summary_what_is_left_points_to_what_is_left() -> None:
    messages = (*repeats(9), user("And now?"))
    plan, answer = await condense(batch(keepLast=9), messages=messages, prelude={"enabled": True})
    assert answer.summary is not None
    outputs = [output(message) for message in shown(plan, answer) if message.role == "tool"]
    assert outputs[0] == OUTPUT
    assert all("message #" in text or "above" in text for text in outputs[1:])
    assert len(answer.edits) == len(outputs) - 1


async def test_the_summarizer_reads_originals_and_not_markers() -> None:
    writer = ScriptedSummarizer("Read.")
    messages = (*repeats(6), user("And now?"))
    await condense(batch(), messages=messages, prelude={"enabled": True}, summarizers=(writer,))
    assert writer.requests[0].messages == messages[1:16]


async def test_messages_cut_earlier_are_summarized_from_their_originals() -> None:
    writer = ScriptedSummarizer("Read.")
    how = strategy("smart", {"losslessPrelude": NO_PRELUDE, "passes": [batch()]}, writer)
    cut = replace(plan_for(CHAT, how), originals={5: user("The whole of it.")})
    await how.condense(cut)
    assert writer.requests[0].messages[3] == user("The whole of it.")


async def test_the_cost_is_that_of_all_summaries() -> None:
    _, answer = await condense(individual(toolResults=summarize()), batch())
    assert answer.cost == 0.0


async def test_touches_are_the_messages_that_the_passes_select() -> None:
    config = {"losslessPrelude": NO_PRELUDE, "passes": [batch(keep=12)]}
    how = strategy("smart", config)
    plan = plan_for(CHAT, how)
    answer = await how.condense(plan)
    assert answer.summary is not None
    assert tuple(how.touches(plan)) == answer.summary.indexes
    everything = strategy("smart", {"passes": []})
    assert tuple(everything.touches(plan)) == plan.editable
