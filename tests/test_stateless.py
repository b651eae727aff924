"""One conversation condensed without a store."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import enfold
from enfold import wire as dialects
from enfold import wiring
from enfold.engine import stateless
from enfold.engine.stateless import CondenseOptions
from enfold.errors import ConfigError, RestoreError
from enfold.jsontext import dumps, loads
from enfold.llm.costs import Prices
from enfold.messages import Conversation, Message
from enfold.settings import Settings
from enfold.summaries import HEADING
from enfold.testing import ScriptedSummarizer
from tests.histories import histories

CHAT = [
    {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n}: " + "alpha beta " * 40}
    for n in range(20)
]


async def test_the_first_message_a_summary_and_the_last_three_stay() -> None:
    done = await enfold.condense(CHAT, summarizer=ScriptedSummarizer("In short."))
    assert done.messages[0] == CHAT[0]
    assert done.messages[1]["content"].startswith(HEADING)
    assert done.messages[2:] == CHAT[-3:]
    assert done.report.tokens_after == enfold.count(done.messages) < done.report.tokens_before
    assert done.report.tokens_before == enfold.count(CHAT)


async def test_a_condensed_conversation_is_restored_exactly() -> None:
    done = await enfold.condense(CHAT)
    assert enfold.restore(done.messages, done.ledger) == CHAT
    from_file = loads(dumps(done.ledger.as_json()))
    assert dumps(enfold.restore(done.messages, from_file)) == dumps(CHAT)
    more = [*done.messages, {"role": "user", "content": "and now?"}]
    assert enfold.restore(more, done.ledger) == [*CHAT, more[-1]]
    with pytest.raises(RestoreError):
        enfold.restore(done.messages[1:], done.ledger)


def test_the_blocking_wrapper_condenses() -> None:
    assert enfold.condense_sync(CHAT).report.reduction > 0


async def test_a_body_comes_back_as_a_body() -> None:
    body = {"model": "claude-x", "system": "Be brief.", "messages": CHAT, "max_tokens": 9}
    done = await enfold.condense(body)
    assert list(done.messages) == list(body)
    assert done.messages["system"] == "Be brief."
    assert enfold.restore(done.messages, done.ledger) == body
    assert done.report.tokens_before == enfold.count(body)


async def test_a_target_is_reached() -> None:
    done = await enfold.condense(CHAT, target=500)
    assert done.report.tokens_after <= 500


async def test_a_window_leaves_room_to_go_on() -> None:
    done = await enfold.condense(CHAT, window=1_000)
    assert done.report.tokens_after <= 570


async def test_the_newest_tokens_stay_when_asked_to() -> None:
    done = await enfold.condense(CHAT, keep_tokens=300)
    assert done.messages[-2:] == CHAT[-2:]
    assert len(done.messages) < 8


@pytest.mark.parametrize("messages", [[], CHAT[:1], CHAT[:3]])
async def test_nothing_to_fold_comes_back_as_it_was(messages: list[dict[str, Any]]) -> None:
    done = await enfold.condense(messages)
    assert done.messages == messages
    assert done.report.warnings
    assert enfold.restore(done.messages, done.ledger) == messages


async def test_an_unknown_strategy_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="'magic'"):
        await enfold.condense(CHAT, "magic")


@pytest.mark.parametrize("values", [{"target": 0}, {"window": -1}, {"keep_tokens": -5}])
async def test_figures_that_make_no_sense_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        await enfold.condense(CHAT, **values)  # type: ignore[arg-type]


def test_options_say_where_to_end() -> None:
    assert CondenseOptions().goal is None
    assert CondenseOptions(window=1_000).goal == 570
    assert CondenseOptions(target=10, window=1_000).goal == 10


NAMED = [
    {"role": "user", "content": "Fix src/app.py and keep port 5432 for 45 ms. " + "alpha " * 90},
    *(
        {**message, "content": f"{message['content']} lib/part_{n}.rs"}
        for n, message in enumerate(CHAT)
    ),
]


async def test_the_receipt_says_what_became_of_every_exact_item() -> None:
    summarizer = ScriptedSummarizer("Look at lib/part_3.rs, lib/part_4.rs, lib/part_6.rs.")
    done = await enfold.condense(NAMED, summarizer=summarizer)
    assert done.receipt.items["path"]["lib/part_3.rs"] == "kept"
    assert done.receipt.items["path"]["lib/part_5.rs"] == "restorable"
    assert "lib/part_19.rs" not in done.receipt.items["path"], "it never left the view"
    assert done.receipt.restorable_by == "ledger"
    assert done.receipt.total.lost == 0
    assert b"lib/part_5.rs" in dumps(done.ledger.as_json())


async def test_a_summary_that_keeps_no_user_facts_is_repaired() -> None:
    done = await enfold.condense(NAMED, summarizer=ScriptedSummarizer("They talked."))
    assert done.receipt.stated["path"].kept
    assert "- Mentioned: lib/part_" in str(done.messages)


async def test_the_report_says_what_it_cost_and_what_it_saves() -> None:
    free = await enfold.condense(CHAT)
    assert (free.report.cost, free.report.saved) == (0.0, None)
    strategy = wiring.make_strategy(Settings(), ScriptedSummarizer("In short."))
    priced = await stateless.condense(
        dialects.parse(CHAT), strategy, CondenseOptions(prices=Prices(input=2.0))
    )
    gone = priced.report.tokens_before - priced.report.tokens_after
    assert priced.report.saved == pytest.approx(gone * 2 / 1e6)
    assert f"saved ${priced.report.saved:.4f} a request" in str(priced.report)
    assert priced.report.seconds > 0


async def test_the_model_that_a_conversation_is_for_makes_savings_known() -> None:
    condensed = await enfold.condense(CHAT, model="openai:gpt-4o-mini")
    gone = condensed.report.tokens_before - condensed.report.tokens_after
    assert condensed.report.saved == pytest.approx(gone * 0.15 / 1e6)
    assert (await enfold.condense(CHAT, model="acme:unheard-of")).report.saved is None
    with pytest.raises(ConfigError, match="'gpt-4o-mini': expected provider:model"):
        await enfold.condense(CHAT, model="gpt-4o-mini")


@given(
    histories(), st.sampled_from(["openai", "openai-responses", "anthropic", "gemini", "enfold"])
)
async def test_any_history_in_any_dialect_is_restored_and_valid(
    messages: list[Message], dialect: str
) -> None:
    wire = dialects.render(Conversation(tuple(messages)), dialect)
    conversation = dialects.parse(wire, dialect)
    done = await enfold.condense(conversation, summarizer=ScriptedSummarizer("s"))
    assert dumps(enfold.restore(done.messages, done.ledger)) == dumps(wire)
    again = dialects.parse(done.messages, dialect)
    assert dumps(dialects.render(again)) == dumps(done.messages)


async def test_a_target_far_below_a_short_chat_is_met_without_its_first_message() -> None:
    small_talk = [
        {"role": role, "content": text}
        for number in range(14)
        for role, text in (
            ("user", f"By the way, what do you think of the novel number {number} of that series?"),
            ("assistant", "I can answer, but tell me when we should go on."),
        )
    ]
    start = [
        {"role": "user", "content": "Let us plan the launch of the harbour site."},
        {"role": "assistant", "content": "With pleasure."},
        {"role": "user", "content": "Never log passwords. That is a hard rule."},
        {"role": "assistant", "content": "Understood."},
    ]
    chat = [*start, *small_talk, {"role": "user", "content": "What is the next step?"}]
    target = enfold.count(chat) // 6
    done = await enfold.condense(chat, "native", target=target)
    assert done.report.tokens_after <= target
    assert "Never log passwords." in str(done.messages)
    assert done.messages[-1] == chat[-1]


async def test_the_summary_of_a_meeting_takes_most_of_a_small_target() -> None:
    parts = ["hull", "mast", "keel", "rudder", "anchor", "deck", "sail", "cabin", "galley", "winch"]
    looks = ["red", "oiled", "wooden", "polished", "spare", "torn", "heavy", "old", "narrow"]
    names = ["Ana", "Ben", "Cleo"]
    meeting = [
        {
            "role": "user",
            "name": names[turn % 3],
            "content": f"Never paint the {looks[turn % 9]} {parts[turn % 10]} before the "
            f"{looks[turn * 2 % 9]} {parts[turn * 3 % 10]} is dry, whatever the crew may say.",
        }
        for turn in range(90)
    ]
    target = enfold.count(meeting) // 8
    done = await enfold.condense(meeting, "native", target=target)
    (summary,) = [each for each in done.messages if each["role"] == "system"]
    assert done.report.tokens_after <= target
    assert enfold.count([summary]) > target / 2


async def test_rules_that_do_not_fit_are_named_in_a_warning() -> None:
    rules = [f"Never deploy service number {number} on a Friday." for number in range(60)]
    messages = [
        {"role": role, "content": text}
        for rule in rules
        for role, text in (("user", rule), ("assistant", "Understood. " * 20))
    ]
    last = {"role": "user", "content": "Go on."}
    result = await enfold.condense([*messages, last], target=1_200)
    assert any("with rules or context left the view" in each for each in result.report.warnings)


async def test_rules_stay_where_a_person_writes_most_of_a_chat() -> None:
    rules = [f"Never deploy service number {number} on a Friday." for number in range(8)]
    notes = [f"The boat of harbour {n} was late, and its crew walked home." for n in range(96)]
    typed = [text for n, rule in enumerate(rules) for text in (rule, *notes[n * 12 : n * 12 + 12])]
    chat = [
        {"role": role, "content": text}
        for each in typed
        for role, text in (("user", each), ("assistant", "I see."))
    ]
    done = await enfold.condense(chat, "native", target=enfold.count(chat) // 6)
    assert all(rule in str(done.messages) for rule in rules)


async def test_typed_words_count_more_than_the_length_of_the_last_answer() -> None:
    typed = [f"How high is the tide of harbour {n} on the day of the feast?" for n in range(9)]
    answers = [
        f"In harbour {n} it is high. " + f"The pilots of harbour {n} agree. " * 40 for n in range(9)
    ]
    chat = [
        {"role": role, "content": text}
        for pair in zip(typed, answers, strict=True)
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]
    target = enfold.count(chat) // 6
    done = await enfold.condense(chat, "native", target=target)
    assert done.report.tokens_after <= target
    assert all(text in str(done.messages) for text in typed)
    wider = await enfold.condense(chat, "native", target=target * 2)
    assert answers[-1] in str(wider.messages)  # there is room for it


async def test_a_conversation_that_fits_its_window_has_no_warning() -> None:
    chat = [{"role": "user", "content": "Never push to main."}]
    done = await enfold.condense(chat, window=10_000)
    assert done.messages == chat
    assert done.report.warnings == ()
