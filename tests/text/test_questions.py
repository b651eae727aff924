"""The phrases that are searched for to answer a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.text.cues import is_content_word
from enfold.text.questions import MAX_PHRASES, phrases_about, stem


def looked_for(question: str) -> list[str]:
    return [" ".join(phrase.terms) + "*" * phrase.prefix for phrase in phrases_about(question)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did we decide about the transcriptions?", ["transcri*"]),
        ("Summarize the discussion about product evaluation.", ["product*", "evalua*"]),
        ("What’s the thesis about?", ["thesi*"]),
        ("Which port does src/db.py use?", ["src db py", "port*", "src", "db", "py"]),
        ('who said "brown fox"?', ["brown fox", "brown*", "fox"]),
        ("¿Qué decidimos sobre las grabaciones?", ["grabacion*"]),
        ("Was wurde über die Aufnahmen gesagt?", ["aufnahm*"]),
        ("Что решили про записях?", ["запис*"]),
        ("科幻电影", ["科幻", "幻电", "电影"]),
        ("What was the decision?", ["decis*"]),
        ("what is it", ["what*", "is", "it"]),
        ("error 404 in 2024", ["error*", "404", "2024"]),
        ("…?!", []),
    ],
)
def test_phrases_of_a_question(question: str, expected: list[str]) -> None:
    assert looked_for(question) == expected


@pytest.mark.parametrize(
    ("word", "others"),
    [
        ("transcription", ("transcripts", "transcribed", "transcriber")),
        ("evaluation", ("evaluate", "evaluating", "evaluated")),
        ("requirements", ("required", "requires")),
        ("decisions", ("decision", "decisive")),
    ],
)
def test_a_stem_begins_the_words_of_its_family(word: str, others: tuple[str, ...]) -> None:
    assert all(other.startswith(stem(word)) for other in others)
    assert len(stem(word)) > len(word) / 2


@given(st.text(max_size=300))
def test_any_question_has_a_bounded_number_of_phrases(question: str) -> None:
    phrases = phrases_about(question)
    assert len(phrases) == len(set(phrases)) <= MAX_PHRASES
    assert all(all(phrase.terms) for phrase in phrases)


@pytest.mark.parametrize("word", ["the", "yeah", "um", "我们", "i", "que"])
def test_common_words_are_not_content_words(word: str) -> None:
    assert not is_content_word(word)
    assert is_content_word("barometer")
