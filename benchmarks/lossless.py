"""The lossless strategy on recorded agent sessions, compared with headroom's cross-turn dedup.

    python benchmarks/lossless.py [--rounds N] [--sizes 100000,1000000,4000000]

Sessions come from the folder that ENFOLD_DATA names, as they are: many end inside a running tool
loop. Every answer is validated, which is timed, and restored from its ledger through a file, which
is not timed. The run ends with an error if a session is not restored exactly, becomes larger, or
has an unpaired tool call or result in any dialect. Sessions are counted before the clock starts.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from enfold import ledger
from enfold import wire as dialects
from enfold.condensation import Condensation, Plan, validate
from enfold.history import open_loop_start, orphans
from enfold.jsontext import dumps, loads
from enfold.ledger import Ledger
from enfold.messages import Conversation, Message, Text, ToolResult
from enfold.retention import Retention, split, zones
from enfold.strategies.lossless import shorten
from enfold.strategies.lossless.config import LosslessConfig
from enfold.tokens import count_conversation, count_messages, get, warm

sys.path.insert(0, str(Path(__file__).parent))
from conversations import agent
from peers import HEADROOM_DEDUP
from recorded import AGENTS, DATA, SINGLE_PROMPT

TOKENIZER = "o200k_base"
KEPT = Retention("messages", 3, keep_first=1)
USUAL, WITH_OBSOLETE = LosslessConfig(), LosslessConfig(remove_obsolete_state=True)
MILLION = 1_000_000
STEPS = ("reencoding", "result_consolidation", "file_deduplication", "block_deduplication")
MARKER = re.compile(r"⟨ [^⟩\n]* ⟩")
Figures: TypeAlias = Counter[str]
"""Figures by name."""
TOKENS_PER_MESSAGE = 430
"""Approximate tokens of the generated transcripts."""


def main() -> None:
    """Print the table of the sets, then the growth of time and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", default="100000,1000000,4000000")
    options = parser.parse_args()
    warm(TOKENIZER)
    print_sets(options.rounds)
    print()
    if options.sizes:
        print_growth([int(size) for size in options.sizes.split(",")], options.rounds)


def print_sets(rounds: int) -> None:
    """Print one row per set, and one for all."""
    if not DATA.is_dir():
        print(f"no sessions in {DATA}; set ENFOLD_DATA to a folder of .jsonl files")
        return
    sums = {name: measure_set(DATA / f"{name}.jsonl", rounds) for name in AGENTS}
    single = [each for name, each in sums.items() if name in SINGLE_PROMPT]
    total = _added(sums.values())
    sums |= {"single prompt": _added(single), "all": total}
    print("Tokens of tool results (o200k_base) and the share removed, markers subtracted.")
    print("In a loop: results of a tool loop that still runs. Seconds: CPU, with validation.\n")
    print(
        "| set | sessions | tokens of results | in a loop | lossless | with obsolete state "
        "| headroom | markers | tokens of markers | s per Mtok | ledger |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, each in sums.items():
        shares = [_gone(each, who) for who in ("lossless", "obsolete", "headroom")]
        print(
            f"| {name} | {each['sessions']} | {each['results']:,} | "
            f"{each['in_loop'] / each['results']:.0%} | {' | '.join(shares)} | "
            f"{each['markers']:,} | {each['tokens of markers'] / each['results']:.1%} | "
            f"{each['microseconds'] / each['tokens']:.2f} | {each['ledger'] / each['wire']:.1%} |"
        )
    shares = [f"{name} {total[name] / total['results']:.1%}" for name in STEPS]
    print(f"\nBy step: {', '.join(shares)}.")


def measure_set(file: Path, rounds: int) -> Figures:
    """Measure every conversation of a file, with enfold and with headroom."""
    conversations = [dialects.parse(loads(line)["messages"]) for line in file.open("rb")]
    total = _added(measure(each, rounds) for each in conversations)
    others = peer_results([results_of(each.messages) for each in conversations])
    if not isinstance(others, str):
        texts = [text for conversation in others for text in conversation]
        total["headroom"] = sum(get(TOKENIZER).count_many(texts))
    return total


def measure(conversation: Conversation, rounds: int) -> Figures:
    """Condense, validate and restore one conversation."""
    plan = plan_for(conversation.messages)
    answers = {"lossless": shorten(plan, USUAL), "obsolete": shorten(plan, WITH_OBSOLETE)}
    views = {name: view(plan, answer) for name, answer in answers.items()}
    found = [marker for text in results_of(views["lossless"]) for marker in MARKER.findall(text)]
    sizes = [restored(conversation, plan, answer) for answer in answers.values()]
    figures: Figures = Counter(
        sessions=1,
        tokens=plan.tokens,
        results=tokens_of_results(plan.messages),
        in_loop=tokens_of_results(plan.messages[open_loop_start(plan.messages) :]),
        markers=len(found),
        ledger=sizes[0][0],
        wire=sizes[0][1],
        microseconds=round(MILLION * min(timed(plan) for _ in range(rounds))),
        **{name: tokens_of_results(each) for name, each in views.items()},
    )
    figures["tokens of markers"] = sum(get(TOKENIZER).count_many(found))
    for step in answers["lossless"].steps:
        figures[step.name] = step.tokens_before - step.tokens_after
    return figures


def timed(plan: Plan) -> float:
    """Return the CPU seconds of the strategy and of the validation."""
    started = time.process_time()
    answer = shorten(plan, USUAL)
    if not answer.is_unchanged:
        validate(plan, answer)
    return time.process_time() - started


def restored(conversation: Conversation, plan: Plan, answer: Condensation) -> tuple[int, int]:
    """Restore the conversation; return the sizes of the ledger and of the conversation."""
    if answer.is_unchanged:
        return 0, len(dumps(dialects.render(conversation)))
    validate(plan, answer)
    after = view(plan, answer)
    if answer.tokens(plan) >= plan.tokens or orphans(after) != orphans(plan.messages):
        raise SystemExit("a conversation became larger, or lost a pair")
    check_dialects(conversation, after)
    before, wire = (
        dialects.render(replace(conversation, messages=tuple(messages)))
        for messages in (plan.messages, after)
    )
    written = ledger.write(before, wire, {edit.index: edit.shortenings for edit in answer.edits})
    file = dumps(written.as_json())
    again = ledger.restore(loads(dumps(wire)), Ledger.from_json(loads(file)))
    if dumps(again) != dumps(before):
        raise SystemExit("a conversation was not restored")
    return len(file), len(dumps(before))


def check_dialects(conversation: Conversation, after: Sequence[Message]) -> None:
    """End the run if a dialect has more unpaired calls or results than it had before."""
    changed = replace(conversation, messages=tuple(after))
    for dialect in dialects.DIALECTS:
        before, now = (
            len(orphans(dialects.parse(dialects.render(each, dialect), dialect).messages))
            for each in (conversation, changed)
        )
        if now > before:
            raise SystemExit(f"{now} unpaired messages in {dialect}, {before} before")


def print_growth(sizes: Sequence[int], rounds: int) -> None:
    """Print time and memory on generated transcripts of growing size, and headroom's time."""
    print("Generated transcripts; memory at its peak beside that of the messages themselves.\n")
    print("| tokens | s, CPU | s per Mtok | memory | tokens of results gone | headroom, s | gone |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for size in sizes:
        tracemalloc.start()
        conversation = dialects.parse(loads(dumps(transcript(size))))
        gc.collect()
        own = tracemalloc.get_traced_memory()[0]
        plan = plan_for(conversation.messages)
        gc.collect()
        tracemalloc.reset_peak()
        base = tracemalloc.get_traced_memory()[0]
        answer = shorten(plan, USUAL)
        validate(plan, answer)
        peak = tracemalloc.get_traced_memory()[1] - base
        tracemalloc.stop()
        seconds = min(timed(plan) for _ in range(rounds))
        before, after = (tokens_of_results(each) for each in (plan.messages, view(plan, answer)))
        print(
            f"| {plan.tokens:,} | {seconds:.2f} | {seconds / plan.tokens * MILLION:.2f} | "
            f"{peak / own:.2f} × | {1 - after / before:.1%} | {peer_row(conversation, before)} |"
        )


def transcript(tokens: int) -> list[dict[str, Any]]:
    """Return an agent's transcript of about this many tokens that ends with an answer."""
    messages = agent(tokens // TOKENS_PER_MESSAGE)
    return [
        *messages,
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks. And what is next?"},
    ]


def peer_row(conversation: Conversation, before: int) -> str:
    """Return headroom's time and reduction."""
    given = [results_of(conversation.messages)]
    with tempfile.TemporaryDirectory() as folder:
        took, texts = run_peer(given, Path(folder))
    if isinstance(took, str):
        return f"{took} | –"
    after = sum(get(TOKENIZER).count_many([text for each in texts for text in each]))
    return f"{took['cpu']:.2f} | {1 - after / before:.1%}"


def peer_results(given: list[list[str]]) -> list[list[str]] | str:
    """Return headroom's results for every conversation, or the reason why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        took, texts = run_peer(given, Path(folder))
    return took if isinstance(took, str) else texts


def run_peer(given: list[list[str]], folder: Path) -> tuple[dict[str, Any] | str, Any]:
    """Return headroom's figures and texts."""
    (folder / "given.json").write_text(json.dumps(given))
    took = HEADROOM_DEDUP.run(str(folder / "given.json"), str(folder / "after.json"))
    after = folder / "after.json"
    return took, json.loads(after.read_text()) if after.exists() else []


def plan_for(messages: tuple[Message, ...]) -> Plan:
    """Return the default plan: the first message and the last three stay."""
    counts = tuple(count_messages(messages, TOKENIZER))
    parted = split(messages, counts, KEPT, room=0)
    return Plan(messages, counts, parted, TOKENIZER, zones=zones(counts, KEPT))


def view(plan: Plan, answer: Condensation) -> list[Message]:
    """Return the messages of the answer."""
    edited = {edit.index: edit.message for edit in answer.edits}
    return [edited.get(index, message) for index, message in enumerate(plan.messages)]


def tokens_of_results(messages: Iterable[Message]) -> int:
    """Return the tokens of the tool results."""
    return count_conversation(Conversation(tuple(messages)), TOKENIZER).by_part["tool_result"]


def results_of(messages: Iterable[Message]) -> list[str]:
    """Return the texts of the tool results, in order."""
    return [
        each.text
        for message in messages
        for part in message.parts
        if isinstance(part, ToolResult)
        for each in part.parts
        if isinstance(each, Text)
    ]


def _gone(each: Figures, who: str) -> str:
    return f"{1 - each[who] / each['results']:.1%}" if who in each else "–"


def _added(figures: Iterable[Figures]) -> Figures:
    total: Figures = Counter()
    for each in figures:
        total.update(each)
    return total


if __name__ == "__main__":
    main()
