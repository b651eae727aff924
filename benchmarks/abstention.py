"""Abstention: the questions that recall answers with "nothing fits".

    python benchmarks/abstention.py [--sets qmsum memorybank agents] [--foreign 12] [--json FILE]

Every conversation is asked its own questions, and questions about conversations of another kind:
for meetings those of a university, of a product team and of a parliament are three kinds; for chats
each person is a kind, within one language. A question of another kind may still be answerable by
chance, so its share cannot reach 100 %. For memorybank one reader looked through the 144 questions
of another kind: those in `ANSWERABLE` have an answer in the chat that is asked. A further row is
without them.

The set `agents` has sessions of coding agents and the questions that `agent_recall.py` generates
from their structure. A session is asked some of its own questions, and some of sessions of other
projects. These are unanswerable if no message has one of the words that they name.

All conversations that are not in Chinese are also asked the questions of `EVERYDAY`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import agent_recall
from recorded import DATA

import enfold
from enfold.engine.state import whole_text
from enfold.evaluation import cases
from enfold.text.words import texts_of_terms

KINDS = (("university", r"B\w+\d"), ("product", r"(?:ES|IS|TS)\d"), ("parliament", r"[a-z]+_\d"))
TOKENS = 1_500
AGENTS = "agents"
EVERYDAY = (
    "What did my sister Clara say about the wedding?",
    "How long did I stay in Lisbon?",
    "What is the name of my dog?",
    "When did I buy the electric guitar?",
    "How much did the new laptop cost?",
    "Which airline did I fly with to Toronto?",
    "What did the doctor say about my knee?",
    "Where did I park the car at the airport?",
    "How many fish are there in my 30-gallon tank?",
    "What did Marcus give me for Christmas?",
    "When is my dentist appointment?",
    "Which restaurant did we go to on our anniversary?",
    "What is my grandmother's recipe for apple pie?",
    "How many kilometres did I run in the marathon?",
    "What colour did we paint the kitchen?",
    "Which university does my cousin attend?",
    "What was the score of the football match?",
    "When does my lease end?",
    "What is the password of the wifi in the office?",
    "How did the interview at Siemens go?",
    "Which tent did I buy for the camping trip in Norway?",
    "What did the landlord say about the broken heater?",
    "How old is my nephew Oliver?",
    "Which chapter of the thesis did I finish in March?",
)
"""Questions about things that no conversation mentions, written before they were asked."""
SESSIONS, SHORTEST, OF_OWN = 12, 8, 6
"""Sessions of each file of agents, messages of the shortest one, and own questions of each."""
_NAMED = re.compile(r"(?:change in|we ran|up with|regarding|about) (.*)\?")
"""The part of a generated question that names something."""
OWN, FOREIGN, UNANSWERABLE = "itself", "another kind", "another kind, unanswerable"
UNSAID = "everyday things"
KINDS_ASKED = (OWN, FOREIGN, UNANSWERABLE, UNSAID)
ANSWERABLE: dict[tuple[str, str, int], str] = {
    ("cn_张曼婷", "cn_陈阳", 3): "the topics of 30 April: a film, and what films give one",
    ("cn_孙悦", "cn_陈阳", 3): "the topics of 30 April: a journey, and places for photographs",
    ("cn_周立", "cn_孙悦", 6): "cities by the sea were recommended on 6 May",
    ("cn_陈阳", "cn_周立", 4): "three films were recommended on 30 April",
    ("cn_陈阳", "cn_孙悦", 4): "the happy event of 1 May is an interview that went well",
    ("cn_陈阳", "cn_周立", 3): "the first chat says that outdoor sports are liked",
    ("en_Frank", "en_Luna", 4): "methods against stress were recommended on 30 April",
    ("en_Frank", "en_Luna", 2): "stress at work on 30 April, and the question for ways to relax",
    ("en_Sunny", "en_Luna", 1): "too much work and a full schedule, on 29 April",
    ("en_ Jason ", "en_Luna", 1): "a boring job, on 5 May",
    ("en_ Jason ", "en_Frank", 4): "soothing music, on 3 May",
    ("en_ Jason ", "en_Jack", 3): "soothing music, on 3 May",
    ("en_ Jason ", "en_Jack", 2): "a film was recommended on 27 April",
    ("en_ Linda", "en_Luna", 1): "a demanding boss, on 3 May",
    ("en_Jack", "en_Luna", 5): "two films were shared, with their names",
    ("en_Jack", "en_Sunny", 3): "two films were recommended on 3 May",
    ("en_Luna", "en_Frank", 4): "classical music, in the first chat",
    ("en_Luna", "en_Jack", 7): "the birthday is on 2 May",
    ("en_Leo", "en_Luna", 4): "methods of relaxing were recommended on 6 May",
    ("en_Leo", "en_Frank", 4): "classical music, in the first chat",
}
"""The chat of memorybank that is asked, that of the question and its number there, and the answer.

Settled before the score was changed, by reading the nearest messages in the chat and, in doubt,
more of it. Questions that are answered only in part, for another day or by guessing are left out.
"""


def kind_of(case: cases.Case) -> tuple[str, str]:
    """Return the group of conversations that can be compared, and the kind within it."""
    group, _, name = case.id.partition("/")
    if group == "qmsum":
        return group, next((kind for kind, start in KINDS if re.match(start, name)), name)
    return f"{group}/{name[:2]}", name


def foreign_questions(
    case: cases.Case, others: Sequence[cases.Case], number: int, chosen: random.Random
) -> list[tuple[str, bool]]:
    """Return questions about conversations of another kind, and if this one answers them too."""
    group, kind = kind_of(case)
    pool = [
        (probe.question, (kind, kind_of(other)[1], at) in ANSWERABLE)
        for other in others
        if kind_of(other)[0] == group and kind_of(other)[1] != kind
        for at, probe in enumerate(other.probes, start=1)
    ]
    return chosen.sample(pool, min(number, len(pool)))


def agent_questions(
    number: int,
) -> list[tuple[cases.Case, list[tuple[str, tuple[str, ...]]]]]:
    """Return sessions of agents, and the questions that each is asked with their kinds."""
    chosen = random.Random(7)
    by_project: dict[str, list[tuple[cases.Case, list[str]]]] = {}
    for name in agent_recall.SETS:
        project = name.split("_")[0]
        file = DATA / f"{name}.jsonl"
        read = cases.read(file) if file.is_file() else ()
        found = [case for case in read if len(case.messages) >= SHORTEST]
        for case in chosen.sample(found, min(SESSIONS, len(found))):
            texts = [each.words for each in agent_recall.questions(case)]
            by_project.setdefault(project, []).append((case, texts))
    rows: list[tuple[cases.Case, list[tuple[str, tuple[str, ...]]]]] = []
    for own_project, sessions in by_project.items():
        pool = [
            question
            for other, those in by_project.items()
            if other != own_project
            for _, texts in those
            for question in chosen.sample(texts, min(OF_OWN, len(texts)))
        ]
        for case, texts in sessions:
            words = {word for each in case.messages for word in texts_of_terms(whole_text(each))}
            own = [(each, (OWN,)) for each in chosen.sample(texts, min(OF_OWN, len(texts)))]
            foreign = [
                (each, (FOREIGN, UNANSWERABLE) if _named(each) - words else (FOREIGN,))
                for each in chosen.sample(pool, min(number, len(pool)))
            ]
            rows.append((case, [*own, *foreign]))
    return rows


def _named(question: str) -> set[str]:
    found = _NAMED.search(question)
    return set(texts_of_terms(found[1].replace(" and ", " "))) if found else set()


def questions(name: str, number: int) -> list[tuple[cases.Case, list[tuple[str, tuple[str, ...]]]]]:
    """Return the conversations of a set, and the questions that each is asked with their kinds."""
    if name == AGENTS:
        return agent_questions(number)
    chosen = random.Random(7)
    found = list(cases.read(DATA / f"{name}.jsonl"))
    rows: list[tuple[cases.Case, list[tuple[str, tuple[str, ...]]]]] = []
    for case in found:
        rows_of_case: list[tuple[str, tuple[str, ...]]]
        rows_of_case = [(probe.question, (OWN,)) for probe in case.probes]
        for question, is_answerable in foreign_questions(case, found, number, chosen):
            rows_of_case.append(
                (question, (FOREIGN,) if is_answerable else (FOREIGN, UNANSWERABLE))
            )
        rows.append((case, rows_of_case))
    return rows


async def _measure(name: str, number: int) -> list[tuple[str, str, bool]]:
    """Return the half, what it is about and if it fits, for each question."""
    found = questions(name, number)
    half_of = cases.halves(case.id for case, _ in found)
    rows: list[tuple[str, str, bool]] = []
    for case, own_and_foreign in found:
        async with enfold.open("sqlite:///:memory:") as engine:
            session = await engine.session(case.id, model="openai:gpt-5")
            await session.append(*case.messages)
            unsaid = () if "/cn_" in case.id else EVERYDAY
            for question, kinds in (*own_and_foreign, *((each, (UNSAID,)) for each in unsaid)):
                fits = (await session.recall(question, tokens=TOKENS)).fits
                rows += [(half_of[case.id], kind, fits) for kind in kinds]
    return rows


def main() -> None:
    """Print the share of "nothing fits" for both sorts of questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["qmsum", "memorybank", AGENTS])
    parser.add_argument("--foreign", type=int, default=12)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in options.sets:
        measured = asyncio.run(_measure(name, options.foreign))
        for half, about in itertools.product(("all", "reporting"), KINDS_ASKED):
            fits = [each for of, kind, each in measured if kind == about and half in {"all", of}]
            if not fits or (about == UNANSWERABLE and name == "qmsum"):
                continue
            share = 1 - sum(fits) / len(fits)
            row = {"set": name, "half": half, "about": about}
            rows.append({**row, "questions": len(fits), "share": share})
            named = f"{name:<14} {half:<10} about {about:<29}"
            print(f"{named} {len(fits):5} questions {share:7.1%} nothing fits")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
