"""The local summarizer in chains: facts kept once stay."""

from __future__ import annotations

import re

import pytest

from enfold.messages import Message, Text
from enfold.summaries import SummaryRequest
from enfold.summaries.local import summarize
from enfold.summaries.local.composition import CONTEXT, DECISIONS, SECTIONS
from enfold.testing import assistant, call, result, user
from tests.summaries.facts import CODING, FACT_SETS, PLANNING

_ANIMALS = (
    "heron",
    "otter",
    "badger",
    "falcon",
    "lynx",
    "marten",
    "osprey",
    "viper",
    "bison",
    "ibex",
)


def _later(fold: int) -> tuple[Message, ...]:
    """New content, with facts of its own, about as much as the first fold had."""
    animal = _ANIMALS[fold]
    return tuple(
        message
        for number in range(12)
        for message in (
            user(
                f"For the {animal} enclosure please order {number + 3} bags of feed "
                f"F{fold}{number} and check the fence at post {fold * 40 + number}."
            ),
            assistant(
                f"I ordered them from the supplier and wrote it into logs/{animal}_{number}.md. "
                "The weather was fine and nobody reported anything unusual during the day.",
                call(f"{fold}-{number}", "write", {"path": f"logs/{animal}_{number}.md"}),
            ),
            result(f"{fold}-{number}", "1 file written"),
        )
    )


def _chain(first: tuple[Message, ...], folds: int, limit: int) -> list[str]:
    texts: list[str] = []
    for fold in range(folds + 1):
        messages = first if fold == 0 else _later(fold - 1)
        previous = texts[-1] if texts else None
        request = SummaryRequest(messages, previous=previous, max_tokens=limit)
        summary = summarize(request)
        assert summary.tokens <= limit
        texts.append(summary.text)
    return texts


@pytest.mark.parametrize(("limit", "each", "mean"), [(1_000, 0.85, 0.9), (600, 0.75, 0.8)])
def test_facts_of_the_first_summary_survive_ten_more(limit: int, each: float, mean: float) -> None:
    shares = []
    for fact_set in FACT_SETS:
        texts = _chain(fact_set.messages, folds=10, limit=limit)
        first = fact_set.kept(texts[0])
        assert len(first) > 20
        shares.append(
            len([fact for fact in fact_set.kept(texts[-1]) if fact in first]) / len(first)
        )
    assert min(shares) >= each, shares
    assert sum(shares) / len(shares) >= mean, shares


def test_new_content_still_finds_its_place() -> None:
    texts = _chain(CODING.messages, folds=10, limit=600)
    for fold, text in enumerate(texts[1:]):
        assert _ANIMALS[fold] in text


def test_with_spare_tokens_nothing_is_lost() -> None:
    first = summarize(SummaryRequest(PLANNING.messages, max_tokens=500)).text
    news = (user("The florist Rosa Bianchi delivers forty roses at 11:00."),)
    second = summarize(SummaryRequest(news, previous=first, max_tokens=1_000)).text
    assert PLANNING.kept(second) == PLANNING.kept(first)
    assert "Rosa Bianchi" in second
    assert _sections(first)[CONTEXT].strip() in second


def _sections(summary: str) -> dict[str, str]:
    parts = re.split(r"^## (.*)$", summary, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_lines_stay_in_their_sections() -> None:
    first = summarize(SummaryRequest(CODING.messages, max_tokens=600)).text
    second = summarize(SummaryRequest(_later(0), previous=first, max_tokens=1_500)).text
    before, after = _sections(first), _sections(second)
    assert tuple(after) == tuple(name for name in SECTIONS if name in after)
    for line in before[DECISIONS].strip().splitlines():
        assert line in after[DECISIONS]


def test_a_line_is_not_repeated() -> None:
    first = summarize(SummaryRequest(PLANNING.messages, max_tokens=500)).text
    second = summarize(SummaryRequest(PLANNING.messages, previous=first, max_tokens=1_000)).text
    assert second.count("golden wedding") == 1
    assert second.count("Quartetto Belvedere asks") <= 1


def test_a_later_correction_replaces_what_the_summary_says() -> None:
    previous = "## Key Points\n- User: The launch is on 3 September in Oslo.\n- Budget: 900 euros."
    news = (
        user("Correction: the launch moved to 17 September."),
        assistant("Noted, I have changed the plan and told the printers about it."),
    )
    text = summarize(SummaryRequest(news, previous=previous, max_tokens=45)).text
    assert "17 September" in text
    assert "3 September" not in text.replace("17 September", "")
    assert "900 euros" in text


def test_a_summary_by_another_author_is_read_too() -> None:
    previous = (
        "The user runs a bakery called Kornblume in Graz. They decided to open at 6:30.\n\n"
        "**Open points:** the oven from Miele is not delivered yet.\n"
        "1. Flour comes from Mühle Auer.\n"
    )
    news = (user("The oven arrives on 9 June."), assistant("Good news, I will tell the team."))
    text = summarize(SummaryRequest(news, previous=previous, max_tokens=300)).text
    for fact in ("Kornblume", "6:30", "Miele", "Mühle Auer", "9 June"):
        assert fact in text


def test_a_previous_summary_alone_can_be_shortened() -> None:
    long = summarize(SummaryRequest(CODING.messages, max_tokens=600)).text
    short = summarize(SummaryRequest((), previous=long, max_tokens=150))
    assert 0 < short.tokens <= 150
    assert len(CODING.kept(short.text)) >= 8


def test_an_open_question_is_dropped_once_it_is_decided() -> None:
    previous = (
        "## Unresolved Questions\n"
        "- User: Who pays for the transport to Antwerp?\n"
        "- User: Which colour should the lamps have?"
    )
    news = (user("We decided that the carrier pays for the transport to Antwerp."),)
    text = summarize(SummaryRequest(news, previous=previous, max_tokens=300)).text
    assert "Who pays" not in text
    assert "the carrier pays" in text
    assert "Which colour" in text


def test_participants_are_kept() -> None:
    def statement(name: str, text: str) -> Message:
        return Message("user", (Text(text),), name=name)

    first = "## Context\n- Participants: Grad A, Grad B, Professor E, Dr. Ng"
    news = tuple(
        statement("Grad F", f"The corpus has {n} hours of speech from Kyoto.") for n in range(99)
    )
    text = summarize(SummaryRequest(news, previous=first, max_tokens=450)).text
    assert "- Participants: Grad A, Grad B, Professor E, Dr. Ng, Grad F" in text
