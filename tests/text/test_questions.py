"""The phrases that are searched for to answer a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.text.questions import (
    MAX_PHRASES,
    Aim,
    aim_of,
    file_names,
    phrases_about,
    stem,
    sub_questions,
    vague_phrases,
)
from enfold.text.sentences import is_content_word


def looked_for(question: str) -> list[str]:
    return [" ".join(phrase.terms) + "*" * phrase.prefix for phrase in phrases_about(question)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did we decide about the transcriptions?", ["transcri*"]),
        ("Summarize the discussion about product evaluation.", ["product*", "evalua*"]),
        ("What’s the thesis about?", ["thesi*"]),
        ("Which port does src/db.py use?", ["src db py", "db py", "port*", "src", "db", "py"]),
        ('who said "brown fox"?', ["brown fox", "brown*", "fox"]),
        ("¿Qué decidimos sobre las grabaciones?", ["grabacion*"]),
        ("Was wurde über die Aufnahmen gesagt?", ["aufnahm*"]),
        ("Что решили про записях?", ["запис*"]),
        ("科幻电影", ["科幻", "幻电", "电影"]),
        ("What was the decision?", ["decis*"]),
        ("Why didn't the tide turn, and isn’t it late?", ["tide*", "turn*", "late*"]),
        ("what is it", ["what*", "is", "it"]),
        ("error 404 in 2024", ["error*", "404", "2024"]),
        ("…?!", []),
    ],
)
def test_phrases_of_a_question(question: str, expected: list[str]) -> None:
    assert looked_for(question) == expected


@pytest.mark.parametrize(
    "question",
    ["Which advantages, recently?", "What difficulties improved?", "¿Qué ventajas?", "方法"],
)
def test_words_that_can_be_said_of_anything_are_vague(question: str) -> None:
    assert vague_phrases(question) == frozenset(phrases_about(question))


def test_names_of_subjects_are_not_vague() -> None:
    named = phrases_about("Which advantages did the lighthouse have?")
    vague = vague_phrases("Which advantages did the lighthouse have?")
    assert [phrase.terms for phrase in named if phrase not in vague] == [("lighthous",)]


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


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What did we change in src/enfold/a.py?", ["a.py"]),
        ("And in Makefile.am, .env.local or C:\\work\\b.test.ts?", ["Makefile.am", "b.test.ts"]),
        ("It costs 3.5 and ended. Then we left", []),
        ("See https://example.org/path/ for more", []),
    ],
)
def test_names_of_files(question: str, names: list[str]) -> None:
    assert [name for name in file_names(question) if name != ".env.local"] == names


@pytest.mark.parametrize(
    ("question", "aim"),
    [
        ("What did we change in a.py?", Aim.CHANGE),
        ("what did we do to src/a.py", Aim.CHANGE),
        ("Was haben wir in a.py geändert?", Aim.CHANGE),
        ("What did we change in the plan?", Aim.MATCH),
        ("Which port does src/db.py use?", Aim.MATCH),
        ("Which error does a.py give?", Aim.FAULT),
        ("How did it end when we ran a.py?", Aim.END),
    ],
)
def test_the_part_that_a_question_asks_for(question: str, aim: Aim) -> None:
    assert aim_of(question) is aim


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "Who brings the lanterns and when does the ferry to Norrby leave?",
            ["Who brings the lanterns", "when does the ferry to Norrby leave?"],
        ),
        ("Which port? Which database?", ["Which port?", "Which database?"]),
        ("What did Ada say about cost, and why?", ["What did Ada say about cost, and why?"]),
        ("Was it raining on 4 May? How did I feel?", ["Was it raining on 4 May? How did I feel?"]),
        ("I looked. What is the port?", ["I looked. What is the port?"]),
        ("Wer zahlt den Anker, und wann kommt die Fähre?", None),
        ("", []),
    ],
)
def test_the_questions_of_a_text(text: str, parts: list[str] | None) -> None:
    found = sub_questions(text)
    assert found == parts if parts is not None else len(found) == 2


@given(st.lists(st.sampled_from(["Who paid the ferry?", "and", "why?", "when does tea boil;"])))
def test_no_word_of_a_text_is_lost(pieces: list[str]) -> None:
    text = " ".join(pieces)
    words = " ".join(sub_questions(text)).replace(";", " ").split()
    wanted = [word.strip(";") for word in text.split() if word != "and"]
    assert [word for word in words if word != "and"] == wanted
