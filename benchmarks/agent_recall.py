"""Recall in agent sessions: questions about files, commands, errors, requests and decisions.

    python benchmarks/agent_recall.py [--sets NAME …] [--per-kind 2] [--misses] [--json FILE]

The questions are generated from the structure of recorded sessions, in words of their own, with
only the name of the thing that they ask for:

- file: "What did we change in FILE?" The answer is a line that an edit of the file added.
- command: "How did it end when we ran PROGRAM …?" The answer is the last line of its output.
- error: "Which error came up with PROGRAM …?" The answer is a line of the output with an error.
- request: "What was I after regarding …?", with the two rarest words of a sentence that a person
  typed. The answer is the sentence.
- decision: "What was settled about …?", with the three rarest words of a sentence of the assistant
  that states a decision. The answer is the sentence.

A question is answered if a passage of one recall contains the answer, whatever the white space.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

from recorded import DATA

import enfold
from enfold.engine import Session
from enfold.evaluation import cases
from enfold.evaluation.measures import typed_sentences
from enfold.messages import Message, Text, ToolCall, ToolResult, text_of
from enfold.text.sentences import Cue, telling_words, whole_sentences, word_cues
from enfold.text.words import texts_of_terms

SETS = (
    "agentv_claude",
    "agentv_codex",
    "cc_cipherbox",
    "cc_context_evaluator",
    "cc_entire_cli",
    "mini_swe_gemini3",
    "pi_sessions",
    "swe_agent_traj",
)
COMMANDS = ("command", "cmd")
PATHS = ("file_path", "path")
ADDED = ("new_string", "newText", "content", "replace")
LONGEST = 300
"""Characters of a command that a question can name, and of a line that can be an answer."""
_ERROR = re.compile(r"\b\w*(?:Error|Exception)\b|\berror\b|\bfatal:|\bFAIL", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][\w.-]{2,}")


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the lines of which one answers it."""

    kind: str
    words: str
    answers: tuple[str, ...]


def questions(case: cases.Case) -> Iterator[Question]:
    """Yield the questions about a session."""
    results = {
        part.call_id: text_of(part.parts)
        for message in case.messages
        for part in message.parts
        if isinstance(part, ToolResult)
    }
    calls = [part for each in case.messages for part in each.parts if isinstance(part, ToolCall)]
    yield from _about_files(calls)
    yield from _about_commands(calls, results)
    rarity = Counter(word for each in case.messages for word in telling_words(text_of(each.parts)))
    for sentence in typed_sentences(case.messages):
        if named := _rarest(sentence, rarity, 2):
            yield Question(
                "request", f"What was I after regarding {' and '.join(named)}?", (sentence,)
            )
    for sentence in _decisions(case.messages):
        if named := _rarest(sentence, rarity, 3):
            yield Question("decision", f"What was settled about {', '.join(named)}?", (sentence,))


def _about_files(calls: Sequence[ToolCall]) -> Iterator[Question]:
    added: dict[str, list[str]] = defaultdict(list)
    for call in calls:
        given = call.arguments if isinstance(call.arguments, dict) else {}
        path = next((given[key] for key in PATHS if isinstance(given.get(key), str)), None)
        text = next((given[key] for key in ADDED if isinstance(given.get(key), str)), None)
        if path and text:
            old = str(given.get("old_string") or given.get("oldText") or given.get("search") or "")
            added[path] += [line for line in _lines(text) if line not in old]
    for path, lines in added.items():
        if lines:
            yield Question(
                "file", f"What did we change in {PurePosixPath(path).name}?", tuple(lines)
            )


def _about_commands(calls: Sequence[ToolCall], results: dict[str, str]) -> Iterator[Question]:
    runs: dict[str, list[str]] = defaultdict(list)
    for call in calls:
        given: dict[str, Any] = call.arguments if isinstance(call.arguments, dict) else {}
        command = next((given[key] for key in COMMANDS if isinstance(given.get(key), str)), None)
        if command and len(command) <= LONGEST and results.get(call.id):
            named = " ".join(_NAME.findall(command)[:4])
            runs[named].append(results[call.id])
    for named, outputs in runs.items():
        if not named:
            continue
        ends = tuple(lines[-1] for output in outputs if (lines := list(_lines(output))))
        if ends:
            yield Question("command", f"How did it end when we ran {named}?", ends)
        errors = [line for output in outputs for line in _lines(output) if _ERROR.search(line)]
        if errors:
            yield Question("error", f"Which error came up with {named}?", tuple(errors))


def _lines(text: str) -> Iterator[str]:
    """Yield the lines that say something and are not too long for an answer."""
    for line in text.splitlines():
        stripped = " ".join(line.split())
        if len(stripped) <= LONGEST and len(telling_words(stripped)) >= 3:
            yield stripped


def _decisions(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if message.role != "assistant":
            continue
        for part in message.parts:
            lines = part.text.splitlines() if isinstance(part, Text) else ()
            for sentence in (each for line in lines for each in whole_sentences(line)):
                cues = 0
                for word in texts_of_terms(sentence):
                    cues |= word_cues(word)
                if cues & Cue.DECISION and len(sentence) <= LONGEST:
                    yield sentence.strip()


def _rarest(sentence: str, rarity: Counter[str], number: int) -> list[str]:
    """Return the rarest words of a sentence of six telling words or more, in their order."""
    words = [each for each in dict.fromkeys(texts_of_terms(sentence)) if each in rarity]
    telling = [each for each in words if each in telling_words(sentence) and each.isalpha()]
    if len(telling) < 6:
        return []
    chosen = sorted(telling, key=lambda each: (rarity[each], each))[:number]
    return [each for each in telling if each in chosen]


async def _is_answered(session: Session, question: Question, tokens: int) -> bool:
    answer = await session.recall(question.words, tokens=tokens)
    shown = "\n".join(" ".join(each.text.split()) for each in answer.passages)
    # A call's arguments are shown as JSON, in which quotes and backslashes are escaped.
    forms = {form for each in question.answers for form in (each, json.dumps(each)[1:-1])}
    return any(" ".join(form.split()) in shown for form in forms)


async def _measure(options: argparse.Namespace) -> list[tuple[str, str, bool]]:
    chosen = random.Random(7)
    found: list[tuple[str, str, bool]] = []
    for name in options.sets:
        file = DATA / f"{name}.jsonl"
        for case in cases.read(file) if file.is_file() else ():
            chosen_questions: list[Question] = []
            by_kind = groupby(sorted(questions(case), key=lambda e: e.kind), key=lambda e: e.kind)
            for _, each in by_kind:
                of_kind = list(each)
                chosen_questions += chosen.sample(of_kind, min(options.per_kind, len(of_kind)))
            async with enfold.open("sqlite:///:memory:") as engine:
                session = await engine.session(case.id, model="openai:gpt-5")
                await session.append(*case.messages)
                for question in chosen_questions:
                    good = await _is_answered(session, question, options.tokens)
                    found.append((name, question.kind, good))
                    if options.misses and not good:
                        print(f"{case.id} {question.kind}: {question.words} {question.answers[:1]}")
    return found


def main() -> None:
    """Print the share of answered questions by kind and by set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--per-kind", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=1_500)
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = asyncio.run(_measure(options))
    rows: list[dict[str, Any]] = []
    for at, title in ((0, "set"), (1, "kind")):
        for value in sorted({each[at] for each in found}):
            good = [each[2] for each in found if each[at] == value]
            share = sum(good) / len(good)
            rows.append({"by": title, "name": value, "questions": len(good), "share": share})
            print(f"{title:<6} {value:<22} {len(good):5} questions {share:7.1%}")
    print(f"all {len(found):31} questions {sum(each[2] for each in found) / len(found):7.1%}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
