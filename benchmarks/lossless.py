"""The lossless strategy on real sessions of agents, beside headroom's cross-turn dedup.

    python benchmarks/lossless.py [--rounds N] [--sizes 125000,250000,500000,1000000]

Sessions come from the folder that ENFOLD_DATA names. Every answer is validated, which is timed with
it, and restored from its ledger through a file, which is not; a difference ends the run. Counts of
the sessions as they were are known beforehand, as they are in use.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from enfold import dialects, ledger
from enfold.condensation import Condensation, Task, validate
from enfold.history import open_loop_start, orphans
from enfold.jsontext import dumps, loads
from enfold.ledger import Ledger
from enfold.messages import Conversation, Message, Text, ToolResult
from enfold.retention import Retention, split, zones
from enfold.strategies.lossless import LosslessConfig, shorten
from enfold.tokens import count_conversation, count_messages, get, warm

sys.path.insert(0, str(Path(__file__).parent))
from conversations import agent
from peers import HEADROOM

DATA = Path(
    os.environ.get("ENFOLD_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
)
SETS = (
    "cc_cipherbox",
    "cc_context_evaluator",
    "cc_entire_cli",
    "cc_viewer_samples",
    "agentv_claude",
    "agentv_codex",
    "mini_swe_gemini3",
    "pi_sessions",
    "swe_agent_traj",
)
TOKENIZER = "o200k_base"
KEPT = Retention("messages", 3, keep_first=1)
USUAL, WITH_OBSOLETE = LosslessConfig(), LosslessConfig(remove_obsolete_state=True)
MILLION = 1_000_000
TOKENS_PER_MESSAGE = 430
"""Of generated transcripts, about."""


@dataclass
class Sum:
    """What was measured, added up over conversations."""

    conversations: int = 0
    tokens: int = 0
    results: int = 0
    """Tokens of tool results before."""
    untouchable: int = 0
    """Of those, in a tool loop that is still open."""
    after: dict[str, int] = field(default_factory=dict)
    """Tokens of tool results after, by who did it."""
    seconds: float = 0.0
    ledger: int = 0
    wire: int = 0
    steps: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: Sum) -> Sum:
        return Sum(
            self.conversations + other.conversations,
            self.tokens + other.tokens,
            self.results + other.results,
            self.untouchable + other.untouchable,
            _added(self.after, other.after),
            self.seconds + other.seconds,
            self.ledger + other.ledger,
            self.wire + other.wire,
            _added(self.steps, other.steps),
        )


def main() -> None:
    """Print the table per set, then how time and memory grow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", default="125000,250000,500000,1000000")
    options = parser.parse_args()
    warm(TOKENIZER)
    print_sets(options.rounds)
    print()
    print_growth([int(size) for size in options.sizes.split(",")], options.rounds)


def print_sets(rounds: int) -> None:
    """One row per set, and one for all of them."""
    if not DATA.is_dir():
        print(f"no sessions in {DATA}; set ENFOLD_DATA to a folder of .jsonl files")
        return
    sums = {name: measure_set(DATA / f"{name}.jsonl", rounds) for name in SETS}
    sums["all"] = sum(sums.values(), Sum())
    print("Tokens of tool results that are gone, markers paid for; o200k_base.")
    print("Untouchable: in a tool loop that is still open. Seconds with validation, CPU.\n")
    print(
        "| set | sessions | tokens of results | untouchable | lossless | with obsolete state "
        "| headroom | s per Mtok | ledger |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, each in sums.items():
        shares = [_gone(each, who) for who in ("lossless", "obsolete", "headroom")]
        print(
            f"| {name} | {each.conversations} | {each.results:,} | "
            f"{each.untouchable / each.results:.0%} | {' | '.join(shares)} | "
            f"{each.seconds / each.tokens * MILLION:.2f} | {each.ledger / each.wire:.1%} |"
        )
    total = sums["all"]
    shares = [f"{name} {saved / total.results:.1%}" for name, saved in total.steps.items()]
    print(f"\nBy step: {', '.join(shares)}.")


def measure_set(file: Path, rounds: int) -> Sum:
    """Every conversation of a file, by us and by the peer."""
    conversations = [dialects.parse(loads(line)["messages"]) for line in file.open("rb")]
    total = sum((measure(each, rounds) for each in conversations), Sum())
    others = peer_results([results_of(each.messages) for each in conversations])
    if not isinstance(others, str):
        texts = [text for conversation in others for text in conversation]
        total.after["headroom"] = sum(get(TOKENIZER).count_many(texts))
    return total


def measure(conversation: Conversation, rounds: int) -> Sum:
    """One conversation: condensed, validated, restored."""
    task = task_for(conversation.messages)
    answers = {"lossless": shorten(task, USUAL), "obsolete": shorten(task, WITH_OBSOLETE)}
    seconds = min(timed(task) for _ in range(rounds))
    sizes = [restored(conversation, task, answer) for answer in answers.values()]
    loop = task.messages[open_loop_start(task.messages) :]
    steps = {
        step.name: step.tokens_before - step.tokens_after for step in answers["lossless"].steps
    }
    after = {name: tokens_of_results(view(task, each)) for name, each in answers.items()}
    return Sum(
        1,
        task.tokens,
        tokens_of_results(task.messages),
        tokens_of_results(loop),
        after,
        seconds,
        *sizes[0],
        steps,
    )


def timed(task: Task) -> float:
    """CPU seconds of the strategy and of checking what it answers."""
    started = time.process_time()
    answer = shorten(task, USUAL)
    if not answer.is_unchanged:
        validate(task, answer)
    return time.process_time() - started


def restored(conversation: Conversation, task: Task, answer: Condensation) -> tuple[int, int]:
    """The sizes of the ledger and of the conversation, after the way back was gone."""
    if answer.is_unchanged:
        return 0, len(dumps(dialects.render(conversation)))
    validate(task, answer)
    after = view(task, answer)
    if answer.tokens(task) >= task.tokens or orphans(after) != orphans(task.messages):
        raise SystemExit("a conversation became larger, or lost a pair")
    before, wire = (
        dialects.render(replace(conversation, messages=tuple(messages)))
        for messages in (task.messages, after)
    )
    written = ledger.write(before, wire, {edit.index: edit.shortenings for edit in answer.edits})
    file = dumps(written.as_json())
    again = ledger.restore(loads(dumps(wire)), Ledger.from_json(loads(file)))
    if dumps(again) != dumps(before):
        raise SystemExit("a conversation was not restored")
    return len(file), len(dumps(before))


def print_growth(sizes: Sequence[int], rounds: int) -> None:
    """Generated transcripts of growing size: time and memory, ours and the peer's time."""
    print("Generated transcripts; memory at its peak beside that of the messages themselves.\n")
    print("| tokens | s, CPU | s per Mtok | memory | tokens of results gone | headroom, s | gone |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for size in sizes:
        tracemalloc.start()
        conversation = dialects.parse(loads(dumps(transcript(size))))
        gc.collect()
        own = tracemalloc.get_traced_memory()[0]
        task = task_for(conversation.messages)
        gc.collect()
        tracemalloc.reset_peak()
        base = tracemalloc.get_traced_memory()[0]
        answer = shorten(task, USUAL)
        validate(task, answer)
        peak = tracemalloc.get_traced_memory()[1] - base
        tracemalloc.stop()
        seconds = min(timed(task) for _ in range(rounds))
        before, after = (tokens_of_results(each) for each in (task.messages, view(task, answer)))
        print(
            f"| {task.tokens:,} | {seconds:.2f} | {seconds / task.tokens * MILLION:.2f} | "
            f"{peak / own:.2f} × | {1 - after / before:.1%} | {peer_row(conversation, before)} |"
        )


def transcript(tokens: int) -> list[dict[str, Any]]:
    """An agent's transcript of about so many tokens, answered in the end."""
    messages = agent(tokens // TOKENS_PER_MESSAGE)
    return [
        *messages,
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks. And what is next?"},
    ]


def peer_row(conversation: Conversation, before: int) -> str:
    """The peer's time and how much it takes away."""
    given = [results_of(conversation.messages)]
    with tempfile.TemporaryDirectory() as folder:
        took, texts = run_peer(given, Path(folder))
    if isinstance(took, str):
        return f"{took} | –"
    after = sum(get(TOKENIZER).count_many([text for each in texts for text in each]))
    return f"{took['cpu']:.2f} | {1 - after / before:.1%}"


def peer_results(given: list[list[str]]) -> list[list[str]] | str:
    """The results of every conversation as the peer leaves them, or why it could not."""
    with tempfile.TemporaryDirectory() as folder:
        took, texts = run_peer(given, Path(folder))
    return took if isinstance(took, str) else texts


def run_peer(given: list[list[str]], folder: Path) -> tuple[dict[str, Any] | str, Any]:
    """What the peer measured and what it made of the texts."""
    (folder / "given.json").write_text(json.dumps(given))
    took = HEADROOM.run(str(folder / "given.json"), str(folder / "after.json"))
    after = folder / "after.json"
    return took, json.loads(after.read_text()) if after.exists() else []


def task_for(messages: tuple[Message, ...]) -> Task:
    """The task as it is put where nothing else is asked for: first and last three stay."""
    counts = tuple(count_messages(messages, TOKENIZER))
    parted = split(messages, counts, KEPT, room=0)
    return Task(messages, counts, parted, TOKENIZER, zones=zones(counts, KEPT))


def view(task: Task, answer: Condensation) -> list[Message]:
    """The messages that the answer shows."""
    edited = {edit.index: edit.message for edit in answer.edits}
    return [edited.get(index, message) for index, message in enumerate(task.messages)]


def tokens_of_results(messages: Iterable[Message]) -> int:
    """The tokens of what tools returned."""
    return count_conversation(Conversation(tuple(messages)), TOKENIZER).by_part["tool_result"]


def results_of(messages: Iterable[Message]) -> list[str]:
    """The texts that tools returned, in order."""
    return [
        each.text
        for message in messages
        for part in message.parts
        if isinstance(part, ToolResult)
        for each in part.parts
        if isinstance(each, Text)
    ]


def _gone(each: Sum, who: str) -> str:
    return f"{1 - each.after[who] / each.results:.1%}" if who in each.after else "–"


def _added(one: dict[str, int], two: dict[str, int]) -> dict[str, int]:
    names = dict.fromkeys((*one, *two))
    return {name: one.get(name, 0) + two.get(name, 0) for name in names}


if __name__ == "__main__":
    main()
