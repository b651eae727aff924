"""Which messages are summarized: by their ids, and only where a history may be divided."""

from __future__ import annotations

import pytest
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from enfold.langgraph import DEFAULT_FINAL_SUMMARY_PROMPT, RunningSummary
from enfold.langgraph.summarization import read
from tests.langgraph.models import chat, ids

RUNNING = RunningSummary("They talked.", {"1", "2", "3", "4"}, "4", "1")


@pytest.mark.parametrize(
    ("messages", "live", "applies"),
    [
        (chat(6), ["5", "6"], True),
        (chat(2, 5), ["5", "6"], True),
        (chat(3, 4), ["5", "6"], True),
        ([*chat(2, 2), *chat(2, 5)], ["5", "6"], True),
        (chat(3), ["1", "2", "3"], False),
        ([*chat(3), HumanMessage("other", id="x")], ["1", "2", "3", "x"], False),
        ([*chat(1), HumanMessage("other", id="x"), *chat(4, 2)], ["x", "5"], True),
    ],
    ids=["whole", "overwritten", "trimmed", "holes", "cut back", "forked", "put in"],
)
def test_a_summary_stands_for_ids(
    messages: list[AnyMessage], live: list[str], applies: bool
) -> None:
    standing = read(messages, RUNNING, DEFAULT_FINAL_SUMMARY_PROMPT)
    assert ids(standing.live) == live
    assert standing.running == (RUNNING if applies else None)


def test_the_summary_itself_is_no_message() -> None:
    shown = SystemMessage("Summary of the conversation so far: They talked.", id="s")
    standing = read([shown, *chat(2, 5)], RUNNING, DEFAULT_FINAL_SUMMARY_PROMPT)
    assert standing.system == ()
    assert ids(standing.live) == ["5", "6"]
    kind = SystemMessage("Be kind.", id="k")
    standing = read([kind, shown, *chat(2, 5)], RUNNING, DEFAULT_FINAL_SUMMARY_PROMPT)
    assert standing.system == (kind,)
    assert ids(standing.live) == ["5", "6"]


def test_a_summary_of_langmem_never_says_where_it_began() -> None:
    theirs = RunningSummary("They talked.", {"1", "2", "3", "4"}, "4")
    assert read(chat(3), theirs, DEFAULT_FINAL_SUMMARY_PROMPT).running is theirs
