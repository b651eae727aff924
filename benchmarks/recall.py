"""Recall: the evidence of questions that one recall returns, beside BM25 in the same tokens.

    python benchmarks/recall.py [--sets qmsum qmsum_train] [--tokens 1500] [--json FILE]
    python benchmarks/recall.py --lengths 10000 1000000

Every conversation with questions is stored and asked each of them once. Evidence counts as found

- word for word: the whole message is in one passage;
- in 25 words: 25 words of it in a row are in one passage, or the whole of a shorter message.

Only evidence of at least three content words counts, because "Yeah, exactly." occurs anywhere. A
question's share is the share of its evidence that is found; the table has the mean over questions,
of all conversations and of the half that reports (see `enfold eval`).

BM25 ranks whole messages (k1 1.2, b 0.75, stems without function words) and takes each message with
one, two or four neighbours on each side, in the order of rank, as long as their lines fit the
tokens.

With `--lengths` the CPU time of a recall is measured instead, on histories of so many messages that
repeat those of the sets, each in a database of its own. A million takes about two minutes to store.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from recorded import DATA

import enfold
from enfold.engine import recall
from enfold.engine.recall import recall_found
from enfold.evaluation import cases
from enfold.evaluation.measures import says_something
from enfold.messages import Message, text_of
from enfold.text.questions import stem
from enfold.text.sentences import is_content_word
from enfold.text.words import texts_of_terms
from enfold.tokens import get

TOKENIZER = "o200k_base"
IN_A_ROW = 25
K1, B = 1.2, 0.75
BATCH = 5_000
"""Messages that are stored at a time."""
READS = ("search_around", "texts", "stretch", "newest_time", "depths_between")
TIMED = {**dict.fromkeys(READS, 1), "ranges": -1}
"""The functions that read the store, and the one that they call to choose what is read."""
NEIGHBOURS = (1, 2, 4)
"""Neighbours on each side that BM25 takes."""


class ShownTexts:
    """The texts that one answer shows."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [" ".join(text.split()) for text in texts]

    def has_whole(self, message: Message) -> bool:
        """Return True if one text has the whole message."""
        wanted = " ".join(text_of(message.parts).split())
        return any(wanted in text for text in self._texts)

    def has_row(self, message: Message) -> bool:
        """Return True if one text has 25 words of the message in a row, or all of a shorter one."""
        words = text_of(message.parts).split()
        rows = {
            " ".join(words[at : at + IN_A_ROW]) for at in range(max(1, len(words) - IN_A_ROW + 1))
        }
        return any(row in text for row in rows for text in self._texts)


class Bm25:
    """BM25 over the messages of one conversation, with neighbours."""

    def __init__(self, case: cases.Case) -> None:
        texts = [text_of(message.parts) for message in case.messages]
        names = [message.name or message.role for message in case.messages]
        lines = [
            f"{at} {name}: {' '.join(text.split())}\n"
            for at, (name, text) in enumerate(zip(names, texts, strict=True), start=1)
        ]
        self.texts = texts
        self.costs = get(TOKENIZER).count_many(lines)
        self._terms = [Counter(_words(text)) for text in texts]
        self._lengths = [sum(each.values()) for each in self._terms]
        self._mean = mean(self._lengths) or 1
        self._holders = Counter(word for each in self._terms for word in each)

    def answer(self, question: str, tokens: int, neighbours: int) -> list[str]:
        """Return the best messages with their neighbours, within the tokens."""
        scores = [self._score(at, set(_words(question))) for at in range(len(self.texts))]
        chosen: set[int] = set()
        for at in sorted(range(len(scores)), key=lambda at: -scores[at]):
            if not scores[at]:
                break
            for near in sorted(
                range(at - neighbours, at + neighbours + 1), key=lambda n: abs(n - at)
            ):
                if 0 <= near < len(scores) and near not in chosen and self.costs[near] <= tokens:
                    chosen.add(near)
                    tokens -= self.costs[near]
        return [self.texts[at] for at in sorted(chosen)]

    def _score(self, at: int, words: set[str]) -> float:
        score, total = 0.0, len(self.texts)
        for word in words:
            if times := self._terms[at].get(word):
                holders = self._holders[word]
                weight = math.log(1 + (total - holders + 0.5) / (holders + 0.5))
                length = 1 - B + B * self._lengths[at] / self._mean
                score += weight * times * (K1 + 1) / (times + K1 * length)
        return score


def _words(text: str) -> list[str]:
    return [stem(word) for word in texts_of_terms(text) if is_content_word(word)]


async def _measure(names: Sequence[str], tokens: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in names:
        shares: dict[tuple[str, str, str], list[float]] = {}
        cpu = 0.0
        found_cases = list(cases.read(DATA / f"{name}.jsonl"))
        half_of = cases.halves(case.id for case in found_cases)
        for case in found_cases:
            with tempfile.TemporaryDirectory() as folder:
                async with enfold.open(f"sqlite:///{folder}/recall.db") as engine:
                    session = await engine.session(case.id, model="openai:gpt-5")
                    await session.append(*case.messages)
                    peer = Bm25(case)
                    for probe in case.probes:
                        wanted = [
                            case.messages[at]
                            for at in probe.evidence
                            if says_something(case.messages[at])
                        ]
                        if not wanted:
                            continue
                        start = time.process_time()
                        answer = await recall_found(session, probe.question, max_tokens=tokens)
                        cpu += time.process_time() - start
                        answers = {
                            "recall": ShownTexts([passage.text for passage in answer.passages]),
                        }
                        for near in NEIGHBOURS:
                            texts = peer.answer(probe.question, tokens, near)
                            answers[f"BM25, {near}"] = ShownTexts(texts)
                        for who, found in answers.items():
                            for rule in (ShownTexts.has_whole, ShownTexts.has_row):
                                share = mean(rule(found, message) for message in wanted)
                                for half in ("all", half_of[case.id]):
                                    key = (half, who, rule.__name__)
                                    shares.setdefault(key, []).append(share)
        rows += [
            {
                "set": name,
                "half": half,
                "by": who,
                "rule": rule,
                "questions": len(each),
                "share": mean(each),
                "cpu_ms": 1_000 * cpu / len(shares["all", who, rule]),
            }
            for (half, who, rule), each in shares.items()
            if half != "tuning"
        ]
        questions = len(next(iter(shares.values()), []))
        if questions:
            print(
                f"{name}: {questions} questions, {1000 * cpu / questions:.1f} ms of CPU per recall"
            )
    return rows


async def _time(names: Sequence[str], tokens: int, length: int) -> None:
    """Print the CPU time of a recall in a history of a length, and that outside the store."""
    found = [case for name in names for case in cases.read(DATA / f"{name}.jsonl")]
    messages = itertools.cycle(replace(each, id=None) for case in found for each in case.messages)
    questions = [case.probes[0].question for case in found if case.probes]
    with tempfile.TemporaryDirectory() as folder:
        async with enfold.open(f"sqlite:///{folder}/recall.db") as engine:
            session = await engine.session("long", model="openai:gpt-5")
            for first in range(0, length, BATCH):
                part = itertools.islice(messages, min(BATCH, length - first))
                await session.append(*part)
            await recall_found(session, questions[0], max_tokens=tokens)
            reads: list[float] = []
            with _timing_reads(reads):
                start = time.process_time()
                for question in questions:
                    await recall_found(session, question, max_tokens=tokens)
                in_all = time.process_time() - start
    in_all, rest = (1_000 * each / len(questions) for each in (in_all, in_all - sum(reads)))
    print(f"{length:10,} messages: {in_all:5.1f} ms in all, {rest:5.1f} ms outside the store")


@contextmanager
def _timing_reads(reads: list[float]) -> Iterator[None]:
    """Add the CPU seconds of each read of messages, without the choice of ranges, to a list.

    A recall runs in the thread that reads the store, so both are told apart by function.
    """
    originals = {name: getattr(recall, name) for name in TIMED}

    def timed(function: Callable[..., Any], sign: int) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            start = time.thread_time()
            result = function(*args, **kwargs)
            reads.append(sign * (time.thread_time() - start))
            return result

        return run

    for name, sign in TIMED.items():
        setattr(recall, name, timed(originals[name], sign))
    yield
    for name, function in originals.items():
        setattr(recall, name, function)


def main() -> None:
    """Print the shares by set and rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["qmsum", "qmsum_train"])
    parser.add_argument("--tokens", type=int, default=1_500)
    parser.add_argument("--lengths", nargs="+", type=int, default=())
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    for length in options.lengths:
        asyncio.run(_time(options.sets, options.tokens, length))
    if options.lengths:
        return
    rows = asyncio.run(_measure(options.sets, options.tokens))
    for row in rows:
        named = f"{row['set']:<14} {row['half']:<10} {row['by']:<8} {row['rule']:<10}"
        print(f"{named} {100 * row['share']:5.1f} %")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
