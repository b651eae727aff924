"""Files of benchmarks as they are published, in small."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from enfold.errors import InputError
from enfold.evaluation.cases import Case, Probe, read
from enfold.messages import text_of


def written(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def texts(case: Case) -> list[str]:
    return [text_of(message.parts) for message in case.messages]


def test_conversations_with_probes(tmp_path: Path) -> None:
    probe = {"question": "How heavy?", "answer": "Nine stone", "evidence_message_ids": ["b", "x"]}
    lines = [
        {
            "id": "one",
            "messages": [
                {"id": "a", "role": "user", "content": "The anchor"},
                {"id": "b", "role": "assistant", "content": "It weighs nine stone"},
            ],
            "probes": [{**probe, "category": "fact"}],
        },
        {"messages": [{"role": "user", "content": "Hello"}]},
    ]
    path = tmp_path / "talks.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    first, second = read(path)
    assert (first.id, texts(first)) == ("one", ["The anchor", "It weighs nine stone"])
    assert first.probes == (Probe("How heavy?", "Nine stone", (1,), "fact"),)
    assert (second.id, second.probes) == ("talks.jsonl 2", ())


def test_a_probe_without_a_question_is_named(tmp_path: Path) -> None:
    value = {"id": "one", "messages": [{"role": "user", "content": "Hello"}], "probes": [{}]}
    with pytest.raises(InputError, match="one: probes: a probe is an object with a question"):
        list(read(written(tmp_path / "talk.json", [value])))


def test_locomo(tmp_path: Path) -> None:
    value = {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_10": [{"speaker": "Ada", "dia_id": "D10:1", "text": "Last"}],
            "session_10_date_time": "later",
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                {"speaker": "Ada", "dia_id": "D2:1", "text": "I adopted a cat"},
                {
                    "speaker": "Ben",
                    "dia_id": "D2:2",
                    "text": "Lovely!",
                    "blip_caption": "a grey cat",
                },
            ],
        },
        "qa": [
            {"question": "What did Ada adopt?", "answer": "A cat", "evidence": ["D2:1; D2:2"]},
            {"question": "How many?", "answer": 1, "evidence": [], "category": 5},
        ],
    }
    (case,) = read(written(tmp_path / "locomo10.json", [value]))
    assert case.id == "locomo/conv-1"
    assert texts(case) == ["I adopted a cat", "Lovely! [picture: a grey cat]", "Last"]
    assert [message.role for message in case.messages] == ["user", "assistant", "user"]
    assert case.messages[1].name == "Ben"
    may = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert [message.at for message in case.messages] == [may, may, None]
    assert case.probes[0] == Probe("What did Ada adopt?", "A cat", (0, 1), "")
    assert case.probes[1] == Probe("How many?", "1", (), "abstention")


def test_longmemeval(tmp_path: Path) -> None:
    value = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Which degree did I take?",
        "answer": "Physics",
        "haystack_dates": ["2023/05/20", "2023/05/21 (Sun) 09:15"],
        "haystack_session_ids": ["s1", "s2"],
        "haystack_sessions": [
            [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
            [{"role": "user", "content": "I took physics", "has_answer": True}],
        ],
        "answer_session_ids": ["s2"],
    }
    (case,) = read(written(tmp_path / "longmemeval_s.json", [value]))
    assert (case.id, texts(case)) == ("longmemeval/q1", ["Hi", "Hello", "I took physics"])
    first, second = datetime(2023, 5, 20, tzinfo=UTC), datetime(2023, 5, 21, 9, 15, tzinfo=UTC)
    assert [message.at for message in case.messages] == [first, first, second]
    probe = Probe("Which degree did I take?", "Physics", (2,), "single-session-user")
    assert case.probes == (probe,)


BATCHES = [
    {
        "batch_number": 1,
        "time_anchor": "March-15-2024",
        "turns": [
            [
                {"role": "user", "id": 0, "content": "I budget 500"},
                {"role": "assistant", "id": 1, "content": "Noted"},
            ]
        ],
    },
    {
        "batch_number": 2,
        "turns": [
            [{"role": "user", "id": 2, "content": "Now 700", "time_anchor": "April-02-2024"}]
        ],
    },
]
QUESTIONS = {
    "knowledge_update": [
        {"question": "Budget?", "answer": "700", "source_chat_ids": {"old": [0], "new": [2]}}
    ],
    "abstention": [{"question": "Its colour?", "ideal_response": "Never said"}],
}
BEAM_PROBES = (
    Probe("Budget?", "700", (0, 2), "knowledge_update"),
    Probe("Its colour?", "Never said", (), "abstention"),
)


def test_beam_as_folders(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    (folder / "probing_questions").mkdir(parents=True)
    written(folder / "probing_questions" / "probing_questions.json", QUESTIONS)
    (case,) = read(written(folder / "chat.json", BATCHES))
    assert (case.id, texts(case)) == ("beam/7", ["I budget 500", "Noted", "Now 700"])
    assert case.probes == BEAM_PROBES


@pytest.mark.parametrize("questions", [QUESTIONS, repr(QUESTIONS)], ids=["object", "text"])
def test_beam_as_rows(tmp_path: Path, questions: object) -> None:
    row = {
        "conversation_id": "3",
        "chat": [BATCHES[0]["turns"], []],
        "probing_questions": questions,
    }
    (case,) = read(written(tmp_path / "beam.json", [row]))
    assert (case.id, len(case.messages)) == ("beam/3", 2)
    assert case.probes[0].evidence == (0,)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"conversation": [], "qa": []}, "conversation: expected an object"),
        ({"conversation": {}, "qa": {}}, "qa: expected an array"),
        ({"haystack_sessions": [[{"role": "robot"}]], "question": "?"}, "roles user and assist"),
        ({"chat": [], "probing_questions": "no("}, "probing_questions: no object"),
        ({"chat": [], "probing_questions": [1]}, "probing_questions: expected an object"),
    ],
)
def test_an_unreadable_case_is_named(tmp_path: Path, value: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        list(read(written(tmp_path / "odd.json", [value])))
