"""Prompts: the exact words a model is given, and what may be put in their place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.errors import ConfigError
from enfold.messages import Message, Text
from enfold.summaries import SummaryRequest
from enfold.summaries.local.composition import SECTIONS
from enfold.summaries.prompts import MAX_LENGTH, build, validate
from enfold.testing import assistant, call, result, user

GOLDEN = Path(__file__).parent / "golden"
REQUEST = SummaryRequest(
    messages=(
        user("Port the parser to Python 3.12, please."),
        assistant("I'll read it first.", call("1", "read", {"path": "parser.py"})),
        result("1", "def parse(): ..."),
        assistant("It uses {braces} and </conversation> in a test."),
    ),
    previous="## Context\n- The project is called Lynx.",
    recent=(Message("user", (Text("And now the lexer."),), name="Mia"),),
    max_tokens=1_200,
)


def _shown(request: SummaryRequest) -> str:
    prompt = build(request)
    return f"{prompt.system.strip()}\n\n=====\n\n{prompt.user}\n"


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("default", REQUEST),
        ("code", SummaryRequest(REQUEST.messages, style="code")),
        ("concise", SummaryRequest(REQUEST.messages, style="concise", tightness=2)),
        ("detailed", SummaryRequest(REQUEST.messages, recent=REQUEST.recent, style="detailed")),
        (
            "custom",
            SummaryRequest(REQUEST.messages, prompt="Sum it up:\n{conversation_history}\nOK?"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_prompts_are_word_for_word(name: str, request_: SummaryRequest) -> None:
    """A change of wording is a change of behaviour: look at it, then renew the file."""
    assert _shown(request_) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_the_default_style_asks_for_the_six_sections() -> None:
    system = build(REQUEST).system
    headings = [line for line in system.splitlines() if line.startswith("## ")]
    assert headings == [f"## {name}" for name in SECTIONS]


_texts = st.lists(st.text("abc {}<>/\n", min_size=1, max_size=30), min_size=1, max_size=6)


@given(_texts, st.text("xyz {}", min_size=1, max_size=40))
def test_a_second_summary_is_given_the_first_and_every_new_message(
    texts: list[str], previous: str
) -> None:
    marked = [f"m{number}: {text}" for number, text in enumerate(texts)]
    request = SummaryRequest(tuple(user(text) for text in marked), previous=f"OLD {previous} END")
    prompt = build(request).user
    assert f"OLD {previous} END" in prompt
    for number in range(len(marked)):
        assert prompt.count(f"m{number}: ") == 1


def test_recent_messages_follow_the_cutoff_as_context() -> None:
    prompt = build(REQUEST).user
    assert prompt.index("def parse()") < prompt.index("CUTOFF") < prompt.index("And now the lexer")
    assert "CUTOFF" not in build(SummaryRequest(REQUEST.messages)).user


def test_the_budget_is_named_and_shrinks() -> None:
    assert "1,200 tokens" in build(REQUEST).user
    tighter = build(SummaryRequest(REQUEST.messages, max_tokens=1_000, tightness=1)).user
    assert "750 tokens" in tighter
    assert "too long" in tighter


def test_a_custom_prompt_without_the_placeholder_comes_first() -> None:
    prompt = build(SummaryRequest((user("Hello"),), prompt="List the {{names}} only.")).user
    assert prompt.startswith("List the {names} only.\n\nThe messages to condense:")


def test_a_custom_prompt_is_not_filled_from_the_conversation() -> None:
    request = SummaryRequest((user("{conversation_history}"),), prompt="A {conversation_history} B")
    assert build(request).user.count("USER: {conversation_history}") == 1


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (" \n", "empty"),
        ("x" * (MAX_LENGTH + 1), "20,001 characters"),
        ("{conversation_history} {conversation_history}", "2 times"),
        ("{history} and {user}", "unknown placeholders: history, user"),
    ],
    ids=["empty", "long", "twice", "unknown"],
)
def test_an_invalid_custom_prompt_is_refused(template: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        validate(template)
    with pytest.raises(ConfigError, match=reason):
        build(SummaryRequest((user("x"),), prompt=template))


def test_other_braces_are_allowed() -> None:
    validate('Answer as {"summary": "..."} with {{literal}} and {conversation_history}.')
