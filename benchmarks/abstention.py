"""Abstention: the questions that recall answers with "nothing fits".

    python benchmarks/abstention.py [--sets qmsum memorybank] [--foreign 12] [--json FILE]

Every conversation is asked its own questions, and questions about conversations of another kind:
for meetings those of a university, of a product team and of a parliament are three kinds; for chats
each person is a kind, within one language. A question of another kind may still be answerable by
chance, so its share cannot reach 100 %.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recorded import DATA

import enfold
from enfold.evaluation import cases

KINDS = (("university", r"B\w+\d"), ("product", r"(?:ES|IS|TS)\d"), ("parliament", r"[a-z]+_\d"))
TOKENS = 1_500


def kind_of(case: cases.Case) -> tuple[str, str]:
    """Return the group of conversations that can be compared, and the kind within it."""
    group, _, name = case.id.partition("/")
    if group == "qmsum":
        return group, next((kind for kind, start in KINDS if re.match(start, name)), name)
    return f"{group}/{name[:2]}", name


def foreign_questions(
    case: cases.Case, others: Sequence[cases.Case], number: int, chosen: random.Random
) -> list[str]:
    """Return questions about conversations of another kind."""
    group, kind = kind_of(case)
    pool = [
        probe.question
        for other in others
        if kind_of(other)[0] == group and kind_of(other)[1] != kind
        for probe in other.probes
    ]
    return chosen.sample(pool, min(number, len(pool)))


async def _measure(name: str, number: int) -> tuple[list[bool], list[bool]]:
    """Return if each question fits: those of a conversation itself, and those about others."""
    chosen = random.Random(7)
    found = list(cases.read(DATA / f"{name}.jsonl"))
    of_itself: list[bool] = []
    of_others: list[bool] = []
    async with enfold.open("sqlite:///:memory:") as engine:
        for case in found:
            session = await engine.session(case.id, model="openai:gpt-5")
            await session.append(*case.messages)
            sampled = (
                (of_itself, [probe.question for probe in case.probes]),
                (of_others, foreign_questions(case, found, number, chosen)),
            )
            for fits, questions in sampled:
                fits += [(await session.recall(each, tokens=TOKENS)).fits for each in questions]
    return of_itself, of_others


def main() -> None:
    """Print the share of "nothing fits" for both sorts of questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["qmsum", "memorybank"])
    parser.add_argument("--foreign", type=int, default=12)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in options.sets:
        of_itself, of_others = asyncio.run(_measure(name, options.foreign))
        for title, fits in (("itself", of_itself), ("another kind", of_others)):
            if not fits:
                continue
            share = 1 - sum(fits) / len(fits)
            rows.append({"set": name, "about": title, "questions": len(fits), "share": share})
            print(f"{name:<14} about {title:<13} {len(fits):5} questions {share:7.1%} nothing fits")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
